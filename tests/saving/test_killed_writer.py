"""A writer that is killed at whatever byte leaves a trial that is judged up to its last whole step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.errors import InputError
from evaluator.formats.key_names import COLLECTIONS_PREFIX, event_key, index_key
from evaluator.modes import Mode
from evaluator.registry import builtin_rules
from evaluator.testing import evaluate
from evaluator.writer import TrialWriter

STEPS = 3
WORKER = "worker_0"
NAME = "VanishingGradient"


def rule() -> RuleConfiguration:
    """A rule that is judged at each step at which there are gradients."""
    made = configure(RuleRequest(NAME, {"parameter_set": "sagemaker"}, "command line", NAME), builtin_rules()[NAME])
    assert isinstance(made, RuleConfiguration)
    return made


def judged(folder: Path, *, unreadable: int = 0) -> int:
    """At how many steps the rule was judged; at most so many others could not be read, and were counted."""
    result = evaluate(str(folder), [rule()])

    assert result.failure == ""
    assert result.status.job.steps.unreadable <= unreadable
    return result.evaluated


@pytest.fixture
def written(tmp_path: Path) -> list[tuple[str, bytes]]:
    """The files of a trial with their contents, in the order in which they are written."""
    folder = tmp_path / "whole"
    order: list[str] = []
    with TrialWriter(folder, collections={"gradients": ["g"]}) as writer:
        for step in range(STEPS):
            writer.save(step, {"g": np.ones(3, np.float32), "loss": np.float32(step)}, mode=Mode.TRAIN)
            order += [event_key(step, WORKER), index_key(step, WORKER)]
    collections = f"{COLLECTIONS_PREFIX}000000000/{WORKER}_collections.json"
    return [(key, (folder / key).read_bytes()) for key in (collections, *order)]


def cut(written: list[tuple[str, bytes]]) -> Iterator[tuple[int, list[tuple[str, bytes]], tuple[str, bytes]]]:
    """For each byte: the whole steps until then, the whole files, and the file that was being written."""
    for number, (key, data) in enumerate(written):
        whole = sum(name.startswith("index/") for name, _ in written[:number])
        for byte in range(0, len(data), 1 if len(data) < 100 else 7):
            yield whole, written[:number], (key, data[:byte])


@pytest.mark.parametrize("suffix", [".tmp", ""], ids=["as the writer does", "where a file can be cut after its naming"])
def test_a_trial_is_judged_up_to_the_last_whole_step(tmp_path: Path, written, suffix: str):
    wrong = []
    cuts = list(cut(written))
    for number, (whole, files, (key, data)) in enumerate(cuts):
        folder = tmp_path / f"{number}"
        for name, content in [*files, (key + suffix, data)]:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            found = judged(folder, unreadable=0 if suffix else 1)
        except (InputError, AssertionError) as error:
            if whole:
                wrong.append((key, len(data), whole, repr(error)))
        else:
            if found != whole:
                wrong.append((key, len(data), whole, str(found)))

    assert len(cuts) > 150
    assert wrong == []


SAVE_FOR_EVER = """
import sys
import numpy as np
from evaluator.writer import TrialWriter
writer = TrialWriter(sys.argv[1], collections={"gradients": ["g"]})
step = 0
while True:
    writer.save(step, {"g": np.ones(20_000, np.float32)})
    step += 1
    print(step, flush=True)
"""


def test_a_process_that_is_killed_leaves_all_that_it_said_was_saved(tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", SAVE_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        while int(process.stdout.readline()) < 20:
            pass
    finally:
        process.kill()
        said, _ = process.communicate()
    saved = int((said.splitlines() or ["20"])[-1])

    assert judged(tmp_path) in {saved, saved + 1}
