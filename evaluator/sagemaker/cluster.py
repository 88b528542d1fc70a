"""The hosts of a processing job with several of them, and which of them does what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import structlog

from evaluator.clock import Clock
from evaluator.engine.distributed import missing_dask
from evaluator.engine.distributed.serving import (
    SCHEDULER_PORT,
    await_scheduler,
    scheduler_and_workers,
    work_for,
)
from evaluator.formats.key_names import natural_key

FIRST_HOST_WITHIN = 300.0
"""Seconds in which the first host has to have its scheduler; hosts of one job do not start at the same time."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Hosts:
    """The hosts of a job: the first has the scheduler and the job, each has workers.

    Args:
        current: the name of this one.
        everyone: the names of all, in natural order.
    """

    current: str
    everyone: tuple[str, ...]

    @property
    def leads(self) -> bool:
        """Whether this host is the one that does the job."""
        return self.current == self.everyone[0]

    @property
    def scheduler(self) -> str:
        """Where the scheduler is, or will be."""
        return f"tcp://{self.everyone[0]}:{SCHEDULER_PORT}"


def hosts_of(resources: Mapping[str, object]) -> Hosts | None:
    """The hosts that resourceconfig.json names; None where this is the only one, or is not among them."""
    current, hosts = resources.get("current_host"), resources.get("hosts")
    if not isinstance(current, str) or not isinstance(hosts, list):
        return None
    everyone = sorted({host for host in hosts if isinstance(host, str) and host}, key=natural_key)
    return Hosts(current, tuple(everyone)) if len(everyone) > 1 and current in everyone else None


def cluster_settings(hosts: Hosts | None) -> dict[str, object]:
    """The defaults of settings with which a job makes use of all hosts; none where it cannot."""
    return {} if hosts is None or missing_dask() is not None else {"engine": "dask", "scheduler": hosts.scheduler}


@contextmanager
def leading(hosts: Hosts) -> Iterator[str | None]:
    """Scheduler and workers on the first host while the job runs; why there are none, where that is so."""
    with ExitStack() as started:
        problem = None
        try:
            started.enter_context(scheduler_and_workers(hosts.current))
        except Exception as error:  # noqa: BLE001 - a cluster that does not come up must not cost the job
            problem = f"no Dask cluster could be started ({type(error).__name__}: {error}); this host reads alone"
            log.warning("cluster_not_started", where=hosts.scheduler, error=str(error))
        yield problem


def follow(hosts: Hosts, clock: Clock, on_stop: Callable[[Callable[[], None]], None]) -> None:
    """Work for the first host until its scheduler has gone, or somebody stops this."""
    on_stop(clock.wake)
    log.info("waiting_for_scheduler", where=hosts.scheduler)
    if not await_scheduler(hosts.everyone[0], FIRST_HOST_WITHIN, clock):
        log.warning("no_scheduler_came", where=hosts.scheduler)
        return
    try:
        work_for(hosts.scheduler, hosts.current, on_stop)
    except Exception as error:  # noqa: BLE001 - the job goes on without this host, and tells what it comes to
        log.warning("work_ended", where=hosts.scheduler, error=f"{type(error).__name__}: {error}")
    else:
        log.info("work_ended", where=hosts.scheduler)
