"""The connection to a Dask cluster: hands out tasks, waits for answers within bounds, and says when nobody is there."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Callable
from typing import Any

import structlog

from evaluator.clock import Clock, SystemClock
from evaluator.engine.distributed import missing_dask
from evaluator.engine.distributed.tasks import Answer, Batch, summarise_batch
from evaluator.errors import InputError, Mistake

CONNECT_TIMEOUT = 30.0
"""Seconds for which the scheduler is tried at the start."""
LONGEST_TASK = 900.0
"""Seconds after which a task that has not answered is done by the job itself, and so is all that follows; a worker
whose process stands still is lost to the scheduler earlier (its `worker-ttl`, five minutes)."""
SLICE = 0.5
"""Seconds between two looks at whether an answer can still come."""
ASKED_WITHIN = 5.0
"""Seconds in which the scheduler says which workers it has, or counts as gone."""

log = structlog.get_logger(__name__)


def dask_distributed() -> Any:
    """Dask's package, imported when it is needed; what it logs goes where our log goes."""
    package = importlib.import_module("distributed")
    _quiet_logs()
    return package


class Workers:
    """The workers of a cluster, as a job sees them."""

    def __init__(self, address: str, patience: float, interrupted: Callable[[], bool]) -> None:
        """Connect to the scheduler.

        Args:
            address: tcp://HOST:PORT or tls://HOST:PORT.
            patience: seconds for which workers are waited for while there is none.
            interrupted: whether nobody wants to wait any more.

        Raises:
            InputError: no scheduler answers there, or Dask is not installed.
        """
        if missing := missing_dask():
            raise missing
        self._client = _connect(address)
        self._patience = patience
        self._interrupted = interrupted
        # other processes take the machine's time, whatever clock the job goes by
        self._clock: Clock = SystemClock()
        self._threads = 0
        self._asked_at = float("-inf")
        self._nobody_since: float | None = None
        self._hanging: str | None = None
        self._look()

    @property
    def room(self) -> int:
        """How many tasks may be waited for at a time; 0 when there is nobody to do them."""
        if self._clock.monotonic() - self._asked_at >= 1:
            self._look()
        return 0 if self._given_up is not None else 2 * max(self._threads, 1) + 1

    def submit(self, batch: Batch) -> Any:
        """Hand out a task; it is done by whatever worker is free, and again by another one where that is lost."""
        # each call is its own task: what a file holds may change
        return self._client.submit(summarise_batch, batch, pure=False)

    def answer(self, task: Any) -> Answer | str:
        """What became of a task; as text, why it came to nothing."""
        began = self._clock.monotonic()
        while True:
            try:
                found: Answer = task.result(timeout=SLICE)
            except TimeoutError as error:
                if task.status == "error":
                    return _told(error)
                self._look()
                why = self._given_up
                if why is None and self._clock.monotonic() - began >= LONGEST_TASK:
                    why = self._hanging = f"no answer came within {LONGEST_TASK:g} s"
                if why is not None:
                    return why
            except Exception as error:  # noqa: BLE001 - the job can do whatever a worker could not
                return _told(error)
            else:
                self._nobody_since = None
                return found

    @staticmethod
    def drop(task: Any) -> None:
        """Nobody waits for this task any more."""
        task.cancel(reason="not needed any more")

    @staticmethod
    def dumps(thing: object) -> bytes:
        """Pickle as Dask does."""
        return bytes(importlib.import_module("distributed.protocol.pickle").dumps(thing))

    def close(self) -> None:
        """Leave the cluster; it goes on without this job."""
        self._client.close(timeout=ASKED_WITHIN)

    @property
    def _given_up(self) -> str | None:
        """Why nothing is expected of the workers for now."""
        if self._hanging is not None or self._nobody_since is None:
            return self._hanging
        if self._interrupted():
            return "no worker was there when the job was stopped"
        if self._clock.monotonic() - self._nobody_since < self._patience:
            return None
        return f"no worker was there for {self._patience:g} s"

    def _look(self) -> None:
        """Ask the scheduler how many threads its workers have."""
        self._threads = 0
        try:
            if self._client.status == "running":
                threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=ASKED_WITHIN)
                self._threads = sum(threads.values())
        except Exception as error:  # noqa: BLE001 - a scheduler that cannot be asked has no workers for us
            log.info("dask_logged", where="scheduler", message=_told(error))
        self._asked_at = self._clock.monotonic()
        if self._threads:
            self._nobody_since = None
        elif self._nobody_since is None:
            self._nobody_since = self._asked_at


def _told(error: Exception) -> str:
    """An error of a task in one line."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _connect(address: str) -> Any:
    """A client whose warnings are log lines of ours."""
    connect = dask_distributed().Client
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            client = connect(address, timeout=CONNECT_TIMEOUT, set_as_default=False, name="rule-evaluator")
        except Exception as error:
            what = f"no Dask scheduler answers at {address!r} within {CONNECT_TIMEOUT:g} s ({_told(error)})"
            raise InputError([Mistake("scheduler", what, "start one there: dask scheduler")]) from error
    for one in warned:
        log.warning("dask_warned", where=one.category.__name__, message=str(one.message))
    return client


class _ToOurLog(logging.Handler):
    """Hands what Dask logs on to the log of the job."""

    def emit(self, record: logging.LogRecord) -> None:
        """A line of ours; what Dask retries by itself is nobody's error yet."""
        level = logging.INFO if record.levelno < logging.ERROR else logging.WARNING
        log.log(level, "dask_logged", where=record.name, message=record.getMessage())


def _quiet_logs() -> None:
    """Let the loggers that Dask sets up as it is imported write nothing themselves."""
    handler = _ToOurLog(logging.WARNING)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if name.partition(".")[0] in {"distributed", "tornado", "dask", "bokeh"} and logger.handlers:
            logger.handlers = [handler]
