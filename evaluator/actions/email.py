"""email: sends a mail by Amazon SNS, over the topic of the hosted rules."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from evaluator.actions._sns import publish
from evaluator.actions.base import ActionParameters, Call, Kind


class EmailParameters(ActionParameters):
    """Whom to write to."""

    endpoint: str = Field(
        pattern=r'^[^@\s"\\]+@[^@\s"\\]+$', max_length=320, description="The address; its case is kept."
    )


def act(call: Call[EmailParameters]) -> Mapping[str, object]:
    """Send it."""
    return publish("email", call.parameters.endpoint, call.finding, call.around)


ACTION = Kind("email", EmailParameters, act)
