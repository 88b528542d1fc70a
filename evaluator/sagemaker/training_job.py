"""Asks SageMaker whether a training job is over: now and then, aside, and never taking silence for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import structlog

from evaluator.clock import Clock
from evaluator.errors import InputError, Mistake

OVER = frozenset({"Completed", "Failed", "Stopped"})
"""Source: SageMaker API, DescribeTrainingJob, TrainingJobStatus; the others are InProgress, Stopping and Deleting."""

ASK_EVERY = 30.0
"""Seconds. Many evaluators may ask at the same time, and all calls of an account share one limit."""
LONGEST_PAUSE = 300.0
"""Seconds between two questions that were not answered; doubled each time within these limits."""
CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 15.0

ACTION = "sagemaker:DescribeTrainingJob"

_BUSY = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure")

log = structlog.get_logger(__name__)

Describe = Callable[[str], str]
"""The TrainingJobStatus of the training job of that name; raises NoAnswer."""


class NoAnswer(Exception):
    """SageMaker did not say how the training job stands; the message says why, and what would be right."""

    def __init__(self, what: str, would_be_right: str = "") -> None:
        """Keep the two apart."""
        super().__init__(what)
        self.what = what
        self.would_be_right = would_be_right


def in_a_thread(work: Callable[[], None]) -> None:
    """Do this while the job goes on; a process that ends does not wait for it."""
    threading.Thread(target=work, name="training job", daemon=True).start()


class TrainingJob:
    """One training job; the status it has is asked for aside, so that a slow answer holds up nothing."""

    def __init__(
        self, name: str, clock: Clock, describe: Describe, aside: Callable[[Callable[[], None]], None] = in_a_thread
    ) -> None:
        """Ask nothing yet."""
        self._name = name
        self._where = f"training job {name!r}"
        self._clock = clock
        self._describe = describe
        self._aside = aside
        # only what goes through this queue is touched by another thread
        self._answers: SimpleQueue[str | NoAnswer] = SimpleQueue()
        self._over_at: float | None = None
        self._status = ""
        self._asking = False
        self._asked_at: float | None = None
        self._pause = ASK_EVERY
        self._asked = 0
        self._failed = 0
        self._why = Mistake("", "")

    def over_at(self) -> float | None:
        """When it was first heard that the job is over, by the monotonic clock; None while that is not known.

        Asks again where that is due.
        """
        self._hear()
        now = self._clock.monotonic()
        due = self._asked_at is None or now - self._asked_at >= self._pause
        if self._over_at is None and due and not self._asking:
            self._asking, self._asked_at = True, now
            self._asked += 1
            self._aside(self._ask)
            self._hear()
        return self._over_at

    def notes(self) -> list[str]:
        """How it ended, and that questions were not answered."""
        notes = [f"{self._where}: {self._status}"] if self._over_at is not None else []
        if self._failed:
            counted = f" ({self._failed} of {self._asked} times its status could not be asked for)"
            notes.append(f"{self._why}{counted}")
        return notes

    def _ask(self) -> None:
        """Ask, whatever comes of it; runs aside."""
        try:
            self._answers.put(self._describe(self._name))
        except NoAnswer as error:
            self._answers.put(error)
        except Exception as error:  # noqa: BLE001 - a question must never end a job, nor be waited for for ever
            self._answers.put(NoAnswer(f"its status could not be asked for ({type(error).__name__})"))

    def _hear(self) -> None:
        try:
            answer = self._answers.get_nowait()
        except Empty:
            return
        self._asking = False
        if isinstance(answer, NoAnswer):
            self._not_answered(answer)
            return
        self._pause = ASK_EVERY
        self._status = answer
        if answer in OVER:
            self._over_at = self._clock.monotonic()
            log.info("training_job_over", where=self._where, status=answer)

    def _not_answered(self, answer: NoAnswer) -> None:
        self._failed += 1
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        why = Mistake(self._where, answer.what, answer.would_be_right)
        if why != self._why:
            log.warning("training_job_not_answered", error=str(why))
        self._why = why


def sagemaker_status(region: str | None) -> Describe:
    """What asks SageMaker by boto3, in this region or else in the one that is configured.

    Raises:
        InputError: boto3 is not installed.
    """
    try:
        import boto3  # noqa: PLC0415 - optional, imported when needed
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError as error:
        what = "watching a training job needs a package that is not installed (boto3)"
        raise InputError([Mistake("training_job_name", what, "pip install 'rule-evaluator[s3]'")]) from error
    config = Config(
        connect_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT,
        # what is not answered is asked again later, by the clock of the job and counted
        retries={"total_max_attempts": 1, "mode": "standard"},
    )  # fmt: skip
    clients: list[Any] = []

    def describe(name: str) -> str:
        try:
            if not clients:
                session = boto3.session.Session()
                clients.append(session.client("sagemaker", region_name=session.region_name or region, config=config))
            return str(clients[0].describe_training_job(TrainingJobName=name)["TrainingJobStatus"])
        except (BotoCoreError, ClientError, OSError, KeyError, ValueError) as error:
            # a session of its own each time: a former one would keep its expired credentials
            clients.clear()
            raise _no_answer(error) from error

    return describe


def _no_answer(error: Exception) -> NoAnswer:
    """What an error of boto3 means to somebody who wants to know how a training job stands."""
    from botocore import exceptions as boto  # noqa: PLC0415 - optional, imported when needed

    if isinstance(error, boto.ClientError):
        said = error.response.get("Error", {})
        code, text = str(said.get("Code", ""))[:100], str(said.get("Message", ""))[:200]
        if "AccessDenied" in code or "NotAuthorized" in code:
            return NoAnswer(f"its status may not be asked for ({code})", f"permission {ACTION}")
        if code in ("ValidationException", "ResourceNotFound"):
            right = "the name of a training job in this account and region"
            return NoAnswer(f"there is no such training job ({text or code})", right)
        if code.startswith(_BUSY):
            return NoAnswer(f"SageMaker is too busy to answer ({code})")
        return NoAnswer(f"SageMaker refuses to tell its status ({code}: {text})")
    if isinstance(error, boto.NoRegionError):
        return NoAnswer("in which region it is, is not known", "set AWS_REGION")
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError | boto.CredentialRetrievalError):
        return NoAnswer(f"there are no usable credentials ({str(error)[:200]})", f"a role with {ACTION}")
    return NoAnswer(f"SageMaker does not answer ({type(error).__name__}: {str(error)[:200]})")
