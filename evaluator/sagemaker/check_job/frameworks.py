"""Rules that are for another framework: those for XGBoost elsewhere, and those for deep learning with XGBoost."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.sagemaker.check_job._hosted import DEEP_LEARNING_ONLY, XGBOOST_ONLY
from evaluator.sagemaker.check_job._request import Flaw, TrainingRequest


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """Rules that would find no tensors of theirs; nothing where the framework is not known.

    Nothing refuses them, so these are warnings.
    """
    if request.framework is None:
        return
    by_lower = {name.lower(): name for name in XGBOOST_ONLY | DEEP_LEARNING_ONLY}
    for entry in request.rules:
        # a class in a file may have the name of a built-in rule
        rule = None if entry.source or entry.rule is None else by_lower.get(entry.rule.lower())
        if rule in XGBOOST_ONLY and request.framework != "xgboost":
            what = f"rule {rule} is for XGBoost, and the job trains with {request.framework}"
            yield Flaw(entry.where, what, "leave it out: it would see no tensors", "warning")
        elif rule in DEEP_LEARNING_ONLY and request.framework == "xgboost":
            what = f"rule {rule} is for deep learning, and the job trains with XGBoost"
            yield Flaw(entry.where, what, "leave it out: it would see no tensors", "warning")
