"""sms: sends a text message by Amazon SNS, over the topic of the hosted rules."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from evaluator.actions._sns import publish
from evaluator.actions.base import ActionParameters, Call, Kind


class SmsParameters(ActionParameters):
    """Whom to write to."""

    endpoint: str = Field(pattern=r"^\+[0-9]{1,15}$", description="The telephone number, + and up to 15 digits.")


def act(call: Call[SmsParameters]) -> Mapping[str, object]:
    """Send it."""
    return publish("sms", call.parameters.endpoint, call.finding, call.around)


ACTION = Kind("sms", SmsParameters, act)
