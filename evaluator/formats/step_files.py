"""Encodes the two files of a step: the records of its tensors, not copied, and the index of where they are.

A training saves the same tensors step after step, which differ in time, number and values alone. So what the files of
a step have in common with those of an earlier one is kept, and only filled in: the thread that writes competes with the
training for the interpreter, and some ten microseconds for each tensor are felt there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from evaluator.formats.event import encode_metadata, encode_moment
from evaluator.formats.index_file import encode_payload, join_index
from evaluator.formats.tfrecord import CONSTANT_FOOTER, header
from evaluator.modes import Mode

Payload = tuple[bytes, bytes | memoryview, bytes]
"""An event whose values, in the middle, were not copied."""

Named = list[tuple[str, Any]]
Shapes = tuple[tuple[str, str, tuple[int, ...]], ...]

REMEMBERED = 4
"""Kinds of steps that are kept: those with all tensors, with losses only, of an evaluation, and one more; ours."""


@dataclass(frozen=True, slots=True)
class _Alike:
    """What steps with the same tensors have in common."""

    openings: tuple[tuple[bytes, bytes], ...]
    """Of each record, what stands before its moment, and between that and its values."""
    payload: str
    """Of the index file."""
    size: int
    """Of the event file, in bytes."""


class StepFiles:
    """Encodes steps, and remembers what they have in common."""

    def __init__(self, encoded: Callable[..., Iterator[tuple[str, Payload]]]) -> None:
        """Nothing is known yet; `encoded` gives each value that can be saved as an event."""
        self._encoded = encoded
        self._known: dict[object, _Alike] = {}

    def encode(
        self, named: Named, shapes: Shapes, *, step: int, mode: Mode, mode_step: int, wall_time: float
    ) -> tuple[list[bytes | memoryview], int, Callable[[str | None], bytes]]:
        """The parts of the event file, its size, and what makes the index file when the key of the other is known."""
        moment, metadata = encode_moment(wall_time, step), encode_metadata(int(mode), mode_step)
        named = [(name, np.array([value]) if type(value) is float else value) for name, value in named]
        key = _key(named, shapes, len(moment), len(metadata))
        alike = self._known.get(key) if key is not None else None
        if alike is not None:
            # writing takes the arrays as they lie in memory
            values: Iterable[Any] = (value.data for _, value in named)
        else:
            how = {"step": step, "mode": mode, "mode_step": mode_step, "wall_time": wall_time}
            events = list(self._encoded(named, **how))
            alike = _common(events, shapes, len(moment))
            values = (content for _, (_, content, _) in events)
            if key is not None and len(events) == len(named):
                if len(self._known) >= REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[key] = alike
        end = metadata + CONSTANT_FOOTER
        parts: list[bytes | memoryview] = []
        for (start, opening), content in zip(alike.openings, values, strict=True):
            parts += (start + moment + opening, content, end)
        payload = alike.payload
        return parts, alike.size, lambda event_file: join_index(mode, mode_step, event_file, payload)


def _common(events: list[tuple[str, Payload]], shapes: Shapes, moment: int) -> _Alike:
    """What was encoded, without what changes from step to step."""
    openings, lengths = [], []
    for _, (before, content, after) in events:
        size = len(before) + memoryview(content).nbytes + len(after)
        start = header(size)
        openings.append((start, before[moment:]))
        lengths.append(len(start) + size + len(CONSTANT_FOOTER))
    starts = list(accumulate(lengths, initial=0))
    payload = encode_payload([name for name, _ in events], starts[:-1], lengths, shapes)
    return _Alike(tuple(openings), payload, starts[-1])


def _key(named: Named, shapes: Shapes, *lengths: int) -> object:
    """What two steps have the same where all but moments and values is the same; None where that cannot be told."""
    of = []
    for name, value in named:
        if type(value) is not np.ndarray or not value.nbytes or not value.flags.c_contiguous:
            return None
        dtype = value.dtype
        if dtype.kind not in "fiub" or not dtype.isnative:
            return None
        of.append((name, dtype.char, value.shape))
    return tuple(of), shapes, lengths
