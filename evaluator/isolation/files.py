"""The files of a step as they are sent to a rule's process, and values that it asks for later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from evaluator.engine.kept import OnDemand
from evaluator.engine.summaries import FileSummary
from evaluator.errors import EvaluatorError
from evaluator.isolation.messages import File, Values
from evaluator.segments import Array, Segments
from evaluator.sources.base import FileValues, Layout, Positions, Sighting, Source, StepFile

MOST_LAYOUTS = 512
"""Layouts that are numbered; a run that keeps inventing new ones gets new numbers now and then."""
OPEN_FILES = 16
"""Files of earlier steps that are kept open while a rule asks for their values."""

NewLayouts = dict[int, tuple[tuple[str, ...], tuple[str, ...]]]
"""Number -> names and kinds, of layouts that the other side does not know yet."""


Shapes = Sequence[tuple[int, ...]]


class Layouts:
    """Numbers layouts, so that each is sent once."""

    def __init__(self) -> None:
        """Nothing was sent yet."""
        self._known: dict[int, tuple[int, Layout]] = {}
        self._sent = 0

    def files(self, summaries: Sequence[FileSummary]) -> tuple[list[File], NewLayouts]:
        """The files of a step, and the layouts in them that are new."""
        new: NewLayouts = {}
        return [self._file(one, new) for one in summaries], new

    def _file(self, one: FileSummary, new: NewLayouts) -> File:
        file, layout = one.file, one.file.layout
        known = self._known.get(id(layout))
        if known is None:
            if len(self._known) >= MOST_LAYOUTS:
                self._known.clear()
            self._sent += 1
            # the layout is kept so that its id cannot become another's
            known = self._known[id(layout)] = (self._sent, layout)
            new[self._sent] = (layout.names, layout.kinds)
        values = None if isinstance(one.kept, OnDemand) else _values(one)
        return File(file.worker, file.mode, file.mode_step, file.modified, known[0], file.shapes, values, file.key)


class Files:
    """Reads what was not sent, of the present step or of an earlier one."""

    def __init__(self, source: Source) -> None:
        """Nothing is open yet."""
        self._source = source
        self.present: Sequence[StepFile] = ()
        """The files of the step that is judged."""
        self._opened: OrderedDict[tuple[str, str], Sequence[StepFile]] = OrderedDict()

    def values(self, asked: dict[str, Any]) -> Values:
        """What is asked for.

        Raises:
            KeyError, TypeError, ValueError, OverflowError: it was not asked for as it has to be.
        """
        names = {int(at): (str(name), str(kind)) for at, name, kind in asked["entries"]}
        positions = np.array(sorted(names), np.int64)
        key, step, worker, mode = str(asked["key"]), int(asked["step"]), str(asked["worker"]), str(asked["mode"])
        try:
            file = self._file(key, step, worker, mode)
            entries = list(zip(file.layout.names, file.layout.kinds, strict=True))
            if any(not 0 <= at < len(entries) or entries[at] != entry for at, entry in names.items()):
                # the places of another layout would be those of other tensors
                return Values(problems=dict.fromkeys(names, "its step was written again with other tensors"))
            read = self._source.read(file, [positions])
        except (EvaluatorError, MemoryError) as error:
            return Values(problems=dict.fromkeys(names, str(error) or "does not fit in memory"))
        return packed(read)

    def forget(self) -> None:
        """Training went back: files of earlier steps may be others by now."""
        self._opened.clear()

    def _file(self, key: str, step: int, worker: str, mode: str) -> StepFile:
        for file in self.present:
            if (file.key, file.step, file.worker, file.mode.name) == (key, step, worker, mode):
                return file
        opened = self._opened.get((key, worker))
        if opened is None:
            opened = self._opened[key, worker] = self._source.open(Sighting(step, worker, 0.0, 0, key))
            if len(self._opened) > OPEN_FILES:
                self._opened.popitem(last=False)
        return next((file for file in opened if file.mode.name == mode), opened[0])


def packed(read: FileValues) -> Values:
    """Values as they are sent."""
    joined = _laid_out((positions, segments) for _, positions, segments in read.joined)
    return Values(joined, read.texts, read.empty, read.problems, read.wall_time)


def _values(one: FileSummary) -> Values:
    """What was read of a file, as it is sent."""
    kept = one.kept
    joined = [] if kept is None else _laid_out(kept.joined)
    texts = {} if kept is None else kept.texts
    return Values(joined, texts, one.empty, one.problems, one.wall_time)


def _laid_out(joined: Iterable[tuple[Positions, Segments]]) -> list[tuple[Positions, Array, Positions, Shapes]]:
    """Joined values as plain arrays."""
    return [(positions, segments.flat, segments.counts, segments.shapes) for positions, segments in joined]
