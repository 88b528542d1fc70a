from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.zoo.__main__ import main
from benchmarks.zoo.judging import SETS, THREADS, Asked, Outcome, make_and_judge
from benchmarks.zoo.kind import Fault, Kind, all_kinds
from benchmarks.zoo.page import markdown, put
from benchmarks.zoo.results import Whole, collect
from benchmarks.zoo.run import Run, Saved
from benchmarks.zoo.score import Found, in_story_order, score
from evaluator.modes import Mode
from evaluator.trial.opening import open_run

KINDS = {kind.name: kind for kind in all_kinds()}
HEALTHY = [kind.name for kind in KINDS.values() if kind.fault is None]
FAULTY = [kind.name for kind in KINDS.values() if kind.fault is not None]
RULES = {
    "VanishingGradient", "ExplodingTensor", "NonFinite", "DeadRelu", "PoorWeightInitialization",
    "SaturatedActivation", "WeightUpdateRatio", "TensorVariance", "AllZero", "UnchangedTensor", "NotLearning",
    "LossNotDecreasing", "LossSpike", "LossDiverging", "MetricFlat", "Overfit", "Overtraining",
    "ClassImbalance", "Confusion", "TreeDepth", "FeatureImportanceOverweight", "CheckInputImages",
    "NLPSequenceRatio", "SimilarAcrossRuns", "WorkersDiverge", "SilentWorker", "UnevenSteps",
    "StalledTrainingRule",
}  # fmt: skip
"""Those that issue 3 names, and those that were there before it."""


@cache
def first_run(name: str) -> Run:
    return KINDS[name].run(0)


def content(run: Run) -> Iterator[bytes]:
    for saved in run.saved:
        yield repr((saved.step, saved.mode, saved.mode_step, saved.worker, saved.seconds)).encode()
        for name, value in saved.values.items():
            yield f"{name} {value.dtype} {value.shape}".encode()
            yield value.tobytes()


def digest(parts: Iterator[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def files(folder: Path) -> Iterator[bytes]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield path.relative_to(folder).as_posix().encode()
        yield path.read_bytes()


def test_there_are_enough_kinds():
    assert sum(KINDS[name].seeds >= 25 for name in HEALTHY) >= 12
    assert len(FAULTY) >= 30
    assert all(KINDS[name].seeds >= 3 for name in FAULTY)


@pytest.mark.parametrize("name", KINDS)
def test_the_run_is_what_its_kind_says(name):
    KINDS[name].proof(first_run(name))


@pytest.mark.parametrize("name", [name for name in HEALTHY if not KINDS[name].variant])
def test_a_second_seed_is_healthy_too(name):
    KINDS[name].proof(KINDS[name].run(1))


@pytest.mark.parametrize("name", KINDS)
def test_the_same_seed_gives_the_same_run(name):
    assert digest(content(KINDS[name].run(0))) == digest(content(first_run(name)))


@pytest.mark.parametrize("name", ["relu-sgd", "dropout", "attention", "trees-regression", "two-workers"])
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    first_run(name).write(tmp_path / "first")
    KINDS[name].run(0).write(tmp_path / "second")

    assert digest(files(tmp_path / "first")) == digest(files(tmp_path / "second"))


@pytest.mark.parametrize("name", ["relu-sgd", "lora", "trees-classification"])
def test_another_seed_gives_another_run(name):
    assert digest(content(KINDS[name].run(1))) != digest(content(first_run(name)))


@pytest.mark.parametrize("name", KINDS)
def test_the_trial_opens_with_its_steps(name, tmp_path):
    # a part of it, for speed
    run = replace(first_run(name), saved=first_run(name).saved[:12])
    run.write(tmp_path)

    sightings = list(open_run(str(tmp_path)).sightings(from_step=None))

    assert sorted({sighting.step for sighting in sightings}) == run.steps
    assert len(sightings) == len({(saved.step, saved.worker) for saved in run.saved})


@pytest.mark.parametrize("name", KINDS)
def test_a_run_has_30_to_150_saved_steps(name):
    least = 30 if KINDS[name].fault is None else 20

    assert least <= len(first_run(name).steps) <= 150


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_names_rules_that_exist_or_are_planned(name):
    fault = KINDS[name].fault

    assert fault is not None
    assert fault.rules
    assert {*fault.rules, *fault.acceptable} <= RULES


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_begins_while_steps_are_saved(name):
    run = first_run(name)

    assert run.begins is not None
    assert run.begins <= run.steps[-1]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_has_no_fault(name):
    assert first_run(name).begins is None


@pytest.mark.parametrize("name", FAULTY)
def test_the_place_of_a_fault_is_in_the_run(name):
    fault, run = KINDS[name].fault, first_run(name)

    assert fault is not None
    assert not fault.tensor or run.names(fault.tensor)
    assert not fault.worker or int(fault.worker.removeprefix("worker_")) < run.workers


# scoring

STEPS = [0, 5, 10, 15, 20]
FAULT = Fault(("Wanted", "AlsoWanted"), ("Related",), tensor="^w")


def test_a_finding_of_an_intended_rule_is_a_hit():
    scored = score(FAULT, 10, STEPS, [Found("Related", 15, "x"), Found("Wanted", 15, "w0")])

    assert (scored.recalled, scored.first, scored.placed, scored.delay) == (True, False, True, 1)
    assert (scored.findings, scored.unrelated) == (2, 0)


def test_a_finding_before_the_fault_is_none_and_unrelated():
    scored = score(FAULT, 10, STEPS, [Found("Wanted", 5, "w0")])

    assert (scored.recalled, scored.delay, scored.unrelated) == (False, None, 1)


def test_an_alarm_before_the_fault_is_told_first():
    scored = score(FAULT, 10, STEPS, [Found("AlsoWanted", 10, "w0"), Found("Wanted", 0)])

    assert (scored.recalled, scored.first, scored.delay) == (True, False, 0)


def test_a_rule_that_has_nothing_to_do_with_it_is_unrelated():
    scored = score(FAULT, 0, STEPS, [Found("Other", 0), Found("Wanted", 0, "b")])

    assert (scored.placed, scored.unrelated, scored.strangers) == (False, 1, ("Other",))


def test_a_fault_that_is_at_a_worker_is_placed_by_the_worker():
    fault = Fault(("Wanted",), worker="worker_1")

    assert score(fault, 0, STEPS, [Found("Wanted", 0, "w", "worker_1")]).placed
    assert not score(fault, 0, STEPS, [Found("Wanted", 0, "w", "worker_0")]).placed


def test_a_fault_without_a_place_has_no_right_one():
    assert score(Fault(("Wanted",)), 0, STEPS, [Found("Wanted", 0)]).placed is None


def test_what_is_not_finite_is_told_first_within_its_step():
    found = [Found("A", 5), Found("ExplodingTensor", 5), Found("B", 0), Found("NonFinite", 9)]

    assert [one.rule for one in in_story_order(found)] == ["B", "ExplodingTensor", "A", "NonFinite"]


def nothing(_: Run) -> None:
    """The proof of a kind that is made up."""


def made_up(name: str, fault: Fault | None = None) -> Kind:
    return Kind(name, "made up", lambda _: Run(), nothing, fault)


def outcome(name: str, seed: int, *found: Found) -> Outcome:
    return Outcome(name, seed, 10, STEPS, {"recommended": list(found), "sagemaker": []})


def test_kinds_are_collected_by_seed_and_set():
    kinds = [made_up("good"), made_up("bad", FAULT), made_up("new", Fault(("NotThere",)))]
    outcomes = [
        outcome("good", 0), outcome("good", 1, Found("Wanted", 0), Found("Wanted", 5)),
        outcome("bad", 0, Found("Wanted", 10, "w")), outcome("bad", 1), outcome("new", 0),
    ]  # fmt: skip

    good, bad, new = collect(kinds, outcomes, "recommended", ["Wanted"])

    assert (good.alarmed.hits, good.alarmed.of, dict(good.rules)) == (1, 2, {"Wanted": 1})
    assert (bad.recalled.hits, bad.recalled.of, bad.has_rule) == (1, 2, True)
    assert not new.has_rule
    assert Whole.of([good, bad, new]).alarms_per_run == 1.0


def test_the_page_keeps_what_others_wrote(tmp_path):
    page = tmp_path / "detection.md"
    page.write_text("before\n<!-- zoo -->\nstale\n<!-- /zoo -->\n<!-- logs -->\ntheirs\n<!-- /logs -->\n")
    kinds = [made_up("good"), made_up("bad", FAULT)]
    results = {name: collect(kinds, [outcome("good", 0), outcome("bad", 0)], name, ["Wanted"]) for name in SETS}

    put(page, markdown(results, "make zoo"))

    text = page.read_text()
    assert text.startswith("before\n<!-- zoo -->\n## The zoo")
    assert text.endswith("<!-- /zoo -->\n<!-- logs -->\ntheirs\n<!-- /logs -->\n")
    assert "stale" not in text


def test_a_page_without_the_marks_is_left_alone(tmp_path):
    page = tmp_path / "detection.md"
    page.write_text("something else\n")

    with pytest.raises(ValueError, match="has no lines <!-- zoo -->"):
        put(page, "text")

    assert page.read_text() == "something else\n"


def test_a_run_is_judged_by_both_sets_and_no_rule_breaks():
    made = make_and_judge(Asked("nan-weight", 0))

    assert set(made.found) == set(SETS)
    assert made.raised == {}
    assert "ExplodingTensor" in {found.rule for found in made.found["sagemaker"]}


def test_a_part_of_the_zoo_runs_in_a_process_of_its_own(capsys, monkeypatch):
    for name in THREADS:
        monkeypatch.setenv(name, "1")

    assert main(["--kind", "regression-linear", "--kind", "rate-zero", "--seeds", "1", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "kinds of fault found in every run" in printed
    assert "2 runs in" in printed


def test_an_unknown_kind_is_an_error(capsys):
    assert main(["--kind", "no-such-kind"]) == 2
    assert "no-such-kind" in capsys.readouterr().err


def test_the_page_is_of_the_whole_zoo(capsys, tmp_path):
    assert main(["--kind", "relu-sgd", "--write", str(tmp_path / "page.md")]) == 2
    assert "leave --kind" in capsys.readouterr().err


def test_tensors_left_out_are_not_saved():
    saved = [Saved(0, Mode.TRAIN, 0, {"a": np.zeros(1), "b": np.ones(1)}), Saved(1, Mode.TRAIN, 1, {"a": np.zeros(1)})]

    run = Run(saved).without("^a$")

    assert run.names() == ["b"]
    assert run.steps == [0]
