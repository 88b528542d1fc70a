"""Which of the losses in a row are judged: the totals where there are any, else the sum of the parts of each split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from builtin_rules.losses._layout import EVALUATION, MOST_LAYOUTS, TRAINING, Layout
from builtin_rules.losses._names import (
    FALLING,
    GRADIENT_NORMS,
    LEARNING_RATES,
    is_total,
    kind_of,
    should_rise,
    split_of,
)
from evaluator.rule import Column, grown
from evaluator.segments import Array, Bools, Floats

UNSEEN, NOT_JUDGED = -2, -1


class Judged(NamedTuple):
    """One loss of a row: its slot, the mode it was saved in, and of how many parts, in which columns, it is the sum."""

    slot: int
    mode: int
    parts: int
    columns: Sequence[int]


class Plan(NamedTuple):
    """What of a row can be told without its values: the carriers after it, its losses, and the slots that changed."""

    carriers: Array
    losses: Sequence[Judged]
    changed: Sequence[int]


def judged_losses(
    carriers: Array, layout: Layout, values: Sequence[float]
) -> tuple[Array, list[tuple[Judged, float]], Sequence[int]]:
    """The carriers after a row, its losses with their values, and the slots that from now on carry something else.

    A sum stands in the slot of its first part, and there is one only where all its parts were saved. Losses of training
    come first.

    Shapes:
        carriers: int64 (slots,): for each slot the one that carries the loss it is (part of); values: (columns,).
    """
    after, losses, changed = _plan(layout, carriers.tobytes())
    return after, [(loss, sum([values[column] for column in loss.columns])) for loss in losses], changed


@lru_cache(maxsize=MOST_LAYOUTS)
def _plan(layout: Layout, carriers_before: bytes) -> Plan:
    """What `judged_losses` says of any row with this layout."""
    here = layout.places
    carriers = grown(np.frombuffer(carriers_before, np.int64), 2 * layout.width, UNSEEN)
    known = carriers.tolist()
    changed: list[int] = []
    if any(known[place.slot] == UNSEEN for place in here):
        before = _parts_of(known)
        seen = {place.slot for place in here}.union(slot for slot, carrier in enumerate(known) if carrier != UNSEEN)
        known = _assigned(layout.columns, sorted(seen), len(known))
        after = _parts_of(known)
        changed = [slot for slot in before | after if before.get(slot) != after.get(slot)]
        carriers = np.array(known, np.int64)
    sizes = Counter(known)
    saved: dict[int, list[int]] = {}
    modes: dict[int, int] = {}
    for place in here:
        carrier = known[place.slot]
        if carrier >= 0:
            saved.setdefault(carrier, []).append(place.column)
            modes[carrier] = place.mode
    losses = [
        Judged(slot, modes[slot], len(columns), columns)
        for slot, columns in saved.items()
        if len(columns) == sizes[slot]
    ]
    return Plan(carriers, sorted(losses, key=lambda loss: loss.slot % 2 == EVALUATION), changed)


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
