"""Waits for the answers of all rules in processes of their own at once, so that a slow one costs the others nothing."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence

from evaluator.clock import SystemClock
from evaluator.finding import Finding
from evaluator.isolation.channel import SLICE
from evaluator.isolation.isolated_run import IsolatedRun


def gather(runs: Sequence[IsolatedRun], interrupted: Callable[[], bool]) -> list[Finding]:
    """Wait until each has answered what it was sent, within its own time; what they found, in their order."""
    clock = SystemClock()
    with selectors.DefaultSelector() as selector:
        waiting = [run for run in runs if run.waited_for]
        for run in waiting:
            selector.register(run, selectors.EVENT_READ, run)
            # what the job did since it was sent the step is not its time
            run.allow()
        while waiting:
            ready = selector.select(max(0.0, min(SLICE, *(run.left for run in waiting))))
            began = clock.monotonic()
            for key, _ in ready:
                key.data.hear()
                if not key.data.waited_for:
                    selector.unregister(key.fd)
            spent, served = clock.monotonic() - began, {key.data for key, _ in ready}
            waiting = [run for run in waiting if run.waited_for]
            for run in waiting:
                if run not in served:
                    # the job was busy with others
                    run.allow(spent)
                if interrupted():
                    run.abandon()
                elif run.left <= 0:
                    run.expire()
            waiting = [run for run in waiting if run.waited_for]
    return [finding for run in runs for finding in run.heard()]
