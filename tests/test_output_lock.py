"""An output on S3 is kept to one evaluator by an object, which a crash, a restart or a long silence frees."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from evaluator.errors import OutputError, OutputTaken
from evaluator.output_lock import LOCK, REFRESH, STALE, FolderLock, ObjectLock, lock_of
from evaluator.storage.base import Store
from evaluator.storage.file import FileStore
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sinks.made import UnreliableStore

ANOTHER = "another"
"""How the locks of others are told apart here."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> UnreliableStore:
    return UnreliableStore("memory://output", clock)


def written(store: Store) -> Any:
    return json.loads(store.read(LOCK))


def by_another(store: Store, **changes: object) -> None:
    """Let the lock be held by an evaluator on another machine."""
    ObjectLock(store, FakeClock()).take()
    store.write(LOCK, json.dumps({**written(store), "host": "elsewhere", "token": ANOTHER, **changes}).encode())


def dead_process() -> int:
    """The number of a process that was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_folder_has_a_lock_of_the_system_and_other_storage_an_object(tmp_path, store: Store, clock: FakeClock):
    assert isinstance(lock_of(FileStore(tmp_path), clock, []), FolderLock)
    assert isinstance(lock_of(store, clock, []), ObjectLock)


def test_the_object_says_who_is_at_work(store: Store, clock: FakeClock):
    lock = ObjectLock(store, clock)
    lock.take()

    assert (written(store)["pid"], written(store)["host"]) == (os.getpid(), socket.gethostname())
    lock.release()


# kept out


def test_a_second_one_is_kept_out_and_told_by_whom_and_until_when(store: Store, clock: FakeClock):
    by_another(store, pid=7)

    with pytest.raises(
        OutputError, match=r"writing to it \(pid 7 on elsewhere, seen at 20.*Z\); one output folder.*900 s"
    ):
        ObjectLock(store, clock).take()


def test_a_second_one_in_the_same_process_is_kept_out_too(store: Store, clock: FakeClock):
    first = ObjectLock(store, clock)
    first.take()

    with pytest.raises(OutputTaken):
        ObjectLock(store, clock).take()
    first.release()


def test_a_process_of_this_machine_that_lives_keeps_others_out(store: Store, clock: FakeClock):
    by_another(store, host=socket.gethostname(), pid=os.getppid())

    with pytest.raises(OutputTaken):
        ObjectLock(store, clock).take()


def test_one_that_works_for_long_stays_the_holder(store: Store, clock: FakeClock):
    lock = ObjectLock(store, clock)
    lock.take()
    for _ in range(3 * int(STALE / REFRESH)):
        clock.advance(REFRESH)
        lock.refresh()
    store.write(LOCK, json.dumps({**written(store), "host": "elsewhere"}).encode())

    with pytest.raises(OutputTaken):
        ObjectLock(store, clock).take()
    lock.release()


def test_a_refresh_that_is_not_due_asks_nothing(store: Store, clock: FakeClock):
    lock = ObjectLock(store, clock)
    lock.take()
    before = (store.requests.get, store.requests.put)
    clock.advance(REFRESH - 1)
    lock.refresh()

    assert (store.requests.get, store.requests.put) == before
    lock.release()


# let in


def test_after_its_release_another_one_may_come(store: Store, clock: FakeClock):
    first, second = ObjectLock(store, clock), ObjectLock(store, clock)
    first.take()
    first.release()
    second.take()
    second.release()


def test_a_holder_that_crashed_on_this_machine_is_gone_at_once(store: Store, clock: FakeClock):
    by_another(store, host=socket.gethostname(), pid=dead_process())

    ObjectLock(store, clock).take()
    assert written(store)["pid"] == os.getpid()


def test_a_container_that_was_started_again_is_not_kept_out_by_its_former_self(store: Store, clock: FakeClock):
    """Its name is the same, and its processes have the same numbers."""
    by_another(store, host=socket.gethostname(), pid=os.getpid())

    ObjectLock(store, clock).take()
    assert written(store)["token"] != ANOTHER


@pytest.mark.parametrize(("age", "taken"), [(0.0, False), (STALE - 1, False), (STALE, True), (-2 * STALE, True)])
def test_a_holder_on_another_machine_is_gone_when_it_was_silent_for_long(
    store: Store, clock: FakeClock, age: float, taken: bool
):
    """A time that lies far ahead says as little as one that lies far back."""
    by_another(store)
    clock.advance(age)
    lock = ObjectLock(store, clock)
    if not taken:
        with pytest.raises(OutputTaken):
            lock.take()
    else:
        lock.take()

    assert (written(store)["token"] != ANOTHER) == taken


# taken meanwhile


def test_who_lost_it_is_told_and_takes_nothing_back(store: Store, clock: FakeClock):
    lock = ObjectLock(store, clock)
    lock.take()
    by_another_now = json.dumps({**written(store), "host": "elsewhere", "token": ANOTHER}).encode()
    store.write(LOCK, by_another_now)
    clock.advance(REFRESH)

    with pytest.raises(OutputTaken):
        lock.refresh()
    lock.release()
    assert store.read(LOCK) == by_another_now


def test_two_that_begin_in_the_same_instant_are_told_apart(clock: FakeClock):
    class Raced(MemoryStore):
        """Another one writes right after us."""

        def write(self, key: str, data: bytes) -> None:
            super().write(key, data)
            super().write(key, json.dumps({**json.loads(data), "host": "elsewhere", "token": ANOTHER}).encode())

    with pytest.raises(OutputTaken):
        ObjectLock(Raced("memory://raced", clock), clock).take()


# what fails


def test_storage_that_does_not_answer_at_the_start_is_an_output_that_cannot_be_written(
    store: UnreliableStore, clock: FakeClock
):
    store.down = True

    with pytest.raises(OutputError, match="memory://output: does not answer"):
        ObjectLock(store, clock).take()


def test_storage_that_does_not_answer_later_loses_nothing(store: UnreliableStore, clock: FakeClock):
    lock = ObjectLock(store, clock)
    lock.take()
    store.down = True
    clock.advance(REFRESH)
    lock.refresh()
    store.down = False
    clock.advance(REFRESH)
    lock.refresh()
    lock.release()

    assert written(store)["at"] == ""


@pytest.mark.parametrize(
    "data", [b"", b"theirs", b"[]", b'{"pid": 1}', b'{"pid": "x", "host": "", "token": "", "at": "now"}']
)
def test_an_object_of_somebody_else_is_left_alone(store: Store, clock: FakeClock, data: bytes):
    store.write(LOCK, data)

    with pytest.raises(OutputError, match=r"output/.lock: was not written by rule-evaluator; an output without"):
        ObjectLock(store, clock).take()
    assert store.read(LOCK) == data
