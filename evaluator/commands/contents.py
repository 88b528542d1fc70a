"""What a trial holds: gathered step by step, in memory that does not grow with its length."""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.formats.key_names import natural_key
from evaluator.modes import Mode
from evaluator.needs import Selection
from evaluator.reductions import REDUCTIONS
from evaluator.segments import Floats, Segments
from evaluator.sources.base import SHAPE, VALUE, FileValues, Layout, Positions, Source, StepFile
from evaluator.trial.trial import Step, Trial

KEPT = 512
"""Numbers kept of each tensor for its median; beyond that every second is let go, again and again."""
MOST_DISTANCES = 1000


class Numbers:
    """What one reduction of one tensor came to: least and largest exactly, the median of evenly spaced values."""

    __slots__ = ("_kept", "_stride", "count", "largest", "least", "nan")

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.count = 0
        self.nan = 0
        self.least = np.inf
        self.largest = -np.inf
        self._kept: array[float] = array("d")
        self._stride = 1

    def add(self, value: float) -> None:
        """One more value."""
        if math.isnan(value):
            self.nan += 1
            return
        self.least = min(self.least, value)
        self.largest = max(self.largest, value)
        if self.count % self._stride == 0:
            if len(self._kept) >= KEPT:
                self._kept = self._kept[::2]
                self._stride *= 2
            if self.count % self._stride == 0:
                self._kept.append(value)
        self.count += 1

    @property
    def median(self) -> float:
        """The middle value, in a long trial of every n-th only; NaN where there is none."""
        return statistics.median(self._kept) if self._kept else np.nan


@dataclass(slots=True)
class TensorContents:
    """One tensor over all steps and workers."""

    name: str
    steps: int = 0
    last_step: int | None = None
    workers: set[str] = field(default_factory=set)
    modes: set[Mode] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    dtypes: dict[str, None] = field(default_factory=dict)
    shapes: dict[tuple[int, ...], None] = field(default_factory=dict)
    numbers: list[Numbers] = field(default_factory=list)
    unreadable: int = 0
    why: str = ""
    """Why the first unreadable value is."""


@dataclass(slots=True)
class _View:
    """What to read of the files with one layout."""

    layout: Layout
    tensors: list[TensorContents]
    values: Positions
    reductions: list[dict[int, TensorContents]]
    """Per reduction: the positions at which it was saved, and of which tensor."""
    value_of: dict[int, TensorContents]
    without: list[set[int]]
    """Per reduction: the value positions whose tensor has it saved, so that it is not computed."""


class Contents:
    """Everything that `show` tells about a trial."""

    def __init__(self, source: Source, trial: Trial, selection: Selection, by: Sequence[str]) -> None:
        """Nothing is read yet.

        Args:
            source: where the trial is.
            trial: not polled yet, and not followed.
            selection: the tensors of which values are read.
            by: the reductions that are computed.
        """
        self.trial = trial
        self.by = list(by)
        self.steps = 0
        self.modes: Counter[str] = Counter()
        self.distances: Counter[int] = Counter()
        self.tensors: dict[str, TensorContents] = {}
        self._source = source
        self._selection = selection
        self._views: dict[int, _View] = {}
        self._last: int | None = None

    def read(self, tell: Callable[[int, int], None]) -> None:
        """Read the trial from its first step to its last; `tell` is given step and number of steps."""
        with np.errstate(all="ignore"):
            for step in self.trial.finish():
                self.trial.judged(step)
                self.steps += 1
                self._count(step)
                for file in step.files:
                    self._add(file)
                tell(step.number, self.steps)

    @property
    def selected(self) -> list[TensorContents]:
        """The tensors that were read, in the order in which training saved them."""
        return list(self.tensors.values())

    @property
    def workers(self) -> list[str]:
        """Who saved something."""
        return sorted(self.trial.writers, key=natural_key)

    def collections(self) -> dict[str, int]:
        """Collection -> how many tensors of it were saved."""
        named = dict.fromkeys(["all", *self.trial.names.collections.by_name])
        return {name: len(self.trial.names.selected(Selection(collections=(name,)))) for name in named}

    def _count(self, step: Step) -> None:
        self.modes.update({file.mode.name for file in step.files})
        if self._last is not None and (
            len(self.distances) < MOST_DISTANCES or step.number - self._last in self.distances
        ):
            self.distances[step.number - self._last] += 1
        self._last = step.number

    def _add(self, file: StepFile) -> None:
        view = self._view(file.layout)
        for tensor in view.tensors:
            if tensor.last_step != file.step:
                tensor.last_step = file.step
                tensor.steps += 1
            tensor.workers.add(file.worker)
            tensor.modes.add(file.mode)
            shape = file.shapes.get(tensor.name)
            if shape is not None:
                tensor.shapes.setdefault(tuple(shape))
        reduced = [np.array(sorted(positions), np.int64) for positions in view.reductions]
        if len(view.values) or any(len(positions) for positions in reduced):
            self._take(view, self._source.read(file, [view.values, *reduced]))

    def _take(self, view: _View, values: FileValues) -> None:
        for group, positions, segments in values.joined:
            if group == 0:
                self._take_values(view, positions, segments)
            else:
                scalars = segments.real[segments.starts].astype(np.float64)
                for position, value in zip(positions.tolist(), scalars.tolist(), strict=True):
                    view.reductions[group - 1][position].numbers[group - 1].add(value)
        for position, text in values.texts.items():
            self._describe(view.value_of.get(position), "text", text.shape)
        for position, empty in values.empty.items():
            self._describe(view.value_of.get(position), empty.dtype.name, empty.shape)
        for position, why in values.problems.items():
            unread = view.value_of.get(position) or next(
                (found[position] for found in view.reductions if position in found), None
            )
            if unread is not None:
                unread.unreadable += 1
                unread.why = unread.why or why

    def _take_values(self, view: _View, positions: Positions, segments: Segments) -> None:
        dtype = segments.flat.dtype.name
        places = positions.tolist()
        for position, shape in zip(places, segments.shapes, strict=True):
            self._describe(view.value_of[position], dtype, shape)
        for number, reduction in enumerate(self.by):
            results: Floats = REDUCTIONS[reduction](segments)
            for position, value in zip(places, results.tolist(), strict=True):
                if position not in view.without[number]:
                    view.value_of[position].numbers[number].add(value)

    @staticmethod
    def _describe(tensor: TensorContents | None, dtype: str, shape: tuple[int, ...]) -> None:
        if tensor is not None:
            tensor.dtypes.setdefault(dtype)
            tensor.shapes.setdefault(shape)

    def _view(self, layout: Layout) -> _View:
        view = self._views.get(id(layout))
        if view is None:
            if len(self._views) >= KEPT:
                self._views.clear()
            # the view keeps the layout, so that its id cannot become another's
            view = self._views[id(layout)] = self._make_view(layout)
        return view

    def _make_view(self, layout: Layout) -> _View:
        tensors: list[TensorContents] = []
        value_of: dict[int, TensorContents] = {}
        reductions: list[dict[int, TensorContents]] = [{} for _ in self.by]
        without: list[set[int]] = [set() for _ in self.by]
        for name, kinds in layout.at.items():
            if not self.trial.names.selects(self._selection, name):
                continue
            tensor = self.tensors.get(name)
            if tensor is None:
                tensor = self.tensors[name] = TensorContents(name, numbers=[Numbers() for _ in self.by])
            tensors.append(tensor)
            tensor.kinds.update(kinds)
            if VALUE in kinds:
                value_of[kinds[VALUE]] = tensor
            for number, reduction in enumerate(self.by):
                if reduction in kinds:
                    # as rules do: what was saved is not computed again
                    reductions[number][kinds[reduction]] = tensor
                    without[number].add(kinds.get(VALUE, -1))
        return _View(layout, tensors, np.array(sorted(value_of), np.int64), reductions, value_of, without)


def kinds_of(tensor: TensorContents) -> str:
    """In which form a tensor was saved: value, reductions, shape only."""
    reductions = sorted(tensor.kinds - {VALUE, SHAPE})
    parts = [VALUE] if VALUE in tensor.kinds else []
    if reductions:
        parts.append(f"reductions ({', '.join(reductions)})")
    if SHAPE in tensor.kinds:
        parts.append("shape" if parts else "shape only")
    return " and ".join(parts)
