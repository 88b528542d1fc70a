"""Polling a run: each step once and in order, and what becomes of late, bad, rewritten and missing files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluator.errors import KeyMissing, StorageUnavailable
from evaluator.formats.collection_file import SavedCollection
from evaluator.formats.key_names import collections_key, index_key
from evaluator.modes import Mode
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.base import Store
from evaluator.storage.file import FileStore
from evaluator.trial.completeness import Completeness, Waits
from evaluator.trial.trial import Step, Trial
from evaluator.writer import TrialWriter
from tests.saved_run import SavedRun, ScriptedClock

GRACE, QUORUM, RELIST = 30.0, 300.0, 600.0
PATIENCE = 1800.0
COMPLETE, PARTIAL = Completeness.COMPLETE, Completeness.PARTIAL


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
def run(clock: ScriptedClock) -> SavedRun:
    """A run of one worker."""
    run = SavedRun(clock)
    run.announce()
    return run


@pytest.fixture
def pair(clock: ScriptedClock) -> SavedRun:
    """A run of two workers, both announced."""
    run = SavedRun(clock, num_workers=2)
    run.announce("worker_0", "worker_1")
    return run


class Judged(Trial):
    """A trial whose steps are judged as they come."""

    def poll(self) -> Iterator[Step]:
        for step in super().poll():
            self.judged(step)
            yield step


def follow(run: SavedRun) -> Trial:
    waits = Waits(GRACE, QUORUM)
    return Judged(SmdebugFolder(run.store), run.clock, waits, following=True, relist=RELIST, patience=PATIENCE)


def read_once(run: SavedRun) -> Trial:
    return Judged(SmdebugFolder(run.store), run.clock, Waits(GRACE, QUORUM), following=False)


def steps(polled: Iterator[Step]) -> list[int]:
    return [step.number for step in polled]


def poll_after(trial: Trial, run: SavedRun, seconds: float) -> list[Step]:
    run.clock.advance(seconds)
    return list(trial.poll())


def workers(step: Step) -> list[str]:
    return [file.worker for file in step.files]


# what is new


def test_each_step_is_yielded_once_and_in_order(run: SavedRun):
    trial = follow(run)
    run.save(10)
    run.save(0)
    first = steps(trial.poll())
    run.clock.advance(1)
    run.save(11)

    assert (first, steps(trial.poll()), steps(trial.poll())) == ([0, 10], [11], [])


def test_an_empty_run_yields_nothing(run: SavedRun):
    trial = follow(run)

    assert (steps(trial.poll()), trial.anything_seen, trial.newest_at, trial.counts.last) == ([], False, None, None)


def test_steps_are_in_numeric_order_across_buckets(run: SavedRun):
    for step in [999, 1000, 12_345, 9, 100_000]:
        run.save(step)

    assert steps(read_once(run).finish()) == [9, 999, 1000, 12_345, 100_000]


def test_fifteen_hundred_index_files_at_the_start_are_all_taken(run: SavedRun):
    key, data = index_key(0, "worker_0"), run.files(0)
    for step in range(1500):
        run.store.write(index_key(step, "worker_0"), data[key])

    assert steps(follow(run).poll()) == list(range(1500))


def test_the_end_in_the_same_poll_as_new_steps_loses_none(run: SavedRun):
    trial = follow(run)
    run.save(0)
    taken = steps(trial.poll())
    for step in (1, 2, 3):
        run.save(step)
    run.end()

    assert taken + steps(trial.finish()) + steps(trial.finish()) == [0, 1, 2, 3]


def test_the_newest_file_is_dated_by_the_listing_that_showed_it(run: SavedRun):
    trial = follow(run)
    run.save(0)
    poll_after(trial, run, 5)
    before = trial.newest_at, trial.quiet
    poll_after(trial, run, 5)

    assert (before, trial.newest_at, trial.quiet, trial.listed_at) == ((5.0, False), 5.0, True, 10.0)


# late files


def test_a_file_that_comes_after_its_step_was_taken_is_late(pair: SavedRun):
    trial = follow(pair)
    pair.save(0, "worker_0")
    pair.save(1, "worker_0", "worker_1")
    taken = poll_after(trial, pair, GRACE)
    pair.save(0, "worker_1")
    later = poll_after(trial, pair, 1)

    assert ([workers(step) for step in taken], later) == ([["worker_0"], ["worker_0", "worker_1"]], [])
    assert (trial.counts.late_files, index_key(0, "worker_1") in trial.problems) == (1, True)


def test_an_earlier_step_after_a_later_one_is_late(run: SavedRun):
    trial = follow(run)
    run.save(0)
    run.save(10)
    first = steps(trial.poll())
    run.save(5)

    assert (first, steps(trial.poll()), trial.counts.late_files) == ([0, 10], [], 1)


def test_a_step_further_on_than_any_before_waits_for_what_may_be_missing(run: SavedRun):
    trial = follow(run)
    for step in (0, 5, 15):
        run.save(step)
    first = steps(trial.poll())
    run.clock.advance(1)
    run.save(10)

    assert (first, steps(trial.poll()), trial.counts.late_files) == ([0, 5], [10, 15], 0)


def test_where_nothing_was_missing_steps_so_far_apart_are_taken_at_once_from_then_on(run: SavedRun):
    trial = follow(run)
    for step in (0, 5, 15):
        run.save(step)
    list(trial.poll())
    waited = [step.number for step in poll_after(trial, run, GRACE)]
    run.save(25)

    assert (waited, steps(trial.poll())) == ([15], [25])


def test_a_run_that_does_not_begin_at_its_first_step_waits_for_what_may_be_missing(run: SavedRun):
    trial = follow(run)
    run.save(3)
    first = steps(trial.poll())
    run.clock.advance(1)
    run.save(0)

    assert (first, steps(trial.poll())) == ([], [0, 3])


def test_a_late_file_that_still_grows_is_no_restart(run: SavedRun):
    trial = follow(run)
    run.save(0)
    run.save(10)
    list(trial.poll())
    files = run.files(5)
    for size in (0, 20, None):
        run.put({key: data[:size] for key, data in files.items()})
        assert poll_after(trial, run, 1) == []

    assert (trial.counts.late_files, [where for where in trial.problems if "restart" in where]) == (1, [])


def test_only_the_last_saved_steps_are_looked_at_until_the_next_whole_listing(run: SavedRun):
    for step in range(100, 150):
        run.save(step)
    trial = follow(run)
    poll_after(trial, run, GRACE)
    run.save(5)
    soon = poll_after(trial, run, 1), trial.counts.late_files
    later = poll_after(trial, run, RELIST), trial.counts.late_files

    assert (soon, later) == (([], 0), ([], 1))


# files that are written again


def test_a_step_written_again_is_taken_with_the_later_values_and_all_others_anew(run: SavedRun):
    trial = follow(run)
    for step in range(4):
        run.save(step)
    list(trial.poll())
    run.clock.advance(1)
    run.save(2, values={"loss": np.ones(9), "new": np.ones(1)})
    again = list(trial.poll())

    assert [(step.number, step.restarted, list(step.files[0].layout.names)) for step in again] == [
        (0, True, ["loss"]),
        (1, False, ["loss"]),
        (2, False, ["loss", "new"]),
    ]
    assert (trial.counts.complete, trial.counts.last, "restart at step 2" in trial.problems) == (3, 2, True)


def test_a_restart_is_flagged_at_its_first_step_only(run: SavedRun):
    for step in range(60):
        run.save(step)
    trial = follow(run)
    list(trial.poll())
    run.clock.advance(RELIST)
    for step in range(30, 70):
        run.save(step)
    again = list(trial.poll())

    assert [(step.number, step.restarted) for step in again] == [(step, step == 0) for step in range(70)]
    assert (trial.counts.complete, trial.counts.late_files) == (70, 0)


def test_a_restart_that_was_found_is_followed_without_whole_listings(run: SavedRun):
    for step in range(100):
        run.save(step)
    trial = follow(run)
    list(trial.poll())
    run.clock.advance(RELIST)
    run.save(10)
    taken = steps(trial.poll())
    for step in range(11, 60):
        run.save(step)
        taken += [found.number for found in poll_after(trial, run, 1)]

    assert taken == list(range(60))


def test_the_other_worker_s_part_of_a_restart_is_seen_without_a_whole_listing(pair: SavedRun):
    for step in range(100):
        pair.save(step, "worker_0", "worker_1")
    trial = follow(pair)
    list(trial.poll())
    pair.clock.advance(RELIST)
    pair.save(10, "worker_0")
    first = steps(trial.poll())
    pair.clock.advance(1)
    pair.save(10, "worker_1")

    assert (first, [step.number for step in poll_after(trial, pair, 1)]) == (list(range(10)), [10])


def test_a_worker_that_does_not_write_a_step_again_keeps_its_file(pair: SavedRun):
    pair.save(0, "worker_0", "worker_1")
    trial = follow(pair)
    list(trial.poll())
    pair.clock.advance(1)
    pair.save(0, "worker_0", values={"again": np.ones(1)})
    soon = list(trial.poll())
    (later,) = poll_after(trial, pair, QUORUM)

    assert (soon, workers(later), [file.layout.names for file in later.files]) == (
        [],
        ["worker_0", "worker_1"],
        [("again",), ("loss",)],
    )
    assert (later.completeness, later.restarted, later.silent) == (COMPLETE, True, ())


def test_both_workers_going_back_are_waited_for(pair: SavedRun):
    pair.save(0, "worker_0", "worker_1")
    trial = follow(pair)
    list(trial.poll())
    pair.clock.advance(1)
    pair.save(0, "worker_1", values={"again": np.ones(1)})
    soon = list(trial.poll())
    pair.clock.advance(1)
    pair.save(0, "worker_0", values={"again": np.ones(1)})
    (later,) = trial.poll()

    assert (soon, [file.layout.names for file in later.files], later.restarted) == ([], [("again",)] * 2, True)


def test_at_the_end_a_step_written_again_by_one_worker_has_the_other_s_file_too(pair: SavedRun):
    for step in range(3):
        pair.save(step, "worker_0", "worker_1")
    trial = follow(pair)
    list(trial.poll())
    pair.clock.advance(1)
    pair.save(1, "worker_1", values={"again": np.ones(1)})
    again = list(trial.finish())

    assert [(step.number, workers(step), step.restarted) for step in again] == [
        (0, ["worker_0", "worker_1"], True),
        (1, ["worker_0", "worker_1"], False),
    ]


def test_a_file_that_changes_before_its_step_is_taken_counts_as_it_is_then(pair: SavedRun):
    trial = follow(pair)
    pair.save(0, "worker_0", values={"old": np.ones(1)})
    list(trial.poll())
    pair.clock.advance(1)
    pair.save(0, "worker_0", values={"newer": np.ones(1)})
    pair.save(0, "worker_1")
    (step,) = trial.poll()

    assert ([file.layout.names for file in step.files], step.restarted) == ([("newer",), ("loss",)], False)


# bad files

BAD = {
    "empty": b"",
    "cut": b'{"meta": {"mode": "TRA',
    "not UTF-8": b"\xff\xfe{}",
    "no object": b"[]",
    "mode": b'{"meta":{"mode":"X"}}',
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_file_between_good_ones_costs_only_itself(run: SavedRun, bad: bytes):
    for step in range(5):
        run.save(step)
    run.store.write(index_key(2, "worker_0"), bad)
    found = list(read_once(run).finish())

    assert [(step.number, len(step.files), step.completeness) for step in found] == [
        (step, int(step != 2), PARTIAL if step == 2 else COMPLETE) for step in range(5)
    ]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_file_is_tried_again_while_following(run: SavedRun, bad: bytes):
    trial = follow(run)
    run.save(0)
    run.put({**run.files(1), index_key(1, "worker_0"): bad})
    first = steps(trial.poll())
    run.clock.advance(1)
    run.save(1)
    (second,) = trial.poll()

    assert (first, second.number, len(second.files), second.completeness) == ([0], 1, 1, COMPLETE)
    assert (trial.counts.unreadable, dict(trial.problems)) == (0, {})


def test_a_bad_file_is_counted_and_named_when_its_step_is_taken(run: SavedRun):
    trial = follow(run)
    run.save(0)
    run.store.write(index_key(1, "worker_0"), b"")
    run.save(2)
    taken = [[step.number for step in poll_after(trial, run, seconds)] for seconds in (0, 1, GRACE)]

    assert taken == [[0], [], [1, 2]]
    assert (trial.counts.unreadable, trial.counts.partial, trial.counts.complete) == (1, 1, 2)
    assert "0 bytes" in trial.problems[index_key(1, "worker_0")]


def test_a_bad_file_that_is_mended_after_its_step_was_taken_is_late(run: SavedRun):
    trial = follow(run)
    run.save(0)
    run.store.write(index_key(1, "worker_0"), b"")
    run.save(2)
    for seconds in (0, GRACE):
        poll_after(trial, run, seconds)
    run.save(1)

    assert (poll_after(trial, run, 1), trial.steps_waiting) == ([], 0)


def test_a_bad_file_of_a_worker_too_many_does_not_hold_up_the_run(run: SavedRun):
    trial = follow(run)
    run.save(0, "worker_0")
    run.store.write(index_key(0, "stranger"), b"")
    (step,) = trial.poll()

    assert (workers(step), list(step.unreadable), step.completeness) == (["worker_0"], ["stranger"], COMPLETE)


@pytest.mark.parametrize("error", [KeyMissing("x", "vanished"), StorageUnavailable("x", "no answer")])
def test_a_file_that_could_not_be_opened_is_tried_once_more_before_it_is_given_up(
    run: SavedRun, error: Exception, monkeypatch: pytest.MonkeyPatch
):
    trial = follow(run)
    run.save(1)
    with monkeypatch.context() as patch:
        patch.setattr(trial.source, "open", lambda _: (_ for _ in ()).throw(error))
        first = poll_after(trial, run, 0)
    (step,) = poll_after(trial, run, QUORUM)

    assert (first, step.completeness, len(step.files)) == ([], COMPLETE, 1)


def test_a_bad_file_that_never_stops_changing_is_waited_for_no_longer_than_the_quorum(run: SavedRun):
    trial = follow(run)
    taken = {}
    for second in range(0, int(QUORUM) + 20, 10):
        run.store.write(index_key(0, "worker_0"), b"{" * (second + 1))
        taken.update({step.number: second for step in trial.poll()})
        run.clock.advance(10)

    assert taken == {0: QUORUM}


def test_a_mode_step_of_minus_one_costs_that_file_only(run: SavedRun):
    files = run.files(0, mode=Mode.EVAL)
    content = json.loads(files[index_key(0, "worker_0")])
    content["meta"]["mode_step"] = -1
    run.put({**files, index_key(0, "worker_0"): json.dumps(content).encode()})
    run.save(1)
    trial = read_once(run)
    found = list(trial.finish())

    assert ([len(step.files) for step in found], trial.counts.unreadable) == ([0, 1], 1)
    assert "mode step -1" in trial.problems[index_key(0, "worker_0")]


def test_problems_beyond_the_first_hundred_are_only_counted(run: SavedRun):
    for step in range(150):
        run.store.write(index_key(step, "worker_0"), b"")
    trial = read_once(run)
    list(trial.finish())

    assert (len(trial.problems), trial.more_problems, trial.counts.unreadable) == (100, 50, 150)


# collections


def test_collections_are_merged_from_all_workers(pair: SavedRun):
    pair.announce("worker_0", losses=["a"], own=["x"])
    pair.announce("worker_1", losses=SavedCollection("losses", ("^c",), ("b",)))
    pair.save(0, "worker_0", "worker_1")
    trial = follow(pair)
    list(trial.poll())
    losses = trial.names.collections.by_name["losses"]

    assert (losses.tensor_names, losses.include_regex, trial.expected_workers) == (("a", "b"), ("^c",), 2)
    assert sorted(trial.names.collections.by_name) == ["losses", "own"]


def test_steps_wait_for_a_collections_file_that_comes_after_them(clock: ScriptedClock):
    run = SavedRun(clock)
    run.save(0)
    trial = follow(run)
    first = steps(trial.poll())
    run.announce(losses=["loss"])
    second = [step.number for step in poll_after(trial, run, 1)]

    assert (first, second, list(trial.names.collections.by_name)) == ([], [0], ["losses"])


def test_a_collections_file_that_never_comes_is_waited_for_no_longer_than_the_quorum(clock: ScriptedClock):
    run = SavedRun(clock)
    run.save(0)
    trial = follow(run)

    assert [len(poll_after(trial, run, seconds)) for seconds in (0, QUORUM - 1, 1)] == [0, 0, 1]


def test_one_worker_s_missing_collections_file_is_waited_for_no_longer_than_the_quorum(clock: ScriptedClock):
    run = SavedRun(clock, num_workers=2)
    run.announce("worker_0")
    run.save(0, "worker_0", "worker_1")
    trial = follow(run)

    assert [len(poll_after(trial, run, seconds)) for seconds in (0, QUORUM - 1, 1)] == [0, 0, 1]


def test_the_names_in_steps_and_in_collection_files_need_not_be_the_same(run: SavedRun):
    run.save(0, "algo-1")
    (step,) = follow(run).poll()

    assert (workers(step), step.completeness, step.silent) == (["algo-1"], COMPLETE, ())


def test_a_bad_collections_file_is_named_until_it_is_mended(pair: SavedRun):
    pair.store.write(collections_key("worker_1"), b"{")
    pair.save(0, "worker_0", "worker_1")
    trial = follow(pair)
    list(trial.poll())
    before = list(trial.problems), trial.steps_waiting
    pair.clock.advance(1)
    pair.announce("worker_1")
    after = steps(trial.poll())

    assert (before, after, dict(trial.problems)) == (([collections_key("worker_1")], 1), [0], {})


def test_without_any_collections_file_a_finished_run_is_read(clock: ScriptedClock):
    run = SavedRun(clock)
    run.save(0, "worker_0", "worker_1")
    (step,) = read_once(run).finish()

    assert (workers(step), step.completeness) == (["worker_0", "worker_1"], COMPLETE)


# workers that are missing


def test_one_of_eight_workers_is_evaluated_and_the_status_can_say_so(clock: ScriptedClock):
    run = SavedRun(clock, num_workers=8)
    run.announce("worker_0")
    run.save(0)
    run.save(1)
    trial = read_once(run)
    found = list(trial.finish())

    assert [step.completeness for step in found] == [PARTIAL, PARTIAL]
    assert (trial.expected_workers, trial.writers, trial.counts.partial) == (8, ["worker_0"], 2)


def test_a_worker_lost_at_a_large_save_interval_delays_each_step_by_the_quorum_only(pair: SavedRun):
    trial = follow(pair)
    pair.save(0, "worker_0", "worker_1")
    taken = {}
    for second in range(0, 2000, 10):
        if second and second % 100 == 0:
            pair.save(5 * second, "worker_0")
        taken.update({step.number: (second, step.silent) for step in trial.poll()})
        pair.clock.advance(10)

    assert taken == {0: (0, ())} | {500 * n: (100 * n + QUORUM, ("worker_1",)) for n in range(1, 17)}


def test_a_silent_worker_is_named(pair: SavedRun):
    pair.save(0, "worker_0", "worker_1")
    pair.save(1, "worker_0")
    trial = read_once(pair)
    found = list(trial.finish())

    assert ([step.silent for step in found], trial.silent_workers) == ([(), ("worker_1",)], ["worker_1"])


def test_workers_stand_in_the_order_in_which_people_count(clock: ScriptedClock):
    run = SavedRun(clock)
    run.save(0, "worker_10", "worker_9", "worker_0")
    (step,) = read_once(run).finish()

    assert workers(step) == ["worker_0", "worker_9", "worker_10"]


# times


@pytest.mark.parametrize("skew", [-1e12, -1e6, -400.0, 400.0, 1e6, 1e12, float("inf"), float("-inf"), float("nan")])
def test_a_store_with_another_time_neither_hangs_nor_hurries(pair: SavedRun, skew: float):
    trial = follow(pair)
    list(trial.poll())
    pair.clock.advance(1)
    now, real = pair.clock.now(), pair.clock.now
    pair.clock.now = lambda: now + skew  # type: ignore[method-assign]
    for step in (0, 1):
        pair.store.write(index_key(step, "worker_0"), b'{"meta":{"mode":"TRAIN","mode_step":0},"shape_payload":[]}')
    pair.clock.now = real  # type: ignore[method-assign]

    assert [len(poll_after(trial, pair, seconds)) for seconds in (0, QUORUM - 2, 2)] == [0, 0, 2]


@pytest.mark.parametrize("modified", [0.0, 4_000_000_000.0])
def test_files_with_odd_times_are_taken_from_a_folder(tmp_path: Path, clock: ScriptedClock, modified: float):
    with TrialWriter(tmp_path, num_workers=2) as writer:
        writer.save(0, {"loss": np.float32(1)})
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (modified, modified))
    trial = Trial(SmdebugFolder(FileStore(tmp_path)), clock, Waits(GRACE, QUORUM), following=True)
    taken = []
    for _ in range(4):
        taken += steps(trial.poll())
        clock.advance(QUORUM / 2)

    assert taken == [0]


def test_a_job_that_begins_anew_decides_alike(pair: SavedRun):
    first = follow(pair)
    pair.save(0, "worker_0")
    poll_after(first, pair, QUORUM - 1)
    second = follow(pair)

    assert [steps(second.poll()), [step.number for step in poll_after(second, pair, 1)]] == [[], [0]]


# cost


class Counted:
    """The calls of a store, by method."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: dict[str, int] = {}
        self.listed = 0
        for name in ("list", "read", "read_range", "stat", "folders"):
            monkeypatch.setattr(store, name, self._counting(name, getattr(store, name)))

    def _counting(self, name: str, method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            self.calls[name] = self.calls.get(name, 0) + 1
            result = method(*arguments, **named)
            self.listed += len(result) if isinstance(result, list) else 0
            return result

        return call

    def take(self) -> tuple[dict[str, int], int]:
        taken, self.calls = self.calls, {}
        listed, self.listed = self.listed, 0
        return taken, listed


def test_opening_ten_thousand_files_takes_one_listing_and_one_read_each(run: SavedRun, monkeypatch: pytest.MonkeyPatch):
    data = run.files(0)[index_key(0, "worker_0")]
    for step in range(10_000):
        run.store.write(index_key(step, "worker_0"), data)
    trial = follow(run)
    counted = Counted(run.store, monkeypatch)
    found = len(steps(trial.poll()))

    # both listings (index, collections) show each file once
    assert (found, counted.take()) == (10_000, ({"list": 2, "read": 10_001}, 10_001))


@pytest.mark.parametrize("lost", [False, True], ids=["all there", "a worker lost at the start"])
def test_an_idle_poll_costs_the_same_after_a_long_history(pair: SavedRun, monkeypatch: pytest.MonkeyPatch, lost: bool):
    data = pair.files(0)[index_key(0, "worker_0")]
    costs = []
    trial = follow(pair)
    counted = Counted(pair.store, monkeypatch)
    for size in (100, 3000):
        for step in range(size):
            for worker in ("worker_0", "worker_1")[: 1 if lost and step else 2]:
                if pair.store.stat(index_key(step, worker)) is None:
                    pair.store.write(index_key(step, worker), data)
        list(trial.poll())
        poll_after(trial, pair, QUORUM)
        assert trial.steps_waiting == 0
        counted.take()
        poll_after(trial, pair, 1)
        costs.append(counted.take())

    assert costs[0] == costs[1] == ({"list": 1}, 20 * (1 if lost else 2))


def test_very_many_files_are_listed_as_a_whole_more_seldom(pair: SavedRun, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evaluator.trial.trial.LISTED_AT_EASE", 30)
    trial = follow(pair)
    for step in range(60):
        for worker in ("worker_0", "worker_1"):
            pair.save(step, worker)
    counted = Counted(pair.store, monkeypatch)
    shown = []
    for seconds in (0, *[RELIST + 10] * 4):
        poll_after(trial, pair, seconds)
        shown.append(counted.take()[1])

    # 120 files are four times as many as are listed at ease, so the pause is four times as long
    assert [count >= 120 for count in shown] == [True, False, False, False, True]


def test_waiting_steps_are_opened_once(pair: SavedRun, monkeypatch: pytest.MonkeyPatch):
    trial = follow(pair)
    for step in range(50):
        pair.save(step, "worker_0")
    counted = Counted(pair.store, monkeypatch)
    reads = [
        counted.take()[0].get("read", 0)
        for seconds in (0, 1, 1, QUORUM, 1)
        if poll_after(trial, pair, seconds) is not None
    ]

    # two collection files, then each index file when its step is taken
    assert reads == [2, 0, 0, 50, 0]


# names


FOREIGN = [
    "index/000000000/000000000001_worker_0.json.tmp",
    "index/000000000/000000000001_worker_0.json.sagemaker-uploading",
    "index/000000000/000000000001_worker_0.json.sagemaker-uploaded",
    "index/000000000/foo.json",
    "index/000000000/_worker_0.json",
    "index/000000000/000000000001.json",
    "index/000000000/000000000001_worker_0.tfevents",
    "index/000000000/9999999999999999999999_worker_0.json",
    "index/000000000/",
    "index_old/000000000/000000000001_worker_0.json",
    "collections/000000000/notes.json",
    "collections/000000000/worker_1_collections.json.tmp",
    "tensorboard/TRAIN/000000000001_1_host.tfevents",
    "claim.smd",
]


def test_foreign_and_unfinished_names_are_ignored(run: SavedRun):
    for key in FOREIGN:
        run.store.write(key, b"not for us")
    run.save(0)
    trial = read_once(run)

    assert (steps(trial.finish()), trial.workers, dict(trial.problems)) == ([0], ["worker_0"], {})


def test_a_file_is_taken_when_it_gets_its_name(run: SavedRun):
    trial = follow(run)
    files = run.files(0)
    run.put({f"{key}.tmp": data for key, data in files.items()})
    first = steps(trial.poll())
    run.put(files)

    assert (first, steps(trial.poll())) == ([], [0])


@pytest.mark.parametrize(
    "odd",
    [
        "index/000000000/000000000001_worker_0.csv",
        "index/000000000/1_worker_0.json",
        "index/000000007/000000000001_worker_0.json",
        "index/other/000000000001_worker_0.json",
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_two_names_for_one_file_are_one_file(run: SavedRun, odd: str, alone: bool):
    data = run.files(1, values={"odd": np.ones(3)})[index_key(1, "worker_0")]
    run.store.write(odd, data)
    for step in range(0 if not alone else 2, 30):
        run.save(step)
    trial = follow(run)
    taken = [step.number for _ in range(5) for step in poll_after(trial, run, RELIST / 2)]

    assert taken == list(range(1 if alone else 0, 30))
    assert (trial.quiet, trial.counts.late_files, dict(trial.problems)) == (True, 0, {})


# modes


def test_modes_and_mode_steps_are_those_of_the_index_files(run: SavedRun):
    for step in range(10):
        mode = Mode.EVAL if step % 2 else Mode.TRAIN
        run.save(step, mode=mode, mode_step=step // 2)
    trial = follow(run)
    found = [(step.number, step.files[0].mode, step.files[0].mode_step) for step in trial.poll()]

    assert found == [(step, Mode.EVAL if step % 2 else Mode.TRAIN, step // 2) for step in range(10)]
    assert trial.modes_seen == {Mode.TRAIN, Mode.EVAL}


def test_progress_is_told_per_worker(pair: SavedRun):
    pair.save(0, "worker_0", "worker_1")
    pair.save(4, "worker_0")
    trial = read_once(pair)
    list(trial.finish())

    assert [trial.progress(worker) for worker in ("worker_0", "worker_1", "nobody")] == [(4, 2), (0, 1), (-1, 0)]


@pytest.mark.parametrize(("problems", "told"), [({0: "is cut", 1: "too"}, "2 tensors"), ({4: "is cut"}, "1 tensor")])
def test_tensors_that_could_not_be_read_are_named_per_file(run: SavedRun, problems: dict[int, str], told: str):
    run.save(0)
    trial = read_once(run)
    (step,) = trial.finish()
    trial.count_unreadable(step.files[0], {})
    trial.count_unreadable(step.files[0], problems)

    assert (trial.counts.unreadable, trial.problems["step 0, worker_0"]) == (1, f"{told} not read: is cut")


def test_steps_with_unreadable_files_are_counted_not_the_files(pair: SavedRun):
    """Two workers' files of one step could not be read, and the status said that two steps were unreadable."""
    pair.save(0, "worker_0", "worker_1")
    pair.store.write(index_key(0, "worker_0"), b"")
    pair.store.write(index_key(0, "worker_1"), b"")
    pair.save(1, "worker_0", "worker_1")
    trial = read_once(pair)
    _, second = trial.finish()
    for file in second.files:
        trial.count_unreadable(file, {0: "is cut"})

    assert (trial.counts.unreadable, len(trial.problems)) == (2, 4)


def test_a_step_counts_when_it_is_judged(run: SavedRun):
    """A job that ended at its first finding said that nine steps were complete: eight were only read ahead."""
    for step in range(10):
        run.save(step)
    trial = Trial(SmdebugFolder(run.store), run.clock, Waits(GRACE, QUORUM), following=False)
    taken = list(trial.finish())
    before = trial.counts.complete, trial.counts.last
    for one in taken[:3]:
        trial.judged(one)

    assert (before, trial.counts.complete, trial.counts.last) == ((0, None), 3, 2)


def test_a_file_that_is_replaced_between_listing_and_reading_is_no_restart(run: SavedRun):
    trial = follow(run)
    run.save(0)
    run.store.write(index_key(1, "worker_0"), b'{"cut')
    run.save(2)
    polled = trial.poll()
    first = next(polled)
    run.clock.advance(5)
    run.save(1)
    taken = [first, *polled, *poll_after(trial, run, 1)]

    assert [(step.number, len(step.files), step.restarted) for step in taken] == [
        (step, 1, False) for step in (0, 1, 2)
    ]
    assert dict(trial.problems) == {}
