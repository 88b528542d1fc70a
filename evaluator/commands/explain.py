"""explain: all there is to know about one rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from pydantic import BaseModel
from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.commands.base import Command, JsonOption, Session, count, session_of, shown
from evaluator.config.wire import plain
from evaluator.errors import InputError, Mistake
from evaluator.needs import Beside, Measure, OtherTrial, OtherWorker, Previous, Progress, Summary
from evaluator.outcome import NOTHING_FOUND
from evaluator.reductions import REDUCTIONS
from evaluator.registry import find_rule
from evaluator.rule import Example, LoopParameters, Rule

_OURS = "Ours, not SageMaker's."
"""How the description of a parameter says that SageMaker's rule does not have it."""
_HEADING = re.compile(r"[A-Z][a-z]+( [a-z]+)?: ")
MOST_ELEMENTS = 4


def explain(
    context: typer.Context,
    rule: Annotated[str, typer.Argument(metavar="RULE", show_default=False, help="The name of a built-in rule.")],
    as_json: JsonOption = False,
) -> int:
    """Explain a rule: when it fires, its parameters in both sets of defaults, what it needs, and examples.

    Rules of the command line and of our own configuration files take the recommended values,
    rules in SageMaker's shape take SageMaker's; parameter_set=sagemaker|recommended changes either.
    """
    session = session_of(context)
    found = find_rule(rule, where="explain")
    if isinstance(found, Mistake):
        raise InputError([found])
    if as_json:
        session.print_json(_document(found))
    else:
        _print(session, found)
    return NOTHING_FOUND


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": rule.name,
        "severity": rule.severity,
        "documentation": rule.documentation,
        "parameters": list(_parameters(rule.parameters, rule)),
        "loop_parameters": list(_parameters(LoopParameters, rule, without=rule.parameters)),
        "needs": _needs(rule),
        "judged": _when(rule),
        "examples": [_example_document(example) for example in rule.examples],
    }


def _parameters(model: type[BaseModel], rule: Rule, without: type[BaseModel] | None = None) -> Iterator[dict[str, Any]]:
    """The parameters of a model, with both defaults; those that the rule declares itself are not repeated."""
    for name, field in model.model_fields.items():
        if without is not None and name in without.model_fields:
            continue
        description = field.description or ""
        required = field.is_required()
        default = None if required else plain(field.get_default(call_default_factory=True))
        recommended = rule.recommended.get(name)
        yield {
            "name": name,
            "default": default,
            "required": required,
            "recommended": default if recommended is None else plain(recommended.value),
            "reason": None if recommended is None else recommended.reason,
            "ours": without is not None or _OURS in description,
            "description": description,
        }


def _needs(rule: Rule) -> list[str]:
    """What the rule reads with its recommended parameters, in words."""
    own = {name: one.value for name, one in rule.recommended.items() if name in rule.parameters.model_fields}
    needs = rule.requires(rule.parameters.model_validate(own))
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
        text += f", back over {count(need.steps, 'step')}"
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


def paragraphs(documentation: str) -> list[str]:
    """The paragraphs of a documentation, each on one line; one that begins with `Word:` is a paragraph too."""
    found = [""]
    for line in documentation.splitlines():
        if not line.strip() and found[-1]:
            found.append("")
        if _HEADING.match(line) and found[-1]:
            found.append("")
        found[-1] = f"{found[-1]} {line.strip()}".strip()
    return found


def _print(session: Session, rule: Rule) -> None:
    session.print(Text.assemble(shown(rule.name, "bold"), shown(f" ({rule.severity})")), Text())
    for paragraph in paragraphs(rule.documentation):
        session.print(shown(paragraph), Text())
    session.print(Text("Parameters", "bold"))
    session.print(_table(list(_parameters(rule.parameters, rule))))
    session.print(Text("Parameters of every rule (ours, not SageMaker's)", "bold"))
    session.print(_table(list(_parameters(LoopParameters, rule, without=rule.parameters))))
    others = "parameter_set (sagemaker or recommended) chooses the defaults, name names the configuration."
    session.print(Padding(Text(others), (0, 0, 0, 1), expand=False), Text())
    session.print(Text("What it reads", "bold"))
    for need in _needs(rule):
        session.print(Padding(shown(need), (0, 0, 0, 1), expand=False))
    session.print(Padding(shown(f"It is judged {_when(rule)}."), (0, 0, 0, 1), expand=False), Text())
    session.print(Text("Examples", "bold"))
    for example in rule.examples:
        _print_example(session, example)


def _table(parameters: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("SageMaker" if any(not one["ours"] for one in parameters) else "default", overflow="fold")
    several = any(one["reason"] is not None for one in parameters)
    if several:
        table.add_column("recommended", overflow="fold")
    table.add_column("description")
    for one in parameters:
        recommended = one["reason"] is not None
        default = "required" if one["required"] else _default(one["default"])
        reason = f" Recommended, because {one['reason']}." if recommended else ""
        cells = [one["name"], default, one["description"] + reason]
        if several:
            cells.insert(2, _default(one["recommended"]) if recommended else "")
        table.add_row(*(shown(cell) for cell in cells))
    return table


def _default(value: Any) -> str:
    """A default as it is written on the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else _value(value)


def _print_example(session: Session, example: Example) -> None:
    verdict = "stays quiet" if example.met_at is None else f"fires at step {example.met_at}"
    where = f", in {example.tensor}" if example.tensor else ""
    session.print(Padding(shown(f"{example.title}: {verdict}{where}"), (0, 0, 0, 1), expand=False))
    if example.parameters:
        given = ", ".join(f"{name}={_value(value)}" for name, value in example.parameters.items())
        session.print(Padding(shown(f"with {given}"), (0, 0, 0, 3), expand=False))
    for label, series in _rows(example):
        session.print(Padding(shown(f"{label}: {'  '.join(map(_value, series))}"), (0, 0, 0, 3), expand=False))


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


def _value(value: Any) -> str:
    """A value in few letters; `-` is one that was not saved."""
    if value is None:
        return "-"
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        shape = np.shape(value)
        first = ", ".join(map(_value, value[:MOST_ELEMENTS]))
        return f"[{first}{', ...' if len(value) > MOST_ELEMENTS else ''}]" if len(shape) < 2 else _nested(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _nested(value: Any) -> str:
    array = np.asarray(value)
    return _value(value[0]) if len(value) == 1 else f"array of {'x'.join(map(str, array.shape))}"


def _example_document(example: Example) -> dict[str, Any]:
    return {
        "title": example.title,
        "met_at": example.met_at,
        "tensor": example.tensor,
        "parameters": {name: plain(value) for name, value in example.parameters.items()},
        "series": {label: [_value(value) for value in series] for label, series in _rows(example)},
    }


COMMAND = Command("explain", explain, 5)
