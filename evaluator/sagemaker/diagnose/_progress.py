"""How far each rank of a training is by the lines of its log that name a step."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from evaluator.formats.key_names import natural_key

MOST_NAMES = 20_000
MOST_EPOCHS = 100
"""Epochs whose last step is kept of each rank."""

# "step 12", "step=12", '"step": 12', "batch 12/100", but not "step: 0.3" or "step 12 ms"; in small letters
# every repetition has an end: a log may be made so that a search takes for ever
_NUMBER = r"[\"']?\s{0,8}[:=#]?\s{0,8}\[?\s{0,8}(\d{1,12})"
_NO_MEASURE = r"(?![\d.]|\s{0,2}m?s\b)"
_STEP, _ITERATION, _BATCH, _EPOCH = (
    re.compile(word + _NUMBER + rest)
    for word, rest in (("step", _NO_MEASURE), ("iter(?:ation)?", _NO_MEASURE), ("batch", _NO_MEASURE), ("epoch", ""))
)
_WORDS = (("step", _STEP), ("iter", _ITERATION), ("batch", _BATCH))

Place = tuple[int, int]
"""Epoch and step; the epoch is counted where no line names it and steps begin anew."""


def number_after(
    word: str, pattern: re.Pattern[str], lowered: str, prefixes: tuple[str, ...] = (), never: tuple[str, ...] = ()
) -> int | None:
    """The number that follows a word; as a part of another word it counts after these prefixes only.

    After what is in `never` it does not count.
    """
    at = lowered.find(word)
    while at >= 0:
        before = lowered[at - 1] if at else " "
        whole = not (before.isalpha() or before == "_")
        if (whole and not lowered.endswith(never, 0, at)) or lowered.endswith(prefixes, 0, at):
            found = pattern.match(lowered, at)
            if found is not None:
                return int(found[1])
        at = lowered.find(word, at + 1)
    return None


@dataclass
class Walk:
    """The way of one rank.

    Args:
        epoch: where it is; counted where no line names it and steps begin anew.
        last: the step of its last line.
        named: whether its lines name epochs.
        gap: the most steps from one of its lines to the next.
        farthest: epoch -> the highest step there; lower ones after it may be those of an evaluation.
    """

    epoch: int
    last: int
    named: bool
    gap: int = 1
    farthest: dict[int, int] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """How far it is."""
        return self.epoch, self.farthest[self.epoch]

    def go(self, step: int, epoch: int | None) -> None:
        """One more line of it."""
        if epoch is None and self.named and step < self.last:
            return
        self.named = self.named or epoch is not None
        before = self.epoch
        self.epoch = epoch if epoch is not None else before + (step < self.last)
        if self.epoch == before and step > self.last:
            self.gap = max(self.gap, step - self.last)
        self.last = step
        self.farthest[self.epoch] = max(step, self.farthest.get(self.epoch, 0))
        if len(self.farthest) > MOST_EPOCHS:
            del self.farthest[next(one for one in self.farthest if one != self.epoch)]


class Progress:
    """The ways of all ranks, or of all logs."""

    def __init__(self) -> None:
        """Nobody is anywhere yet."""
        self.walks: dict[str, Walk] = {}
        self.moves = 0

    def see(self, name: str, lowered: str) -> bool:
        """Take a line of a rank, in small letters; whether it names a step."""
        found = (number_after(word, pattern, lowered, ("global_", "global")) for word, pattern in _WORDS)
        step = next((one for one in found if one is not None), None)
        if step is None:
            return False
        epoch = number_after("epoch", _EPOCH, lowered)
        self.moves += 1
        walk = self.walks.get(name)
        if walk is not None:
            walk.go(step, epoch)
        elif len(self.walks) < MOST_NAMES:
            first = epoch or 0
            self.walks[name] = Walk(first, step, epoch is not None, farthest={first: step})
        return True

    def place_of(self, name: str) -> Place | None:
        """Where somebody is now."""
        walk = self.walks.get(name)
        return None if walk is None else walk.place

    @property
    def names(self) -> list[str]:
        """Who named a step."""
        return sorted(self.walks, key=natural_key)

    @property
    def unclear(self) -> bool:
        """Whether steps begin anew more often for some, and no line names an epoch: some may evaluate, too."""
        epochs = {walk.epoch for walk in self.walks.values()}
        return len(epochs) > 1 and not all(walk.named for walk in self.walks.values())

    def uneven_epoch(self) -> tuple[int, dict[str, int]] | None:
        """The first epoch that all have left and that did not end alike, and where each ended, if there is one.

        A difference below the distance of a rank's lines shows nothing.
        """
        least = min((walk.place[0] for walk in self.walks.values()), default=0)
        for epoch in sorted({epoch for walk in self.walks.values() for epoch in walk.farthest if epoch < least}):
            ends = {name: self.walks[name].farthest[epoch] for name in self.names if epoch in self.walks[name].farthest}
            if len(ends) > 1 and max(ends.values()) - min(ends.values()) >= self._rhythm:
                return epoch, ends
        return None

    def behind(self) -> dict[str, int]:
        """Who is not as far as the farthest -> by how many steps, in units of what its lines are apart.

        Where the last epochs differ, the number cannot be told and is 0.
        """
        farthest = max(walk.place for walk in self.walks.values())
        found = {}
        for name in self.names:
            walk = self.walks[name]
            missing = farthest[1] - walk.place[1]
            if walk.place[0] != farthest[0]:
                found[name] = 0
            elif missing >= max(walk.gap, 1):
                found[name] = missing
        return found

    @property
    def _rhythm(self) -> int:
        return max((walk.gap for walk in self.walks.values()), default=1)
