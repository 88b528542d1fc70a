"""Needs: everything that a rule can ask for, shown by small rules over small runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.modes import Mode
from evaluator.needs import named
from evaluator.reporting import make_reports
from evaluator.rule import (
    TRAINING,
    Accumulator,
    Beside,
    Decided,
    Example,
    Measure,
    Met,
    NotYet,
    OtherTrial,
    OtherWorker,
    Previous,
    Progress,
    ProgressView,
    Report,
    Row,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Tensor,
    Window,
    grown,
)
from evaluator.segments import Array, Floats, Segments
from evaluator.sources.base import VALUE, Collections, FileValues, Layout, Sighting, Source, StepFile, join
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.status import RuleStatus
from evaluator.storage.base import Store
from evaluator.storage.file import FileStore
from evaluator.storage.memory import MemoryStore
from evaluator.testing import ExampleResult, FakeClock, Tensors, evaluate, run_example, trial_from_series
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from evaluator.writer import TrialWriter

NAN = float("nan")
ALL = Selection()


class Threshold(RuleParameters):
    """One number."""

    threshold: float = 0.5


class Seen:
    """A condition that never holds, and what it was given each time."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.rows: list[Any] = []
        self.columns: list[list[tuple[str, str]]] = []
        self.arguments: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> None:
        window = arguments[0]
        self.arguments.append(arguments)
        if isinstance(window, Window):
            self.steps.append(window.steps.tolist())
            self.rows.append(np.where(np.isnan(window.values), None, window.values).tolist())  # type: ignore[call-overload]
            self.columns.append([(column.tensor, column.worker) for column in window.columns])


def above(window: Window, parameters: Threshold) -> Any:
    """Fires where the newest value is above the threshold."""
    high = window.saved[-1] & (window.values[-1] > parameters.threshold)
    return window.met(high, limit=parameters.threshold) if high.any() else None


def rule(*needs: Any, condition: Callable[..., Any] = above, name: str = "Small", **more: Any) -> Rule:
    return Rule(name, "warning", Threshold, requires=lambda _: needs, condition=condition, **more)


WATCH = rule(Summary(ALL, by="max"))


def seen(*needs: Any, example: dict[str, Any], **more: Any) -> Seen:
    """What the condition of a rule with these needs is given."""
    condition = Seen()
    result = run_example(rule(*needs, condition=condition, **more), Example("test", **example))
    assert not result.failed, result.why
    return condition


def run(one: Rule, tensors: Mapping[str, Sequence[Any]], **example: Any) -> ExampleResult:
    return run_example(one, Example("test", tensors, **example))


def configured(one: Rule, **parameters: Any) -> RuleConfiguration:
    found = configure(RuleRequest(one.name, parameters, "ours", one.name, one.name), one)
    assert isinstance(found, RuleConfiguration), found
    return found


def statuses(result: ExampleResult) -> dict[str, RuleStatus]:
    return {status.RuleConfigurationName: status for status in result.status.DebugRuleEvaluationStatuses}


# what is computed


def test_a_named_reduction_is_computed_from_values():
    assert seen(Summary(ALL, by="abs_mean"), example={"tensors": {"w": [[1.0, -3.0]]}}).rows == [[[2.0]]]


def test_a_saved_reduction_is_used_where_there_is_one(tmp_path: Path):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {"w": [1.0, -3.0]}, reductions={"w": {"abs_mean": 7.0}, "v": {"abs_mean": 9.0}})
        writer.save(1, {"w": [1.0, -3.0]}, reductions={"v": {"mean": 9.0}})
    condition = Seen()

    evaluate(str(tmp_path), [configured(rule(Summary(ALL, by="abs_mean"), condition=condition))])

    assert condition.rows == [[[7.0, 9.0]], [[2.0, None]]]
    assert condition.columns[0] == [("w", "worker_0"), ("v", "worker_0")]


def test_an_unknown_reduction_is_refused_where_it_is_declared():
    with pytest.raises(ValueError, match="reduction 'abs_median' is not known"):
        named("abs_median")


def test_a_function_can_take_one_tensor_in_its_own_shape():
    given: list[Tensor] = []

    def rank(values: Array, tensor: Tensor) -> float:
        given.append(tensor)
        return float(np.linalg.matrix_rank(values))

    run_of = {"tensors": {"w": [np.eye(3)], "v": [np.ones((2, 2))]}, "modes": ["EVAL"], "steps": [5]}

    assert seen(Summary(ALL, by=Measure(rank, each=True)), example=run_of).rows == [[[3.0, 1.0]]]
    assert given == [Tensor("w", "worker_0", Mode.EVAL, 5), Tensor("v", "worker_0", Mode.EVAL, 5)]


def test_a_function_can_take_many_tensors_at_once_with_options():
    def beyond(segments: Segments, *, limit: float) -> Floats:
        return segments.sum(segments.flat > limit)

    measure = Measure(beyond, (("limit", 1.5),))

    assert seen(Summary(ALL, by=measure), example={"tensors": {"a": [[1, 2, 3]], "b": [[2]]}}).rows == [[[2.0, 1.0]]]


@pytest.mark.parametrize("each", [True, False])
def test_a_measure_can_have_several_numbers(each: bool):
    def extremes(segments: Segments) -> Floats:
        return np.stack([segments.min(segments.flat), segments.max(segments.flat)], axis=1)

    def extremes_of_one(values: Array, _: Tensor) -> list[float]:
        return [float(np.min(values)), float(np.max(values))]

    measure = Measure(extremes_of_one if each else extremes, width=2, each=each)

    assert seen(Summary(ALL, by=measure), example={"tensors": {"a": [[1, 5]], "b": [[2]]}}).rows == [[[[1, 5], [2, 2]]]]


def test_text_can_be_measured():
    def longest(values: Array, _: Tensor) -> float:
        return max(len(str(text)) for text in values)

    measure = Measure(longest, each=True, kinds="U")

    condition = seen(Summary(ALL, by=measure), example={"tensors": {"n": [1.0], "t": [np.array(["a", "four"])]}})

    assert condition.rows == [[[None, 4.0]]]


def test_only_the_kinds_that_a_measure_is_meant_for_reach_it():
    measure = Measure(named("max").function, kinds="f")

    assert seen(Summary(ALL, by=measure), example={"tensors": {"n": [1], "w": [2.0]}}).rows == [[[None, 2.0]]]


def test_a_measure_can_say_how_to_get_it_from_saved_reductions(tmp_path: Path):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {"w": [1.0, 4.0]}, reductions={"v": {"min": 2.0, "max": 8.0}, "u": {"mean": 1.0}})
    measure = Measure(
        lambda segments: segments.max(segments.flat) - segments.min(segments.flat),
        reductions=("min", "max"),
        from_reductions=lambda saved: saved["max"] - saved["min"],
    )
    condition = Seen()

    result = evaluate(str(tmp_path), [configured(rule(Summary(ALL, by=measure), condition=condition))])

    assert condition.rows == [[[3.0, 6.0]]]
    assert result.evaluated == 1


def test_equal_needs_are_computed_once_for_all_rules(tmp_path: Path):
    trial_from_series(tmp_path, {"w": [1.0, 2.0]})
    calls = []

    def counted(segments: Segments) -> Floats:
        calls.append(len(segments))
        return segments.max(segments.flat)

    rules = [configured(rule(Summary(ALL, by=Measure(counted)), name=f"Rule{letter}"), threshold=9) for letter in "abc"]

    evaluate(str(tmp_path), rules)

    assert calls == [1, 1]


# how much history


def test_a_window_keeps_as_many_rows_as_were_asked_for():
    condition = seen(
        Summary(ALL, by="max", rows=3), example={"tensors": {"w": [1, 2, 3, 4, None, 6]}, "steps": range(0, 60, 10)}
    )

    assert condition.steps == [[0], [0, 10], [0, 10, 20], [10, 20, 30], [20, 30, 50]]
    assert condition.rows[-1] == [[3], [4], [6]]


def test_two_rules_have_windows_of_their_own_over_the_same_rows(tmp_path: Path):
    trial_from_series(tmp_path, {"w": list(range(40))})
    short, long = Seen(), Seen()

    evaluate(
        str(tmp_path),
        [
            configured(rule(Summary(ALL, by="max", rows=2), condition=short)),
            configured(rule(Summary(ALL, by="max", rows=5), condition=long, name="Long")),
        ],
    )

    assert short.steps[-1] == [38, 39]
    assert long.steps[-1] == [35, 36, 37, 38, 39]


def test_a_window_by_steps_reaches_back_to_the_newest_row_that_is_old_enough():
    steps = [0, 3, 9, 10, 20, 21]

    condition = seen(Summary(ALL, by="max", steps=10), example={"tensors": {"w": [0, 1, 2, 3, 4, 5]}, "steps": steps})

    assert condition.steps == [[0], [0, 3], [0, 3, 9], [0, 3, 9, 10], [10, 20], [10, 20, 21]]


@pytest.mark.parametrize("seed", range(5))
def test_a_window_by_steps_has_for_every_column_and_mode_its_newest_value_that_is_old_enough(seed: int):
    generator = np.random.default_rng(seed)
    steps = np.cumsum(generator.integers(1, 4, 120)).tolist()
    modes = generator.choice(["TRAIN", "EVAL"], 120, p=[0.9, 0.1]).tolist()
    run_of = {
        name: [float(step) if generator.random() < share else None for step in steps]
        for name, share in {"often": 0.9, "rare": 0.05, "never again": 0.5}.items()
    }
    run_of["never again"][60:] = [None] * 60
    problems: list[str] = []

    def check(window: Window, _: Any) -> None:
        now = int(window.steps[-1])
        for column, tensor in enumerate(window.columns):
            for mode in (Mode.TRAIN, Mode.EVAL):
                old = [
                    step
                    for step, value, name in zip(steps, run_of[tensor.tensor], modes, strict=True)
                    if value is not None and name == mode.name and step <= now - 10
                ]
                rows = np.flatnonzero((window.modes[:, column] == mode) & (window.steps <= now - 10))
                if old and (not len(rows) or window.values[rows[-1], column] != old[-1]):
                    problems.append(f"{tensor.tensor} {mode.name} at {now}")
        if len(window.steps) > 10 + 6 + 60:
            problems.append(f"{len(window.steps)} rows at {now}")

    run_example(
        rule(Summary(ALL, by="max", steps=10), condition=check), Example("test", run_of, steps=steps, modes=modes)
    )

    assert problems == []


def test_an_unsaved_value_is_not_a_saved_nan():
    conditions = seen(Summary(ALL, by="max", rows=2), example={"tensors": {"a": [1.0, 2.0], "b": [NAN, None]}})
    window = conditions.arguments[-1][0]

    assert window.saved.tolist() == [[True, True], [True, False]]
    assert np.isnan(window.values[:, 1]).all()


def test_the_newest_value_of_every_column_can_be_had_of_a_window():
    last = seen(Summary(ALL, by="max", rows=3), example={"tensors": {"a": [1, None, 3], "b": [4, 5, None]}}).arguments[
        -1
    ][0]

    values, present, steps = last.latest()

    assert (values.tolist(), present.tolist(), steps.tolist()) == ([3, 5], [True, True], [2, 1])


# partners


def difference(segments: Segments, partner: Segments) -> Floats:
    return segments.mean(segments.flat) - partner.mean(partner.flat)


def difference_of_one(values: Array, partner: Array, _: Tensor) -> float:
    return float(np.mean(values) - np.mean(partner))


both_ways = pytest.mark.parametrize(
    "measure", [Measure(difference), Measure(difference_of_one, each=True)], ids=["joined", "each"]
)


@both_ways
def test_the_partner_can_be_the_value_saved_last(measure: Measure):
    run_of = {"a": [1.0, 2.0, None, 5.0], "b": [None, 1.0, 3.0, None]}

    condition = seen(Summary(ALL, by=measure, partner=Previous()), example={"tensors": run_of})

    assert condition.steps == [[1], [2], [3]]
    assert condition.rows == [[[1.0, None]], [[None, 2.0]], [[3.0, None]]]


@both_ways
def test_the_partner_can_be_the_oldest_value_within_some_steps(measure: Measure):
    run_of = {"tensors": {"w": [1.0, 2.0, 4.0, 8.0]}, "steps": [0, 5, 10, 30]}

    condition = seen(Summary(ALL, by=measure, partner=Previous(within=10)), example=run_of)

    assert (condition.steps, condition.rows) == ([[5], [10]], [[[1.0]], [[3.0]]])


def test_a_partner_of_another_shape_is_compared_only_if_the_measure_says_what_that_means():
    run_of = {"tensors": {"w": [[1.0], [1.0, 2.0], [3.0, 4.0]]}}

    plain = seen(Summary(ALL, by=Measure(difference), partner=Previous()), example=run_of)
    telling = seen(Summary(ALL, by=Measure(difference, reshaped=-1.0), partner=Previous()), example=run_of)

    assert plain.rows == [[[2.0]]]
    assert telling.rows == [[[-1.0]], [[2.0]]]


@both_ways
def test_the_partner_can_be_another_tensor_of_the_step(measure: Measure):
    need = Summary(Selection(regexes=("label",)), by=measure, partner=Beside(Selection(regexes=("prediction",))))
    run_of = {
        "labels_0": [1.0, 2.0],
        "labels_1": [5.0, 5.0],
        "predictions_0": [0.5, None],
        "predictions_1": [1.0, None],
    }

    condition = seen(need, example={"tensors": run_of})

    assert condition.columns[0] == [("labels_0", "worker_0"), ("labels_1", "worker_0")]
    assert condition.rows == [[[0.5, 4.0]]]


@both_ways
def test_the_partner_can_be_the_first_worker(measure: Measure):
    workers = {"worker_10": {"w": [4.0, 7.0]}, "worker_2": {"w": [1.0, None]}, "worker_3": {"w": [2.0, 1.0]}}

    condition = seen(Summary(ALL, by=measure, partner=OtherWorker()), example={"workers": workers})

    by_worker = [
        {worker: value for (_, worker), value in zip(columns, row[0], strict=True) if value is not None}
        for columns, row in zip(condition.columns, condition.rows, strict=True)
    ]
    assert by_worker == [{"worker_3": 1.0, "worker_10": 3.0}, {"worker_10": 6.0}]


def test_workers_that_save_the_same_are_compared_with_the_first_one_at_once():
    calls: list[tuple[int, list[float]]] = []

    def differs(segments: Segments, first: Segments) -> Floats:
        calls.append((len(segments), first.flat.tolist()))
        return segments.max(np.abs(segments.flat - first.flat))

    same: dict[str, Sequence[Any]] = {"v": [1.0], "w": [2.0]}
    workers = {"worker_0": same, "worker_1": same, "worker_2": {"v": [1.5], "w": [2.0]}, "worker_3": {"w": [3.0]}}

    condition = seen(Summary(ALL, by=Measure(differs), partner=OtherWorker()), example={"workers": workers})

    assert calls == [(2, [1.0, 2.0]), (2, [1.0, 2.0]), (1, [2.0])]
    assert [
        dict(zip(columns, row[-1], strict=True)) for columns, row in zip(condition.columns, condition.rows, strict=True)
    ] == [
        {
            ("v", "worker_1"): 0.0,
            ("v", "worker_2"): 0.5,
            ("w", "worker_1"): 0.0,
            ("w", "worker_2"): 0.0,
            ("w", "worker_3"): 1.0,
        }
        | {(name, "worker_0"): None for name in "vw"}
    ]


@both_ways
def test_the_partner_can_be_in_another_trial(measure: Measure):
    need = Summary(ALL, by=measure, partner=OtherTrial())
    condition = Seen()
    example = Example("test", {"w": [1.0, 2.0, 3.0], "v": [1.0] * 3}, other={"w": [0.5, None, 1.0]})

    result = run_example(rule(need, condition=condition, other_trials=True), example)

    assert condition.steps == [[0], [2]]
    assert condition.rows == [[[0.5, None]], [[2.0, None]]]
    evaluation = result.status.DebugRuleEvaluationStatuses[0].Evaluation
    assert evaluation.skipped_because == {"the other trial lacks the step": 1}


def test_without_another_trial_a_rule_that_compares_with_one_says_so():
    result = run(rule(Summary(ALL, by=Measure(difference), partner=OtherTrial()), other_trials=True), {"w": [1.0]})

    assert result.word == "Error"
    assert "no other trial was given" in result.why


# states


def totals(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """Per column the sum of what was saved, and the number of rows."""
    total = grown(state["total"], len(row.values), 0.0)
    return {"total": total + np.where(row.saved, row.values, 0), "rows": state["rows"] + 1}


TOTALS = Accumulator(lambda: {"total": np.zeros(0), "rows": np.zeros(1)}, totals)


def test_a_state_folds_the_rows_and_grows_with_the_columns():
    given = []

    def look(state: State, _: Any) -> None:
        given.append((state["total"].tolist(), state["rows"].item(), [column.tensor for column in state.columns]))

    run_example(
        rule(Summary(ALL, by="max", state=TOTALS), condition=look),
        Example("test", {"a": [1.0, 2.0, None], "b": [None, 10.0, 10.0], "c": [None, None, 100.0]}),
    )

    assert given == [([1], 1, ["a"]), ([3, 10], 2, ["a", "b"]), ([3, 20, 100], 3, ["a", "b", "c"])]


def test_a_state_makes_findings_of_its_newest_row():
    def much(state: State, parameters: Threshold) -> Any:
        full = state.row.saved & (state["total"] > parameters.threshold)
        return state.met(full, measured=state["total"], limit=parameters.threshold) if full.any() else None

    result = run(
        rule(Summary(ALL, by="max", state=TOTALS), condition=much),
        {"a": [1, 1], "b": [2, 2]},
        parameters={"threshold": 3},
    )

    finding = result.findings[0]
    assert (finding.step, finding.tensor, finding.measured, finding.mode, finding.affected.of) == (
        1,
        "b",
        4,
        "GLOBAL",
        2,
    )


def test_a_run_that_goes_back_starts_its_states_and_windows_anew(tmp_path: Path):
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    windows, states = Seen(), []
    follower = Follower(
        store,
        clock,
        rule(Summary(ALL, by="max", rows=9), condition=windows),
        rule(
            Summary(ALL, by="max", state=TOTALS),
            condition=lambda state, _: states.append(state["rows"].item()),
            name="B",
        ),
    )

    for step in (0, 1, 2, 3, 1, 2):
        clock.advance(10)
        follower.save(tmp_path, step, {"w": float(step)})
        follower.poll()

    assert windows.steps[3:] == [[0, 1, 2, 3], [0], [0, 1], [0, 1, 2]]
    assert states == [1, 2, 3, 4, 1, 2, 3]


# progress


class Follower:
    """A run that is followed poll by poll."""

    def __init__(self, store: MemoryStore, clock: FakeClock, *rules: Rule) -> None:
        self.clock = clock
        self.store = store
        self.source = SmdebugFolder(store)
        self.trial = Trial(self.source, clock, Waits(0, 1e9), following=True)
        partners = Partners(self.source, 2**20, lambda *_: None)
        self.evaluation = Evaluation([configured(one) for one in rules], self.trial, partners, following=True)
        self.engine = LocalEngine(self.source, 2**20)

    def save(
        self, folder: Path, step: int, tensors: Mapping[str, Any], worker: str = "worker_0", workers: int = 1
    ) -> None:
        """Put the files of a step into the store now."""
        writer = TrialWriter(folder, worker=worker, num_workers=workers)
        writer.save(step, tensors)
        for path in sorted(folder.rglob("*"), key=lambda path: "index" in path.parts):
            if path.is_file() and (
                f"{step:012d}_{worker}" in path.name or path.name.startswith(f"{worker}_collections")
            ):
                self.store.write(path.relative_to(folder).as_posix(), path.read_bytes())

    def poll(self) -> list[Any]:
        """Judge what is new."""
        summaries = self.engine.ahead(self.trial.poll(), self.evaluation.plan_of)
        return [finding for summary in summaries for finding in self.evaluation.judge(summary)]

    def idle(self) -> list[Any]:
        """Judge those that want to be asked when nothing is new."""
        return self.evaluation.judge_idle(self.clock.now(), "idle", self.trial.counts.last)


def test_progress_of_a_finished_run_is_told_by_the_times_that_training_wrote():
    given: list[ProgressView] = []

    def look(progress: ProgressView, _: Any) -> None:
        given.append(progress)

    workers: dict[str, Tensors] = {"worker_0": {"w": [1, 1, 1]}, "worker_1": {"w": [1, None, None]}}
    run_example(
        rule(Progress(), condition=look),
        Example("test", workers=workers, steps=[0, 10, 20], seconds=[0.0, 60.0, 200.0]),
    )

    last = given[-1]
    assert [column.worker for column in last.columns] == ["worker_0", "worker_1"]
    assert (last.last_step.tolist(), last.steps.tolist()) == ([20, 0], [3, 1])
    assert last.silent.tolist() == [0.0, 200.0]
    assert last.gap[0] == 140.0
    assert np.isnan(last.gap[1])


def test_progress_of_a_run_that_goes_on_is_told_by_the_store_and_the_clock(tmp_path: Path):
    clock = FakeClock()

    def stalls(progress: ProgressView, _: Any) -> Any:
        late = progress.silent > 100
        return progress.met(late, measured=progress.silent, limit=100.0) if late.any() else None

    follower = Follower(
        MemoryStore(clock=clock), clock, rule(Progress(), condition=stalls, at=frozenset({"step", "idle"}))
    )
    follower.save(tmp_path, 0, {"w": 1.0})
    found = follower.poll()
    clock.advance(99)
    found += follower.idle()
    clock.advance(2)

    assert found == []
    finding = follower.idle()[0]
    assert (finding.worker, finding.tensor, finding.measured, finding.step) == ("worker_0", None, 101.0, 0)


# modes


def test_a_need_can_be_of_some_modes_only():
    run_of = {"tensors": {"w": [1.0, 2.0, 3.0, 4.0]}, "modes": ["TRAIN", "EVAL", "PREDICT", "GLOBAL"]}

    assert seen(Summary(ALL, by="max", modes=TRAINING), example=run_of).steps == [[0], [3]]
    assert seen(Summary(ALL, by="max", modes=frozenset({Mode.EVAL})), example=run_of).steps == [[1]]


def test_names_of_xgboost_tell_the_mode_in_a_run_of_global_steps():
    metrics = {"train-rmse": [1.0], "validation-rmse": [2.0], "eval-mae": [3.0], "test-mae": [4.0], "other": [5.0]}

    train = seen(Summary(ALL, by="max", modes=frozenset({Mode.TRAIN})), example={"tensors": metrics})
    evaluation = seen(Summary(ALL, by="max", modes=frozenset({Mode.EVAL})), example={"tensors": metrics})

    assert [name for name, _ in train.columns[0]] == ["train-rmse"]
    assert [name for name, _ in evaluation.columns[0]] == ["validation-rmse", "eval-mae", "test-mae"]


def test_beside_its_val_twin_a_value_of_keras_is_of_training():
    run_of = {"tensors": {"loss": [1.0, 0.9], "val_loss": [None, 2.0]}, "modes": ["TRAIN", "EVAL"]}

    train = seen(Summary(ALL, by="max", modes=frozenset({Mode.TRAIN})), example=run_of)
    evaluation = seen(Summary(ALL, by="max", modes=frozenset({Mode.EVAL})), example=run_of)

    assert (train.steps, train.rows) == ([[0], [1]], [[[1.0]], [[0.9]]])
    assert (evaluation.steps, evaluation.rows) == ([[1]], [[[2.0]]])


class Made(Source):
    """A source that has several files of one worker at a step, one per mode."""

    name = "made"

    def __init__(self, store: Store) -> None:
        self.store = store
        self.saved: dict[int, list[tuple[Mode, dict[str, Array]]]] = {}
        self._layouts: dict[tuple[str, ...], Layout] = {}

    @classmethod
    def detect(cls, store: Store) -> bool:
        raise NotImplementedError

    def sightings(self, *, from_step: int | None = None) -> list[Sighting]:
        return [
            Sighting(step, "worker_0", 0.0, 1, str(step)) for step in sorted(self.saved) if step >= (from_step or 0)
        ]

    def open(self, sighting: Sighting) -> list[StepFile]:
        files = []
        for mode, values in self.saved[sighting.step]:
            names = tuple(values)
            layout = self._layouts.setdefault(names, Layout(names, (VALUE,) * len(names)))
            files.append(StepFile(sighting.step, "worker_0", mode, 10 * sighting.step + mode, 0.0, layout, values))
        return files

    def read(self, file: StepFile, groups: Sequence[Any]) -> FileValues:
        values = FileValues()
        arrays = dict(enumerate(file.place.values()))  # type: ignore[attr-defined]
        join(arrays, groups, values)
        return values

    def size_of(self, file: StepFile, groups: Sequence[Any]) -> int:
        return sum(len(group) for group in groups)

    def wall_time(self, file: StepFile) -> float | None:
        return None

    def collections(self) -> Collections | None:
        return None

    def ended(self) -> bool:
        return True


def test_a_value_of_training_and_one_of_evaluation_can_be_of_one_step():
    source = Made(MemoryStore())
    source.saved = {
        step: [(Mode.EVAL, {"loss": np.array([9.0 + step])}), (Mode.TRAIN, {"loss": np.array([1.0 + step])})]
        for step in (0, 1)
    }
    every, evaluation = Seen(), Seen()

    result = evaluate(
        source,
        [
            configured(rule(Summary(ALL, by="max"), condition=every)),
            configured(rule(Summary(ALL, by="max", modes=frozenset({Mode.EVAL})), condition=evaluation, name="B")),
            configured(rule(Summary(ALL, by="max", modes=frozenset({Mode.EVAL})), name="C"), threshold=9.5),
        ],
    )

    assert (every.steps, every.rows) == ([[0], [0], [1], [1]], [[[1.0]], [[9.0]], [[2.0]], [[10.0]]])
    assert evaluation.rows == [[[9.0]], [[10.0]]]
    finding = result.findings[0]
    assert (finding.step, finding.mode, finding.mode_step) == (1, "EVAL", 10 + Mode.EVAL)


def test_the_mode_step_of_a_finding_is_that_of_its_own_mode():
    source = Made(MemoryStore())
    source.saved = {0: [(Mode.TRAIN, {"a": np.ones(1)}), (Mode.EVAL, {"b": np.zeros(1)})]}

    finding = evaluate(source, [configured(WATCH)]).findings[0]

    assert (finding.tensor, finding.mode, finding.mode_step) == ("a", "TRAIN", Mode.TRAIN)


# when


def test_a_rule_is_due_when_every_triggering_need_has_a_value():
    needs = [Summary(Selection(names=(name,)), by="max") for name in "ab"]

    assert seen(*needs, example={"tensors": {"a": [1, 2, None], "b": [None, 2, 3]}}).steps == [[1]]


def test_a_need_that_does_not_trigger_is_only_looked_at():
    needs = [Summary(Selection(names=("a",)), by="max"), Summary(Selection(names=("b",)), by="max", triggers=False)]

    condition = seen(*needs, example={"tensors": {"a": [1, None, 3], "b": [None, 2, None]}})

    assert condition.steps == [[0], [2]]
    assert [arguments[1].steps.tolist() for arguments in condition.arguments] == [[], [1]]


def test_every_thins_the_checks_out_to_steps_far_enough_apart():
    condition = seen(
        Summary(ALL, by="max"), example={"tensors": {"w": [1] * 9}, "steps": range(0, 36, 4)}, every=lambda _: 10
    )

    assert condition.steps == [[0], [12], [24]]


def test_a_step_that_cannot_be_judged_yet_does_not_count_as_a_check():
    given = []

    def patient(window: Window, _: Any) -> Any:
        given.append(int(window.steps[-1]))
        return NotYet("too early") if window.steps[-1] < 6 else None

    result = run(
        rule(Summary(ALL, by="max"), condition=patient, every=lambda _: 10),
        {"w": [1] * 10},
        steps=list(range(0, 20, 2)),
    )

    assert given == [0, 2, 4, 6, 16]
    evaluation = result.status.DebugRuleEvaluationStatuses[0].Evaluation
    assert (evaluation.evaluated, evaluation.skipped_because) == (2, {"too early": 3})


def test_a_rule_can_be_judged_once_at_the_end():
    given = []

    def look(window: Window, _: Any) -> None:
        given.append(window.steps.tolist())

    run(rule(Summary(ALL, by="max", rows=9), condition=look, at=frozenset({"end"})), {"w": [1, 2, 3]})

    assert given == [[0, 1, 2]]


def test_a_rule_can_be_judged_whenever_nothing_is_new(tmp_path: Path):
    clock = FakeClock()
    condition = Seen()
    follower = Follower(
        MemoryStore(clock=clock), clock, rule(Summary(ALL, by="max"), condition=condition, at=frozenset({"idle"}))
    )
    follower.save(tmp_path, 3, {"w": 1.0})
    follower.poll()
    judged_at_the_step = len(condition.arguments)
    follower.idle()
    follower.idle()

    assert judged_at_the_step == 0
    assert condition.steps == [[3], [3]]


def test_a_report_is_made_at_the_end_and_now_and_then_before(tmp_path: Path):
    clock = FakeClock()
    one = Rule(
        "Page",
        "info",
        RuleParameters,
        requires=lambda _: [Summary(ALL, by="max", rows=9)],
        report=Report("page.html", lambda window, _: f"{window.steps.tolist()}", every_seconds=100),
    )
    follower = Follower(MemoryStore(clock=clock), clock, one)
    pages: list[tuple[str, str, str]] = []

    def tell(*, final: bool = False) -> None:
        make_reports(follower.evaluation, clock, {"Page": "page"}, lambda *page: pages.append(page), final=final)

    for step in range(3):
        follower.save(tmp_path, step, {"w": 1.0})
        follower.poll()
        tell()
        clock.advance(60)
    tell(final=True)

    assert pages == [("page", "page.html", text) for text in ("[0]", "[0, 1, 2]", "[0, 1, 2]")]
    assert follower.evaluation.runs[0].report_file == "page/page.html"


# what the loop does for every rule

FALL = {"w": [0, 1, 1, 0, 1, 1]}


@pytest.mark.parametrize(("consecutive", "expected"), [(1, 1), (2, 2), (3, None)])
def test_consecutive_asks_for_the_same_tensor_so_many_times_in_a_row(consecutive: int, expected: int | None):
    result = run(WATCH, FALL, parameters={"consecutive": consecutive})

    assert result.met_at == expected


def test_different_tensors_do_not_make_a_row():
    assert run(WATCH, {"a": [1, 0, 1], "b": [0, 1, 0]}, parameters={"consecutive": 2}).met_at is None


def test_a_step_at_which_a_tensor_was_not_saved_does_not_end_its_row():
    run_of: Tensors = {"a": [1, None, 1], "b": [0, 0, 0]}

    assert run(WATCH, run_of, parameters={"consecutive": 2}).met_at == 2


def test_exclude_regex_leaves_tensors_out():
    result = run(WATCH, {"quantile_const": [9.0], "w": [1.0]}, parameters={"exclude_regex": "const$"})

    assert (result.findings[0].tensor, result.findings[0].affected.of) == ("w", 1)


@pytest.mark.parametrize(
    ("bounds", "expected"), [({"start_step": 2}, 2), ({"start_step": 3, "end_step": 4}, None), ({"end_step": 1}, None)]
)
def test_only_steps_from_the_start_to_before_the_end_are_judged(bounds: dict[str, int], expected: int | None):
    assert run(WATCH, FALL, parameters=bounds).met_at == expected


def test_steps_before_the_start_count_as_history():
    condition = seen(
        Summary(ALL, by="max", rows=3), example={"tensors": {"w": [1, 2, 3, 4]}, "parameters": {"start_step": 3}}
    )

    assert condition.steps == [[1, 2, 3]]


def test_going_on_after_a_finding_says_when_it_is_over():
    result = run(WATCH, FALL, parameters={"on_finding": "continue"})

    assert [(one.event, one.step, one.last_step, one.steps_met) for one in result.findings] == [
        ("met", 1, None, None),
        ("cleared", 1, 2, 2),
        ("met", 4, None, None),
        ("cleared", 4, 5, 2),
    ]
    assert len({one.id for one in result.findings}) == 2


def test_a_finding_names_the_last_step_that_was_judged_healthy():
    assert run(WATCH, {"w": [0, None, 0, 1]}).findings[0].last_healthy_step == 2
    assert run(WATCH, {"w": [1]}).findings[0].last_healthy_step is None


def test_severity_is_the_rules_unless_the_configuration_says_otherwise():
    assert run(WATCH, {"w": [1]}).findings[0].severity == "warning"
    assert run(WATCH, {"w": [1]}, parameters={"severity": "critical"}).findings[0].severity == "critical"


def test_the_first_cause_is_found_by_the_order_of_training_and_of_workers():
    workers: dict[str, Tensors] = {
        "worker_10": {"z": [0, 1], "a": [0, 1]},
        "worker_2": {"z": [0, 1], "a": [0, 5]},
        "worker_1": {"z": [0, 0], "a": [0, 1]},
    }

    finding = run_example(WATCH, Example("test", workers=workers)).findings[0]

    assert (finding.tensor, finding.worker) == ("z", "worker_2")
    assert (finding.affected.tensors, finding.affected.of) == (5, 6)
    assert finding.affected.worst is not None
    assert (finding.affected.worst.tensor, finding.affected.worst.worker) == ("a", "worker_2")


def test_what_differs_per_column_is_told_of_the_column_that_is_named():
    def told(window: Window, _: Any) -> Any:
        return window.met(
            window.values[-1] > 1,
            limit=np.array([10.0, 20.0, 30.0]),
            each={"text": np.array(["x", "y", "z"])},
            details={"same": True},
        )

    finding = run(rule(Summary(ALL, by="max"), condition=told), {"a": [0], "b": [2], "c": [3]}).findings[0]

    assert (finding.tensor, finding.limit, finding.details) == ("b", 20.0, {"same": True, "text": "y"})


def test_a_condition_about_the_whole_run_names_no_tensor():
    def whole(window: Window, _: Any) -> Any:
        return window.met(np.zeros(len(window.columns), np.bool_), measured=window.values[-1], message="all of it")

    finding = run(rule(Summary(ALL, by="max"), condition=whole), {"a": [0]}).findings[0]

    assert (finding.tensor, finding.worker, finding.message, finding.affected.tensors) == (None, None, "all of it", 0)


# ends


def test_a_condition_that_raises_ends_its_rule_alone(tmp_path: Path):
    trial_from_series(tmp_path, {"w": [0.0, 0.0, 1.0]})

    def divides(window: Window, _: Any) -> Any:
        return None if 1 // (window.steps[-1].item() - 1) else NotYet("soon")

    result = evaluate(str(tmp_path), [configured(rule(Summary(ALL), condition=divides, name="Bad")), configured(WATCH)])

    assert statuses(result)["Bad"].RuleEvaluationStatus == "Error"
    assert "ZeroDivisionError" in str(statuses(result)["Bad"].StatusDetails)
    assert result.failed
    assert [(one.rule, one.step) for one in result.findings] == [("Small", 2)]


def test_a_state_that_raises_ends_its_rule_alone(tmp_path: Path):
    trial_from_series(tmp_path, {"w": [0.0, 0.0, 1.0]})

    def breaks(state: dict[str, Array], row: Row) -> dict[str, Array]:
        return {"inverse": np.array([1 // (row.step - 1)])}

    bad = rule(Summary(ALL, state=Accumulator(dict, breaks)), condition=lambda _, __: None, name="Bad")
    result = evaluate(str(tmp_path), [configured(bad), configured(WATCH)])

    assert statuses(result)["Bad"].RuleEvaluationStatus == "Error"
    assert "ZeroDivisionError" in str(statuses(result)["Bad"].StatusDetails)
    assert [(one.rule, one.step) for one in result.findings] == [("Small", 2)]


def test_a_ragged_measure_gives_a_state_arrays_of_any_shape(tmp_path: Path):
    tensors: Tensors = {"v": [[1.0, 2.0], None], "w": [[3.0], [[1.0, 1.0], [2.0, 2.0]]]}
    trial_from_series(tmp_path, tensors)
    seen: list[list[list[float] | None]] = []

    def note(state: dict[str, Array], row: Row) -> dict[str, Array]:
        seen.append([None if array is None else array.tolist() for array in row.values])
        return state

    same = Measure(lambda values, _: values, ragged=True, each=True)
    watch = rule(Summary(ALL, by=same, state=Accumulator(dict, note)), condition=lambda _, __: None, name="Watch")
    evaluate(str(tmp_path), [configured(watch)])

    assert seen == [[[1.0, 2.0], [3.0]], [None, [[1.0, 1.0], [2.0, 2.0]]]]


@pytest.mark.parametrize("verdict", [True, 3, Met(np.array([7]), np.ones(1)), Met(np.array([0, 0]), np.ones(1))])
def test_a_condition_that_returns_something_else_ends_its_rule_alone(verdict: Any, tmp_path: Path):
    trial_from_series(tmp_path, {"w": [0.0, 0.0, 1.0]})

    def wrong(window: Window, _: Any) -> Any:
        return replace(verdict, window=window) if isinstance(verdict, Met) else verdict

    result = evaluate(str(tmp_path), [configured(rule(Summary(ALL), condition=wrong, name="Bad")), configured(WATCH)])

    assert "TypeError: a" in str(statuses(result)["Bad"].StatusDetails)
    assert [(one.rule, one.step) for one in result.findings] == [("Small", 2)]


@pytest.mark.parametrize("partner", [None, Previous()])
@pytest.mark.parametrize("each", [True, False])
def test_a_measure_that_raises_ends_its_rule_alone(partner: Previous | None, each: bool, tmp_path: Path):
    trial_from_series(tmp_path, {"w": [0.0, 0.0, 1.0]})

    def raises(*_: Any) -> Any:
        raise ValueError("no such luck")

    bad = rule(Summary(ALL, by=Measure(raises, each=each), partner=partner), name="Bad")

    result = evaluate(str(tmp_path), [configured(bad), configured(WATCH)])

    assert "no such luck" in str(statuses(result)["Bad"].StatusDetails)
    assert [(one.rule, one.step) for one in result.findings] == [("Small", 2)]


# every byte once (P3)


class CountingStore(FileStore):
    """A folder that counts which bytes of event files are read, and how often."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.reads: dict[str, np.ndarray] = {}

    def read_range(self, key: str, start: int, length: int) -> bytes:
        data = super().read_range(key, start, length)
        if key.endswith(".tfevents"):
            stat = self.stat(key)
            counts = self.reads.setdefault(key, np.zeros(stat.size if stat else 0, np.int64))
            counts[start : start + len(data)] += 1
        return data

    @property
    def most(self) -> int:
        """How often the byte that was read most often was read."""
        return max((int(counts.max()) for counts in self.reads.values()), default=0)

    @property
    def total(self) -> int:
        """How many bytes were read."""
        return sum(int(counts.sum()) for counts in self.reads.values())


def counted(folder: Path, *rules: RuleConfiguration, memory_budget: int = 2**28) -> tuple[CountingStore, ExampleResult]:
    store = CountingStore(str(folder))
    return store, evaluate(SmdebugFolder(store), rules, memory_budget)


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """Two tensors of 2 MiB in a row, and a small one behind them, at five steps."""
    large = np.zeros(2**18)
    names: Tensors = {
        "a": [large + step for step in range(5)],
        "b": [large] * 5,
        "c": [float(step) for step in range(5)],
    }
    trial_from_series(tmp_path, names)
    return tmp_path


def of(name: str, rule_name: str, **need: Any) -> RuleConfiguration:
    return configured(rule(Summary(Selection(names=(name,)), **{"by": "max", **need}), name=rule_name), threshold=1e9)


def test_every_byte_is_read_once_whatever_the_number_of_rules(big: Path):
    store, result = counted(
        big,
        *(of(name, f"Rule{name}{by.replace('_', '')}", by=by) for name in "abc" for by in ("max", "abs_mean", "l2")),
        of("a", "Compares", by=Measure(difference), partner=Previous()),
        of("a", "ComparesToo", by=Measure(difference), partner=Previous(within=2)),
    )

    assert {status.RuleEvaluationStatus for status in statuses(result).values()} == {"NoIssuesFound"}
    assert store.most == 1


def test_bytes_that_no_rule_needs_are_not_read(big: Path):
    store, _ = counted(big, of("c", "Small"))

    assert 0 < store.total < 5 * 200


def test_what_lies_between_is_read_over_only_where_it_is_little(big: Path):
    store, _ = counted(big, of("a", "First"), of("c", "Last"))

    assert 5 * 2**21 <= store.total < 5 * (2**21 + 1000)


def test_an_earlier_value_that_no_longer_fits_is_read_again_and_gives_the_same_verdict(big: Path):
    watch = configured(
        rule(Summary(Selection(names=("a",)), by=Measure(difference), partner=Previous(within=3)), name="Rises"),
        threshold=2.5,
    )

    kept, first = counted(big, watch)
    again, second = counted(big, watch, memory_budget=2**20)

    assert (kept.most, again.most > 1) == (1, True)
    assert [one.document() for one in first.findings] == [one.document() for one in second.findings]
    assert (first.met_at, first.findings[0].measured) == (3, 3.0)


def test_an_earlier_value_that_is_gone_when_it_is_wanted_again_is_said(big: Path):
    def spoil(window: Window, _: Any) -> None:
        # the file of a step goes away once it was judged
        for path in big.rglob(f"{int(window.steps[-1]):012d}_worker_0.tfevents"):
            path.unlink()

    watch = configured(
        rule(Summary(Selection(names=("a",)), by=Measure(difference), partner=Previous()), name="Compares")
    )
    vandal = configured(rule(Summary(Selection(names=("c",)), by="max"), condition=spoil, name="Spoils"))

    _, result = counted(big, watch, vandal, memory_budget=2**10)

    assert statuses(result)["Compares"].Evaluation.skipped_because == {"an earlier value could not be read again": 4}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tensor of 100 KiB and a small one, at twelve steps, too small for a thread to read ahead."""
    steps = range(12)
    names: Tensors = {"a": [np.full(12_800, float(step)) for step in steps], "c": [float(step) for step in steps]}
    trial_from_series(tmp_path, names)
    return tmp_path


def of_three_steps(store: CountingStore) -> bool:
    """Whether three steps of the large tensor were read, the last two together, and the small one of all."""
    return len(store.reads) == 12 and 3 * 102_400 <= store.total < 3 * 102_400 + 4000


def test_a_rule_that_has_decided_is_read_no_more(small: Path):
    def decides(window: Window, _: Any) -> Any:
        return Decided("seen enough") if window.steps[-1] >= 1 else None

    store, result = counted(
        small, configured(rule(Summary(Selection(names=("a",))), condition=decides, name="Short")), of("c", "Long")
    )

    assert statuses(result)["Short"].RuleEvaluationStatus == "NoIssuesFound"
    assert statuses(result)["Short"].Evaluation.last_step == 1
    assert of_three_steps(store)


def test_a_rule_that_has_found_something_is_read_no_more(small: Path):
    store, _ = counted(small, configured(rule(Summary(Selection(names=("a",)), by="max"))), of("c", "Long"))

    assert of_three_steps(store)


def test_when_every_rule_has_ended_nothing_more_is_read(small: Path):
    store, result = counted(small, configured(rule(Summary(Selection(names=("a",)), by="max"))))

    assert result.met_at == 1
    assert len(store.reads) == 3
