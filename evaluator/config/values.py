"""What is wrong with given values, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaluator.config.request import RuleRequest
from evaluator.config.wire import Unfit, convert, is_unset
from evaluator.errors import Mistake
from evaluator.rule import LoopParameters, ParameterSet

_PARAMETER_SETS: tuple[ParameterSet, ...] = ("sagemaker", "recommended")


def parameter_set(request: RuleRequest, mistakes: list[Mistake]) -> ParameterSet:
    """The set of defaults that applies: the one asked for, else the one of where the rule was written."""
    default: ParameterSet = "sagemaker" if request.shape == "sagemaker" else "recommended"
    value = request.parameters.get("parameter_set")
    if is_unset(value):
        return default
    chosen = next((one for one in _PARAMETER_SETS if one == convert(ParameterSet, value)), None)
    if chosen is None:
        right = "expected 'sagemaker' or 'recommended'"
        mistakes.append(Mistake(request.where, f"parameter 'parameter_set' is {value!r}", right))
    return chosen or default


def without_bad_regexes(
    request: RuleRequest, given: Mapping[str, object], mistakes: list[Mistake]
) -> dict[str, object]:
    """The given values less the regular expressions that are none; each of those is a mistake."""
    good: dict[str, object] = {}
    for name, value in given.items():
        problem = _regex_problem(value) if "regex" in name else None
        if problem is None:
            good[name] = value
        else:
            right = f"expected a regular expression: {problem}"
            mistakes.append(Mistake(request.where, f"parameter {name!r} is {value!r}", right))
    return good


def _regex_problem(value: object) -> str | None:
    for pattern in value if isinstance(value, list | tuple) else [value]:
        try:
            if isinstance(pattern, str):
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return str(error)
    return None


def no_steps(request: RuleRequest, loop: LoopParameters | None) -> list[Mistake]:
    """The mistake of an end that leaves no step to judge."""
    if loop is None or loop.end_step is None or loop.end_step > loop.start_step:
        return []
    what = f"end_step ({loop.end_step}) is not above start_step ({loop.start_step}), so no step would be judged"
    return [Mistake(request.where, what, "end_step is the first step that is not judged any more")]


def mistake_of(request: RuleRequest, problem: Unfit) -> Mistake:
    """The mistake of a value that does not fit."""
    if problem.field is None:
        what, _, right = problem.expected.partition("; ")
        return Mistake(request.where, what, right)
    return Mistake(request.where, f"parameter {problem.field!r} is {problem.value!r}", f"expected {problem.expected}")
