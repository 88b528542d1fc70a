"""rules: the built-in rules, one line each."""

from __future__ import annotations

from typing import Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from evaluator.commands.base import Command, JsonOption, first_sentence, session_of, shown
from evaluator.outcome import NOTHING_FOUND
from evaluator.registry import builtin_rules
from evaluator.rule import Rule


def rules(context: typer.Context, as_json: JsonOption = False) -> int:
    """List the built-in rules: name, severity, parameters, and what each fires for."""
    session = session_of(context)
    known = builtin_rules()
    if as_json:
        session.print_json({"schema": 1, "rules": [_document(rule) for rule in known.values()]})
        return NOTHING_FOUND
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rule", no_wrap=True)
    table.add_column("severity", no_wrap=True)
    table.add_column("fires when, and its parameters", overflow="fold")
    for rule in known.values():
        parameters = ", ".join(rule.parameters.model_fields) or "none"
        text = Text.assemble(shown(first_sentence(rule.documentation)), "\n", shown(parameters, "dim"))
        table.add_row(shown(rule.name), shown(rule.severity), text)
    session.print(table)
    session.print(shown("'rule-evaluator explain RULE' tells more of one."))
    return NOTHING_FOUND


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "severity": rule.severity,
        "description": first_sentence(rule.documentation),
        "parameters": list(rule.parameters.model_fields),
    }


COMMAND = Command("rules", rules, 4)
