"""Source: the `trainer_state.json` of Hugging Face's Trainer: given itself, or the run's output folder.

The file is written whole at each save, into a new folder `checkpoint-<step>` and at the end of training into the output
folder. The one that was written last counts; of those written within a minute of it, as in a copy, the one that is
furthest.

Source:
    transformers 4.57, trainer_callback.py (TrainerState) and trainer.py (`log_history`, the summary at the end).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from evaluator.errors import FormatError, StorageError
from evaluator.scalar_names import Naming
from evaluator.sources._log_source import LogSource, Skipped
from evaluator.sources._log_values import LogValues
from evaluator.sources._rows import RowProblem, RowReader
from evaluator.storage._one_file import OneFile
from evaluator.storage.base import Entry, Store

STATE = "trainer_state.json"
HISTORY = "log_history"
CHECKPOINT = re.compile(r"checkpoint-([0-9]{1,18})")

MOST_BYTES = 64 * 2**20
"""Larger files are not read; ours."""
AS_ONE_COPY = 60.0
"""Seconds within which files count as written at the same time; ours."""

TIMES = ("runtime", "samples_per_second", "steps_per_second", "tokens_per_second", "jit_compilation_time")
"""How names end that say how fast it went."""
COUNTERS = frozenset({"total_flos", "num_input_tokens_seen", "epoch"})
SUMMARY = "train_runtime"
"""What only the last row has, when training ends: a summary, whose train_loss is the mean over the run and no
measurement at this step."""


class TrainerState(LogSource):
    """The newest state file of a run."""

    name = "trainer_state"
    rank: ClassVar[int] = 1

    def __init__(self, store: Store, naming: Naming | None = None) -> None:
        """Nothing is read yet."""
        super().__init__(store, naming)
        self._read: Entry | None = None
        self._ended = False

    @classmethod
    def detect(cls, store: Store) -> bool:
        """Whether there is a state file at the root or in a checkpoint; a single file must hold a history."""
        if isinstance(store, OneFile):
            entry = store.stat(store.key)
            return entry is not None and _begins_a_state(store, entry)
        return bool(_state_files(store))

    def look(self) -> None:
        """Read the newest file, if it is another one than before, or was written again."""
        newest = _newest(_state_files(self.store))
        if newest is None or newest == self._read:
            return
        try:
            state = _parse(self.store, newest)
        except (FormatError, StorageError) as error:
            # perhaps just being written; what was read before stands
            self._read = None
            self.problems = {newest.key: error.without(newest.key)}
            return
        self._read = newest
        self.modified = newest.modified
        self.values = LogValues(self.values)
        self._take(newest.key, state[HISTORY])

    def ended(self) -> bool:
        """Whether the summary is there that the Trainer writes when training ends."""
        return self._ended or super().ended()

    def _take(self, key: str, history: list[Any]) -> None:
        reader, skipped = RowReader(), Skipped()
        self._ended = False
        for number, row in enumerate(history, 1):
            if not isinstance(row, Mapping):
                skipped.add(f"entry {number}", "is no object")
                continue
            if SUMMARY in row:
                self._ended = True
                continue
            try:
                found = reader.read({str(name): value for name, value in row.items()})
            except RowProblem as problem:
                skipped.add(f"entry {number}", str(problem))
                continue
            for name, value in found.values:
                if name not in COUNTERS and not name.endswith(TIMES):
                    self.put(found.step, name, value)
        self.problems = {key: skipped.text("row")} if skipped.count else {}


def _state_files(store: Store) -> list[tuple[float, Entry]]:
    """The state files there are, each with the step that its folder says; the one at the root is the last."""
    key = store.key if isinstance(store, OneFile) else STATE
    found = [(math.inf, store.stat(key))]
    for folder in store.folders():
        match = CHECKPOINT.fullmatch(folder)
        if match:
            found.append((float(match[1]), store.stat(f"{folder}/{STATE}")))
    return [(step, entry) for step, entry in found if entry is not None]


def _newest(files: list[tuple[float, Entry]]) -> Entry | None:
    latest = max((entry.modified for _, entry in files), default=0.0)
    together = [(step, entry) for step, entry in files if latest - entry.modified <= AS_ONE_COPY]
    return max(together, key=lambda one: one[0])[1] if together else None


def _parse(store: Store, entry: Entry) -> dict[str, Any]:
    """The state in a file. Raises FormatError or StorageError."""
    if entry.size > MOST_BYTES:
        raise FormatError(entry.key, f"has {entry.size} bytes", f"a state has at most {MOST_BYTES}")
    try:
        state = json.loads(store.read(entry.key))
    except (ValueError, RecursionError):
        raise FormatError(entry.key, "is not whole JSON", "the Trainer may be writing it") from None
    if not isinstance(state, dict) or not isinstance(state.get(HISTORY), list):
        raise FormatError(entry.key, f"has no {HISTORY}", "a state of the Trainer has one")
    return state


def _begins_a_state(store: Store, entry: Entry) -> bool:
    """Whether a file is a state, also one that is being written: its keys are sorted, and the history is long."""
    if entry.key.rpartition("/")[2] == STATE:
        return True
    try:
        return store.read_range(entry.key, 0, 1).lstrip()[:1] == b"{" and HISTORY in _parse(store, entry)
    except (FormatError, StorageError):
        return False


SOURCE = TrainerState
