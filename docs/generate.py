"""Makes the pages that the code itself knows best; with --check says which of them are stale."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from evaluator import strict_json
from evaluator.config.settings import PREFIX, Settings, unit
from evaluator.registry import builtin_rules
from evaluator.rule import Example, LoopParameters, Rule
from evaluator.sagemaker import diagnose
from evaluator.status import schema

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Made by `make docs`; change the code instead. -->"


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page, and what it should hold."""
    kinds: tuple[Literal["status", "finding"], ...] = ("status", "finding")
    for kind in kinds:
        yield ROOT / "docs" / f"{kind}.schema.json", strict_json.dumps(schema(kind), pretty=True).decode() + "\n"
    yield ROOT / "docs" / "settings.md", settings_page()
    yield ROOT / "docs" / "troubleshooting.md", troubleshooting_page()
    yield ROOT / "builtin_rules" / "README.md", rules_page()


def settings_page() -> str:
    """All settings with their environment variables and defaults."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None or field.default == () else f"{field.default}"
        rows.append([f"`{name}`", f"`{PREFIX}{name.upper()}`", default, unit(name), field.description or ""])
    return "\n".join(
        [
            "# Settings",
            "",
            NOTE,
            "",
            "Each setting can be given as `--set name=value`, as an environment variable, and in the table",
            "`[settings]` of a configuration file.",
            "The first of these that gives it wins: command line, environment, configuration file,",
            "processingjobconfig.json, default.",
            "`rule-evaluator settings` shows the values in force and where each comes from.",
            "",
            *table(["setting", "environment variable", "default", "unit", "what for"], rows),
            "",
        ]
    )


def rules_page() -> str:
    """All built-in rules, from their own texts."""
    rules = builtin_rules()
    overview = [[f"[{name}](#{name.lower()})", rule.severity, summary(rule)] for name, rule in rules.items()]
    loop = [
        [f"`{name}`", "" if field.default is None else f"`{field.default}`", field.description or ""]
        for name, field in LoopParameters.model_fields.items()
    ]
    lines = [
        "# Built-in rules",
        "",
        NOTE,
        "",
        "Parameters have SageMaker's names and defaults.",
        "Where our recommended value differs, it applies to rules named on the command line, in our own configuration",
        "shape, or not named at all;",
        "rules in SageMaker's own shape get SageMaker's defaults.",
        "`parameter_set=sagemaker` or `parameter_set=recommended` changes either.",
        "",
        *table(["rule", "severity", "what it finds"], overview),
        "",
        "Every rule also takes these parameters, on which the loop acts:",
        "",
        *table(["parameter", "default", "what for"], loop),
        "",
    ]
    for name, rule in rules.items():
        lines += rule_section(name, rule)
    return "\n".join(lines)


def rule_section(name: str, rule: Rule) -> list[str]:
    """One rule: its text, its parameters, its examples."""
    rows = []
    for parameter, field in rule.parameters.model_fields.items():
        recommended = rule.recommended.get(parameter)
        ours = "" if recommended is None else f"`{recommended.value}`: {recommended.reason}"
        rows.append([f"`{parameter}`", f"`{field.default}`", ours, field.description or ""])
    text = rule.documentation.strip().replace("\nSource:", "\n\nSource:")
    lines = [f"## {name}", "", f"Severity: {rule.severity}.", "", *text.splitlines(), ""]
    if rows:
        lines += [*table(["parameter", "SageMaker's default", "recommended", "what for"], rows), ""]
    lines += [*table(["example", "verdict"], [[example.title, verdict(example)] for example in rule.examples]), ""]
    return lines


def troubleshooting_page() -> str:
    """What goes wrong with distributed training, from the checks of `diagnose`."""
    found = diagnose.checks()
    rows = [[f"[{one.name}](#{one.name.lower()})", summary(one), inputs(one)] for one in found]
    lines = [
        "# Troubleshooting distributed training",
        "",
        NOTE,
        "",
        "`rule-evaluator diagnose` makes each of these checks for which it is given something to go by.",
        "",
        "```sh",
        "rule-evaluator diagnose --training-job NAME    # asks AWS for its description, its logs, ...",
        "rule-evaluator diagnose --trial PATH --log train.log --checkpoint model.safetensors",
        "rule-evaluator diagnose --request job.json --security-groups groups.json    # saved answers of AWS",
        "```",
        "",
        "Each check is one line: `found`, `ok`, or `not checked` and why; what is found has its evidence and a remedy.",
        "Exit codes: 0 nothing wrong, 1 something found, 2 wrong input, 3 nothing could be checked.",
        "With `--json` the same is one document.",
        "",
        *table(["check", "what goes wrong", "goes by"], rows),
        "",
    ]
    for one in found:
        text = one.documentation.strip().replace("\nSource:", "\n\nSource:")
        examples = [[example.title, example.shows] for example in one.examples]
        lines += [f"## {one.name}", "", *text.splitlines(), "", f"Goes by: {inputs(one)}.", "", "What to do:", ""]
        lines += [*(f"- {step}" for step in one.remedy), "", *table(["example", "result"], examples), ""]
    return "\n".join(lines)


def inputs(check: diagnose.Check) -> str:
    """What a check goes by, as options."""
    return ", ".join(re.sub(r"(--[a-z-]+)", r"`\1`", one) for one in check.inputs)


def verdict(example: Example) -> str:
    """What an example shows."""
    return "quiet" if example.met_at is None else f"fires at step {example.met_at}"


def summary(rule: Rule | diagnose.Check) -> str:
    """The first sentence of the text of a rule or check."""
    return rule.documentation.strip().split("\n\n")[0].replace("\n", " ")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [line(head), line(["---"] * len(head)), *(line(row) for row in rows)]


def line(cells: Sequence[str]) -> str:
    """One row; a bar inside a cell must not end it."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description="Makes the generated pages.")
    parser.add_argument("--check", action="store_true", help="only say which pages are stale")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in stale:
        sys.stdout.write(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    if check and stale:
        sys.stdout.write("run: make docs\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
