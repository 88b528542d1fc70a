"""Makes the page of the report: one HTML document that asks for nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from builtin_rules.trees._report.charts import drawing, svg
from builtin_rules.trees._report.facts import Facts
from builtin_rules.trees._report.parts import Chart
from builtin_rules.trees._report.rows import MOST_ROWS
from builtin_rules.trees._report.sections import SECTIONS
from builtin_rules.trees._report.shown import count, shown


def page(facts: Facts) -> str:
    """The page about a run."""
    environment = Environment(
        loader=PackageLoader("builtin_rules.trees._report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections = [make(facts) for make in SECTIONS[facts.problem.kind]]
    with drawing():
        pictures = {section.anchor: [_picture(chart) for chart in section.charts] for section in sections}
    return environment.get_template("page.html.jinja").render(
        facts=facts, reason=shown(facts.problem.reason, 160), sections=sections, pictures=pictures, notes=_notes(facts)
    )


def _picture(chart: Chart) -> tuple[str, str]:
    """The chart as an address that holds it, where nothing in it can act, and a text that stands for it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg(chart)).decode("ascii"), chart.title


def _notes(facts: Facts) -> Sequence[str]:
    """What concerns the whole page."""
    notes = []
    if facts.other_workers:
        others = "another worker" if facts.other_workers == 1 else f"{facts.other_workers} other workers"
        notes.append(f"Saved by {shown(facts.worker)}; what {others} saved is not shown.")
    labels, pairs = facts.labels, facts.pairs
    rows = max(float(labels["rows"][0]) if labels else 0.0, float(pairs["labels"][0]) if pairs else 0.0)
    if rows > MOST_ROWS:
        notes.append(
            f"All numbers about labels and predictions are of a sample: {count(MOST_ROWS)} of {count(rows)} rows, "
            "one drawn from each of as many equal stretches."
        )
    return notes
