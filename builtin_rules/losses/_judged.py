"""Which of the losses in a row are judged: the totals where there are any, else the sum of the parts of each split.

What is known of a loss stands in a slot: two for each column, one for training and one for evaluation, because a
column has no mode: the same loss may be saved in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builtin_rules.losses._names import (
    FALLING,
    GRADIENT_NORMS,
    LEARNING_RATES,
    is_total,
    kind_of,
    of_evaluation,
    should_rise,
    split_of,
)
from evaluator.modes import Mode
from evaluator.rule import Column, Row, grown
from evaluator.segments import Array, Bools, Floats

ALL_PHASES = frozenset({Mode.TRAIN, Mode.EVAL, Mode.GLOBAL})
EVALUATION_MODES = frozenset({Mode.EVAL, Mode.GLOBAL})
TRAINING, EVALUATION = 0, 1
UNSEEN, NOT_JUDGED = -2, -1
# plain numbers, because this is asked of every value
_GLOBAL = int(Mode.GLOBAL)
_PHASES = {int(Mode.TRAIN): TRAINING, int(Mode.EVAL): EVALUATION}


class Judged(NamedTuple):
    """One loss of a row: where it stands, its value, the mode it was saved in, and of how many parts it is the sum."""

    slot: int
    value: float
    mode: int
    parts: int


class Scalar(NamedTuple):
    """One saved number: its slot, value and mode."""

    slot: int
    value: float
    mode: int


def phase_of(mode: int, name: str) -> int | None:
    """TRAINING or EVALUATION; None for what belongs to neither.

    Our choice: what was saved without a mode is of evaluation if its name says so (`eval_loss`), and of training
    otherwise.
    """
    if mode == _GLOBAL:
        return EVALUATION if of_evaluation(name) else TRAINING
    return _PHASES.get(mode)


def scalars(row: Row) -> list[Scalar]:
    """The single numbers of a row in their slots; `row.values` are values and numbers of elements."""
    found = []
    values = row.values.tolist()
    for column, mode in enumerate(row.modes.tolist()):
        if mode and values[column][1] == 1:
            phase = phase_of(mode, row.columns[column].tensor)
            if phase is not None:
                found.append(Scalar(2 * column + phase, values[column][0], mode))
    return found


def judged_losses(carriers: Array, row: Row) -> tuple[Array, list[Judged], list[int]]:
    """The losses of a row, the carriers after it, and the slots that from now on carry something else.

    A sum stands in the slot of its first part, and there is one only where all its parts were saved.

    Shapes:
        carriers: int64 (slots,): for each slot the one that carries the loss it is (part of).
    """
    here = scalars(row)
    carriers = grown(carriers, 2 * len(row.values), UNSEEN)
    known = carriers.tolist()
    changed: list[int] = []
    if any(known[one.slot] == UNSEEN for one in here):
        before = _parts_of(known)
        seen = {one.slot for one in here}.union(slot for slot, carrier in enumerate(known) if carrier != UNSEEN)
        known = _assigned(row.columns, sorted(seen), len(known))
        after = _parts_of(known)
        changed = [slot for slot in before | after if before.get(slot) != after.get(slot)]
        carriers = np.array(known, np.int64)
    sizes = Counter(known)
    sums: dict[int, list[float]] = {}
    modes: dict[int, int] = {}
    for one in here:
        carrier = known[one.slot]
        if carrier >= 0:
            sums.setdefault(carrier, []).append(one.value)
            modes[carrier] = one.mode
    whole = [
        Judged(slot, sum(values), modes[slot], len(values))
        for slot, values in sums.items()
        if len(values) == sizes[slot]
    ]
    return carriers, whole, changed


def totals_or_sums(columns: Sequence[Column], slots: Sequence[int]) -> dict[int, int]:
    """Which slot carries what, among the losses of one phase that were seen so far.

    Our choice: a run that logs its whole loss is judged by that; the parts may go up and down against each other. Where
    only parts are logged, those computed on the same data by the same worker are added up; a lone one is the whole.
    Errors (rmse, ...) are losses only where nothing else is one, as in boosting, and are no parts of anything.
    """
    name = {slot: columns[slot // 2].tensor for slot in slots}
    losses = [slot for slot in slots if kind_of(name[slot]) != FALLING]
    whole = [slot for slot in losses if is_total(name[slot])] or (slots if not losses else [])
    if whole:
        return {slot: slot for slot in whole}
    first: dict[tuple[str, frozenset[str]], int] = {}
    return {slot: first.setdefault((columns[slot // 2].worker, split_of(name[slot])), slot) for slot in losses}


def per_column(slots: Floats, which: Bools) -> tuple[Floats, Bools]:
    """One element per column: that of the slot of training if it is one of `which`, else that of evaluation."""
    training = which[TRAINING::2]
    chosen = np.where(training, slots[TRAINING::2].T, slots[EVALUATION::2].T).T
    return chosen, training | which[EVALUATION::2]


def _assigned(columns: Sequence[Column], seen: Sequence[int], slots: int) -> list[int]:
    """The carriers of all slots."""
    carriers = [UNSEEN] * slots
    for phase in (TRAINING, EVALUATION):
        of_it = [slot for slot in seen if slot % 2 == phase]
        for slot in of_it:
            carriers[slot] = NOT_JUDGED
        losses = [slot for slot in of_it if is_loss(columns[slot // 2].tensor)]
        for slot, carrier in totals_or_sums(columns, losses).items():
            carriers[slot] = carrier
    return carriers


def is_loss(name: str) -> bool:
    """Whether a number among the losses is one: not what should rise, and not a gradient norm or a learning rate."""
    return not should_rise(name) and kind_of(name) not in {GRADIENT_NORMS, LEARNING_RATES}


def _parts_of(carriers: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Carrier -> the slots that it carries."""
    parts: dict[int, tuple[int, ...]] = {}
    for slot, carrier in enumerate(carriers):
        if carrier >= 0:
            parts[carrier] = (*parts.get(carrier, ()), slot)
    return parts
