"""One object of a store, shown as a store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.errors import KeyMissing, KeyRefused
from evaluator.storage._one_file import OneFile
from evaluator.storage.file import FileStore
from evaluator.storage.memory import MemoryStore


@pytest.fixture
def around() -> MemoryStore:
    store = MemoryStore()
    store.write("a.csv", b"0123")
    store.write("b.csv", b"other")
    return store


@pytest.fixture
def one(around: MemoryStore) -> OneFile:
    return OneFile("x/a.csv", around, "a.csv")


def test_only_the_file_is_shown(one: OneFile):
    assert [entry.key for entry in one.list()] == ["a.csv"]
    assert [entry.key for entry in one.files()] == ["a.csv"]
    assert (one.list("b"), one.list("", "a.csv"), one.folders(), one.unfinished()) == ([], [], [], [])
    assert (one.stat("a.csv") is None, one.stat("b.csv")) == (False, None)


def test_only_the_file_is_read(one: OneFile):
    assert (one.read("a.csv"), one.read_range("a.csv", 1, 2)) == (b"0123", b"12")
    with pytest.raises(KeyMissing):
        one.read("b.csv")
    with pytest.raises(KeyMissing):
        one.below("folder")


def test_nothing_is_written(one: OneFile, around: MemoryStore):
    for change in (lambda: one.write("a.csv", b""), lambda: one.append("a.csv", b""), lambda: one.delete("a.csv")):
        with pytest.raises(KeyRefused, match="is not written"):
            change()
    assert around.read("a.csv") == b"0123"


def test_a_file_that_vanished_is_listed_no_more(one: OneFile, around: MemoryStore):
    around.delete("a.csv")

    assert one.list() == []


def test_requests_are_counted_where_they_are_made(one: OneFile, around: MemoryStore):
    before = around.requests.get
    one.read("a.csv")

    assert (one.requests is around.requests, around.requests.get) == (True, before + 1)


def test_a_file_whose_folder_was_replaced_is_the_new_one_after_a_rest(tmp_path: Path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"old")
    one = OneFile("logs/a.csv", FileStore(tmp_path), "logs/a.csv")
    assert one.read("logs/a.csv") == b"old"
    folder.rename(tmp_path / "former")
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"newer")
    one.rest()

    assert [(entry.key, entry.size) for entry in one.list()] == [("logs/a.csv", 5)]
    assert one.read("logs/a.csv") == b"newer"
