"""What every store does; a backend's test file inherits `StoreContract` and says how to make one."""

from __future__ import annotations

import itertools
from typing import ClassVar

import pytest

from evaluator.errors import KeyMissing, KeyRefused, StorageError
from evaluator.storage.base import Store

LEAVING = ["../x", "a/../../x", "/etc/passwd", "..", "a/..", "a\\..\\x", "a\0b"]


def keys(store: Store, prefix: str = "", start_after: str = "") -> list[str]:
    return [entry.key for entry in store.list(prefix, start_after)]


class StoreContract:
    """The behaviours of `Store`; the fixture `store` gives an empty one."""

    not_taken: ClassVar[frozenset[str]] = frozenset()
    """Odd keys that the store keeps, but that the server of the test does not take."""
    gets_of_appending: ClassVar[int] = 0

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError("a backend's test class gives an empty store")

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """A trial-like tree in which "." (before "/") and "0" (after it) follow the same name."""
        for key in ["a.b", "a/x", "a/y/z", "a0", "index/000/1.json", "index/000/2.json", "index/001/1.json", "z"]:
            store.write(key, key.encode())
        return store

    # reading and writing

    def test_what_was_written_is_read(self, store: Store):
        store.write("a/b/c", b"one\0two\n")

        assert store.read("a/b/c") == b"one\0two\n"

    def test_an_empty_object_is_an_object(self, store: Store):
        store.write("empty", b"")

        assert (store.read("empty"), keys(store)) == (b"", ["empty"])

    def test_writing_replaces_the_whole_object(self, store: Store):
        store.write("a", b"long before")
        store.write("a", b"new")

        assert store.read("a") == b"new"

    def test_reading_what_is_absent_is_a_missing_key(self, store: Store):
        with pytest.raises(KeyMissing, match="a/b"):
            store.read("a/b")

    def test_a_missing_key_is_a_file_not_found(self, store: Store):
        with pytest.raises(FileNotFoundError):
            store.read_range("a/b", 0, 1)

    @pytest.mark.parametrize("key", ["a", "a/", "a/x/", "a/x/below", "", "a//x"])
    def test_a_key_that_names_no_object_is_missing(self, filled: Store, key: str):
        with pytest.raises(KeyMissing):
            filled.read(key)

    def test_keys_may_hold_any_character_but_those_that_leave(self, store: Store):
        odd = ["with space", "ünï/cödé", "%2e%2e", "..a", "a..", "-x", "new\nline", "*?[a]", "#;&$(x)"]
        odd = [key for key in odd if key not in self.not_taken]
        for key in odd:
            store.write(key, key.encode())

        assert [store.read(key).decode() for key in keys(store)] == sorted(odd)

    # ranges

    @pytest.mark.parametrize(
        ("start", "length", "expected"),
        [
            (0, 3, b"012"),
            (4, 2, b"45"),
            (8, 99, b"89"),
            (10, 1, b""),
            (99, 1, b""),
            (3, 0, b""),
            (0, 10, b"0123456789"),
        ],
    )
    def test_a_range_is_cut_at_the_end(self, store: Store, start: int, length: int, expected: bytes):
        store.write("a", b"0123456789")

        assert store.read_range("a", start, length) == expected

    def test_a_huge_range_costs_no_memory(self, store: Store):
        store.write("a", b"0123456789")

        assert (store.read_range("a", 5, 1 << 80), store.read_range("a", 1 << 80, 1)) == (b"56789", b"")

    @pytest.mark.parametrize(("start", "length"), [(-1, 3), (0, -1)])
    def test_a_negative_range_is_refused(self, store: Store, start: int, length: int):
        store.write("a", b"0123456789")

        with pytest.raises(ValueError, match="not negative"):
            store.read_range("a", start, length)

    # appending and deleting

    def test_appending_makes_and_extends(self, store: Store):
        store.append("f/lines", b"one\n")
        store.append("f/lines", b"two\n")

        assert store.read("f/lines") == b"one\ntwo\n"

    def test_appending_nothing_makes_an_empty_object(self, store: Store):
        store.append("lines", b"")

        assert store.read("lines") == b""

    def test_deleting_removes_only_that_object(self, filled: Store):
        filled.delete("a/x")

        assert keys(filled, "a") == ["a.b", "a/y/z", "a0"]

    def test_deleting_what_is_absent_is_fine(self, store: Store):
        store.delete("a/b")

        assert keys(store) == []

    # listing

    def test_an_empty_store_lists_nothing(self, store: Store):
        assert (store.list(), store.list("a/b/"), store.folders(), store.folders("a")) == ([], [], [], [])

    def test_a_listing_is_sorted_by_the_whole_key(self, filled: Store):
        assert keys(filled) == sorted(keys(filled)) != []
        assert keys(filled, "a") == ["a.b", "a/x", "a/y/z", "a0"]

    def test_a_prefix_need_not_end_at_a_folder(self, filled: Store):
        assert keys(filled, "index/00") == ["index/000/1.json", "index/000/2.json", "index/001/1.json"]
        assert keys(filled, "index/000/1") == ["index/000/1.json"]

    def test_a_prefix_that_ends_in_a_slash_lists_one_folder(self, filled: Store):
        assert keys(filled, "index/000/") == ["index/000/1.json", "index/000/2.json"]

    def test_an_object_is_no_folder(self, filled: Store):
        assert (keys(filled, "z/"), filled.folders("z")) == ([], [])

    def test_every_listing_is_a_part_of_the_whole_one(self, store: Store, filled: Store):
        everything = keys(filled)
        prefixes = sorted({key[:length] for key in everything for length in range(len(key) + 1)})
        prefixes = prefixes[:: 1 if store.is_local else 5]
        starts = ["", "0", *everything, *prefixes, "a/zzz", "index/000/1.jsonx", "index/0005", "~"]
        pairs = list(itertools.product(prefixes, starts))[:: 1 if store.is_local else 3]

        expected = [[key for key in everything if key.startswith(prefix) and key > start] for prefix, start in pairs]
        assert [keys(filled, prefix, start) for prefix, start in pairs] == expected

    def test_entries_tell_the_size(self, store: Store):
        store.write("a", b"12345")

        assert [entry.size for entry in store.list()] == [5]

    @pytest.mark.parametrize("ending", [".tmp", ".sagemaker-uploading", ".sagemaker-uploaded"])
    def test_unfinished_names_are_not_listed(self, store: Store, ending: str):
        store.write(f"a/one{ending}", b"half")
        store.write("a/one", b"whole")

        assert (keys(store), store.stat(f"a/one{ending}")) == (["a/one"], None)
        assert (store.unfinished(), store.requests.list) == ([f"a/one{ending}"], 2)

    def test_folders_are_named_without_their_path(self, filled: Store):
        assert (filled.folders(), filled.folders("index"), filled.folders("index/")) == (
            ["a", "index"],
            ["000", "001"],
            ["000", "001"],
        )

    def test_a_folder_is_not_mistaken_for_one_that_starts_alike(self, store: Store):
        store.write("index2/000/x", b"")

        assert (store.folders("index"), keys(store, "index/")) == ([], [])

    def test_a_folder_is_a_store_of_its_own(self, filled: Store):
        below = filled.below("index")

        assert (keys(below), below.folders(), below.uri) == (
            ["000/1.json", "000/2.json", "001/1.json"],
            ["000", "001"],
            f"{filled.uri.rstrip('/')}/index",
        )

    def test_a_folder_that_leaves_is_no_store(self, store: Store):
        with pytest.raises(KeyRefused):
            store.below("..")

    # status

    def test_the_status_of_a_key_is_what_a_listing_shows(self, filled: Store):
        listed = filled.list()

        assert [filled.stat(entry.key) for entry in listed] == listed

    @pytest.mark.parametrize("key", ["a", "a/", "absent", "z/below", ""])
    def test_what_is_no_object_has_no_status(self, filled: Store, key: str):
        assert filled.stat(key) is None

    # keys that leave

    @pytest.mark.parametrize("key", LEAVING)
    def test_no_method_takes_a_key_that_leaves(self, store: Store, key: str):
        calls = [
            lambda: store.list(key),
            lambda: store.folders(key),
            lambda: store.stat(key),
            lambda: store.read(key),
            lambda: store.read_range(key, 0, 1),
            lambda: store.write(key, b""),
            lambda: store.append(key, b""),
            lambda: store.delete(key),
        ]
        for call in calls:
            with pytest.raises(KeyRefused):
                call()

    @pytest.mark.parametrize("key", ["x" * 5000, "x/" * 5000 + "x", "\ud800", "a/\udcff"])
    def test_an_absurd_key_is_an_error_of_the_store(self, store: Store, key: str):
        with pytest.raises(StorageError):
            store.read(key)

    # counting

    def test_requests_are_counted(self, store: Store):
        store.write("a/b", b"1")
        store.append("a/b", b"2")
        store.read("a/b")
        store.read_range("a/b", 0, 1)
        store.stat("a/b")
        store.list()
        store.folders()

        gets = 3 + self.gets_of_appending
        assert (store.requests.list, store.requests.get, store.requests.put) == (2, gets, 2)

    # one folder

    @pytest.mark.parametrize(
        ("folder", "expected"),
        [
            ("", ["a.b", "a0", "z"]),
            ("a", ["a/x"]),
            ("a/", ["a/x"]),
            ("index/000", ["index/000/1.json", "index/000/2.json"]),
        ],
    )
    def test_the_files_of_one_folder_are_listed_without_those_below(
        self, filled: Store, folder: str, expected: list[str]
    ):
        assert [entry.key for entry in filled.files(folder)] == expected

    def test_the_files_of_a_folder_are_as_a_listing_shows_them(self, filled: Store):
        filled.write("b.tmp", b"unfinished")
        shown = {entry.key: entry for entry in filled.list()}

        assert filled.files() == [shown[key] for key in ("a.b", "a0", "z")]

    def test_an_absent_folder_has_no_files(self, store: Store):
        assert store.files("nothing") == []
