"""TreeDepth: the depth of trees by their largest node number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.builtin_rules.judging import defaults, judge


def slow_depth(node: int) -> int:
    """How often a number can be halved until it is one."""
    depth = 0
    while node > 1:
        node, depth = node // 2, depth + 1
    return depth


def test_parameters_are_sagemakers():
    assert defaults("TreeDepth") == {"depth": 4.0}


@pytest.mark.parametrize("node", [0, 1, 2, 3, 7, 8, 15, 16, 30, 31, 32, 62, 63, 64, 1000, 2**20])
@pytest.mark.parametrize("depth", [0, 1, 4, 6])
def test_it_agrees_with_the_slow_way(node: int, depth: int):
    result = judge("TreeDepth", {"trees/Node": [[0, node]]}, depth=depth)

    assert (result.met_at is not None) == (slow_depth(node) > depth)
    assert not result.findings or result.findings[0].measured == slow_depth(node)


def test_a_full_tree_of_depth_4_is_quiet_and_one_of_100_is_not():
    assert judge("TreeDepth", {"trees/Node": [list(range(31))]}).word == "NoIssuesFound"
    assert judge("TreeDepth", {"trees/Node": [[0, 1, 2, 2**60]]}).met_at == 0


@pytest.mark.parametrize("depth", [6, 10])
def test_usual_depths_are_quiet_by_the_recommended_parameters(depth: int):
    run = {"trees/Node": [list(range(2 ** (depth + 1) - 1))]}

    assert judge("TreeDepth", run, parameter_set="recommended").word == "NoIssuesFound"


def test_the_finding_names_the_largest_node():
    finding = judge("TreeDepth", {"trees/Node": [[0, 1, 2], [0, 70]]}).findings[0]

    assert (finding.step, finding.measured, finding.limit) == (1, 6, 4)
    assert finding.details == {"largest_node": 70}


def test_other_columns_of_the_trees_are_not_looked_at():
    run: dict[str, Sequence[Any]] = {
        "trees/Node": [[0, 1]],
        "trees/Gain": [[1e9, 1e9]],
        "trees/Feature": [["f0", "f1"]],
    }

    assert judge("TreeDepth", run).word == "NoIssuesFound"


def test_a_run_without_trees_is_not_judged_and_says_so():
    assert "trees/Node" in judge("TreeDepth", {"w": [1.0]}).why
