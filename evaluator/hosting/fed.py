"""What a rule's own process has in place of a saved run: the steps that the job sends, and values that it asks for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluator.isolation import messages
from evaluator.modes import Mode
from evaluator.segments import Segments
from evaluator.sources.base import Collections, FileValues, Layout, Positions, Sighting, Source, StepFile, join
from evaluator.storage.base import Store
from evaluator.trial.names import NameBook
from evaluator.trial.tally import StepCounts

MOST_LAYOUTS = 2048
"""Layouts that are remembered: more than the job numbers before it begins anew."""

Ask = Callable[[StepFile, Positions], messages.Values]
"""Asks the job for values that it did not send."""


class FedSource(Source):
    """The files of the present step, as they were sent; earlier ones are asked for."""

    name = "sent by the job"
    store: Store

    def __init__(self, ask: Ask) -> None:
        """Nothing was sent yet."""
        self._ask = ask
        self._sent: dict[StepFile, FileValues] = {}
        self._layouts: dict[int, Layout] = {}

    def take(self, step: messages.Step) -> list[StepFile]:
        """The files of a step; those of the step before are let go."""
        for number, (names, kinds) in step.layouts.items():
            self._layouts[number] = Layout(names, kinds)
        while len(self._layouts) > MOST_LAYOUTS:
            self._layouts.pop(next(iter(self._layouts)))
        self._sent.clear()
        files = []
        for sent in step.files:
            said = step.number, sent.worker, sent.mode, sent.mode_step, sent.modified
            file = StepFile(*said, self._layouts[sent.layout], shapes=sent.shapes, key=sent.key)
            files.append(file)
            if sent.values is not None:
                self._sent[file] = unpacked(sent.values)
        return files

    def whole(self, file: StepFile, positions: Positions) -> FileValues:
        """At least the values at these positions: where a file was sent, all of it."""
        sent = self._sent.get(file)
        return unpacked(self._ask(file, positions)) if sent is None else sent

    def read(self, file: StepFile, groups: Sequence[Positions]) -> FileValues:
        """The values at these positions, joined per group."""
        wanted = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64)
        there = self.whole(file, wanted)
        values = FileValues(wall_time=there.wall_time)
        join(there.arrays(), groups, values)
        asked = set(wanted.tolist())
        values.problems = {at: problem for at, problem in there.problems.items() if at in asked}
        return values

    def size_of(self, file: StepFile, groups: Sequence[Positions]) -> int:
        """Nothing: whatever was sent is in memory already."""
        del file, groups
        return 0

    def wall_time(self, file: StepFile) -> float | None:
        """As it was sent."""
        sent = self._sent.get(file)
        return None if sent is None else sent.wall_time

    @classmethod
    def detect(cls, store: Store) -> bool:
        """No store holds what is sent."""
        del store
        return False

    def sightings(self, *, from_step: int | None = None) -> list[Sighting]:
        """Nothing is listed here."""
        del from_step
        return []

    def open(self, sighting: Sighting) -> Sequence[StepFile]:
        """Nothing is listed here."""
        del sighting
        return ()

    def collections(self) -> Collections | None:
        """They are sent with steps."""
        return None

    def ended(self) -> bool:
        """The job says when it ends."""
        return False


class FedTrial:
    """What the evaluation in this process needs to know of the trial."""

    def __init__(self, source: FedSource) -> None:
        """Nothing was sent yet."""
        self.source = source
        self.names = NameBook()
        self.modes_seen: set[Mode] = set()
        self.counts = StepCounts()

    @property
    def expected_workers(self) -> int | None:
        """How many workers save, by the collection files."""
        return self.names.collections.num_workers

    @property
    def anything_seen(self) -> bool:
        """Whether any step was sent."""
        return self.counts.last is not None

    def take(self, step: messages.Step, files: Sequence[StepFile]) -> None:
        """Note what a step that will be judged holds."""
        if step.collections is not None:
            self.names.collections = step.collections
        if step.restarted:
            self.counts = StepCounts()
        for file in files:
            self.names.see_layout(file.layout)
        self.modes_seen.update(file.mode for file in files)
        counts = self.counts
        counts.complete += step.complete
        counts.partial += not step.complete
        counts.first = step.number if counts.first is None else min(counts.first, step.number)
        counts.last = step.number if counts.last is None else max(counts.last, step.number)

    def judged(self, step: object) -> None:
        """It was counted when it was taken."""

    def count_unreadable(self, file: StepFile, problems: Mapping[int, str]) -> None:
        """The job counts what could not be read."""


class FedReader:
    """The reader of the trial that a class written for smdebug is given."""

    def __init__(self, path: str, source: FedSource) -> None:
        """Nothing was sent yet."""
        self.path = path
        self._source = source
        self._collections: Collections | None = None
        self._news: deque[list[StepFile]] = deque()
        self._settled = -1
        self._over = False

    def take(self, step: messages.Step, files: Sequence[StepFile]) -> None:
        """Let the trial see a step; nothing more of it will come."""
        if step.collections is not None:
            self._collections = step.collections
        together: dict[str, list[StepFile]] = {}
        for file in files:
            # what holds nothing is no step for the reference (saved-format.md, 3.1)
            if file.layout.names:
                together.setdefault(file.worker, []).append(file)
        self._news.extend(together.values())
        self._settled = step.number

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True

    def collections(self) -> Collections | None:
        """Those that came since the last call."""
        found, self._collections = self._collections, None
        return found

    def news(self, waiting_for: int) -> Sequence[Sequence[StepFile]]:
        """The files that came since the last call."""
        del waiting_for
        found = list(self._news)
        self._news.clear()
        return found

    def settled(self) -> int:
        """The step that was sent last: the job had waited for all that belongs to it."""
        return self._settled

    def ended(self) -> bool:
        """Whether the job has said so."""
        return self._over

    def read(self, file: StepFile, positions: Positions) -> FileValues:
        """The values."""
        return self._source.whole(file, positions)

    def wait(self, seconds: float) -> None:
        """Nothing comes while a step is judged."""


def unpacked(sent: messages.Values) -> FileValues:
    """Values as readers take them."""
    values = FileValues(
        texts=dict(sent.texts), empty=dict(sent.empty), problems=dict(sent.problems), wall_time=sent.wall_time
    )
    values.joined = [(0, positions, Segments(flat, counts, shapes)) for positions, flat, counts, shapes in sent.joined]
    return values
