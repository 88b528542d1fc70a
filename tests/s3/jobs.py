"""A job in this process with the test's clock, over a run that it follows, with any output."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from evaluator.clock import Clock
from evaluator.config.load import Arguments, load
from evaluator.errors import KeyMissing
from evaluator.formats.key_names import END_MARKER
from evaluator.job import Job
from evaluator.modes import Mode
from evaluator.status import schema
from evaluator.storage import open_store
from evaluator.storage.base import Store
from evaluator.writer import TrialWriter

HEALTHY, TINY = 1e-3, 1e-9
VANISHING = "VanishingGradient:parameter_set=sagemaker,on_finding=continue"
EXPLODING = "ExplodingTensor:parameter_set=sagemaker,on_finding=continue"


def save_run(folder: Path, values: Iterable[float], *, end: bool = True, first: int = 0) -> Path:
    """A run with one gradient, whose value is given for each step."""
    with TrialWriter(folder, collections={"gradients": ["g"]}) as writer:
        for step, value in enumerate(values, first):
            writer.save(step, {"g": np.full(3, value, np.float32)}, mode=Mode.TRAIN, mode_step=step, wall_time=0.0)
    marker = folder / END_MARKER
    if end:
        marker.touch()
    else:
        # the writer leaves one when it is closed
        marker.unlink(missing_ok=True)
    return folder


def make_job(
    trial: object, output: object, clock: Clock, *rules: str, follow: bool = True, restart: bool = False, **given: Any
) -> Job:
    """A job with these rules and settings."""
    arguments = Arguments(
        trial=str(trial), output=str(output), follow=follow or None, rules=list(rules or (VANISHING,)),
        set=[f"{name}={value}" for name, value in given.items()],
    )  # fmt: skip
    return Job(load(arguments, {}), clock, restart=restart)


class Output:
    """What is in an output, read by a store of its own."""

    def __init__(self, uri: object) -> None:
        self.store: Store = open_store(str(uri))

    @property
    def keys(self) -> list[str]:
        return [entry.key for entry in self.store.list() if entry.key != ".lock"]

    @property
    def status(self) -> Any:
        document = json.loads(self.store.read("status.json"))
        jsonschema.validate(document, schema("status"))
        return document

    @property
    def notes(self) -> str:
        return "\n".join(self.status["job"]["notes"])

    def lines(self, rule: str = "VanishingGradient") -> list[Any]:
        try:
            data = self.store.read(f"{rule}/findings.jsonl")
        except KeyMissing:
            return []
        documents = [json.loads(line) for line in data.splitlines()]
        for document in documents:
            jsonschema.validate(document, schema("finding"))
        return documents

    def found(self, rule: str = "VanishingGradient") -> list[tuple[int, str]]:
        """Step and event of the findings, in their order."""
        return [(one["step"], one["event"]) for one in self.lines(rule)]
