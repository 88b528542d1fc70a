"""Fires when a boosted tree is deeper than `depth`.

At each saved step, takes the depth of the trees from the largest node number: floor(log2(largest)).

Quiet when: no tree of the step is deeper; or a tree has one node only, whose depth is 0.
Source: SageMaker Debugger's list of built-in rules, "TreeDepth" (log2 of the largest node number). That it is rounded
down, and that the limit itself is quiet, is our choice; see `depth_of`.
"""

import numpy as np
from pydantic import Field

from evaluator.rule import Example, Met, Recommended, Rule, RuleParameters, Selection, Summary, Window
from evaluator.segments import Floats

NODES = Selection(names=("trees/Node",))
"""Where the XGBoost hook saves node numbers (the guide's own sample calls the collection `tree`, which is a slip)."""


class Parameters(RuleParameters):
    """What TreeDepth can be told."""

    depth: float = Field(4.0, ge=0, description="Fires above this depth.")


def depth_of(largest: Floats) -> Floats:
    """The depth of a tree by its largest node number.

    Our choice: rounded down, because a full tree of depth 4 has the nodes 0 to 30, whose log2 is 4.9, and must not
    count as deeper than 4.
    """
    return np.floor(np.log2(np.maximum(largest, 1.0)))


def too_deep(nodes: Window, parameters: Parameters) -> Met | None:
    """nodes: (1, columns), the largest node number at this step."""
    depth = depth_of(nodes.values[-1])
    deep = nodes.saved[-1] & (depth > parameters.depth)
    if not deep.any():
        return None
    each = {"largest_node": nodes.values[-1]}
    return nodes.met(
        deep, measured=depth, limit=parameters.depth, each=each, message="a tree is {measured} deep, more than {limit}"
    )


def _tree(last: int) -> list[int]:
    return list(range(last + 1))


RULE = Rule(
    name="TreeDepth",
    severity="warning",
    parameters=Parameters,
    requires=lambda parameters: [Summary(NODES, by="max")],
    condition=too_deep,
    precedence=50,
    recommended={
        "depth": Recommended(
            10.0,
            "XGBoost's own default is a depth of 6, and SageMaker's guide to tuning it searches from 0 to 10; deeper "
            "trees fit single rows",
        )
    },
    examples=(
        Example("deeper than ten", {"trees/Node": [_tree(30), _tree(2100)]}, met_at=1),
        Example(
            "deeper than SageMaker's four",
            {"trees/Node": [_tree(30), _tree(32)]},
            parameters={"parameter_set": "sagemaker"},
            met_at=1,
        ),
        Example("full trees of depth 4", {"trees/Node": [_tree(30)] * 3}, parameters={"parameter_set": "sagemaker"}),
        Example("the depth of XGBoost's default", {"trees/Node": [_tree(126)] * 3}),
        Example("one node, unsaved, no node", {"trees/Node": [[0], None, []]}),
        Example("no trees", {"w": [1.0, 2.0]}),
    ),
)
