"""What logs of a training tell, gathered line by line in memory that does not grow with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evaluator.logs import printable
from evaluator.sagemaker.diagnose._check import Sign
from evaluator.sagemaker.diagnose._progress import Place, Progress, number_after
from evaluator.sagemaker.diagnose._values import moment

SHOWN = 240
"""Characters of a line that are shown."""
KEPT = 5
"""Lines that are kept of each sign."""
MOST_SPEAKERS = 20_000
SUCCESS, FAILURE = "reporting training success", "reporting training failure"
"""Source: sagemaker-training-toolkit, which says so at the end of each script."""

# "rank 3", "[rank3]:", "rank=3", '"rank": 3'; from where the word stands in small letters
_RANK = re.compile(r"rank[\"']?[\s_]{0,4}[:=#]?\s{0,4}(\d{1,5})(?![\d.])")
NOT_OF_PROCESSES = ("lora ", "low ", "low-", "matrix ", "full-")
# mpirun of SageMaker: "[1,3]<stdout>", "[1,mpirank:3,algo-1]<stderr>"
_MPI = re.compile(r"\[1,(?:mpirank:)?(\d{1,5})(?:,[^\]]{0,80})?\]<std(?:out|err)>")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True)
class Line:
    """A line that was kept.

    Args:
        text: with nothing in it that a terminal would act on.
        speaker: the rank that wrote it, where the line says so.
        place: the epoch and step at which the rank was then, as far as its lines told.
    """

    where: str
    text: str
    speaker: str | None
    place: Place | None = None

    def __str__(self) -> str:
        """Where it stands, and what it says."""
        return f"{self.where}: {self.text}"


@dataclass
class Hits:
    """The lines that show one sign."""

    count: int = 0
    first: list[Line] = field(default_factory=list)
    speakers: dict[str, Line] = field(default_factory=dict)
    """Rank -> its first such line."""

    def add(self, line: Line) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < KEPT:
            self.first.append(line)
        if line.speaker is not None and len(self.speakers) < MOST_SPEAKERS:
            self.speakers.setdefault(line.speaker, line)

    @property
    def shown(self) -> tuple[str, ...]:
        """The first of them, and how many there are."""
        more = [f"... ({self.count} such lines)"] if self.count > len(self.first) else []
        return (*map(str, self.first), *more)


@dataclass
class LogFacts:
    """What was read of all logs.

    Args:
        sources: log -> how many lines it has.
        speakers: the ranks that wrote anything.
        ranks: how far each rank is.
        hosts: how far each log is, where lines name no rank.
        succeeded: whether a script said that it has ended well; failed: that it has not.
        began: the time of the first line that has one.
        first_step: the time of the first line with a step.
        newest: the time of the last line that has one.
        zoned: whether these times can be compared with those of others.
    """

    sources: dict[str, int] = field(default_factory=dict)
    hits: dict[str, Hits] = field(default_factory=dict)
    speakers: dict[str, None] = field(default_factory=dict)
    ranks: Progress = field(default_factory=Progress)
    hosts: Progress = field(default_factory=Progress)
    succeeded: bool = False
    failed: bool = False
    began: float | None = None
    first_step: float | None = None
    newest: float | None = None
    zoned: bool = True

    @property
    def moves(self) -> int:
        """How many lines said at which step the training is."""
        return self.ranks.moves + self.hosts.moves

    @property
    def over(self) -> bool:
        """Whether the log says that the training has ended, well or not."""
        return self.succeeded or self.failed


class LogReader:
    """Reads logs one after the other, each line once for all checks."""

    def __init__(self, signs: Mapping[str, tuple[Sign, ...]]) -> None:
        """Nothing is read yet.

        Args:
            signs: name -> the lines to look for, any of them.
        """
        self.facts = LogFacts()
        self._timed = ""
        """The last line that may begin with a time, where that was not read."""
        by_word: dict[str, list[tuple[str, Sign]]] = {}
        for name, several in signs.items():
            for sign in several:
                by_word.setdefault(sign.needles[0], []).append((name, sign))
        self._signs = list(by_word.items())

    def read(self, lines: Iterable[tuple[int, str, float | None]], source: str) -> None:
        """Take the lines of one log, with their times as far as these are known beside them."""
        self.facts.sources.setdefault(source, 0)
        for number, text, at in lines:
            self.take(text, at, source, number)

    def take(self, text: str, at: float | None, source: str, number: int | None = None) -> None:
        """Take one line; without a number it is the next one of its log."""
        facts = self.facts
        facts.sources[source] = facts.sources.get(source, 0) + 1 if number is None else number
        lowered = text.lower()
        speaker = _speaker(lowered)
        if speaker is not None and len(facts.speakers) < MOST_SPEAKERS:
            facts.speakers.setdefault(speaker)
        if at is not None:
            self._note(at, zoned=True)
        elif "-" in text[:40]:
            # what stands there is read when it is asked for: it is the costliest of all
            self._timed = text
            if facts.began is None:
                self._read_time()
        progress, name = (facts.hosts, source) if speaker is None else (facts.ranks, speaker)
        if progress.see(name, lowered) and facts.first_step is None:
            self._read_time()
            facts.first_step = facts.newest
        if SUCCESS in lowered:
            facts.succeeded = True
        elif FAILURE in lowered:
            facts.failed = True
        found = [sign for word, several in self._signs if word in lowered for sign in several]
        names = {name for name, sign in found if sign.shows(text, lowered)} if found else ()
        if names:
            self._keep(names, text, source, speaker, progress.place_of(name))

    def close(self) -> LogFacts:
        """All that was read."""
        self._read_time()
        return self.facts

    def _read_time(self) -> None:
        text, self._timed = self._timed, ""
        at, zoned = _time(text)
        if at is not None:
            self._note(at, zoned=zoned)

    def _note(self, at: float, *, zoned: bool) -> None:
        facts = self.facts
        facts.began = at if facts.began is None else facts.began
        facts.newest = at
        facts.zoned = facts.zoned and zoned

    def _keep(self, names: Iterable[str], text: str, source: str, speaker: str | None, place: Place | None) -> None:
        shown = printable(text.strip())
        shown = f"{shown[:SHOWN]}..." if len(shown) > SHOWN else shown
        line = Line(f"{source}:{self.facts.sources[source]}", shown, speaker, place)
        for name in names:
            self.facts.hits.setdefault(name, Hits()).add(line)


def _speaker(lowered: str) -> str | None:
    if lowered.startswith("[1,") and (found := _MPI.match(lowered)) is not None:
        return f"rank {int(found[1])}"
    # of a local rank there is one on each host
    number = number_after("rank", _RANK, lowered, ("global_",), NOT_OF_PROCESSES)
    return None if number is None else f"rank {number}"


def _time(text: str) -> tuple[float | None, bool]:
    """When a line was written, as it says at its start, and whether it says in which zone."""
    found = _TIME.search(text, 0, 64)
    if found is None:
        return None, False
    return moment(f"{found[1].replace(' ', 'T')}{found[2] or ''}"), found[2] is not None
