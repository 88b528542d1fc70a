"""Runs the rule of mean_gradient.py in the process of the reference, or only opens a trial, and says how long it took.

    python timed.py                     read one request a line from standard input, answer one a line
    python timed.py '{"do": "judge", "trial": ..., "threshold": ...}'     one request, then end

Source:
    public API of smdebug 1.0.34: create_trial, Rule, invoke_rule, NoMoreData.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mean_gradient import MeanGradient  # type: ignore[import-not-found] # beside this script
from smdebug import __version__  # type: ignore[import-not-found] # in the other venv
from smdebug.exceptions import NoMoreData  # type: ignore[import-not-found]
from smdebug.rules.rule_invoker import invoke_rule  # type: ignore[import-not-found]
from smdebug.trials import create_trial  # type: ignore[import-not-found]


def judge(trial: str, threshold: str) -> dict[str, Any]:
    """The whole of a trial, with the reference's own loop."""
    begin = time.perf_counter()
    rule = MeanGradient(create_trial(trial), threshold)
    # that is how this loop always ends
    with suppress(NoMoreData):
        invoke_rule(rule)
    return {"seconds": time.perf_counter() - begin, "judged": rule.judged, "met": rule.met}


def look(trial: str, polls: int) -> dict[str, Any]:
    """Open a trial, then look for new steps where there are none."""
    begin = time.perf_counter()
    opened = create_trial(trial)
    steps = len(opened.steps())
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(polls):
        opened.steps()
    return {"seconds": seconds, "steps": steps, "poll": (time.perf_counter() - begin) / polls}


def version() -> dict[str, Any]:
    """Which reference this is."""
    return {"version": __version__}


def main() -> None:
    """Answer requests."""
    known: dict[str, Callable[..., dict[str, Any]]] = {"judge": judge, "look": look, "version": version}
    # what the library logs goes elsewhere, so that there is nothing but answers
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.argv[1:] or sys.stdin:
        request = json.loads(line)
        answer = known[request.pop("do")](**request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
