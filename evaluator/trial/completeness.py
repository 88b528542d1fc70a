"""Which steps can be taken now: a pure function of what was seen of them and of the time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, overload


class Completeness(Enum):
    """How a step is taken."""

    COMPLETE = "complete"
    PARTIAL = "partial"


class Seen(NamedTuple):
    """What was seen of one step: how many workers wrote it, and when its first and its last file came."""

    step: int
    workers: int
    first: float
    last: float


class Waits(NamedTuple):
    """How long to wait for what: seconds."""

    late_grace: float
    worker_quorum: float


class SeenSteps(Sequence[Seen]):
    """What there is of many steps, told when it is looked at, so that it takes no memory."""

    def __init__(self, numbers: Sequence[int], seen: Callable[[int], Seen]) -> None:
        """The steps in the order of their numbers, and what tells of one."""
        self._numbers = numbers
        self._seen = seen

    def __len__(self) -> int:
        """How many there are."""
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Seen: ...
    @overload
    def __getitem__(self, at: slice) -> list[Seen]: ...
    def __getitem__(self, at: int | slice) -> Seen | list[Seen]:
        """What there is of a step."""
        if isinstance(at, slice):
            return [self._seen(number) for number in self._numbers[at]]
        return self._seen(self._numbers[at])


def takeable(
    steps: Sequence[Seen],
    *,
    expected: int | None,
    now: float,
    waits: Waits,
    ended: bool,
    open_from: float = math.inf,
    before: int | None = None,
    farthest: int | None = None,
) -> Iterator[tuple[int, Completeness]]:
    """The leading steps that can be taken now, and how, one by one: there can be very many.

    A step is taken when all expected workers wrote it; or the run has ended; or a later step has been complete for
    the grace time (workers write in order, so a hole will hardly be filled); or the quorum time has passed since its
    first file. Steps are taken in order: one that must wait holds up the later ones.

    Args:
        steps: those not taken yet, in the order of their numbers.
        expected: how many workers save; None as long as it is not known.
        now: the same clock as the times in `steps`.
        waits: the two waiting times.
        ended: whether nothing more can come.
        open_from: the first step that may get more values, as in logs that are written line by line; it and later ones
            wait for a later step, and for the grace time after that has begun.
        before: the step that was taken last.
        farthest: the largest distance from one step to the next until now; 0 for none. A step at a larger one waits for
            the grace time, because files may appear in any order: what seems to be missing may just not be there yet.
            None: the source shows steps in their order.
    """
    settled = _last_settled(steps, expected, now, waits.late_grace)
    followed = max((at for at, seen in enumerate(steps) if now - seen.first >= waits.late_grace), default=0)
    for number, seen in enumerate(steps):
        distance = seen.step if before is None else seen.step - before
        # the first distance of all is taken as it is; a run begins at step 0
        in_order = farthest is None or distance <= farthest or (before is not None and farthest == 0)
        written = expected is not None and seen.workers >= expected
        is_open = seen.step >= open_from
        complete = written and not (is_open and number >= followed)
        complete = complete and (in_order or now - seen.last >= waits.late_grace)
        overdue = now - (seen.last if is_open else seen.first) >= waits.worker_quorum
        if not (complete or ended or number < settled or overdue):
            return
        # With the number of workers unknown to the end, those that wrote are all there is to go by.
        known = written or expected is None
        if before is not None and farthest is not None:
            farthest = max(farthest, distance)
        before = seen.step
        yield seen.step, Completeness.COMPLETE if known else Completeness.PARTIAL


def _last_settled(steps: Sequence[Seen], expected: int | None, now: float, grace: float) -> int:
    """The index of the last step that has been complete for the grace time; 0 when there is none."""
    if expected is None:
        return 0
    for number in range(len(steps) - 1, 0, -1):
        if steps[number].workers >= expected and now - steps[number].last >= grace:
            return number
    return 0
