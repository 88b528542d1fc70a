"""Asks S3, and asks again where that may help: with longer and longer pauses, new credentials, and an end to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from evaluator.clock import Clock
from evaluator.errors import InputError, Mistake, StorageUnavailable
from evaluator.storage import _environment
from evaluator.storage._s3_errors import Refused, Trouble, request_errors, trouble_of, unavailable
from evaluator.storage._sharing import Shared
from evaluator.storage.base import Requests

T = TypeVar("T")
Kind = Literal["list", "get", "put", "delete"]

PATIENCE = 300.0
"""Seconds for which one request is repeated; ours. S3 asks for back-off when throttled and is back after minutes."""
FIRST_PATIENCE = 30.0
"""The same while nobody ever answered, or the credentials never were valid: then it is rather a mistake."""
SHORTEST_PAUSE = 0.2
LONGEST_PAUSE = 20.0
"""Seconds between two tries: doubled each time within these limits, and up to half of it left out by chance.

Source: AWS's guide for S3 performance, "Retry requests": exponential back-off with jitter.
"""
AFTER_WAKING = 2
"""Tries after somebody woke the clock: a job that is told to stop does not wait any more."""
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0
"""Seconds without a single byte, as boto3 has it by default."""
CONNECTIONS = 16
"""Kept open at most: more than the threads that read at the same time."""

DEFAULT_REGION = "us-east-1"
"""Where none is configured; S3 leads to the bucket's region from there, and other servers take any."""
_AWS = ("amazonaws.com", "amazonaws.com.cn", "amazonaws.eu", "api.aws", "ic.gov", "sgov.gov", "adc-e.uk")
"""Endings of AWS's own endpoints. Source: botocore's partitions.json, dnsSuffix."""


@dataclass(slots=True)
class _Effort:
    """What was done for one request until now."""

    began: float
    tries: int = 0
    last: float = math.inf
    renewed: bool = False


class Connection:
    """A client of S3 that all stores of one URI share, also from several threads."""

    def __init__(self, clock: Clock, shared: Shared | None = None) -> None:
        """Connect to nothing yet; `shared` is what the stores of many runs have in common."""
        self._clock = clock
        self._shared = Shared() if shared is None else shared
        self._reached = False
        self._let_in = False
        self.patience = PATIENCE
        """Seconds for which one request is repeated."""
        self._dice = Random()  # noqa: S311 - spreads requests over time, nothing is secret

    def ask(self, where: str, requests: Requests, kind: Kind, action: Callable[[Any], T]) -> T:
        """What `action` makes of the client.

        Each try is counted as a request of its kind, since each may be billed.

        Raises:
            Refused: S3 said no, and will say so again.
            StorageUnavailable: it did not answer for as long as is waited, or there are no credentials.
        """
        effort = _Effort(self._clock.monotonic())
        while True:
            client = self._shared.client(lambda: make_client(where))
            if kind != "delete":
                setattr(requests, kind, getattr(requests, kind) + 1)
            try:
                answer = action(client)
            except request_errors() as error:
                trouble = self._trouble(error)
                if trouble.remedy == "none":
                    raise Refused(trouble) from error
                pause = self._next_pause(effort, trouble)
                if trouble.remedy == "credentials" or pause is None:
                    raise unavailable(where, trouble, self._clock.monotonic() - effort.began) from error
            else:
                self._reached = self._let_in = True
                return answer
            requests.retries += 1
            if trouble.remedy == "renew":
                # credentials are looked for anew
                self._shared.drop(client)
                if not effort.renewed:
                    effort.renewed = True
                    continue
            if self._clock.wait(pause):
                effort.last = min(effort.last, effort.tries + AFTER_WAKING)

    def _trouble(self, error: Exception) -> Trouble:
        """What an error means now: who was let in before has lost the credentials for a while only."""
        trouble = trouble_of(error)
        self._reached = self._reached or trouble.status > 0
        if trouble.remedy == "credentials" and self._let_in:
            return Trouble("renew", trouble.code, text=trouble.text)
        return trouble

    def _next_pause(self, effort: _Effort, trouble: Trouble) -> float | None:
        """How long to wait before the next try; None when there should be none."""
        effort.tries += 1
        longest = min(SHORTEST_PAUSE * 2.0 ** (effort.tries - 1), LONGEST_PAUSE)
        pause = longest * (1 - self._dice.random() / 2)
        hopeful = self._let_in if trouble.remedy == "renew" else self._reached
        until = effort.began + (self.patience if hopeful else min(FIRST_PATIENCE, self.patience))
        return None if effort.tries >= effort.last or self._clock.monotonic() + pause > until else pause


def make_client(where: str) -> Any:
    """A boto3 client with the credentials and the endpoint that are configured now, which repeats nothing itself."""
    try:
        import boto3  # noqa: PLC0415 - optional, imported when needed
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415
    except ImportError as error:
        raise missing_packages(where) from error

    def client(**s3: str) -> Any:
        config = Config(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            max_pool_connections=CONNECTIONS,
            # repeated by `ask` only, by the clock of the job and counted
            retries={"total_max_attempts": 1, "mode": "standard"},
            # other servers than AWS's do not know the newer checksums
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3=s3 or None,
        )
        return session.client("s3", region_name=region, config=config)

    try:
        # a session of its own each time: a former one would keep its expired credentials
        inner = Session()
        inner.register_component("data_loader", _botocore_data())
        session = boto3.session.Session(botocore_session=inner)
        region = session.region_name or _environment.region() or DEFAULT_REGION
        made = client()
        style = (made.meta.config.s3 or {}).get("addressing_style")
        return client(addressing_style="path") if style is None and is_elsewhere(made.meta.endpoint_url) else made
    except (BotoCoreError, ValueError) as error:
        raise StorageUnavailable(where, f"S3 cannot be used as it is configured: {error}") from error


@cache
def _botocore_data() -> Any:
    """What botocore reads from its own files, which takes most of the time of making a client: once for all clients."""
    from botocore.loaders import create_loader  # noqa: PLC0415 - optional, imported when needed

    return create_loader()


def is_elsewhere(endpoint: str) -> bool:
    """Whether an endpoint is not AWS's own: bucket names are no host names there."""
    host = urlsplit(endpoint).hostname or ""
    return not any(host == ending or host.endswith(f".{ending}") for ending in _AWS)


def missing_packages(where: str) -> InputError:
    """What to install for S3."""
    what = "S3 needs packages that are not installed (boto3, s3fs)"
    return InputError([Mistake(where, what, "pip install 'rule-evaluator[s3]'")])
