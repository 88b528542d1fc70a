"""The memory store keeps the contract, and its times are those of the clock it is given."""

from __future__ import annotations

import pytest

from evaluator.storage import open_store
from evaluator.storage.base import Store
from evaluator.storage.memory import MemoryStore
from tests.storage.contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class Ticking:
    """A clock that is one second on at every look."""

    def __init__(self) -> None:
        self.seconds = 99.0

    def now(self) -> float:
        self.seconds += 1
        return self.seconds

    def monotonic(self) -> float:
        return self.now()

    def wait(self, seconds: float) -> bool:
        raise AssertionError(f"a store does not wait, not even {seconds} s")

    def wake(self) -> None:
        raise AssertionError("a store wakes nobody")


def test_modification_times_come_from_the_clock():
    store = MemoryStore(clock=Ticking())
    store.write("a", b"")
    store.write("b", b"")
    store.append("a", b"more")

    assert [(entry.key, entry.modified) for entry in store.list()] == [("a", 102.0), ("b", 101.0)]


def test_a_written_object_does_not_change_with_the_callers_buffer():
    store = MemoryStore()
    buffer = bytearray(b"before")
    store.write("a", memoryview(buffer))  # type: ignore[arg-type]  # a caller without types may
    buffer[:] = b"after!"

    assert store.read("a") == b"before"


def test_the_same_uri_is_the_same_store_while_somebody_holds_it():
    first = open_store("memory://shared-by-uri")
    first.write("a", b"1")

    assert open_store("memory://shared-by-uri").read("a") == b"1"
    assert open_store("memory://another").list() == []
