"""Messages by Amazon SNS, as the hosted rules send them.

Source:
    processing-contract.md, section 5, and smdebug-api.md, section 10: the topic, the filter of the subscription, and
    how subject and text begin. Unlike there, nothing is done before there is a finding, and the case of an address
    is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from evaluator import strict_json
from evaluator.actions._told import lines, short
from evaluator.actions.base import NotDone, Surroundings
from evaluator.aws import Refused, Service
from evaluator.errors import InputError
from evaluator.finding import Finding

TOPIC = "SMDebugRules"
MOST_PAGES = 50
"""Of 100 subscriptions each."""
LONGEST_SUBJECT = 100
"""Characters. Source: Amazon SNS API, Publish, Subject: ASCII text of up to 100 characters."""

_ATTRIBUTES = {"email": "email", "sms": "phone_num"}
"""Protocol -> the attribute that tells for whom a message is."""


def publish(
    protocol: Literal["email", "sms"], endpoint: str, finding: Finding, around: Surroundings
) -> Mapping[str, object]:
    """Send what a finding says to one address, which is subscribed where it is not yet.

    Raises:
        NotDone: SNS refuses, or does not answer.
    """
    try:
        sns = Service("sns", around.region)
        # makes none where there is one of that name
        topic = str(sns.ask("CreateTopic", Name=TOPIC)["TopicArn"])
        subscription = _subscription(sns, topic, protocol, endpoint)
        beginning = f"SMDebugRule:{finding.rule} fired"
        subject = short(beginning, LONGEST_SUBJECT).encode("ascii", "replace").decode()
        sent = sns.ask(
            "Publish",
            TopicArn=topic,
            Subject=subject,
            Message=f"{short(beginning)}. {lines(finding)}",
            MessageAttributes={_ATTRIBUTES[protocol]: {"DataType": "String", "StringValue": endpoint}},
        )
    except (Refused, InputError) as error:
        raise NotDone(str(error)) from error
    # until somebody has followed the link in the mail of SNS, nothing arrives there
    confirmed = subscription.startswith("arn:")
    return {"topic": topic, "message_id": sent.get("MessageId"), "confirmed": confirmed}


def _subscription(sns: Service, topic: str, protocol: str, endpoint: str) -> str:
    """The ARN of the address's subscription, or what SNS says in its place before it was confirmed."""
    try:
        there = sns.pages("ListSubscriptionsByTopic", "Subscriptions", MOST_PAGES, TopicArn=topic)
    except Refused as error:
        if "Auth" not in error.code and "AccessDenied" not in error.code:
            raise
        # who may not look may still subscribe, which changes nothing where it was done before
        there = []
    for one in there:
        if (one.get("Protocol"), one.get("Endpoint")) == (protocol, endpoint):
            return str(one.get("SubscriptionArn"))
    policy = strict_json.dumps({_ATTRIBUTES[protocol]: [endpoint]}).decode()
    made = sns.ask(
        "Subscribe", TopicArn=topic, Protocol=protocol, Endpoint=endpoint, Attributes={"FilterPolicy": policy}
    )
    return str(made.get("SubscriptionArn"))
