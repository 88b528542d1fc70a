"""Every check: its form, and its examples as the files that a user would give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.sagemaker.diagnose import Check, Example, checks, word_of
from tests.sagemaker.diagnose.examples import clock_of, gather, written

EXAMPLES = [
    pytest.param(check, example, id=f"{check.name}: {example.title}")
    for check in checks()
    for example in check.examples
]
EACH = pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_an_example_comes_to_what_it_says(check: Check, example: Example, tmp_path: Path):
    evidence = gather(written(example, tmp_path), clock_of(example))

    result = check.check(evidence)

    assert word_of(result) == example.shows, result


@EACH
def test_a_check_has_examples_of_all_three_results_and_as_many_quiet_ones(check: Check):
    shown = [example.shows for example in check.examples]

    assert set(shown) == {"found", "ok", "not checked"}
    assert len(shown) - shown.count("found") >= shown.count("found")
    assert len({example.title for example in check.examples}) == len(shown)


@EACH
def test_a_check_is_documented_with_its_source_and_says_what_to_do(check: Check):
    assert re.search(r"^Source: \S", check.documentation, re.MULTILINE)
    assert check.remedy
    assert all(step.endswith(".") for step in check.remedy)
    assert check.inputs


def test_the_checks_are_found_in_the_order_of_the_guide_and_each_has_its_place():
    places = [check.place for check in checks()]

    assert places == list(range(1, len(places) + 1))
    assert [check.name for check in checks()] == [
        *("CheckpointsWithDebugger", "UnexpectedPrefix", "EfaSecurityGroup", "NoFirstStep", "StallAtEnd"),
        *(
            "ScalingLoss",
            "DeprecatedDataParallel",
            "SharedWorkerName",
            "RankNotFinite",
            "VanishedFiles",
            "CollectiveTimeout",
        ),
        *("OutOfMemory", "ImageOfAnotherRegion"),
    ]


def test_no_two_checks_call_their_lines_the_same():
    names = [name for check in checks() for name in check.signs]

    assert len(set(names)) == len(names)
