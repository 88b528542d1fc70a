"""The file by which rules are told to stop: what it means, and what does not mean anything."""

from __future__ import annotations

import pytest

from evaluator.config.rule_stop import RuleStop
from evaluator.errors import StorageUnavailable
from evaluator.sagemaker.rule_stop import RuleStopFile
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> MemoryStore:
    return MemoryStore(clock=clock)


@pytest.fixture
def file(store: MemoryStore, clock: FakeClock) -> RuleStopFile:
    return RuleStopFile(store, RuleStop("a/stop", 60.0), clock)


def test_without_the_file_nobody_is_told(file):
    assert not file.passed()


@pytest.mark.parametrize("form", ["{}", "{:.3f}\n", " {} "])
def test_the_time_is_over_once_the_grace_is(file, store, clock, form):
    store.write("a/stop", form.format(clock.now()).encode())
    clock.advance(60)
    before = file.passed()
    clock.advance(1)

    assert (before, file.passed()) == (False, True)


@pytest.mark.parametrize("content", [b"", b"soon", b"nan", b"inf", b"\xff\xfe", b"9" * 10_000, b"1,5"])
def test_what_is_no_time_counts_as_long_ago(file, store, content):
    store.write("a/stop", content)

    assert file.passed()


def test_a_store_that_does_not_answer_tells_nothing(file, store, monkeypatch):
    def refuse(*_: object) -> bytes:
        raise StorageUnavailable("here", "does not answer")

    store.write("a/stop", b"0")
    monkeypatch.setattr(store, "read_range", refuse)

    assert not file.passed()


def test_a_signal_that_is_taken_back_is_none(file, store, clock):
    store.write("a/stop", str(clock.now()).encode())
    clock.advance(30)
    store.delete("a/stop")
    clock.advance(1000)

    assert not file.passed()
