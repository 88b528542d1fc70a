"""What a condition is given (windows, states, progress) and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.modes import Mode
from evaluator.segments import Array, Bools, Floats


@dataclass(frozen=True, slots=True)
class Column:
    """One tensor on one worker."""

    tensor: str
    worker: str


@dataclass(frozen=True)
class Met:
    """The condition holds: for these columns, by these measured values.

    Args:
        columns: the columns that met, as indices into the window's columns; empty when the condition is about the
            whole run and not about a tensor.
        measured: one value per met column, or one value when `columns` is empty.
        limit: what was measured against; an array has one per met column.
        message: what is wrong, for people; `{tensor}`, `{worker}`, `{measured}`, `{limit}`, `{tensors}` and `{of}`
            (met and judged columns) stand for what the finding will name.
        each: details that differ per column, one value per met column; a finding has those of the column it names.
        modes: per met column the mode of the value that met it, where that need not be the newest one.
        last_healthy: the last step without the issue, where the condition knows it better than as the last step that
            was judged and not met; -1: there was none.
    """

    columns: NDArray[np.int64]
    measured: Floats
    limit: float | Floats | None = None
    of: int = 0
    """How many columns were judged."""
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    window: Window | State | ProgressView | None = None
    each: Mapping[str, Array] = field(default_factory=dict)
    modes: NDArray[np.int8] | None = None
    last_healthy: int | None = None

    def only(self, lasting: Bools) -> Met:
        """The same for some of the met columns."""
        limit = self.limit[lasting] if isinstance(self.limit, np.ndarray) else self.limit
        each = {name: values[lasting] for name, values in self.each.items()}
        modes = None if self.modes is None else self.modes[lasting]
        measured = self.measured[lasting]
        return replace(self, columns=self.columns[lasting], measured=measured, limit=limit, each=each, modes=modes)


@dataclass(frozen=True)
class Decided:
    """Nothing that is saved later can change the verdict; the rule's tensors need not be read any more."""

    reason: str


@dataclass(frozen=True)
class NotYet:
    """The condition cannot be judged at this step: for example too few points so far."""

    reason: str


Verdict = Met | Decided | NotYet | None


class _Meets:
    """How windows, states and progress make a Met of a mask over their columns."""

    __slots__ = ()

    columns: Sequence[Column]

    def met(
        self,
        mask: Bools,
        *,
        measured: Array | None = None,
        limit: float | Floats | None = None,
        of: int | None = None,
        message: str = "",
        details: Mapping[str, Any] | None = None,
        each: Mapping[str, Array] | None = None,
        modes: NDArray[np.int8] | None = None,
        last_healthy: int | None = None,
    ) -> Met:
        """The columns of `mask` met the condition; `measured` (per column) is by default the newest value.

        `limit`, `modes` and the values of `each` may be arrays with one element per column.
        """
        which = np.flatnonzero(mask)
        limit = limit[which] if isinstance(limit, np.ndarray) else limit
        modes = None if modes is None else modes[which]
        own = {name: array[which] for name, array in (each or {}).items()}
        values = self._newest() if measured is None else np.asarray(measured, dtype=np.float64)
        judged = int(self._judged().sum()) if of is None else of
        return Met(which, values[which], limit, judged, message, details or {}, self, own, modes, last_healthy)  # type: ignore[arg-type]

    def _newest(self) -> Floats:
        raise TypeError(f"{type(self).__name__} has no single newest value per column; pass measured=")

    def _judged(self) -> Bools:
        return np.ones(len(self.columns), dtype=np.bool_)


@dataclass(slots=True, eq=False)
class Window(_Meets):
    """The last rows of a Summary, oldest first.

    Asked for by steps, it reaches back far enough for every column to have its newest value that is at least that old.

    Shapes:
        values: float64 (rows, columns[, width]), NaN where nothing was saved; saved: bool (rows, columns);
        steps: int64 (rows,); modes: int8 (rows, columns), 0 where nothing was saved.
    """

    values: Floats
    modes: NDArray[np.int8]
    steps: NDArray[np.int64]
    columns: Sequence[Column]
    other_trial: str = ""
    """The path of the trial that the values were compared with."""

    @property
    def saved(self) -> Bools:
        """Where a value was saved; a saved NaN is saved."""
        saved: Bools = self.modes > 0
        return saved

    def _newest(self) -> Floats:
        newest: Floats = self.values[-1]
        return newest if newest.ndim == 1 else newest[:, 0]

    def _judged(self) -> Bools:
        judged: Bools = self.saved[-1]
        return judged

    def latest(self) -> tuple[Floats, Bools, NDArray[np.int64]]:
        """Per column its newest saved value, whether there is one in the window, and that value's step."""
        rows = len(self.steps)
        saved = self.saved
        age = np.argmax(saved[::-1], axis=0) if rows else np.zeros(len(self.columns), dtype=np.int64)
        row = rows - 1 - age
        present: Bools = np.any(saved, axis=0)
        return self.values[row, np.arange(len(self.columns))], present, self.steps[row]


@dataclass(slots=True, eq=False)
class Row:
    """What one step adds to a state: values and modes per column (0 = not saved), the step."""

    values: Array
    """(columns[, width]); of a ragged measure (columns,), each an array of its own shape, None where not saved."""
    modes: NDArray[np.int8]
    step: int
    columns: Sequence[Column]

    @property
    def saved(self) -> Bools:
        """Where a value was saved."""
        return self.modes > 0


@dataclass(slots=True, eq=False)
class State(_Meets):
    """What a Summary with an Accumulator has folded up so far, and the row that came last."""

    arrays: Mapping[str, Array]
    row: Row

    @property
    def columns(self) -> Sequence[Column]:  # type: ignore[override]
        """The columns of the last row; arrays may be shorter where a column is new and was not saved."""
        return self.row.columns

    def __getitem__(self, name: str) -> Array:
        """One of the arrays."""
        return self.arrays[name]

    def _newest(self) -> Floats:
        return self.row.values if self.row.values.ndim == 1 else self.row.values[:, 0]

    def _judged(self) -> Bools:
        return self.row.saved


@dataclass(slots=True, eq=False)
class ProgressView(_Meets):
    """How far each worker is. Columns have an empty tensor name.

    Shapes:
        last_step, steps, behind, rhythm: int64 (workers,); silent, gap: float64 (workers,) in seconds; pauses: float64
        (pauses,) in seconds.
    """

    columns: Sequence[Column]
    last_step: NDArray[np.int64]
    steps: NDArray[np.int64]
    silent: Floats
    """Seconds since the worker's newest file; replaying: until the newest file of any worker."""
    gap: Floats
    """Seconds between the worker's newest file and the one before; NaN with fewer than two."""
    ended: bool
    """Whether nothing more is read."""
    complete: bool = False
    """Whether the run itself is taken to have ended, so that nothing is missing only because it is not there yet."""
    behind: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Steps that others saved since the worker's newest one, in the modes in which the worker saves."""
    rhythm: NDArray[np.int64] = field(default_factory=lambda: np.ones(0, np.int64))
    """The most such steps from one of the worker's to its next; 1 where it saves all of them."""
    pauses: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds in which nothing came from any worker, from one step to the next: the last ones, newest last."""
    expected: int | None = None
    """How many workers save, by the collection files."""


def grown(array: Array, columns: int, fill: float) -> Array:
    """The array with room for that many columns along its first axis, new ones filled."""
    if len(array) >= columns:
        return array
    rest = np.full((columns - len(array), *array.shape[1:]), fill, dtype=array.dtype)
    return np.concatenate([array, rest])


def mode_name(code: int) -> str:
    """The name of a mode as findings write it."""
    return Mode(code).name
