"""rules and explain: what rules say of themselves."""

from __future__ import annotations

import pytest

from evaluator.registry import builtin_rules
from tests.commands.program import call


def test_every_rule_is_listed(capsys):
    ran = call(capsys, "rules", "--json")

    assert ran.code == 0
    assert [rule["name"] for rule in ran.document["rules"]] == list(builtin_rules())
    assert ran.document["notes"] == []
    vanishing = next(rule for rule in ran.document["rules"] if rule["name"] == "VanishingGradient")
    assert vanishing == {
        "name": "VanishingGradient",
        "from": "built-in",
        "severity": "error",
        "description": "Fires when some gradient is too small for its layer to keep learning.",
        "parameters": list(builtin_rules()["VanishingGradient"].parameters.model_fields),
    }


def test_people_get_a_table(capsys):
    out = call(capsys, "rules").out

    assert all(name in out for name in builtin_rules())
    assert "\\n" not in out


@pytest.mark.parametrize("name", ["VanishingGradient", "vanishinggradient"])
def test_a_rule_is_explained_in_whatever_case_it_is_named(capsys, name):
    ran = call(capsys, "explain", name)

    assert ran.code == 0
    for text in (
        "VanishingGradient (error)",
        "Fires when some gradient is too small for its layer to keep learning.",
        "Quiet when: no gradient was saved at the step",
        "threshold   1e-07",
        "on_finding      stop",
        "abs_mean of collection 'gradients'",
        "one layer dies: fires at step 1, in w1",
        "w1: 1e-05  1e-09",
        "healthy: stays quiet",
        "w0: -  0.001",
    ):
        assert text in ran.out


@pytest.mark.parametrize("name", builtin_rules())
def test_every_rule_can_be_explained(capsys, name):
    assert call(capsys, "explain", name).code == 0
    document = call(capsys, "explain", name, "--json").document

    assert document["name"] == name
    assert document["needs"]
    assert [one["title"] for one in document["examples"]] == [one.title for one in builtin_rules()[name].examples]


def test_recommended_values_and_our_own_parameters_are_told_apart(capsys):
    document = call(capsys, "explain", "UnchangedTensor", "--json").document

    parameters = {one["name"]: one for one in document["parameters"]}
    recommended = builtin_rules()["UnchangedTensor"].recommended["num_steps"].value
    assert (parameters["num_steps"]["ours"], parameters["num_steps"]["recommended"]) == (False, recommended)
    assert (parameters["collection_names"]["recommended"], parameters["modes"]["ours"]) == (["weights"], True)
    assert parameters["collection_names"]["reason"]
    assert {one["ours"] for one in document["loop_parameters"]} == {True}


def test_an_unknown_rule_gets_the_nearest_name(capsys):
    ran = call(capsys, "explain", "VanishGradient")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("explain: rule 'VanishGradient' is not known; did you mean 'VanishingGradient'? rules: ")
