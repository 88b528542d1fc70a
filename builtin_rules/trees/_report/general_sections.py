"""The sections that every kind of problem has: labels, losses, the importance of features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from builtin_rules.trees._report.facts import IMPORTANCE, KINDS_OF_IMPORTANCE, LABELS_TENSOR, Facts, columns_by_tensor
from builtin_rules.trees._report.measures import LABEL_BARS
from builtin_rules.trees._report.parts import Bars, Chart, Histogram, Line, Lines, Section, Table
from builtin_rules.trees._report.rows import Bins
from builtin_rules.trees._report.shown import LONGEST_IN_CHART, count, number, percent, shown
from builtin_rules.trees._report.told import (
    earlier,
    lacking,
    left_out,
)

MOST_FEATURES = 20
MOST_METRICS = 12
MOST_IN_TABLE = 120
MOST_POINTS = 1000


def label_section(facts: Facts) -> Section:
    """How often each class is a label, or how the labels are spread."""
    section = ("labels", "Distribution of true labels")
    labels = facts.labels
    if labels is None:
        return Section(*section, missing=lacking(LABELS_TENSOR))
    used = labels["used"][0] - labels["lost"][0]
    if not used:
        return Section(*section, missing=f"none of the {count(labels['used'][0])} labels is a finite number")
    notes = left_out(labels["lost"][0], "labels")
    if facts.problem.kind != "regression" and labels["whole"][0] == 1:
        counts = labels["counts"]
        classes = np.flatnonzero(counts)
        names = [str(each) for each in classes]
        chart: Chart = Bars("Labels of each class", names, counts[classes], "class", "labels")
        rows = [
            [name, count(each), percent(100 * each / used)] for name, each in zip(names, counts[classes], strict=True)
        ]
        return Section(*section, [chart], [Table("labels", ["class", "labels", "share"], rows)], notes)
    bins = Bins.between(labels["range"], LABEL_BARS)
    rows = [
        [name, count(each), percent(100 * each / used)] for name, each in zip(bins.names, labels["bars"], strict=True)
    ]
    chart = Histogram("Labels by value", bins.edges, labels["bars"], "label", "labels")
    return Section(*section, [chart], [Table("labels", ["label", "labels", "share"], rows)], notes)


def loss_section(facts: Facts) -> Section:
    """Each metric over the steps, one line for each data set."""
    section = ("loss", "Loss versus step")
    window = facts.metrics
    if not len(window.steps) or not len(window.columns):
        return Section(*section, missing="no tensor of the collection 'metrics' was saved")
    by_metric: dict[str, list[Line]] = {}
    rows = []
    scalar = {name: place for name, place in columns_by_tensor(window.columns).items() if window.saved[:, place].any()}
    for name, place in scalar.items():
        data, dash, metric = name.partition("-")
        saved = window.saved[:, place]
        steps, values = window.steps[saved], window.values[saved, place]
        kept = _spread(len(steps))
        line = Line(shown(data, LONGEST_IN_CHART) if dash else "", steps[kept].astype(np.float64), values[kept])
        by_metric.setdefault(shown(metric if dash else name), []).append(line)
        ends = [number(float(values[0])), number(float(values[-1])), count(steps[-1])]
        rows.append([shown(name), *ends])
    charts = [Lines(metric, lines, "step", metric) for metric, lines in list(by_metric.items())[:MOST_METRICS]]
    notes = []
    if len(by_metric) > MOST_METRICS:
        notes.append(f"The first {MOST_METRICS} of {len(by_metric)} metrics are drawn.")
    table = Table("metrics", ["metric", "first", "last", "last saved at step"], rows[:MOST_IN_TABLE])
    return Section(*section, charts, [table], notes)


def importance_section(facts: Facts) -> Section:
    """The share of each feature in the whole importance, by each kind of it."""
    section = ("importance", "Feature importance")
    by_kind = _importance(facts)
    missing = [kind for kind in KINDS_OF_IMPORTANCE if kind not in by_kind]
    if len(missing) == len(KINDS_OF_IMPORTANCE):
        return Section(*section, missing=f"no tensor '{IMPORTANCE}weight/...', 'gain/...' or 'cover/...' was saved")
    notes = [f"No tensor '{IMPORTANCE}{kind}/...' was saved." for kind in missing]
    notes += earlier(facts, int(facts.importance.steps[-1]))
    charts = []
    for kind, shares in by_kind.items():
        top = sorted(shares, key=lambda name: -shares[name])[:MOST_FEATURES]
        of = f", the {MOST_FEATURES} highest of {len(shares):,}" if len(shares) > MOST_FEATURES else ""
        names = [shown(name, LONGEST_IN_CHART) for name in top]
        charts.append(
            Bars(f"By {kind}{of}", names, np.array([shares[name] for name in top]), "", "% of all", lying=True)
        )
    leading = by_kind.get("gain") or next(iter(by_kind.values()))
    features = list(dict.fromkeys(name for shares in by_kind.values() for name in shares))
    features.sort(key=lambda name: -leading.get(name, 0.0))
    rows = [
        [shown(name), *(percent(shares[name]) if name in shares else "-" for shares in by_kind.values())]
        for name in features[:MOST_FEATURES]
    ]
    if len(features) > MOST_FEATURES:
        notes.append(f"{MOST_FEATURES} of {len(features):,} features are shown.")
    if not any(sum(shares.values()) for shares in by_kind.values()):
        notes.append("No feature has an importance above zero.")
    return Section(*section, charts, [Table("importance", ["feature", *by_kind], rows)], notes)


def _spread(points: int) -> slice:
    """Every n-th of so many points, so that not too many are drawn, the last one always."""
    every = -(-points // MOST_POINTS)
    return slice((points - 1) % every if points else 0, None, every or 1)


def _importance(facts: Facts) -> dict[str, dict[str, float]]:
    """Kind -> feature -> percent of the sum of all, at the last step at which importances were saved."""
    window = facts.importance
    found: dict[str, dict[str, float]] = {}
    if not len(window.steps):
        return found
    for place, column in enumerate(window.columns):
        kind, slash, feature = column.tensor.removeprefix(IMPORTANCE).partition("/")
        if slash and window.saved[-1, place]:
            found.setdefault(kind, {}).setdefault(feature, float(window.values[-1, place]))
    return {kind: _percent(found[kind]) for kind in KINDS_OF_IMPORTANCE if kind in found}


def _percent(values: Mapping[str, float]) -> dict[str, float]:
    """Shares of 100; what is not a finite number above zero is no part of the sum."""
    good = {name: value if np.isfinite(value) and value > 0 else 0.0 for name, value in values.items()}
    highest = max(good.values(), default=0.0)
    if highest == 0:
        return good
    # divided first, so that the sum of huge ones is finite
    total = sum(value / highest for value in good.values())
    return {name: 100 * (value / highest) / total for name, value in good.items()}
