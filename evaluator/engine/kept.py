"""Values that are kept for a while because a rule compares them with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from evaluator.needs import Measure, Tensor
from evaluator.segments import Array, Bools, Segments
from evaluator.sources.base import VALUE, Layout, Positions, Source, StepFile


class Kept:
    """Values of some tensors of one file."""

    def __init__(
        self, layout: Layout, joined: Sequence[tuple[Positions, Segments]], texts: Mapping[int, Array]
    ) -> None:
        """Hold what was read; nothing is copied."""
        self.layout = layout
        self.joined = joined
        self.texts = texts

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(segments.flat.nbytes for _, segments in self.joined)

    def value(self, name: str) -> Array | None:
        """One tensor in its own shape; None where it was not kept."""
        return self.by_name.get(name)

    @cached_property
    def by_name(self) -> Mapping[str, Array]:
        """Each tensor in its own shape; saved reductions, which have the same names, are not among them."""
        names, kinds = self.layout.names, self.layout.kinds
        found = {names[position]: text for position, text in self.texts.items()}
        for positions, segments in self.joined:
            for position, array in zip(positions.tolist(), segments.tensors(), strict=True):
                if kinds[position] == VALUE:
                    found[names[position]] = array
        return found


class OnDemand(Kept):
    """Values that would not fit in memory together: each is read when it is asked for, and let go."""

    def __init__(self, source: Source, file: StepFile, names: Sequence[str]) -> None:
        """Know where the values of these tensors are; nothing is read."""
        super().__init__(file.layout, [], {})
        self._source = source
        self._file = file
        self._positions = value_positions(file.layout, names)
        self.unread: dict[str, str] = {}
        """Tensor -> why it could not be read."""

    def value(self, name: str) -> Array | None:
        """The tensor, read now; None where it cannot be read."""
        position = self._positions.get(name)
        if position is None:
            return None
        values = self._source.read(self._file, [np.array([position], np.int64)])
        if values.problems:
            self.unread[name] = values.problems[position]
        return values.arrays().get(position)


class Comparison:
    """Results of a measure of two values, for the tensors of one file."""

    def __init__(self, measure: Measure, entries: int) -> None:
        """Nothing compared yet."""
        self.measure = measure
        self.values: Array = measure.room(entries)
        self.present: Bools = np.zeros(entries, np.bool_)
        self.reshaped: set[str] = set()
        """Tensors whose partner has another shape, which a measure over joined values cannot compare."""

    def all_of(self, current: Kept, other: Kept, wanted: Positions) -> bool:
        """Compare all that is wanted at once where both were read along the same lines; whether that was possible."""
        if self.measure.each or current.layout is not other.layout or len(current.joined) != len(other.joined):
            return False
        if isinstance(current, OnDemand) or isinstance(other, OnDemand):
            return False
        # beside others that are kept for another rule
        pairs = [
            pair
            for pair in zip(current.joined, other.joined, strict=True)
            if pair[0][0] is wanted or np.isin(pair[0][0], wanted).any()
        ]
        for (positions, segments), (other_positions, other_segments) in pairs:
            same = positions is other_positions or np.array_equal(positions, other_positions)
            if not same or segments.shapes != other_segments.shapes or not self._takes(segments, other_segments):
                return False
        try:
            results = [self.measure(segments, other_segments) for (_, segments), (_, other_segments) in pairs]
        except Exception:  # noqa: BLE001 - which of them it is for, and so which rule, shows one by one
            return False
        for ((positions, _), _), result in zip(pairs, results, strict=True):
            self.values[positions] = result
            self.present[positions] = True
        return True

    def one(self, position: int, current: Array, other: Array, tensor: Tensor) -> None:
        """Compare one tensor with its partner."""
        if not {current.dtype.kind, other.dtype.kind} <= set(self.measure.kinds):
            return
        if self.measure.each:
            self.values[position] = self.measure.of_one(current, other, tensor)
        elif current.shape == other.shape and current.size:
            self.values[position] = self.measure(Segments.of([current]), Segments.of([other]))[0]
        elif self.measure.reshaped is not None:
            self.values[position] = self.measure.reshaped
        else:
            self.reshaped.add(tensor.name)
            return
        self.present[position] = True

    def _takes(self, *segments: Segments) -> bool:
        return all(one.flat.dtype.kind in self.measure.kinds for one in segments)


def value_positions(layout: Layout, names: Sequence[str]) -> dict[str, int]:
    """Where the values of these tensors stand in a layout; those saved without a value are left out."""
    found = {}
    for name in names:
        position = layout.at.get(name, {}).get(VALUE)
        if position is not None:
            found[name] = position
    return found
