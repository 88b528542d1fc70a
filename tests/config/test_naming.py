"""What the names in a log mean can be said in the configuration, and which format a trial has."""

from __future__ import annotations

import json

import pytest

from evaluator.config.load import Arguments, load
from evaluator.errors import InputError
from evaluator.modes import Mode
from evaluator.scalar_names import Naming
from tests.commands.program import call, check_outputs


def written(tmp_path, text):
    (tmp_path / "job.toml").write_text(text)
    return str(tmp_path / "job.toml")


def test_collections_and_modes_are_patterns_or_lists_of_them(tmp_path):
    config = written(
        tmp_path, "[names.collections]\nlosses = 'objective$'\nmetrics = ['a', 'b']\n[names.modes]\neval = '^held_out'"
    )

    loaded = load(Arguments(trial="t", config=config), {})
    assert loaded.naming == Naming({"losses": ("objective$",), "metrics": ("a", "b")}, {Mode.EVAL: ("^held_out",)})
    assert loaded.reading.naming == loaded.naming


def test_without_them_names_mean_what_they_say(tmp_path):
    assert load(Arguments(trial="t", config=written(tmp_path, "[labels]\na = 'b'")), {}).naming is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[names.colections]\nlosses = 'a'", "'colections' is not known; did you mean 'collections'"),
        ("[names.modes]\nEVALL = 'a'", "'EVALL' is no mode; did you mean 'EVAL'"),
        ("[names.collections]\nlosses = '('", "expected regular expressions: missing )"),
        ("[names.collections]\nlosses = 3", "'losses' is 3; expected regular expressions"),
        ("[names]\ncollections = 'a'", "is a str; expected names with patterns"),
    ],
)
def test_what_is_wrong_with_them_is_said(tmp_path, text, what):
    with pytest.raises(InputError) as refused:
        load(Arguments(trial="t", config=written(tmp_path, text)), {})
    assert what in str(refused.value)


def test_a_job_goes_by_them(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    rows = [{"step": step, "objective": value} for step, value in enumerate([1.0, 0.9, "NaN", "NaN"])]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = written(tmp_path, "[names.collections]\nlosses = 'objective'\n[[rule]]\nuse = 'NonFinite'")

    ran = call(capsys, "run", log, "--config", config, "--output", tmp_path / "out", "--source", "json_lines")

    assert ran.code == 1
    status = check_outputs(tmp_path / "out")
    assert status["DebugRuleEvaluationStatuses"][0]["Finding"]["tensor"] == "objective"


@pytest.mark.parametrize("command", ["run", "check", "show"])
def test_a_format_that_does_not_exist_is_wrong_input_with_the_nearest(tmp_path, capsys, command):
    (tmp_path / "log.csv").write_text("step,loss\n0,1.0\n")
    ran = call(capsys, command, tmp_path / "log.csv", "--source", "json_line")

    assert ran.code == 2
    assert "'json_line' is no format of saved runs" in ran.err
    assert "json_lines" in ran.err


def test_a_format_that_is_forced_is_the_only_one_that_is_looked_for(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("step,loss\n0,1.0\n")

    assert call(capsys, "show", tmp_path / "log.csv", "--source", "csv").code == 0
    assert call(capsys, "show", tmp_path / "log.csv", "--source", "smdebug").code == 2
