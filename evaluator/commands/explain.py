"""explain: all there is to know about one rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.commands.base import Command, JsonOption, Session, session_of, shown
from evaluator.commands.rule_file import asked_for, limits_of, settings_of
from evaluator.config.rule_files import parse_file_location
from evaluator.config.settings import user_rules_allowed
from evaluator.errors import InputError, Mistake
from evaluator.explaining import explanation, few_letters
from evaluator.isolation.bench import Bench
from evaluator.isolation.messages import Look
from evaluator.outcome import NOTHING_FOUND
from evaluator.registry import find_rule, known_rules, pack_of

BUILT_IN = "built-in"
_HEADING = re.compile(r"[A-Z][a-z]+( [a-z]+)?: ")


def explain(
    context: typer.Context,
    rule: Annotated[
        str,
        typer.Argument(
            metavar="RULE", show_default=False, help="The name of a rule, or FILE.py[:NAME] for one in a file."
        ),
    ],
    as_json: JsonOption = False,
) -> int:
    """Explain a rule: when it fires, its parameters in both sets of defaults, what it needs, and examples.

    Rules of the command line and of our own configuration files take the recommended values,
    rules in SageMaker's shape take SageMaker's; parameter_set=sagemaker|recommended changes either.
    """
    session = session_of(context)
    in_a_file = parse_file_location(rule) is not None
    document = _of_file(session, rule) if in_a_file else _of_name(session, rule)
    if as_json:
        session.print_json(document)
    else:
        _print(session, document)
    return NOTHING_FOUND


def _of_name(session: Session, name: str) -> dict[str, Any]:
    """The explanation of a rule that can be named."""
    known = known_rules(with_packs=user_rules_allowed(session.environment))
    found = find_rule(name, known, "explain")
    if isinstance(found, Mistake):
        raise InputError([found])
    return explanation(found, pack_of(found.name) or BUILT_IN)


def _of_file(session: Session, argument: str) -> dict[str, Any]:
    """The explanation of a rule in a file, made where the file is imported: in a process of its own."""
    settings = settings_of(session, ())
    file, parameters = asked_for(argument, settings, "explain")
    if parameters:
        raise InputError([Mistake("explain", "a rule is explained without parameters", "give FILE.py or FILE.py:NAME")])
    with Bench(Look(file, settings.user_memory, every=False), limits_of(settings)) as bench:
        return bench.introduce()[0]


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


def _print(session: Session, document: Mapping[str, Any]) -> None:
    own, loop = document["parameters"], document["loop_parameters"]
    known = document["from"] == BUILT_IN
    source = f" ({document['severity']})" if known else f" ({document['severity']}, from {document['from']})"
    session.print(Text.assemble(shown(document["name"], "bold"), shown(source)), Text())
    for paragraph in paragraphs(document["documentation"]) if document["documentation"] else ():
        session.print(shown(paragraph), Text())
    session.print(Text("Parameters", "bold"))
    of_sagemaker = known and any(not one["ours"] for one in own)
    session.print(_table(own, "SageMaker" if of_sagemaker else "default") if own else Text(" none"))
    session.print(Text("Parameters of every rule (ours, not SageMaker's)", "bold"))
    session.print(_table(loop, "default"))
    others = "parameter_set (sagemaker or recommended) chooses the defaults, name names the configuration."
    session.print(Padding(Text(others), (0, 0, 0, 1), expand=False), Text())
    session.print(Text("What it reads", "bold"))
    for need in document["needs"]:
        session.print(Padding(shown(need), (0, 0, 0, 1), expand=False))
    session.print(Padding(shown(f"It is judged {document['judged']}."), (0, 0, 0, 1), expand=False), Text())
    session.print(Text("Examples", "bold"))
    for example in document["examples"]:
        session.print(Padding(shown(f"{example['title']}: {verdict(example)}"), (0, 0, 0, 1), expand=False))
        print_series(session, example, 3)
    if not document["examples"]:
        session.print(Text(" none"))


def _table(parameters: Sequence[Mapping[str, Any]], heading: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column(heading, overflow="fold")
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
    return "none" if value is None else few_letters(value)


def print_series(session: Session, example: Mapping[str, Any], margin: int) -> None:
    """What goes into an example."""
    lines = [f"{label}: {'  '.join(series)}" for label, series in example["series"].items()]
    if example["parameters"]:
        given = ", ".join(f"{name}={few_letters(value)}" for name, value in example["parameters"].items())
        lines.insert(0, f"with {given}")
    for line in lines:
        session.print(Padding(shown(line), (0, 0, 0, margin), expand=False))


def verdict(example: Mapping[str, Any]) -> str:
    """What an example shows, or what came of one."""
    met = "stays quiet" if example["met_at"] is None else f"fires at step {example['met_at']}"
    return f"{met}, in {example['tensor']}" if example["tensor"] else met


COMMAND = Command("explain", explain, 5)
