"""Clients of AWS's services, with limits on how long they wait, and what their errors mean to people."""

from __future__ import annotations

from typing import Any

from evaluator.errors import InputError, Mistake

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 15.0
TRIES = 3

_BUSY = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure")


class Refused(Exception):
    """A service did not do what was asked of it; the code is its own, or empty where it did not answer."""

    def __init__(self, what: str, would_be_right: str = "", code: str = "") -> None:
        """Keep the parts apart."""
        super().__init__(f"{what}; {would_be_right}" if would_be_right else what)
        self.what = what
        self.would_be_right = would_be_right
        self.code = code


def missing_boto3(where: str) -> Mistake | None:
    """The mistake of asking for something that needs boto3 where that is not installed."""
    try:
        import boto3  # noqa: F401, PLC0415 - optional, imported when needed
    except ImportError:
        what = "needs a package that is not installed (boto3)"
        return Mistake(where, what, "pip install 'rule-evaluator[s3]'")
    return None


class Service:
    """One service of AWS, asked by boto3 and never for long."""

    def __init__(self, name: str, region: str | None) -> None:
        """Make the client, in the region that is configured or else in this one.

        Raises:
            InputError: boto3 is not installed.
            Refused: no region is known, or there are no credentials to be found.
        """
        missing = missing_boto3(name)
        if missing is not None:
            raise InputError([missing])
        import boto3  # noqa: PLC0415 - optional, imported when needed
        from botocore.config import Config  # noqa: PLC0415

        config = Config(
            connect_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT,
            retries={"total_max_attempts": TRIES, "mode": "standard"},
        )  # fmt: skip
        self._name = name
        try:
            # a session of its own: a former one would keep its expired credentials
            session = boto3.session.Session()
            self._client = session.client(name, region_name=session.region_name or region, config=config)
        except Exception as error:
            raise explained(error, name) from error

    @property
    def region(self) -> str:
        """Where it is."""
        return str(self._client.meta.region_name)

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """What it answers.

        Raises:
            Refused: it refuses, or does not answer.
        """
        try:
            answer: dict[str, Any] = getattr(self._client, _snake(operation))(**arguments)
        except Exception as error:
            raise explained(error, f"{self._name}:{operation}") from error
        return answer

    def pages(self, operation: str, key: str, most: int, **arguments: Any) -> list[Any]:
        """What stands under this key in all pages of an answer, `most` of them.

        Raises:
            Refused: it refuses, or does not answer.
        """
        found: list[Any] = []
        token: dict[str, Any] = {}
        for _ in range(most):
            answer = self.ask(operation, **arguments, **token)
            found += answer.get(key, [])
            if not answer.get("NextToken"):
                break
            token = {"NextToken": answer["NextToken"]}
        return found


def explained(error: Exception, asked: str) -> Refused:
    """What an error of boto3 means to somebody who asked this of a service; an error of anybody else is raised."""
    from botocore import exceptions as boto  # noqa: PLC0415 - optional, imported when needed

    if isinstance(error, boto.ClientError):
        said = error.response.get("Error", {})
        code, text = str(said.get("Code", ""))[:100], str(said.get("Message", ""))[:300]
        if "AccessDenied" in code or "NotAuthorized" in code or "AuthorizationError" in code:
            return Refused(f"{asked} is not allowed ({code})", f"permission {asked}", code)
        if code.startswith(_BUSY):
            return Refused(f"{asked}: the service is too busy to answer ({code})", "", code)
        return Refused(f"{asked} is refused ({code}: {text})", "", code)
    if isinstance(error, boto.NoRegionError):
        return Refused(f"{asked}: in which region is not known", "set AWS_REGION")
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError | boto.CredentialRetrievalError):
        return Refused(f"{asked}: there are no usable credentials ({str(error)[:200]})", f"a role that may {asked}")
    if isinstance(error, boto.ParamValidationError):
        return Refused(f"{asked}: {' '.join(str(error).split())[:300]}")
    if isinstance(error, boto.BotoCoreError | OSError | ValueError):
        return Refused(f"{asked}: the service does not answer ({type(error).__name__}: {str(error)[:200]})")
    raise error


def _snake(operation: str) -> str:
    """How boto3 calls an operation."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")
