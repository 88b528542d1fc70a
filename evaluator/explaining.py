"""What there is to know about one rule, as a JSON document: its text, parameters, needs and examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from evaluator import strict_json
from evaluator.config.wire import plain
from evaluator.needs import Beside, Measure, OtherTrial, OtherWorker, Previous, Progress, Summary
from evaluator.reductions import REDUCTIONS
from evaluator.rule import Example, LoopParameters, Rule

_OURS = "Ours, not SageMaker's."
"""How the description of a parameter says that SageMaker's rule does not have it."""
MOST_ELEMENTS = 4


def explanation(rule: Rule, origin: str, needs: Sequence[str] | None = None) -> dict[str, Any]:
    """The document.

    Args:
        rule: the rule.
        origin: where it comes from: built-in, a pack, or a file.
        needs: what it reads, in words, where its declaration does not tell.
    """
    return {
        "schema": 1,
        "name": rule.name,
        "from": origin,
        "severity": rule.severity,
        "documentation": rule.documentation,
        "parameters": list(_parameters(rule.parameters, rule)),
        "loop_parameters": list(_parameters(LoopParameters, rule, without=rule.parameters)),
        "needs": _needs(rule) if needs is None else list(needs),
        "judged": _when(rule),
        "examples": [_example(example) for example in rule.examples],
    }


def _parameters(model: type[BaseModel], rule: Rule, without: type[BaseModel] | None = None) -> Iterator[dict[str, Any]]:
    """The parameters of a model, with both defaults; those that the rule declares itself are not repeated."""
    for name, field in model.model_fields.items():
        if without is not None and name in without.model_fields:
            continue
        description = field.description or ""
        required = field.is_required()
        default = None if required else _told(field.get_default(call_default_factory=True))
        recommended = rule.recommended.get(name)
        yield {
            "name": name,
            "default": default,
            "required": required,
            "recommended": default if recommended is None else _told(recommended.value),
            "reason": None if recommended is None else recommended.reason,
            "ours": without is not None or _OURS in description,
            "description": description,
        }


def _needs(rule: Rule) -> list[str]:
    """What the rule reads with its recommended parameters, in words."""
    own = {name: one.value for name, one in rule.recommended.items() if name in rule.parameters.model_fields}
    try:
        parameters = rule.parameters.model_validate(own)
    except ValidationError:
        required = [name for name, field in rule.parameters.model_fields.items() if field.is_required()]
        return [f"depends on parameters that must be given: {', '.join(required)}"]
    needs = rule.requires(parameters)
    return [_progress(need) if isinstance(need, Progress) else _summary(need) for need in needs]


def _summary(need: Summary) -> str:
    text = f"{_measure(need.measure)} of {need.selection}"
    partner = need.partner
    if isinstance(partner, Previous):
        ago = "saved last before" if partner.within is None else f"saved first within the last {partner.within} steps"
        text += f", compared with the value {ago}"
    elif isinstance(partner, Beside):
        text += f", compared with {partner.selection} of the same step"
    elif isinstance(partner, OtherWorker):
        text += ", compared with the first other worker"
    elif isinstance(partner, OtherTrial):
        text += f", compared with other trial {partner.number}"
    if need.modes is not None:
        text += f", in mode {' or '.join(sorted(mode.name for mode in need.modes))}"
    if need.rows > 1:
        text += f", the last {need.rows} saved steps"
    if need.steps:
        text += f", back over {need.steps} step{'' if need.steps == 1 else 's'}"
    if need.state is not None:
        text += ", gathered over all steps"
    return text if need.triggers else f"{text} (only looked at)"


def _progress(_: Progress) -> str:
    return "how far each worker is, and for how long nothing has come from it"


def _measure(measure: Measure) -> str:
    for name, function in REDUCTIONS.items():
        if measure.function is function:
            return name
    return measure.function.__name__.strip("_").replace("_", " ")


def _when(rule: Rule) -> str:
    words = {"step": "at saved steps", "idle": "when nothing new comes", "end": "at the end of the run"}
    when = " and ".join(words[kind] for kind in words if kind in rule.at)
    return f"{when}, not at every one" if rule.every is not None else when


def _rows(example: Example) -> Iterator[tuple[str, Sequence[Any]]]:
    """The lines of numbers that make an example."""
    if example.steps is not None:
        yield "step", example.steps
    if example.modes is not None:
        yield "mode", example.modes
    yield from example.tensors.items()
    for worker, tensors in (example.workers or {}).items():
        yield from ((f"{name} ({worker})", series) for name, series in tensors.items())
    yield from ((f"{name} (other trial)", series) for name, series in (example.other or {}).items())
    if example.seconds is not None:
        yield "seconds", example.seconds


def few_letters(value: Any) -> str:
    """A value in few letters; `-` is one that was not saved."""
    if value is None:
        return "-"
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if any(isinstance(one, list | tuple) for one in value):
            return _nested(value)
        first = ", ".join(map(few_letters, value[:MOST_ELEMENTS]))
        return f"[{first}{', ...' if len(value) > MOST_ELEMENTS else ''}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _nested(value: Any) -> str:
    if len(value) == 1:
        return few_letters(value[0])
    try:
        return f"array of {'x'.join(map(str, np.shape(value)))}"
    except ValueError:
        return f"rows of different lengths, {len(value)} of them"


def _told(value: object) -> object:
    """A value as it stands in a document; what has no form there is told as Python shows it."""
    try:
        strict_json.dumps(plain(value))
    except TypeError:
        return repr(value)
    return plain(value)


def _example(example: Example) -> dict[str, Any]:
    return {
        "title": example.title,
        "met_at": example.met_at,
        "tensor": example.tensor,
        "parameters": {name: _told(value) for name, value in example.parameters.items()},
        "series": {label: [few_letters(value) for value in series] for label, series in _rows(example)},
    }
