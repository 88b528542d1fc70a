"""Logs that are followed: when a step is whole, what comes late, and what a restart is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.formats.key_names import END_MARKER
from evaluator.sources.base import Source
from evaluator.sources.csv_table import CsvTable
from evaluator.sources.json_lines import JsonLines
from evaluator.sources.tensorboard import TensorBoardLogs
from evaluator.sources.trainer_state import TrainerState
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from evaluator.trial.completeness import Completeness, Waits
from evaluator.trial.trial import Step, Trial
from tests.sources.contract import values_of
from tests.sources.event_files import event, scalars, simple
from tests.sources.event_files import version as file_version

GRACE, QUORUM = 30.0, 300.0
LOG = "metrics.jsonl"
EVENTS = "events.out.tfevents.1700000000.host.1.0"


class Followed:
    """A log that is followed, with a clock that the test moves."""

    def __init__(self, kind: type[Source]) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.source = kind(self.store)
        self.trial = Trial(self.source, self.clock, Waits(GRACE, QUORUM), following=True)

    def rows(self, *rows: Mapping[str, object]) -> None:
        self.store.append(LOG, "".join(f"{json.dumps(row)}\n" for row in rows).encode())

    def poll(self, after: float = 0.0) -> list[int]:
        """The steps that are taken so many seconds later."""
        self.clock.advance(after)
        return [step.number for step in self.taken(self.trial.poll())]

    def taken(self, steps: Iterable[Step]) -> list[Step]:
        found = list(steps)
        for step in found:
            self.trial.judged(step)
        return found

    def values(self, step: Step) -> dict[str, float]:
        return {name: float(one) for file in step.files for name, one in values_of(self.source, file).items()}


@pytest.fixture
def lines() -> Followed:
    return Followed(JsonLines)


@pytest.fixture
def boards() -> Followed:
    return Followed(TensorBoardLogs)


# one file


def test_a_step_is_taken_as_soon_as_the_next_one_has_begun(lines: Followed):
    lines.rows({"step": 0, "loss": 1})
    taken = [lines.poll()]
    lines.rows({"step": 10, "loss": 1})
    taken.append(lines.poll(1))
    lines.rows({"step": 20, "loss": 1}, {"step": 30, "loss": 1})
    taken.append(lines.poll(1))

    assert taken == [[], [0], [10, 20]]


def test_an_evaluation_that_takes_long_belongs_to_its_step(lines: Followed):
    lines.rows({"step": 0, "loss": 1}, {"step": 10, "loss": 2})
    first = lines.poll()
    lines.clock.advance(QUORUM - 1)
    lines.rows({"step": 10, "eval_loss": 3})
    quiet = lines.poll()
    lines.rows({"step": 20, "loss": 1})
    (step,) = lines.taken(lines.trial.poll())

    assert (first, quiet, lines.values(step)) == ([0], [], {"loss": 2.0, "eval_loss": 3.0})
    assert (lines.trial.counts.late_files, dict(lines.trial.problems)) == (0, {})


def test_the_newest_step_is_taken_when_nothing_more_has_come_for_long(lines: Followed):
    lines.rows({"step": 0, "loss": 1})

    assert [lines.poll(), lines.poll(QUORUM - 1), lines.poll(1)] == [[], [], [0]]


def test_the_newest_step_is_taken_at_the_end(lines: Followed):
    lines.rows({"step": 0, "loss": 1}, {"step": 1, "loss": 2})
    polled = lines.poll()
    finished = lines.taken(lines.trial.finish())

    assert (polled, [step.number for step in finished]) == ([0], [1])
    assert all(step.completeness is Completeness.COMPLETE for step in finished)


def test_what_comes_for_a_step_after_it_was_taken_is_counted_and_named(lines: Followed):
    lines.rows({"step": 0, "loss": 1}, {"step": 1, "loss": 1})
    lines.poll()
    lines.rows({"step": 0, "eval_loss": 1}, {"step": 2, "loss": 1})

    assert lines.poll() == [1]
    assert lines.trial.problems == {"late values": "1 value came after their step was taken; not evaluated"}


def test_a_step_that_was_never_seen_and_comes_late_is_counted(lines: Followed):
    """Counting epochs and iterations in one log."""
    lines.rows({"step": 100, "loss": 1}, {"step": 200, "loss": 1})
    lines.poll()
    lines.rows({"step": 1, "epoch_loss": 1}, {"step": 300, "loss": 1})

    assert lines.poll() == [200]
    assert lines.trial.counts.late_files == 1


def test_at_the_end_a_log_with_late_values_is_judged_anew(lines: Followed):
    lines.rows({"step": 100, "loss": 1}, {"step": 200, "loss": 1}, {"step": 300, "loss": 1})
    lines.poll()
    lines.clock.advance(60)
    lines.rows({"step": 1, "epoch_loss": 1}, {"step": 200, "eval_loss": 1}, {"step": 400, "loss": 1})
    before = lines.poll()
    steps = lines.taken(lines.trial.finish(again=True))

    assert before == [300]
    assert [(step.number, step.restarted) for step in steps] == [
        (1, True),
        (100, False),
        (200, False),
        (300, False),
        (400, False),
    ]
    assert lines.values(steps[2]) == {"loss": 1.0, "eval_loss": 1.0}
    assert list(lines.trial.problems.values()) == ["values had come after their step was taken; judged anew with them"]


def test_at_the_end_a_log_without_late_values_is_not_judged_anew(lines: Followed):
    lines.rows({"step": 1, "loss": 1}, {"step": 2, "loss": 1})
    lines.poll()

    assert [step.number for step in lines.taken(lines.trial.finish(again=True))] == [2]


def test_training_that_goes_back_is_judged_anew(lines: Followed):
    lines.rows(*({"step": step, "loss": 9 - step} for step in range(6)))
    lines.poll()
    lines.clock.advance(100)
    lines.rows({"step": 3, "loss": 50}, {"step": 4, "loss": 49})
    steps = lines.taken(lines.trial.poll())

    assert [step.number for step in steps][:4] == [0, 1, 2, 3]
    assert (steps[0].restarted, lines.values(steps[3])) == (True, {"loss": 50.0})


def test_repeating_a_row_is_no_restart(lines: Followed):
    rows = [{"step": step, "loss": 9 - step} for step in range(4)]
    lines.rows(*rows)
    lines.poll()
    lines.rows(*rows)

    assert (lines.poll(), dict(lines.trial.problems)) == ([], {})


@given(cuts=st.lists(st.integers(0, 900), max_size=8), pause=st.sampled_from([0.0, 1.0, 40.0]))
def test_a_followed_log_comes_to_the_same_as_one_that_is_read_afterwards(cuts: list[int], pause: float):
    rows = [{"step": step // 2 * 5, ("loss" if step % 2 else "eval_loss"): step} for step in range(30)]
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    followed = Followed(JsonLines)
    steps = []
    for cut in sorted(cuts):
        followed.store.write(LOG, data[:cut])
        steps += followed.taken(followed.trial.poll())
        followed.clock.advance(pause)
    followed.store.write(LOG, data)
    steps += followed.taken(followed.trial.finish())
    afterwards = Followed(JsonLines)
    afterwards.store.write(LOG, data)
    read = afterwards.taken(afterwards.trial.finish())

    assert [(one.number, followed.values(one)) for one in steps] == [
        (one.number, afterwards.values(one)) for one in read
    ]


def test_a_table_that_is_written_whole_each_time_is_followed():
    followed = Followed(CsvTable)
    header = "epoch,step,loss\n"
    followed.store.write("metrics.csv", f"{header}0,0,1\n0,1,1\n".encode())
    first = followed.poll()
    followed.store.write("metrics.csv", b"")
    second = followed.poll()
    followed.store.write("metrics.csv", f"{header}0,0,1\n0,1,1\n0,2,1\n".encode())

    assert (first, second, followed.poll()) == ([0], [], [1])
    assert followed.trial.problems == {}


# several writers


def test_training_waits_for_the_folder_of_validation_a_while(boards: Followed):
    boards.store.write(f"train/{EVENTS}", file_version() + scalars("loss", [1.0] * 3))
    boards.store.write(f"validation/{EVENTS}", file_version() + scalars("loss", [1.0]))

    assert [boards.poll(), boards.poll(GRACE - 1), boards.poll(1)] == [[], [], [0, 1]]


def test_what_validation_writes_in_that_while_belongs_to_its_step(boards: Followed):
    boards.store.write(f"train/{EVENTS}", file_version() + scalars("loss", [1.0] * 3))
    boards.store.write(f"validation/{EVENTS}", file_version() + scalars("loss", [1.0]))
    boards.poll()
    boards.store.append(f"validation/{EVENTS}", event(1, simple("loss", 5.0)))
    steps = boards.taken(boards.trial.poll())

    assert [(step.number, boards.values(step)) for step in steps] == [(0, {"train/loss": 1.0, "validation/loss": 1.0})]
    assert boards.poll(GRACE) == [1]
    assert boards.trial.problems == {}


def test_one_folder_need_not_wait(boards: Followed):
    boards.store.write(EVENTS, file_version() + scalars("loss", [1.0] * 3))

    assert boards.poll() == [0, 1]


# ends


def test_the_first_poll_knows_the_collections(lines: Followed):
    lines.rows({"step": 0, "loss": 1}, {"step": 1, "loss": 1})
    lines.poll()

    assert lines.trial.names.in_collection("losses", "loss")
    assert (lines.trial.expected_workers, lines.trial.workers) == (1, ["worker_0"])


def test_what_is_wrong_is_counted_on_and_selects_nothing_anew(lines: Followed):
    lines.rows({"step": 0, "loss": 1}, {"loss": 1})
    lines.poll()
    first, version = lines.trial.problems[LOG], lines.trial.names.version
    lines.rows({"step": 1, "loss": 1}, {"loss": 1})
    lines.poll()

    assert (first[:15], lines.trial.problems[LOG][:16]) == ("1 line not used", "2 lines not used")
    assert lines.trial.names.version == version


def test_a_name_that_comes_later_is_in_its_collection_when_its_step_is_taken(lines: Followed):
    lines.rows({"step": 0, "loss": 1}, {"step": 1, "loss": 1})
    lines.poll()
    lines.rows({"step": 1, "val_loss": 1}, {"step": 2, "loss": 1})
    lines.poll()

    assert lines.trial.names.in_collection("losses", "val_loss")


def test_an_end_marker_beside_the_log_is_its_end(lines: Followed):
    lines.rows({"step": 0, "loss": 1})
    before = lines.source.ended()
    lines.store.write(END_MARKER, b"")

    assert (before, lines.source.ended()) == (False, True)


def test_a_trainer_is_followed_from_checkpoint_to_checkpoint():
    followed = Followed(TrainerState)
    taken = []
    for last in (2, 4, 6):
        history = [{"step": step, "loss": 1.0 / step} for step in range(1, last + 1)]
        key = f"checkpoint-{last}/trainer_state.json"
        followed.store.write(key, json.dumps({"log_history": history}).encode())
        taken.append(followed.poll(100))

    assert taken == [[1], [2, 3], [4, 5]]
    assert followed.trial.problems == {}
