"""Small steps that are laid out alike are summarised together, and come to what they come to one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.engine.local import LOT_STEPS, LocalEngine
from evaluator.engine.partners import Partners
from evaluator.engine.summaries import StepSummary
from evaluator.evaluation import Evaluation
from evaluator.modes import Mode
from evaluator.reductions import REDUCTIONS
from evaluator.rule import Measure, Previous, Rule, RuleParameters, Selection, Summary, Tensor, Window
from evaluator.segments import Floats, Segments
from evaluator.sources.base import AlikeValues, Positions, StepFile
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.file import FileStore
from evaluator.testing import FakeClock
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from evaluator.writer import TrialWriter

ALL = Selection()
STEPS = 3 * LOT_STEPS
NEARLY_ALL = STEPS - 5
"""The first steps show how files are laid out, and the last one may be alone."""


class Counted(SmdebugFolder):
    """A trial that counts how many files were read together."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FileStore(str(folder)))
        self.together = 0

    def read_alike(self, files: Sequence[StepFile], groups: Sequence[Positions]) -> AlikeValues:
        alike = super().read_alike(files, groups)
        self.together += len(alike)
        return alike


class OneByOne(SmdebugFolder):
    """The same trial, whose files are read alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FileStore(str(folder)))

    def read_alike(self, files: Sequence[StepFile], groups: Sequence[Positions]) -> AlikeValues:
        return AlikeValues()


class Given:
    """A condition that never holds, and the rows that it was given."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def __call__(self, window: Window, _: Any) -> None:
        columns = [(column.tensor, column.worker) for column in window.columns]
        self.rows.append((window.steps.tolist(), window.values.tobytes(), window.modes.tobytes(), columns))


def configured(need: Summary, condition: Callable[..., Any]) -> RuleConfiguration:
    rule = Rule("Small", "warning", RuleParameters, requires=lambda _: [need], condition=condition)
    found = configure(RuleRequest("Small", {}, "ours", "Small", "Small"), rule)
    assert isinstance(found, RuleConfiguration), found
    return found


class Judged:
    """A trial judged by one rule, step by step."""

    def __init__(self, source: SmdebugFolder, need: Summary) -> None:
        given = Given()
        trial = Trial(source, FakeClock(), Waits(late_grace=0, worker_quorum=0), following=False)
        partners = Partners(source, 2**28, lambda *_: None)
        evaluation = Evaluation([configured(need, given)], trial, partners, following=False)
        engine = LocalEngine(source, 2**28)
        self.summaries: list[StepSummary] = []
        try:
            for summary in engine.ahead(trial.finish(), evaluation.plan_of):
                self.summaries.append(summary)
                evaluation.judge(summary)
        finally:
            engine.close()
        self.rows = given.rows
        self.problems = {one.step.number: dict(file.problems) for one in self.summaries for file in one.files}
        self.failures = {one.step.number: [*file.failures] for one in self.summaries for file in one.files}
        self.failure = evaluation.runs[0].failure


def both(folder: Path, need: Summary) -> tuple[Judged, Judged, int]:
    """Judged together and one by one, and how many files were read together."""
    counted = Counted(folder)
    return Judged(counted, need), Judged(OneByOne(folder), need), counted.together


def write(folder: Path, values: Callable[[int, str], Mapping[str, Any]], *, workers: int = 1, **more: Any) -> Path:
    """A trial of STEPS steps."""
    names = [f"worker_{at}" for at in range(workers)]
    writers = [TrialWriter(folder, worker=name, num_workers=workers) for name in names]
    for step in range(STEPS):
        for writer, name in zip(writers, names, strict=True):
            writer.save(step, values(step, name), mode=Mode.TRAIN, wall_time=step + 1.0, **more)
    for writer in writers:
        writer.close()
    return folder


def normal(step: int, *shape: int, kind: str = "float32") -> Any:
    return (np.random.default_rng([step, *shape]).standard_normal(shape) * 100).astype(kind)


LAYOUTS: dict[str, Callable[[int, str], Mapping[str, Any]]] = {
    "equal sizes": lambda step, _: {f"w{at}": normal(step + at, 10, 10) for at in range(30)},
    "one tensor": lambda step, _: {"w": normal(step, 300)},
    "numbers": lambda step, _: {"loss": np.float32(1 / (step + 1)), "lr": 0.1},
    "sizes of all kinds": lambda step, _: {f"w{at}": normal(step + at, at + 1, 7) for at in range(40)},
    "beyond a buffer of the array library": lambda step, _: {"w": normal(step, 9001), "v": normal(step, 8192)},
    "large and wide": lambda step, _: {
        "w": normal(step, 9001, kind="float64"),
        "abc": normal(step, 8999, kind="float64"),
    },
    "types of all kinds": lambda step, _: {
        kind: normal(step, 20, kind=kind) for kind in ("float16", "float32", "float64", "int32", "int8", "uint8")
    },
}


@pytest.mark.parametrize("reduction", sorted(REDUCTIONS))
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_number_is_the_same_to_the_last_bit(tmp_path: Path, layout: Callable[..., Any], reduction: str):
    folder = write(tmp_path, layout)

    together, one_by_one, count = both(folder, Summary(ALL, by=reduction))

    assert count >= NEARLY_ALL
    assert len(together.rows) == STEPS
    assert together.rows == one_by_one.rows


def test_wall_times_are_those_of_the_files(tmp_path: Path):
    together, _, count = both(write(tmp_path, LAYOUTS["one tensor"]), Summary(ALL, by="max"))

    assert count >= NEARLY_ALL
    assert [one.files[0].wall_time for one in together.summaries] == [step + 1.0 for step in range(STEPS)]


def test_saved_reductions_are_used_in_the_same_way(tmp_path: Path):
    reductions = {"w": {"abs_mean": 0.25}, "v": {"abs_mean": 0.5}}
    folder = write(tmp_path, lambda step, _: {"u": normal(step, 5)}, reductions=reductions)

    together, one_by_one, count = both(folder, Summary(ALL, by="abs_mean"))

    assert count >= NEARLY_ALL
    assert together.rows == one_by_one.rows
    assert [len(columns) for *_, columns in together.rows] == [3] * STEPS


def test_several_workers_are_each_summarised_together(tmp_path: Path):
    folder = write(tmp_path, lambda step, worker: {"w": normal(step + len(worker), 9), worker: step}, workers=3)

    together, one_by_one, count = both(folder, Summary(ALL, by="max", rows=2))

    assert count >= 3 * NEARLY_ALL
    assert together.rows == one_by_one.rows


def test_a_function_of_single_tensors_is_told_which_one_it_is_given(tmp_path: Path):
    def told(values: Any, tensor: Tensor) -> float:
        return float(values.sum()) + 1000 * tensor.step + len(tensor.name) + len(tensor.worker) + tensor.mode

    folder = write(tmp_path, lambda step, _: {"a": normal(step, 2, 3), "bcd": normal(step, 4)})

    together, one_by_one, count = both(folder, Summary(ALL, by=Measure(told, each=True)))

    assert count >= NEARLY_ALL
    assert together.rows == one_by_one.rows


def test_a_function_of_single_tensors_gets_the_same_sum_of_them(tmp_path: Path):
    folder = write(tmp_path, lambda step, _: {"a": normal(step, 20_000), "bc": normal(step, 9000)})

    together, one_by_one, count = both(folder, Summary(ALL, by=Measure(lambda array, _: array.mean(), each=True)))

    assert count >= NEARLY_ALL
    assert together.rows == one_by_one.rows


def test_a_measure_of_several_numbers_keeps_their_order(tmp_path: Path):
    def two(segments: Segments) -> Floats:
        return np.stack([segments.min(segments.flat), segments.max(segments.flat)], axis=1)

    folder = write(tmp_path, LAYOUTS["equal sizes"])

    together, one_by_one, count = both(folder, Summary(ALL, by=Measure(two, width=2)))

    assert count >= NEARLY_ALL
    assert together.rows == one_by_one.rows


def moved(now: Segments, before: Segments) -> Floats:
    return now.mean(np.abs(now.flat - before.flat))


MOVED = Measure(moved, kinds="f")


@pytest.mark.parametrize("within", [None, 1, 4])
@pytest.mark.parametrize("name", ["equal sizes", "one tensor", "sizes of all kinds", "types of all kinds"])
def test_values_are_compared_with_the_same_earlier_ones(tmp_path: Path, name: str, within: int | None):
    folder = write(tmp_path, LAYOUTS[name])

    together, one_by_one, count = both(folder, Summary(ALL, by=MOVED, partner=Previous(within)))

    assert count >= NEARLY_ALL
    assert len(together.rows) == STEPS - 1
    assert together.rows == one_by_one.rows


def test_values_are_compared_across_steps_that_are_laid_out_in_other_ways(tmp_path: Path):
    def values(step: int, _: str) -> Mapping[str, Any]:
        return (
            {"w": normal(step, 8)} | ({"v": normal(step, 8)} if step % 5 == 0 else {}) | ({"u": 1} if step > 50 else {})
        )

    together, one_by_one, count = both(write(tmp_path, values), Summary(ALL, by=MOVED, partner=Previous()))

    assert count > STEPS / 3
    assert together.rows == one_by_one.rows


def test_a_tensor_that_changes_its_shape_is_compared_as_if_read_alone(tmp_path: Path):
    folder = write(tmp_path, lambda step, _: {"w": normal(step, 6 if step < 40 else 8)})
    changed = Measure(moved, kinds="f", reshaped=-1.0)

    together, one_by_one, _ = both(folder, Summary(ALL, by=changed, partner=Previous()))

    assert together.rows == one_by_one.rows


def damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 0xFF
    path.write_bytes(bytes(data))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def another(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"w7", b"x7"))


@pytest.mark.parametrize("harm", [Path.unlink, damaged, cut_off, another])
def test_one_file_that_cannot_be_read_costs_nothing_of_its_neighbours(tmp_path: Path, harm: Callable[[Path], None]):
    folder = write(tmp_path, LAYOUTS["equal sizes"])
    for step in (10, 11, 50):
        (event,) = folder.glob(f"events/{step:012d}/*.tfevents")
        harm(event)

    together, one_by_one, count = both(folder, Summary(ALL, by="max"))

    assert count > STEPS / 2
    assert together.rows == one_by_one.rows
    assert together.problems == one_by_one.problems
    assert [step for step, problems in together.problems.items() if problems] == [10, 11, 50]


def test_a_measure_that_raises_does_so_at_its_step(tmp_path: Path):
    def strict(segments: Segments) -> Floats:
        if bool((segments.flat == 41).any()):
            raise ValueError("the answer is near")
        return segments.max(segments.flat)

    folder = write(tmp_path, lambda step, _: {"a": np.full(3, float(step))})

    together, one_by_one, _ = both(folder, Summary(ALL, by=Measure(strict)))

    assert together.rows == one_by_one.rows
    assert [steps[-1] for steps, *_ in together.rows] == list(range(41))
    assert [step for step, failed in together.failures.items() if failed] == [41]
    assert "the answer is near" in str(together.failure)


def test_a_comparison_that_raises_does_so_at_its_step(tmp_path: Path):
    def strict(now: Segments, before: Segments) -> Floats:
        if bool((now.flat == 41).any()):
            raise ValueError("the answer is near")
        return now.max(now.flat - before.flat)

    folder = write(tmp_path, lambda step, _: {"a": np.full(3, float(step))})

    together, _, _ = both(folder, Summary(ALL, by=Measure(strict), partner=Previous()))

    assert [steps[-1] for steps, *_ in together.rows] == list(range(1, 41))
    assert "the answer is near" in str(together.failure)


def test_steps_are_summarised_together_in_growing_numbers(tmp_path: Path):
    counted = Counted(write(tmp_path, LAYOUTS["one tensor"]))
    trial = Trial(counted, FakeClock(), Waits(late_grace=0, worker_quorum=0), following=False)
    evaluation = Evaluation(
        [configured(Summary(ALL, by="max"), Given())], trial, Partners(counted, 2**28, lambda *_: None), following=False
    )
    engine = LocalEngine(counted, 2**28)

    def taken() -> Iterator[float]:
        for at, _ in enumerate(engine.ahead(trial.finish(), evaluation.plan_of), 1):
            yield counted.together / at

    try:
        assert max(taken()) < 2.0
    finally:
        engine.close()


def test_what_is_kept_of_the_last_step_keeps_none_of_the_others(tmp_path: Path):
    together, _, count = both(write(tmp_path, LAYOUTS["equal sizes"]), Summary(ALL, by=MOVED, partner=Previous()))

    kept = together.summaries[-1].files[0].kept

    assert count >= NEARLY_ALL
    assert kept is not None
    for _, segments in kept.joined:
        assert segments.flat.base is None or segments.flat.base.nbytes <= segments.flat.nbytes
