"""Short ways to have a built-in rule judge a small run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluator.config.parameters import configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.rule import Example
from evaluator.testing import ExampleResult, run_example

SAGEMAKER = {"parameter_set": "sagemaker"}


def judge(rule: str, tensors: Mapping[str, Sequence[Any]], **how: Any) -> ExampleResult:
    """What a rule with SageMaker's defaults says about a run; `how` is as in Example, parameters by their names."""
    own = how.pop("parameters", {})
    fields = {name: how.pop(name) for name in list(how) if name in Example.__dataclass_fields__}
    return run_example(
        builtin_rules()[rule], Example("test", tensors, parameters={**SAGEMAKER, **own, **how}, **fields)
    )


def mistakes(rule: str, **parameters: Any) -> list[str]:
    """What is wrong with a configuration in SageMaker's own shape."""
    configured = configure(RuleRequest(rule, parameters, "sagemaker", rule), builtin_rules()[rule])
    return [str(mistake) for mistake in configured] if isinstance(configured, list) else []


def defaults(rule: str) -> dict[str, object]:
    """SageMaker's parameters and their defaults, without those that are ours."""
    fields = builtin_rules()[rule].parameters.model_fields
    return {name: field.default for name, field in fields.items() if "Ours" not in (field.description or "")}
