"""Needs: what a rule declares that it wants computed from the saved tensors, so that all rules can share one read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluator.modes import Mode
from evaluator.reductions import REDUCTIONS
from evaluator.segments import Array, Floats, Segments

TRAINING = frozenset({Mode.TRAIN, Mode.GLOBAL})
"""The modes in which weights are expected to change."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Which saved value a function is given: its name, worker, mode and step."""

    name: str
    worker: str
    mode: Mode
    step: int


@dataclass(frozen=True)
class Selection:
    """Which tensors: the union of collections, patterns and exact names, less an excluding pattern.

    Nothing given selects every tensor. Patterns are searched anywhere in a name (Python's re.search).
    """

    collections: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether no restriction was given."""
        return not (self.collections or self.regexes or self.names)

    def without(self, pattern: str | None) -> Selection:
        """The same selection less the names in which `pattern` is found."""
        return replace(self, exclude=(*self.exclude, pattern)) if pattern else self

    def __str__(self) -> str:
        """How messages name it."""
        parts = [f"collection {name!r}" for name in self.collections]
        parts += [f"regex {regex!r}" for regex in self.regexes]
        parts += [f"tensor {name!r}" for name in self.names]
        text = " or ".join(parts) if parts else "all tensors"
        return text + "".join(f" without {pattern!r}" for pattern in self.exclude)


@dataclass(frozen=True)
class Measure:
    """What to compute of a tensor: a function with its options; equal ones are computed once for all rules.

    Args:
        function: of Segments, giving one float (or a row of `width` floats) per tensor, which must not depend on the
            tensors beside it: they may be of several steps; of `(values, tensor)` when `each`; with a partner it takes
            the partner's Segments, or values, as second argument: `(segments, partner)`, `(values, partner, tensor)`.
        options: keyword arguments of the function, as pairs so that measures can be compared.
        width: numbers per tensor; 1 gives plain columns.
        ragged: each result is an array of its own shape instead (counts per class, say): only with `each`, and for
            needs with a state. A row's values then are these arrays, None where nothing was saved.
        each: called once per tensor in its own shape, instead of once for many.
        kinds: numpy type kinds it is meant for; others are not saved for it. "U" is text (only with `each`).
        reductions: how to get the same from saved reductions when no value was saved: their names, at least one of
            which must be there, and a function of those there (name -> one float per tensor).
        reshaped: with a partner: the result where the partner has another shape, which joined values cannot be
            compared with; without it such a pair gives nothing.
    """

    function: Callable[..., Any]
    options: tuple[tuple[str, Any], ...] = ()
    width: int = 1
    ragged: bool = False
    each: bool = False
    kinds: str = "fiubc"
    reductions: tuple[str, ...] = ()
    from_reductions: Callable[[Mapping[str, Floats]], Floats] | None = None
    reshaped: float | None = None

    def __call__(self, segments: Segments, *partner: Segments) -> Floats:
        """Compute it for many tensors at once."""
        result: Floats = self.function(segments, *partner, **dict(self.options))
        return result

    def of_one(self, *arguments: Any) -> Any:
        """Compute it for one tensor (`each`)."""
        return self.function(*arguments, **dict(self.options))

    def room(self, *shape: int) -> Array:
        """Room for so many results, none of them there yet."""
        if self.ragged:
            return np.full(shape, None, dtype=object)
        room = np.empty(shape if self.width == 1 else (*shape, self.width))
        room.fill(np.nan)
        return room


def named(reduction: str) -> Measure:
    """The measure of a named reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction {reduction!r} is not known; known: {', '.join(sorted(REDUCTIONS))}")
    return Measure(
        REDUCTIONS[reduction], reductions=(reduction,), from_reductions=lambda saved: next(iter(saved.values()))
    )


@dataclass(frozen=True)
class Previous:
    """Partner: the same tensor's value saved last before, or the oldest one saved within `within` steps."""

    within: int | None = None


@dataclass(frozen=True)
class Beside:
    """Partner: another tensor of the same step and worker, paired in the order of the names."""

    selection: Selection


@dataclass(frozen=True)
class OtherWorker:
    """Partner: the same tensor of the first worker (in natural order) that saved it at this step."""


@dataclass(frozen=True)
class OtherTrial:
    """Partner: the same tensor at the same step in another trial, by its place in the rule's list of other trials.

    None stands for each of them: the condition is given as many windows, and due where one of them has a value.
    """

    number: int | None = 0
    path: str = ""
    """Filled in from the rule's configuration."""


Partner = Previous | Beside | OtherWorker | OtherTrial

StateArrays = dict[str, Array]


@dataclass(frozen=True)
class Accumulator:
    """State instead of a window: `start()` and `add(state, row)`, both pure; a state is named arrays."""

    start: Callable[[], StateArrays]
    add: Callable[[StateArrays, Any], StateArrays]


@dataclass(frozen=True)
class Summary:
    """A number (or short vector) per selected tensor and worker at each step, and how much history of it.

    Args:
        of: which tensors; a plain string is a collection.
        by: what to compute; a plain string is a named reduction.
        modes: only values saved in these modes.
        rows: how many of the last rows (saved steps of this need) the window keeps.
        steps: keep also the rows of the last `steps` steps, and of each tensor (in each mode) the newest value that is
            at least that old.
        partner: the second value that `by` compares with.
        state: fold rows into a state instead of keeping a window.
        triggers: whether a rule is due when this need has a value; False: it is only looked at.
    """

    of: str | Selection
    by: str | Measure = "abs_mean"
    modes: frozenset[Mode] | None = None
    rows: int = 1
    steps: int = 0
    partner: Partner | None = None
    state: Accumulator | None = None
    triggers: bool = True

    @property
    def selection(self) -> Selection:
        """Which tensors."""
        return Selection(collections=(self.of,)) if isinstance(self.of, str) else self.of

    @property
    def measure(self) -> Measure:
        """What is computed."""
        return _NAMED[self.by] if isinstance(self.by, str) else self.by


@dataclass(frozen=True)
class Progress:
    """Per worker how far it is: the last step, the number of steps, and for how long nothing has come.

    Args:
        triggers: as of a Summary; it has a value at every step.
        times: whether times are wanted; without them no file is opened only to learn when it was written.
    """

    triggers: bool = True
    times: bool = True


Need = Summary | Progress


class _Named(dict[str, Measure]):
    """One measure object per named reduction, so that equal needs compare equal."""

    def __missing__(self, reduction: str) -> Measure:
        measure = self[reduction] = named(reduction)
        return measure


_NAMED = _Named()
