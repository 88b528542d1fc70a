"""What an error of S3 means: wait and ask again, renew the credentials, or give up. One table of codes.

Nothing in here ever means "there is no such key" or "there are no files": only S3's own word for that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evaluator.errors import StorageUnavailable

Remedy = Literal["wait", "renew", "credentials", "none"]

EXPIRED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",  # keys that were replaced look like this until they are read again
        "InvalidToken",
        "RequestExpired",
        "TokenRefreshRequired",
    }
)
"""New credentials may help. Source: Amazon S3 API reference, "Error responses"; botocore's names for the same."""

BUSY = frozenset(
    {
        "BandwidthLimitExceeded",
        "InternalError",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeTooSkewed",  # a request that waited for long on its way, or a clock that is being set
        "RequestThrottled",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Time may help, whatever the number of the answer. Source: as above."""

_BUSY_STATUS = frozenset({408, 425, 429})
_NOT_BUILT = 501


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a request was not answered as it should be."""

    remedy: Remedy
    code: str
    """S3's code, or the kind of error where S3 did not answer."""
    status: int = 0
    """Of HTTP; 0 where nobody answered."""
    text: str = ""


class NotAnAnswer(Exception):
    """What came back is not what S3 sends: a proxy's page, or an answer that was cut."""


class Refused(Exception):
    """S3 answered, and asking again will not change the answer: whoever asked knows what it means."""

    def __init__(self, trouble: Trouble) -> None:
        """Hold what S3 said."""
        self.trouble = trouble
        super().__init__(trouble.code)


def request_errors() -> tuple[type[Exception], ...]:
    """All that a request can end with, besides its answer."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - optional, imported when needed
    from botocore.parsers import ResponseParserError  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    return BotoCoreError, ClientError, ResponseParserError, HTTPError, OSError, NotAnAnswer


def trouble_of(error: Exception) -> Trouble:
    """The trouble that one of `request_errors` stands for."""
    from botocore import exceptions as boto  # noqa: PLC0415 - optional, imported when needed

    if isinstance(error, boto.ClientError):
        said = error.response.get("Error", {})
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        code = _line(said.get("Code", status))
        if code == str(status) and error.operation_name != "HeadObject":
            # S3 says why, where an answer can have a body: this one was cut, or is somebody else's
            return Trouble("wait", code, status, _line(said.get("Message", "")))
        return Trouble(_remedy(code, status), code, status, _line(said.get("Message", "")))
    if isinstance(error, _no_credentials()):
        return Trouble("credentials", type(error).__name__, text=_line(error))
    # what else botocore says itself is about the request or the configuration, and stays as it is
    lasting = isinstance(error, boto.BotoCoreError) and not isinstance(
        error, boto.ConnectionError | boto.HTTPClientError | boto.IncompleteReadError
    )
    return Trouble("none" if lasting else "wait", type(error).__name__, text=_line(error))


def unavailable(where: str, trouble: Trouble, waited: float = 0.0) -> StorageUnavailable:
    """The error that an operation ends with which nothing helped."""
    if trouble.remedy == "credentials":
        right = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role"
        return StorageUnavailable(where, f"there are no usable credentials for S3: {trouble.text}", right)
    if trouble.remedy == "renew":
        what = f"the credentials are not valid ({trouble.code}), and no others were there within {waited:.0f} s"
        return StorageUnavailable(where, what, "credentials that are renewed before they expire")
    if trouble.code == "NoSuchBucket":
        return StorageUnavailable(where, "there is no such bucket (NoSuchBucket)", "s3://BUCKET/PREFIX")
    said = ": ".join(filter(None, (trouble.code, trouble.text)))
    if trouble.remedy == "wait":
        right = "" if trouble.status else "a reachable endpoint (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION)"
        return StorageUnavailable(where, f"S3 did not answer the request within {waited:.0f} s ({said})", right)
    return StorageUnavailable(where, f"S3 refuses the request ({said})")


def _line(text: object) -> str:
    """A text of somebody else, on one line and not too long."""
    return " ".join(str(text).split())[:200]


def _remedy(code: str, status: int) -> Remedy:
    if code in EXPIRED:
        return "renew"
    if code in BUSY or status in _BUSY_STATUS or (status >= 500 and status != _NOT_BUILT):
        return "wait"
    return "none"


def _no_credentials() -> tuple[type[Exception], ...]:
    from botocore import exceptions as boto  # noqa: PLC0415 - optional, imported when needed

    return (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.UnauthorizedSSOTokenError,
        boto.SSOTokenLoadError,
        boto.TokenRetrievalError,
        boto.NoAuthTokenError,
    )
