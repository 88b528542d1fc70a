"""show: what a trial holds, in numbers that a person can choose a threshold with."""

from __future__ import annotations

import json
import math
import statistics

import numpy as np
import pytest

from evaluator.commands.contents import KEPT, Numbers
from evaluator.modes import Mode
from evaluator.writer import TrialWriter
from tests.commands.program import TRIALS, call, small_trial, writer

EXPECTED = [path.name for path in sorted(TRIALS.iterdir()) if path.is_dir()]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_trial_is_described_as_it_is(capsys, name):
    expected = json.loads((TRIALS / f"{name}.expected.json").read_text())

    shown = call(capsys, "show", TRIALS / name, "--json")

    document = shown.document
    assert shown.code == 0
    assert document["steps"]["count"] == len(expected["steps"])
    assert (document["steps"]["first"], document["steps"]["last"]) == (expected["steps"][0], expected["steps"][-1])
    assert set(document["modes"]) == set(expected["modes"])
    assert len(document["workers"]["seen"]) == expected["num_workers"]
    assert {one["name"] for one in document["tensors"]} == set(expected["tensors"])
    assert {one["name"]: one["steps"] for one in document["tensors"]} == {
        name: len(one["steps"]) for name, one in expected["tensors"].items()
    }
    for one in document["tensors"]:
        saved = [worker for at in expected["tensors"][one["name"]]["at"].values() for worker in at["workers"].values()]
        assert {value["dtype"] for value in saved if "dtype" in value} <= set(one["dtypes"])
        assert all(value["shape"] in one["shapes"] for value in saved if "dtype" in value)


def test_numbers_are_over_steps_and_workers(tmp_path, capsys):
    for worker, scale in (("worker_0", 1.0), ("worker_1", 10.0)):
        one = TrialWriter(tmp_path, worker=worker, num_workers=2, collections={"weights": ["w"]})
        for step in range(3):
            one.save(step * 5, {"w": np.array([scale, -scale * (step + 1)], np.float32)})

    document = call(capsys, "show", tmp_path, "--json", "--by", "min", "--by", "abs_max").document

    (tensor,) = document["tensors"]
    assert document["steps"] == {
        "count": 3,
        "first": 0,
        "last": 10,
        "intervals": {"5": 2},
        "partial": 0,
        "unreadable": 0,
    }
    assert (tensor["steps"], tensor["workers"], tensor["dtypes"], tensor["shapes"]) == (3, 2, ["float32"], [[2]])
    assert tensor["by"]["min"] == {"min": -30, "median": -6.5, "max": -1, "values": 6, "nan": 0}
    assert tensor["by"]["abs_max"] == {"min": 1, "median": 6.5, "max": 30, "values": 6, "nan": 0}
    assert document["collections"] == {"all": 1, "weights": 1}


def test_a_saved_reduction_is_used_and_other_forms_are_told_apart(tmp_path, capsys):
    with TrialWriter(tmp_path) as one:
        one.save(
            0,
            {"both": np.full(2, 5.0), "text": np.array(["a", "b"]), "empty": np.zeros((0, 3), np.float32)},
            reductions={"both": {"abs_mean": 4.0}, "reduced": {"abs_mean": 2.0, "max": 3.0}},
            shapes={"shape": (7, 8)},
        )

    document = call(capsys, "show", tmp_path, "--json").document

    tensors = {one["name"]: one for one in document["tensors"]}
    assert tensors["both"]["by"]["abs_mean"]["max"] == 4
    assert tensors["reduced"]["by"]["abs_mean"]["max"] == 2
    assert tensors["reduced"]["saved"] == ["abs_mean", "max"]
    assert (tensors["text"]["dtypes"], tensors["text"]["by"]) == (["text"], {})
    assert (tensors["empty"]["shapes"], tensors["empty"]["by"]) == ([[0, 3]], {})
    assert (tensors["shape"]["shapes"], tensors["shape"]["saved"], tensors["shape"]["by"]) == ([[7, 8]], ["shape"], {})


def test_the_table_names_every_tensor_and_what_they_have_in_common(capsys):
    shown = call(capsys, "show", TRIALS / "ddp_two_workers")

    assert shown.code == 0
    assert "7 tensors, 10 steps (TRAIN), 2 workers, saved as value" in shown.out
    assert "CrossEntropyLoss_output_0" in shown.out
    assert "10, 0 to 18, every 2" in shown.out


def test_nan_is_counted_and_not_taken_for_a_number(tmp_path, capsys):
    with TrialWriter(tmp_path) as one:
        for step, value in enumerate([1.0, np.nan, 3.0, np.inf]):
            one.save(step, {"x": value, "gone": np.nan})

    document = call(capsys, "show", tmp_path, "--json").document

    numbers = {one["name"]: one["by"]["abs_mean"] for one in document["tensors"]}
    assert numbers["x"] == {"min": 1, "median": 3, "max": "Infinity", "values": 3, "nan": 1}
    assert numbers["gone"] == {"min": None, "median": None, "max": None, "values": 0, "nan": 4}
    assert "NaN" in call(capsys, "show", tmp_path).out


def test_only_the_tensors_asked_for_are_shown(tmp_path, capsys):
    document = call(capsys, "show", small_trial(tmp_path), "--tensor", "^g", "--json").document

    assert [one["name"] for one in document["tensors"]] == ["g0", "g1"]


def test_one_damaged_file_is_counted_and_the_rest_is_shown(tmp_path, capsys):
    trial = small_trial(tmp_path)
    next(trial.glob("events/000000000001/*")).write_bytes(b"")
    next(trial.glob("index/*/000000000002_*")).write_text("{")

    shown = call(capsys, "show", trial, "--json")

    assert shown.code == 0
    assert [one["unreadable"] for one in shown.document["tensors"]] == [1, 1, 1]
    assert shown.document["steps"]["unreadable"] == 1
    assert any("000000000002_worker_0.json" in where for where in shown.document["problems"])
    assert "problem: loss: 1 value not read" in call(capsys, "show", trial).out


def test_a_trial_that_has_just_begun_has_no_steps(tmp_path, capsys):
    writer(tmp_path).write_collections()

    shown = call(capsys, "show", tmp_path)

    assert shown.code == 0
    assert "steps        none" in shown.out
    assert "end marker   not there" in shown.out


def test_a_trial_without_collections_says_what_follows(tmp_path, capsys):
    trial = small_trial(tmp_path)
    next(trial.glob("collections/*/*")).unlink()

    assert (
        "there is no collections file, so rules that ask for a collection find nothing"
        in call(capsys, "show", trial).out
    )


def test_names_are_shown_and_not_obeyed(tmp_path, capsys):
    with TrialWriter(tmp_path) as one:
        one.save(0, {"\x1b[2J[red]x[/red]\u202e": 1.0})

    out = call(capsys, "show", tmp_path).out

    assert r"\x1b[2J[red]x[/red]\u202e" in out.replace("\n", "")


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--by", "abs_maen"), "--by: reduction 'abs_maen' is not known; did you mean 'abs_mean'?"),
        (("--tensor", "("), "--tensor: '(' is no regular expression; "),
        (("--tensor", "lost"), "--tensor: 'lost' is found in no tensor's name; nearest names: loss"),
        (("--tensor", "xyz"), "--tensor: 'xyz' is found in no tensor's name; saved are loss, g0, g1"),
    ],
)
def test_a_wrong_option_is_exit_2_with_what_would_be_right(tmp_path, capsys, options, mistake):
    shown = call(capsys, "show", small_trial(tmp_path), *options)

    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith(mistake)


def test_a_wrong_path_is_exit_2(tmp_path, capsys):
    assert call(capsys, "show", tmp_path / "no").code == 2


def test_both_modes_of_one_step_are_seen(tmp_path, capsys):
    with TrialWriter(tmp_path) as one:
        one.save(0, {"x": 1.0}, mode=Mode.TRAIN)
        one.save(1, {"x": 2.0}, mode=Mode.EVAL)

    document = call(capsys, "show", tmp_path, "--json").document

    assert document["modes"] == {"EVAL": 1, "TRAIN": 1}
    assert document["tensors"][0]["modes"] == ["EVAL", "TRAIN"]


def test_the_median_of_few_values_is_exact():
    values = [5.0, 1.0, 4.0, 2.0]
    numbers = Numbers()
    for value in values:
        numbers.add(value)

    assert (numbers.least, numbers.median, numbers.largest) == (1, statistics.median(values), 5)


def test_the_median_of_many_values_is_near_and_takes_no_more_memory():
    numbers = Numbers()
    for value in range(100_000):
        numbers.add(float(value))

    assert (numbers.count, numbers.least, numbers.largest) == (100_000, 0, 99_999)
    assert abs(numbers.median - 50_000) < 1_000
    assert len(numbers._kept) <= KEPT


def test_no_value_has_no_median():
    assert math.isnan(Numbers().median)
