"""settings: what can be set, what it is set to, and where from."""

from __future__ import annotations

from typing import Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from evaluator.commands.base import Command, ConfigOption, JsonOption, SetOption, session_of, shown
from evaluator.config.files import FileContent, read_config_file
from evaluator.config.job_config import read_pairs
from evaluator.config.settings import PREFIX, Settings, resolve_settings, unit
from evaluator.errors import InputError
from evaluator.outcome import NOTHING_FOUND


def settings(
    context: typer.Context, config: ConfigOption = None, given: SetOption = None, as_json: JsonOption = False
) -> int:
    """List the settings: name, value, default, and where the value comes from.

    Each is also an environment variable, RULE_EVALUATOR_ and its name in capitals.
    """
    session = session_of(context)
    content = FileContent() if config is None else read_config_file(config)
    pairs, mistakes = read_pairs(given or (), "--set", "a setting is name=value")
    chosen, origins, wrong = resolve_settings(pairs, session.environment, content.settings, {})
    mistakes += [*content.mistakes, *wrong]
    if mistakes:
        raise InputError(mistakes)
    values = chosen.model_dump(mode="json")
    defaults = Settings().model_dump(mode="json")
    rows = [
        {
            "name": name,
            "value": values[name],
            "default": defaults[name],
            "unit": unit(name),
            "from": origins[name],
            "variable": PREFIX + name.upper(),
            "description": field.description or "",
        }
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        session.print_json({"schema": 1, "settings": rows})
        return NOTHING_FOUND
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    table.add_column("description")
    for row in rows:
        table.add_row(*_cells(row))
    session.print(table)
    session.print(Text("Set one with --set name=value, or with an environment variable, for example"))
    session.print(
        Text("RULE_EVALUATOR_LATE_GRACE=5; the command line wins over the environment, and that over a file.")
    )
    return NOTHING_FOUND


def _cells(row: dict[str, Any]) -> list[Text]:
    set_by = "" if row["from"] == "default" else row["from"]
    default = f" Default: {_shown(row['default'], row['unit'])}." if set_by else ""
    style = "bold" if set_by else ""
    return [
        shown(row["name"], style),
        shown(_shown(row["value"], row["unit"]), style),
        shown(set_by, style),
        shown(row["description"] + default),
    ]


def _shown(value: Any, of: str) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if of == "bytes" and value % 2**20 == 0:
        return f"{value // 2**20} MiB"
    return f"{text} {'s' if of == 'seconds' else of}".strip()


COMMAND = Command("settings", settings, 6)
