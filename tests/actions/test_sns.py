"""E-mail and text messages over SNS, on a server that behaves like it."""

from __future__ import annotations

import json
import secrets
from typing import Any

import boto3
import pytest

from evaluator.actions import email, sms
from evaluator.actions.base import NotDone, Surroundings
from tests.actions.receivers import do, receiver
from tests.sinks.made import make_finding

REGION = "eu-central-1"
HERE = Surroundings("/trials/one", region=REGION)
ADDRESS = "First.Last@Example.org"
FINDING = make_finding(message="mean |gradient| is 4.1e-08", last_healthy_step=2)


@pytest.fixture
def sns(s3_server: str, aws: pytest.MonkeyPatch) -> Any:
    """A client of the server, with nothing in it yet; and a queue, by which a test sees what is published."""
    aws.setenv("AWS_ENDPOINT_URL", s3_server)
    session = boto3.session.Session()
    client = session.client("sns", region_name=REGION)
    for topic in client.list_topics()["Topics"]:
        for one in client.list_subscriptions_by_topic(TopicArn=topic["TopicArn"])["Subscriptions"]:
            client.unsubscribe(SubscriptionArn=one["SubscriptionArn"])
        client.delete_topic(TopicArn=topic["TopicArn"])
    return client


def topics(sns: Any) -> list[str]:
    return [one["TopicArn"].rpartition(":")[2] for one in sns.list_topics()["Topics"]]


def subscriptions(sns: Any) -> list[tuple[str, str]]:
    return [(one["Protocol"], one["Endpoint"]) for one in sns.list_subscriptions()["Subscriptions"]]


def listen(sns: Any, **policy: list[str]) -> Any:
    """A queue that gets what SNS would send to a subscriber with this filter."""
    sqs = boto3.session.Session().client("sqs", region_name=REGION)
    queue = sqs.create_queue(QueueName=f"listener-{secrets.token_hex(8)}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = sns.create_topic(Name="SMDebugRules")["TopicArn"]
    sns.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"FilterPolicy": json.dumps(policy)} if policy else {}
    )

    def heard() -> list[dict[str, Any]]:
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(one["Body"]) for one in messages]

    return heard


def test_topic_and_subscription_are_made_when_there_is_a_finding(sns):
    details = do(email.ACTION, around=HERE, endpoint=ADDRESS)

    assert (topics(sns), subscriptions(sns)) == (["SMDebugRules"], [("email", ADDRESS)])
    assert str(details["topic"]).endswith(":SMDebugRules")
    assert details["message_id"]


def test_the_case_of_an_address_is_kept_in_subscription_and_filter(sns):
    do(email.ACTION, around=HERE, endpoint=ADDRESS)
    (one,) = sns.list_subscriptions()["Subscriptions"]
    attributes = sns.get_subscription_attributes(SubscriptionArn=one["SubscriptionArn"])["Attributes"]

    assert json.loads(attributes["FilterPolicy"]) == {"email": [ADDRESS]}


def test_a_second_finding_subscribes_nobody_again(sns):
    do(email.ACTION, around=HERE, endpoint=ADDRESS)
    do(email.ACTION, around=HERE, endpoint=ADDRESS, finding=make_finding(step=4))
    do(sms.ACTION, around=HERE, endpoint="+15550100")

    assert sorted(subscriptions(sns)) == [("email", ADDRESS), ("sms", "+15550100")]


def test_the_message_says_what_was_found_and_what_to_go_back_to(sns):
    heard = listen(sns)
    do(email.ACTION, around=HERE, endpoint=ADDRESS, finding=FINDING)
    (message,) = heard()

    assert message["Subject"] == "SMDebugRule:VanishingGradient fired"
    assert message["Message"].startswith(
        "SMDebugRule:VanishingGradient fired. VanishingGradient (error) at step 3: mean"
    )
    assert "last healthy step: 2" in message["Message"]
    assert FINDING.id in message["Message"]


@pytest.mark.parametrize(
    ("kind", "endpoint", "policy"),
    [(email.ACTION, ADDRESS, {"email": [ADDRESS]}), (sms.ACTION, "+15550100", {"phone_num": ["+15550100"]})],
)
def test_only_whom_it_is_for_is_sent_it(sns, kind, endpoint, policy):
    heard = listen(sns, **policy)
    do(kind, around=HERE, endpoint=endpoint)
    do(email.ACTION, around=HERE, endpoint="somebody.else@example.org")

    assert len(heard()) == 1


def test_a_rule_with_a_strange_name_is_still_a_subject(sns):
    heard = listen(sns)
    do(email.ACTION, around=HERE, endpoint=ADDRESS, finding=make_finding(rule="Größe\n" + "x" * 200))
    (message,) = heard()

    assert message["Subject"].isascii()
    assert len(message["Subject"]) <= 100
    assert "\n" not in message["Subject"]


def test_nothing_is_made_before_there_is_a_finding(sns):
    email.EmailParameters(endpoint=ADDRESS)

    assert topics(sns) == []


def test_a_service_that_is_not_there_is_a_failure(aws):
    with receiver() as gone:
        pass
    aws.setenv("AWS_ENDPOINT_URL_SNS", gone.url)

    with pytest.raises(NotDone, match="sns:CreateTopic: the service does not answer"):
        do(email.ACTION, around=HERE, endpoint=ADDRESS)


def test_a_refusal_names_the_permission(aws):
    body = b"<ErrorResponse><Error><Code>AuthorizationError</Code><Message>no</Message></Error></ErrorResponse>"
    with receiver((403, {}, body)) as one:
        aws.setenv("AWS_ENDPOINT_URL_SNS", one.url)

        with pytest.raises(NotDone, match=r"sns:CreateTopic is not allowed .*; permission sns:CreateTopic"):
            do(email.ACTION, around=HERE, endpoint=ADDRESS)


@pytest.mark.parametrize("endpoint", ["", "x", "a@b@c", "a b@c.org", '"a"@c.org', "a\n@b"])
def test_what_is_no_address_is_refused(endpoint):
    with pytest.raises(ValueError, match="endpoint"):
        email.EmailParameters(endpoint=endpoint)


@pytest.mark.parametrize("endpoint", ["15550100", "+", "+1 555", "+1234567890123456"])
def test_what_is_no_number_is_refused(endpoint):
    with pytest.raises(ValueError, match="endpoint"):
        sms.SmsParameters(endpoint=endpoint)
