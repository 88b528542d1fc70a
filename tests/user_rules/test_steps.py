"""Which steps a trial shows, and as what: conformance.md, section C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluator.modes import Mode
from evaluator.user_rules.exceptions import NoMoreData, StepNotYetAvailable, StepUnavailable
from evaluator.user_rules.modes import ModeKeys, StepState, modes
from evaluator.user_rules.opening import create_trial
from evaluator.user_rules.reader import Limits
from evaluator.user_rules.surroundings import Surroundings
from evaluator.writer import write_end_marker
from tests.conformance import data

AV, UN, NYA = StepState.AVAILABLE, StepState.UNAVAILABLE, StepState.NOT_YET_AVAILABLE


def token(trial) -> str:
    return str(trial.last_index_token).rpartition("/")[2].removesuffix(".json").lstrip("0")


SCENARIOS = [
    # case of data.C_CASES, ended, steps, states by step, last complete step, token
    ("single_all", True, [*range(7)], {3: AV, 8: UN}, 6, "6_worker_0"),
    ("single_all", False, [*range(7)], {3: AV, 8: NYA}, 6, "6_worker_0"),
    ("single_hole", True, [0, 1, 2, 3, 5, 6], {4: UN, 8: UN}, 6, "6_worker_0"),
    ("single_hole", False, [0, 1, 2, 3, 5, 6], {4: UN, 8: NYA}, 6, "6_worker_0"),
    ("three_all", True, [*range(7)], {8: UN}, 6, "6_worker_2"),
    ("three_all", False, [*range(7)], {8: NYA}, 6, "6_worker_2"),
    ("three_not_all", True, [*range(7)], {3: AV, 4: AV, 6: AV, 8: UN}, 6, "2_worker_2"),
    ("three_not_all", False, [0, 1, 2], {2: AV, 4: NYA, 6: NYA, 8: NYA}, 2, "2_worker_2"),
    ("three_later", True, [*range(7)], {4: AV, 6: AV, 8: UN}, 6, "6_worker_2"),
    ("three_later", False, [*range(7)], {4: AV, 6: AV, 8: NYA}, 6, "6_worker_2"),
    ("three_missing_later", True, [0, 1, 2, 4, 5, 6], {3: UN, 4: AV, 8: UN}, 6, "6_worker_2"),
    ("three_missing_later", False, [0, 1, 2, 4, 5, 6], {3: UN, 4: AV, 8: NYA}, 6, "6_worker_2"),
    ("three_missing_partial", True, [0, 1, 2, 4, 5, 6], {3: UN, 4: AV, 6: AV, 8: UN}, 6, "2_worker_2"),
    ("three_missing_partial", False, [0, 1, 2], {3: NYA, 4: NYA, 6: NYA, 8: NYA}, 2, "2_worker_2"),
]


@pytest.mark.parametrize(("case", "ended", "steps", "states", "last", "token_"), SCENARIOS)
def test_workers_decide_which_steps_are_complete(tmp_path: Path, case, ended, steps, states, last, token_):
    wrote, workers = data.C_CASES[case]
    data.w3(tmp_path, wrote, ended=ended, workers=workers)
    trial = create_trial(str(tmp_path))

    seen = trial.steps(), {step: trial.has_passed_step(step) for step in states}, trial.last_complete_step
    assert (*seen, token(trial), trial.loaded_all_steps) == (steps, states, last, token_, ended)
    assert trial.steps(show_incomplete_steps=True) == sorted(wrote)
    assert trial.workers() == sorted(workers)


@pytest.mark.parametrize("ended", [True, False])
def test_modes_have_steps_of_their_own(tmp_path: Path, ended):
    data._two_modes(tmp_path, ended=ended)
    trial = create_trial(str(tmp_path))
    beyond = UN if ended else NYA

    passed = trial.has_passed_step
    assert trial.steps() == [*range(0, 80, 10)]
    assert [passed(30), passed(23, modes.TRAIN), passed(30, modes.EVAL), passed(23, modes.EVAL)] == [AV, UN, AV, UN]
    assert [passed(40, modes.TRAIN), passed(80), *(passed(80, mode) for mode in modes)] == [beyond] * 6
    assert token(trial) == "70_worker_0"


def test_a_hole_and_the_end_are_told_apart(tmp_path: Path):
    data.w3(tmp_path, dict.fromkeys([0, 1, 2, 3, 5, 6], "a"), ended=True, workers=data.ABC[:1])
    trial = create_trial(str(tmp_path))

    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([0, 1, 2, 3, 4, 5])
    with pytest.raises(NoMoreData, match="Max step available is 6") as caught:
        trial.wait_for_steps([0, 1, 2, 3, 5, 6, 7])
    assert (caught.value.step, caught.value.last_step) == (7, 6)


def test_waiting_ends_when_nothing_comes_for_the_limit(tmp_path: Path, clock):
    data.w3(tmp_path, {0: "a"}, ended=False, workers=data.ABC[:1])
    trial = create_trial(str(tmp_path))

    with pytest.raises(StepNotYetAvailable):
        trial.wait_for_steps([5], timeout=100)
    assert clock.monotonic() == 100


def test_a_dead_worker_blocks_no_longer_than_the_quorum(tmp_path: Path, clock):
    data.w3(tmp_path, {0: "ab", 500: "a", 1000: "a"}, ended=False, workers=data.ABC[:2])
    trial = create_trial(str(tmp_path))
    before = trial.steps()
    trial.wait_for_steps([1000])

    assert (before, trial.steps()) == ([0], [0, 500, 1000])
    assert clock.monotonic() == pytest.approx(Limits().quorum, abs=Limits().poll)


@pytest.mark.parametrize("interval", [1, 500])
def test_the_window_counts_saved_steps_whatever_the_interval(tmp_path: Path, clock, monkeypatch, interval):
    limits = replace(Limits(), window=10)
    monkeypatch.setattr("evaluator.user_rules.surroundings._set", [Surroundings(clock, limits)])
    data.w3(tmp_path, dict.fromkeys(range(0, 20 * interval, interval), "a"), ended=False)
    trial = create_trial(str(tmp_path))
    seen = [trial.last_complete_step // interval]
    for _ in range(3):
        trial.workers()
        seen.append(trial.last_complete_step // interval)

    assert seen == [4, 9, 9, 9]
    assert token(trial) == f"{9 * interval}_worker_2"


def test_a_tensor_has_the_complete_steps_of_its_trial_only(tmp_path: Path):
    data.BUILDS["c_partial_tensors"](tmp_path)
    trial = create_trial(str(tmp_path / "trial"))

    assert trial.steps() == trial.tensor("weight").steps() == [*range(8)]
    assert trial.tensor("loss").steps() == [*range(5)]
    assert trial.tensor("gradient").steps() == [5, 6, 7]
    assert trial.tensor("gradient").steps(show_incomplete_steps=True) == [5, 6, 7, 8, 9]


def test_a_half_written_step_of_a_mode_is_complete_for_neither_trial_nor_tensor(tmp_path: Path):
    data.BUILDS["i_half_eval"](tmp_path)
    running, ended = (create_trial(str(tmp_path / name)) for name in ("running", "ended"))

    assert running.tensor("t").steps(modes.EVAL) == running.steps(modes.EVAL) == [0]
    assert ended.has_passed_step(501, modes.EVAL) is AV


def test_late_steps_and_late_workers_are_seen(tmp_path: Path):
    data.BUILDS["i_late"](tmp_path)
    trial = create_trial(str(tmp_path / "trial"))
    for worker in data.ABC[:2]:
        data.save(tmp_path / "trial", 5, {"t": np.float32(5)}, worker=worker)

    assert trial.steps() == [0, 5, 7, 10]
    assert trial.tensor("t").value(5).tolist() == [5]


def test_a_straggling_worker_is_seen_however_far_it_is_behind(tmp_path: Path):
    data.w3(tmp_path, dict.fromkeys(range(100), "a"), ended=False, workers=data.ABC[:2])
    trial = create_trial(str(tmp_path))
    before = trial.steps()
    data.save(tmp_path, 0, {"w": np.float32(5)}, worker="worker_1")

    assert (before, trial.steps()) == ([], [0])


def test_after_the_end_nothing_is_looked_for(tmp_path: Path):
    data.w3(tmp_path, {0: "a"}, ended=True, workers=data.ABC[:1])
    trial = create_trial(str(tmp_path))
    at_first = trial.loaded_all_steps
    trial.steps()
    data.save(tmp_path, 1, {"w": np.float32(5)})

    assert (at_first, trial.loaded_all_steps, trial.steps()) == (False, True, [0])


def test_what_comes_while_the_end_is_confirmed_belongs_to_the_run(tmp_path: Path, clock, monkeypatch):
    data.w3(tmp_path, {0: "a"}, ended=False, workers=data.ABC[:1])
    trial = create_trial(str(tmp_path))
    write_end_marker(tmp_path)
    monkeypatch.setattr(clock, "wait", lambda _: data.save(tmp_path, 1, {"w": np.float32(5)}))

    assert (trial.steps(), trial.loaded_all_steps) == ([0, 1], True)


def test_modes_and_their_numbers_translate_both_ways(tmp_path: Path):
    data.announce(tmp_path)
    trial = create_trial(str(tmp_path))
    for step in range(10):
        mode = Mode.EVAL if step % 2 else Mode.TRAIN
        data.save(tmp_path, step, {"a": np.float32(step)}, mode=mode, mode_step=step // 2)
    tensor = trial.tensor("a")

    assert [trial.mode(step) for step in (0, 1)] == [modes.TRAIN, modes.EVAL]
    assert [trial.mode_step(step) for step in range(10)] == [step // 2 for step in range(10)]
    assert [trial.global_step(modes.EVAL, step) for step in range(5)] == [1, 3, 5, 7, 9]
    assert [len(tensor.steps(mode)) for mode in (modes.GLOBAL, modes.TRAIN, modes.EVAL)] == [10, 5, 5]
    assert [tensor.value(step, modes.EVAL)[0] for step in range(5)] == [1, 3, 5, 7, 9]
    assert trial._global_to_mode[3] == (modes.EVAL, 1)
    assert list(trial.modes()) == [ModeKeys.TRAIN, ModeKeys.EVAL]
    assert (trial.mode_modestep(99), trial.steps(mode=None)) == ((None, None), [])
