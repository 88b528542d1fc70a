"""Starts what a Dask cluster consists of: scheduler and workers on one host, only workers on the others."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from evaluator import logs
from evaluator.clock import Clock, SystemClock
from evaluator.engine.distributed.connection import dask_distributed

SCHEDULER_PORT = 8786
"""Dask's own default."""
MOST_WORKERS = 64
WORKER_PORTS = 8790
"""The first of as many ports for workers, and after those as many for the processes that watch over them."""
NO_PAGES = "127.0.0.1:0"
"""Where Dask's own web server is, which cannot be left out: nobody from elsewhere reaches it."""
STARTED_WITHIN = 60.0
"""Seconds in which workers have to come up."""


LOOK_EVERY = 2.0
"""Seconds between two tries to reach the scheduler."""

log = structlog.get_logger(__name__)


@contextmanager
def scheduler_and_workers(host: str) -> Iterator[None]:
    """A scheduler in this process, and a worker for each core beside it.

    Args:
        host: name or address of this host, as others reach it.

    Raises:
        OSError, RuntimeError: the name is not known yet, a port is taken, or workers do not come up.
    """
    with dask_distributed().LocalCluster(
        n_workers=_cores(), threads_per_worker=1, processes=True, host=host, scheduler_port=SCHEDULER_PORT,
        dashboard_address=NO_PAGES, silence_logs=logging.ERROR, **_worker_options(),
    ):  # fmt: skip
        yield


def await_scheduler(host: str, seconds: float, clock: Clock) -> bool:
    """Whether there is a scheduler on this host within so many seconds, unless the clock is woken before.

    The name of a host may become known late.
    """
    until = clock.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, SCHEDULER_PORT), timeout=LOOK_EVERY).close()
        except OSError:
            if clock.monotonic() >= until or clock.wait(LOOK_EVERY):
                return False
        else:
            return True


def work_for(address: str, host: str, on_stop: Callable[[Callable[[], None]], None]) -> None:
    """A worker for each core of this host, until the scheduler has gone or somebody stops them.

    Args:
        address: of the scheduler, which must be there.
        host: name or address of this host, as others reach it.
        on_stop: is given what stops them, to be called from any thread.
    """
    asyncio.run(_work(address, host, on_stop))


async def _work(address: str, host: str, on_stop: Callable[[Callable[[], None]], None]) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop() -> None:
        loop.call_soon_threadsafe(stopped.set)

    on_stop(stop)
    nanny = dask_distributed().Nanny
    options = {"nthreads": 1, "host": host, "silence_logs": logging.ERROR, **_worker_options()}
    nannies = [nanny(address, **options) for _ in range(_cores())]
    await asyncio.gather(*nannies)
    log.info("working_for", where=address, workers=len(nannies))
    ends = [asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(_all_finished(nannies))]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for one in ends:
        one.cancel()
    await asyncio.gather(*(one.close(timeout=5) for one in nannies))


async def _all_finished(nannies: Sequence[Any]) -> None:
    await asyncio.gather(*(one.finished() for one in nannies))


def dask_setup(_: object) -> None:
    """Called by Dask as a worker's process begins: it logs as the program does."""
    logs.configure(SystemClock(), "info", "json")
    dask_distributed()


def _worker_options() -> dict[str, Any]:
    workers, watchers = WORKER_PORTS, WORKER_PORTS + MOST_WORKERS
    return {
        "worker_port": f"{workers}:{watchers - 1}",
        "port": f"{watchers}:{watchers + MOST_WORKERS - 1}",
        "preload": [__name__],
        "death_timeout": STARTED_WITHIN,
    }


def _cores() -> int:
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS)
