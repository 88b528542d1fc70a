"""Reads the labelled logs: one run as a source, and what is known of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.modes import Mode
from evaluator.scalar_names import collections_of
from evaluator.sources.series import Point, SeriesRun

NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class Label:
    """What people found a run to be.

    Args:
        label: healthy, unclear, or the problem.
        onset: the step at which the problem begins, where that is known.
    """

    run: str
    repository: str
    kind: str
    label: str
    why: str
    onset: int | None = None


class NoLogs(Exception):
    """The folder of logs is not there or not whole."""


def labels(folder: Path) -> dict[str, Label]:
    """The labels of all runs, by run.

    Raises:
        NoLogs: there is no labels.json, or a log that it names is missing.
    """
    try:
        known: Mapping[str, Mapping[str, Any]] = json.loads((folder / "labels.json").read_bytes())
    except FileNotFoundError:
        raise NoLogs(f"{folder}: has no labels.json; give the folder of labelled logs with --logs DIR") from None
    missing = [run for run in known if not (folder / f"{run}.jsonl").is_file()]
    if missing:
        raise NoLogs(f"{folder}: {len(missing)} logs named in labels.json are missing, the first is {missing[0]}.jsonl")
    return {
        run: Label(run, one["repository"], one["kind"], one["label"], one["why"], one["onset_step"])
        for run, one in known.items()
    }


def load_log(path: Path) -> SeriesRun:
    """A log as a run of one worker, with the collections that its names tell."""
    return as_run(points(path.read_text(encoding="utf-8").splitlines()))


def as_run(values: Iterable[Point]) -> SeriesRun:
    """Points as a run, with the collections that their names tell."""
    taken = list(values)
    return SeriesRun(taken, collections=collections_of(point.name for point in taken))


def points(lines: Iterable[str]) -> Iterator[Point]:
    """The points of a log's lines, in their order."""
    for line in lines:
        one = json.loads(line)
        value = one["value"]
        number = NOT_FINITE[value] if isinstance(value, str) else float(value)
        yield Point(one["step"], one["name"], number, Mode[one["mode"]])
