"""A trial that is fed by messages, as a rule's own process will be: only the reader is another one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from evaluator.formats.collection_file import SavedCollection
from evaluator.modes import Mode
from evaluator.sources.base import VALUE, Collections, FileValues, Layout, Positions, StepFile, join
from evaluator.testing import FakeClock
from evaluator.user_rules.modes import StepState
from evaluator.user_rules.reader import Limits, Reader
from evaluator.user_rules.trial import Trial

LAYOUT = Layout(("a", "b"), (VALUE, VALUE))


class Fed:
    """A reader whose steps are messages; it has no store and no listing."""

    path = "the parent's trial"

    def __init__(self, messages: Sequence[StepFile]) -> None:
        self.messages = deque(messages)
        self.given: list[StepFile] = []
        self.reads = 0

    def collections(self) -> Collections | None:
        saved = {"losses": SavedCollection("losses", (), ("a",))}
        return None if self.given else Collections(saved, num_workers=2, files={"w0": 0.0, "w1": 0.0})

    def news(self, waiting_for: int) -> Sequence[Sequence[StepFile]]:
        del waiting_for
        come = self.given
        self.given = []
        return [[file] for file in come]

    def settled(self) -> int:
        return 10**9

    def ended(self) -> bool:
        return not self.messages and not self.given

    def read(self, file: StepFile, positions: Positions) -> FileValues:
        self.reads += 1
        values = FileValues()
        join({at: np.full(2, file.step + 100 * at) for at in range(2)}, [np.array([0, 1])], values)
        return values

    def wait(self, seconds: float) -> None:
        if self.messages:
            self.given.append(self.messages.popleft())


def test_the_reader_is_all_that_is_replaced():
    reader = Fed([StepFile(step, "w0", Mode.TRAIN, step, 0.0, LAYOUT) for step in (0, 5)])
    fits: Reader = reader
    trial = Trial("t", fits, FakeClock(), Limits())
    trial.wait_for_steps([5])
    seen = [trial.tensor("a").value(5)[0], trial.tensor("b").value(5)[0]]

    assert (trial.steps(), seen, reader.reads) == ([0, 5], [5, 105], 1)
    assert trial.tensor_names(collection="losses") == ["a"]
    assert [trial.has_passed_step(step) for step in (3, 9)] == [StepState.UNAVAILABLE] * 2
