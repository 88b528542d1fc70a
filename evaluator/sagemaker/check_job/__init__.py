"""Checks of a training job's request, one group in each module: everything that shows before the job runs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping

from evaluator.errors import Mistake
from evaluator.rule import SEVERITIES
from evaluator.sagemaker.check_job import _create_training_job as create_training_job
from evaluator.sagemaker.check_job import _estimator as estimator
from evaluator.sagemaker.check_job._request import Flaw, TrainingRequest

__all__ = ["Flaw", "TrainingRequest", "check_request", "checks", "read_request"]

Check = Callable[[TrainingRequest], Iterator[Flaw]]


def read_request(document: object, where: str) -> TrainingRequest | Mistake:
    """The request that a document holds, in whichever of the two shapes, or the mistake that it is in none."""
    if not isinstance(document, Mapping):
        return Mistake(where, f"holds a {type(document).__name__}", "expected an object, a request")
    if create_training_job.is_one(document):
        return create_training_job.read(document, where)
    if estimator.is_one(document):
        return estimator.read(document, where)
    right = "expected keys of CreateTrainingJob (DebugRuleConfigurations, ...) or of an estimator (rules, ...)"
    return Mistake(where, "is no request of a training job", right)


def checks() -> dict[str, Check]:
    """The `check` of every module in this package, by the module's name; those with an underscore hold none."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            found[module.name] = importlib.import_module(f"{__name__}.{module.name}").check
    return found


def check_request(request: TrainingRequest) -> list[Flaw]:
    """All that is wrong with a request, the gravest first; of the same severity in the order of the checks."""
    flaws = [*request.flaws, *(flaw for check in checks().values() for flaw in check(request))]
    return sorted(dict.fromkeys(flaws), key=lambda flaw: SEVERITIES.index(flaw.severity))
