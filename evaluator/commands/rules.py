"""rules: the built-in rules and those of installed packs, one line each."""

from __future__ import annotations

from typing import Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from evaluator.commands.base import Command, JsonOption, first_sentence, session_of, shown
from evaluator.config.settings import user_rules_allowed
from evaluator.outcome import NOTHING_FOUND
from evaluator.registry import known_rules, pack_notes, pack_of
from evaluator.rule import Rule


def rules(context: typer.Context, as_json: JsonOption = False) -> int:
    """List the rules that can be named: name, severity, parameters, and what each fires for.

    Beside the built-in ones these are the rules of packs that pip installed (entry point group rule_evaluator.rules),
    each with the pack that it comes from.
    """
    session = session_of(context)
    with_packs = user_rules_allowed(session.environment)
    known, notes = known_rules(with_packs=with_packs), pack_notes(with_packs=with_packs)
    if as_json:
        documents = [_document(rule) for rule in known.values()]
        session.print_json({"schema": 1, "rules": documents, "notes": notes})
        return NOTHING_FOUND
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rule", no_wrap=True)
    table.add_column("severity", no_wrap=True)
    table.add_column("fires when, and its parameters", overflow="fold")
    for rule in known.values():
        parameters = ", ".join(rule.parameters.model_fields) or "none"
        text = Text.assemble(shown(first_sentence(rule.documentation)), "\n", shown(parameters, "dim"))
        if pack_of(rule.name) is not None:
            text.append_text(shown(f"\nfrom {pack_of(rule.name)}", "dim"))
        table.add_row(shown(rule.name), shown(rule.severity), text)
    session.print(table)
    for note in notes:
        session.print(shown(f"note: {note}"))
    session.print(shown("'rule-evaluator explain RULE' tells more of one."))
    return NOTHING_FOUND


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "from": pack_of(rule.name) or "built-in",
        "severity": rule.severity,
        "description": first_sentence(rule.documentation),
        "parameters": list(rule.parameters.model_fields),
    }


COMMAND = Command("rules", rules, 4)
