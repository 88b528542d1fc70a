"""webhook: sends the finding to a URL, in the shape that its receiver takes.

The URL is a secret, as most receivers know who sends by it alone: it comes from a variable or a file, and neither it
nor what an error says of it is ever shown.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from email.message import Message
from typing import IO, Literal
from urllib.parse import urlsplit

from pydantic import Field

from evaluator import strict_json
from evaluator.actions._payloads import SHAPES
from evaluator.actions.base import ActionParameters, Call, Kind, NotDone, Surroundings

PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
"""Source: PagerDuty Events API v2."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two tries, doubled each time, or as long as the receiver asks for within these limits."""
WORTH_ANOTHER = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers that say that the same may be taken later."""


class WebhookParameters(ActionParameters):
    """Where to, and how."""

    shape: Literal["json", "slack", "alertmanager", "pagerduty"] = Field(
        default="json", description="What is sent: the finding as it is, or what Slack, Alertmanager or PagerDuty take."
    )
    url_variable: str | None = Field(default=None, description="The variable of the environment that holds the URL.")
    url_file: str | None = Field(default=None, description="The file that holds the URL.")
    token_variable: str | None = Field(
        default=None, description="The variable that holds a token, which is sent as 'Authorization: Bearer'."
    )
    token_file: str | None = Field(default=None, description="The file that holds the token.")
    routing_key_variable: str | None = Field(
        default=None, description="The variable that holds the routing key of PagerDuty."
    )
    routing_key_file: str | None = Field(default=None, description="The file that holds the routing key.")
    timeout: float = Field(default=10, gt=0, le=60, description="Seconds that one try may wait for the receiver.")
    tries: int = Field(default=5, ge=1, le=10, description="How often it is tried.")


class _Answer(Exception):
    """What came of a try that the receiver did not take."""

    def __init__(self, what: str, *, again: bool, after: float | None = None) -> None:
        super().__init__(what)
        self.again = again
        self.after = after


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Sends nobody's finding to where somebody else says."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage,
        newurl: str,
    ) -> None:  # fmt: skip
        """Go nowhere, which makes the answer an error."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def act(call: Call[WebhookParameters]) -> Mapping[str, object]:
    """Send it, and again where that may help."""
    parameters, secrets, clock = call.parameters, call.secrets, call.clock
    url = secrets["url"].read() if "url" in secrets else PAGERDUTY
    if not _is_of_the_web(url):
        raise NotDone(f"{secrets['url'].where} holds no URL that begins with http:// or https://")
    headers = {"Content-Type": "application/json", "Idempotency-Key": call.finding.id}
    if "token" in secrets:
        headers["Authorization"] = f"Bearer {secrets['token'].read()}"
    key = secrets["routing_key"].read() if "routing_key" in secrets else None
    body = strict_json.dumps(SHAPES[parameters.shape](call.finding, key))
    pause = FIRST_PAUSE
    for tried in range(1, parameters.tries + 1):
        try:
            status = _send(url, body, headers, parameters.timeout)
        except _Answer as answer:
            wait = min(pause if answer.after is None else answer.after, LONGEST_PAUSE)
            last = not answer.again or tried == parameters.tries
            # who is told to stop has no time for pauses
            if last or clock.wait(wait):
                times = "once" if tried == 1 else f"{tried} times"
                raise NotDone(f"{answer} (tried {times})") from None
            pause = 2 * pause
        else:
            return {"status": status, "tries": tried}
    raise NotDone("not tried")


def check(parameters: WebhookParameters, around: Surroundings) -> Sequence[tuple[str, str]]:
    """It needs a URL, and PagerDuty a key."""
    del around
    wrong = []
    if parameters.shape != "pagerduty" and not (parameters.url_variable or parameters.url_file):
        wrong.append(("no URL is named", "give url_variable or url_file; a URL itself is a secret and stands nowhere"))
    has_key = bool(parameters.routing_key_variable or parameters.routing_key_file)
    if parameters.shape == "pagerduty" and not has_key:
        wrong.append(("no routing key is named", "give routing_key_variable or routing_key_file"))
    if parameters.shape != "pagerduty" and has_key:
        wrong.append(("a routing key is for PagerDuty", 'give shape = "pagerduty", or leave it out'))
    return wrong


def _is_of_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _send(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> int:
    """One try: the status of the answer. Raises _Answer when the receiver did not take it."""
    try:
        request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310 - the scheme was looked at
        with _OPENER.open(request, timeout=timeout) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            what = f"the receiver answers {error.code}"
            if 300 <= error.code < 400:
                what += ", a redirect, which is not followed"
            raise _Answer(what, again=error.code in WORTH_ANOTHER, after=_seconds(error.headers)) from None
    except TimeoutError:
        raise _Answer(f"the receiver did not answer within {timeout:g} s", again=True) from None
    except urllib.error.URLError as error:
        raise _Answer(_why(error.reason, timeout), again=True) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Answer(_why(error, timeout), again=True) from None
    except ValueError:
        # what it says may hold the URL, or the token
        raise _Answer("the URL or the token is not in the form that HTTP has", again=False) from None


def _why(reason: object, timeout: float) -> str:
    """What went wrong on the way, in words that hold nothing of the URL."""
    if isinstance(reason, TimeoutError):
        return f"the receiver did not answer within {timeout:g} s"
    if isinstance(reason, OSError) and reason.strerror:
        return f"the receiver cannot be reached: {reason.strerror}"
    return f"the receiver cannot be reached ({type(reason).__name__})"


def _seconds(headers: Message | None) -> float | None:
    """How long the receiver asks to wait; dates are not looked at."""
    asked = None if headers is None else headers.get("Retry-After")
    return float(asked) if asked is not None and asked.strip().isdigit() else None


ACTION = Kind("webhook", WebhookParameters, act, check, secrets=("url", "token", "routing_key"))
