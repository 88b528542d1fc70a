"""The sections about predicted values: the residuals, and the error by label."""

from __future__ import annotations

import numpy as np

from builtin_rules.trees._report.facts import Facts
from builtin_rules.trees._report.measures import ERROR_BINS, RESIDUAL_BARS
from builtin_rules.trees._report.parts import Histogram, Line, Lines, Section, Table
from builtin_rules.trees._report.rows import Bins
from builtin_rules.trees._report.shown import count, number
from builtin_rules.trees._report.told import (
    first_and_last,
    history_notes,
    no_pairs,
    pair_notes,
)


def residual_section(facts: Facts) -> Section:
    """Prediction less label at the last saved step."""
    section = ("residuals", "Distribution of residuals at the last saved step")
    if (missing := no_pairs(facts)) is not None or facts.pairs is None:
        return Section(*section, missing=missing)
    if (several := _several_outputs(facts)) is not None:
        return Section(*section, missing=several)
    pairs = facts.pairs
    if np.isnan(pairs["residual_bars"]).any():
        return Section(*section, missing="no prediction less its label is a finite number")
    edges = Bins.between(pairs["residual_range"], RESIDUAL_BARS).edges
    filled = int(pairs["residual_bars"].nonzero()[0].max()) + 1
    bars = pairs["residual_bars"][:filled]
    chart = Histogram("Prediction less label", edges[: filled + 1], bars, "residual", "labels", marked=0.0)
    names = ("mean", "standard deviation", "mean absolute error", "root mean square error")
    rows = [[name, number(float(value))] for name, value in zip(names, pairs["residual"], strict=True)]
    notes = pair_notes(facts)
    if facts.problem.kind == "binary":
        notes.append("The residual of a probability is its distance from the label 0 or 1.")
    elif facts.problem.kind == "multiclass":
        notes.append("The residual of a class is the difference of the class numbers.")
    return Section(*section, [chart], [Table("residuals", ["", "residual"], rows)], notes)


def bin_section(facts: Facts) -> Section:
    """The mean error of labels in each part of their range, over the steps."""
    section = ("bins", "Absolute validation error per label bin over iterations")
    if (missing := no_pairs(facts)) is not None or facts.pairs is None:
        return Section(*section, missing=missing)
    if (several := _several_outputs(facts)) is not None:
        return Section(*section, missing=several)
    history, pairs = facts.history, facts.pairs
    errors = history.drawn[:, -ERROR_BINS:]
    names = Bins.between(pairs["label_range"], ERROR_BINS).names
    filled = np.flatnonzero(pairs["in_bin"])
    steps = history.steps.astype(np.float64)
    chart = Lines(
        "Mean absolute error", [Line(names[each], steps, errors[:, each]) for each in filled], "step", "error"
    )
    rows = [[names[each], count(pairs["in_bin"][each]), *first_and_last(errors[:, each], number)] for each in filled]
    table = Table("bins", ["label", "labels", "first error", "last error"], rows)
    return Section(*section, [chart], [table], [*history_notes(facts), *pair_notes(facts)])


def _several_outputs(facts: Facts) -> str | None:
    """Several numbers per label that are no classes, quantiles for example, have no residual."""
    outputs = int(facts.pairs["outputs"][0]) if facts.pairs is not None else 1
    if facts.problem.kind == "regression" and outputs > 1:
        return f"there are {outputs} predictions for each label"
    return None
