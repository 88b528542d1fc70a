"""Writes examples of checks down as the files that a user would give, and makes the check on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.clock import Clock
from evaluator.sagemaker.diagnose import Check, Evidence, Example, Gathering, Inputs, Result
from evaluator.testing import BEGIN, FakeClock, trial_from_series

COLLECTIONS = {"weights": ["w"]}


def gather(inputs: Inputs, clock: Clock | None = None) -> Evidence:
    """All that the inputs hold."""
    return Gathering(inputs, clock or FakeClock(), lambda _: None).gather()


def of(check: Check, inputs: Inputs) -> Result:
    """What one check comes to."""
    return check.check(gather(inputs))


def written(example: Example, folder: Path) -> Inputs:
    """The files of an example."""
    logs = {"train.log": example.log, **example.logs} if example.log is not None else example.logs
    for name, text in logs.items():
        (folder / name).write_text(text or "")
    return Inputs(
        request=_json(folder / "request.json", example.request),
        trial=_trial(folder / "trial", example.trial, example.seconds, end=example.ended),
        other_trials=_others(folder, example),
        logs=[str(folder / name) for name in logs],
        checkpoints=[str(_json(folder / name, list(keys))) for name, keys in example.checkpoints.items()],
        security_groups=_json(folder / "groups.json", example.security_groups),
        file_systems=_json(folder / "systems.json", example.file_systems),
        metrics=_json(folder / "metrics.json", example.metrics),
    )


def clock_of(example: Example) -> FakeClock:
    """The time of an example."""
    return FakeClock(BEGIN + example.now)


def _json(path: Path, document: Any) -> str | None:
    if document is None:
        return None
    path.write_text(json.dumps(document))
    return str(path)


def _others(folder: Path, example: Example) -> list[str]:
    if example.smaller is None:
        return []
    count = max(len(values) for tensors in example.smaller.values() for values in tensors.values())
    seconds = [example.smaller_seconds * at for at in range(count)]
    other = _trial(folder / "other", example.smaller, seconds, end=True)
    return [] if other is None else [other]


def _trial(
    folder: Path,
    workers: Mapping[str, Mapping[str, Sequence[Any]]] | None,
    seconds: Sequence[float] | None,
    *,
    end: bool,
) -> str | None:
    if workers is None:
        return None
    names = dict.fromkeys(name for tensors in workers.values() for name in tensors)
    weights = [name for name in names if name.rpartition(".")[2] in ("w", "weight", "bias")]
    trial_from_series(
        folder, workers, workers=True, seconds=seconds, end=end, collections={"weights": weights, "losses": ["loss"]}
    )
    # a writer that saves nothing says nothing of itself either
    (folder / "collections").mkdir(parents=True, exist_ok=True)
    return str(folder)
