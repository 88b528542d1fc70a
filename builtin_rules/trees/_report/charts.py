"""Draws the charts as SVG, the same in every run."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from builtin_rules.trees._report.parts import Bars, Chart, Grid, Histogram, Lines
from builtin_rules.trees._report.quiet import quiet
from evaluator.segments import Floats

WIDTH, SQUARE = 8.6, 5.4
"""Inches, at 72 points each."""
BIGGEST = 1e100
"""Numbers beyond this are drawn at it: scales of an axis are multiplied with each other."""
MOST_NUMBERED = 12
"""A grid of more classes has no number in its cells."""
MOST_NAMED = 25

BLUE, GREY, INK = "#2f6db5", "#9aa3ad", "#22272e"

SETTINGS: dict[Any, Any] = {
    # the one font that comes with matplotlib, as outlines: the page needs no font
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "path",
    "svg.hashsalt": "rule-evaluator",
    # names may hold dollar signs; they are no mathematics
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": True,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with our settings only, whatever those of this machine are."""
    with quiet(), mpl.rc_context(), np.errstate(all="ignore"):
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def svg(chart: Chart) -> bytes:
    """The chart as an SVG document; call it inside of `drawing`."""
    figure = Figure(figsize=_size(chart), layout="constrained")
    canvas = FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    match chart:
        case Bars():
            _draw_bars(axes, chart)
        case Histogram():
            _draw_histogram(axes, chart)
        case Lines():
            _draw_lines(axes, chart)
        case Grid():
            _draw_grid(figure, axes, chart)
    axes.set_title(chart.title)
    target = io.BytesIO()
    # savefig would draw everything twice
    canvas.print_svg(target, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return target.getvalue()


def _size(chart: Chart) -> tuple[float, float]:
    match chart:
        case Bars(lying=True):
            return WIDTH, 1.0 + 0.2 * len(chart.names)
        case Grid():
            return SQUARE * 1.15, SQUARE
        case Lines(square=True):
            return SQUARE, SQUARE
        case _:
            return WIDTH, 3.0


def _draw_bars(axes: Axes, chart: Bars) -> None:
    places = np.arange(len(chart.names))
    values = _drawable(chart.values)
    if chart.lying:
        axes.barh(places, values, color=BLUE, height=0.7)
        axes.set_yticks(places, labels=list(chart.names))
        axes.set_ylim(len(places) - 0.4, -0.6)
        axes.set_xlabel(chart.value_axis)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        return
    axes.bar(places, values, color=BLUE, width=0.7)
    # a single bar as wide as the page would say nothing
    axes.set_xlim(-0.5 - max(0, 4 - len(places)) / 2, len(places) - 0.5 + max(0, 4 - len(places)) / 2)
    every = -(-len(places) // MOST_NAMED)
    axes.set_xticks(places[::every], labels=list(chart.names)[::every])
    axes.set_xlabel(chart.name_axis)
    axes.set_ylabel(chart.value_axis)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_histogram(axes: Axes, chart: Histogram) -> None:
    axes.stairs(_drawable(chart.counts), _drawable(chart.edges), fill=True, color=BLUE)
    if chart.marked is not None:
        axes.axvline(chart.marked, color=INK, linewidth=0.8, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(chart.value_axis)
    axes.set_ylabel(chart.count_axis)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_lines(axes: Axes, chart: Lines) -> None:
    drawn = []
    for line in chart.lines:
        there = np.isfinite(line.up)
        marker = "o" if there.sum() <= 30 and not chart.square else None
        across, up = _drawable(line.across[there]), _drawable(line.up[there])
        drawn += axes.plot(across, up, linewidth=1.4, marker=marker, markersize=3)
    axes.set_xlabel(chart.across_axis)
    axes.set_ylabel(chart.up_axis)
    if chart.square:
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--")
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-0.01, 1.01)
        axes.set_aspect("equal")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if chart.shares:
        axes.set_ylim(-0.03, 1.03)
    names = [line.name for line in chart.lines]
    if any(names):
        # given one by one: a name that begins with an underscore is left out otherwise
        place = {"loc": "lower right"} if chart.square else {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        axes.legend(drawn, names, **place)


def _draw_grid(figure: Figure, axes: Axes, chart: Grid) -> None:
    size = len(chart.names)
    of_row = chart.counts.sum(axis=1, keepdims=True)
    shares = np.divide(chart.counts, of_row, where=of_row > 0, out=np.zeros_like(chart.counts))
    picture = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="none")
    every = -(-size // MOST_NAMED)
    axes.set_xticks(range(0, size, every), labels=list(chart.names)[::every])
    axes.set_yticks(range(0, size, every), labels=list(chart.names)[::every])
    axes.set_xlabel("prediction")
    axes.set_ylabel("label")
    axes.grid(visible=False)
    figure.colorbar(picture, ax=axes, label="share of the label", shrink=0.8)
    if size <= MOST_NUMBERED:
        for row, column in np.ndindex(size, size):
            color = "white" if shares[row, column] > 0.5 else INK
            text = f"{int(chart.counts[row, column]):,}"
            axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8 + 12 // size)


def _drawable(values: Floats) -> Floats:
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=BIGGEST, neginf=-BIGGEST), -BIGGEST, BIGGEST)
