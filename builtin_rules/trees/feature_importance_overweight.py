"""Fires when a few features make up most of the importance of all.

At each saved step, divides the sum of the `nfeatures` largest importances by the sum of all, and fires above
`threshold`. The finding names the most important feature.

Quiet when: importance is spread; or no feature has any.
Source: SageMaker Debugger's list of built-in rules, "FeatureImportanceOverweight". With no more features than
`nfeatures` the share is 1 and it fires, as documented. Importances are divided by their sum again, because a selection
may hold only some of them; negative and missing ones count as none.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from evaluator.rule import Example, NotYet, Recommended, Rule, RuleParameters, Selection, Summary, Verdict, Window
from evaluator.segments import Floats


class Parameters(RuleParameters):
    """What FeatureImportanceOverweight can be told."""

    threshold: float = Field(0.8, ge=0, le=1, description="Fires above this share of the whole importance.")
    nfeatures: int = Field(3, ge=1, description="How many of the most important features make up the share.")
    tensor_regex: Patterns = Field(
        (".*feature_importance/weight",), min_length=1, description="The importances, one tensor per feature."
    )


def share_of_largest(importance: Floats, nfeatures: int) -> float:
    """The share of the largest `nfeatures` importances in all of them."""
    return float(np.sort(importance)[::-1][:nfeatures].sum() / importance.sum())


def overweight(features: Window, parameters: Parameters) -> Verdict:
    """features: (1, columns), the importance of each feature at this step."""
    saved = features.saved[-1]
    importance = np.where(saved & np.isfinite(features.values[-1]), np.maximum(features.values[-1], 0.0), 0.0)
    # shares of the largest, so that their sum cannot overflow
    largest = importance.max(initial=0.0)
    used = int((importance > 0).sum())
    if largest <= 0:
        return NotYet("no feature has any importance")
    importance /= largest
    share = share_of_largest(importance, parameters.nfeatures)
    if share <= parameters.threshold:
        return None
    top = np.argsort(-importance, kind="stable")[: parameters.nfeatures].tolist()
    most = np.zeros(len(importance), np.bool_)
    most[top[0]] = True
    shares = importance / importance.sum()
    details = {features.columns[at].tensor: float(shares[at]) for at in top[:10] if importance[at] > 0}
    return features.met(
        most,
        measured=np.full(len(importance), share),
        limit=parameters.threshold,
        of=used,
        details={"shares": details, "features": used},
        message=f"{min(parameters.nfeatures, used)} of {{of}} features make up {{measured}} of the importance, more "
        "than {limit}; the first is {tensor}",
    )


def _features(*series: Sequence[float | None]) -> dict[str, Sequence[float | None]]:
    return {f"feature_importance/weight/f{number}": values for number, values in enumerate(series)}


SAGEMAKER = {"parameter_set": "sagemaker"}

RULE = Rule(
    name="FeatureImportanceOverweight",
    severity="warning",
    parameters=Parameters,
    requires=lambda parameters: [Summary(Selection(regexes=parameters.tensor_regex), by="mean")],
    condition=overweight,
    precedence=50,
    recommended={
        "nfeatures": Recommended(
            1, "in a small model three features make up everything; where a single one does, it gives the label away"
        ),
        "consecutive": Recommended(10, "the first trees split on few features"),
    },
    examples=(
        Example(
            "one feature gives the label away",
            _features([0.5, *[0.9] * 10], [0.3, *[0.05] * 10], [0.2, *[0.05] * 10]),
            met_at=10,
        ),
        Example(
            "three of five",
            _features([0.1], [0.4], [0.3], [0.15], [0.05]),
            parameters=SAGEMAKER,
            met_at=0,
            tensor="feature_importance/weight/f1",
        ),
        Example("no more than three, as documented", _features([0.4], [0.3], [0.3]), parameters=SAGEMAKER, met_at=0),
        Example("few features, all of them used", _features([0.5] * 12, [0.3] * 12, [0.2] * 12)),
        Example("spread over five", _features([0.2], [0.2], [0.2], [0.2], [0.2]), parameters=SAGEMAKER),
        Example("only in the first trees", _features([1.0] * 9 + [0.5] * 3, [0.0] * 9 + [0.5] * 3)),
        Example("one step", _features([1.0])),
        Example("none, and unsaved", _features([0.0, None, float("nan")], [0.0, None, 0.0])),
        Example("huge", _features([1.7e308] * 4, [1.6e308] * 4)),
    ),
)
