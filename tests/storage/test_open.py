"""A URI finds the backend that is named after its scheme."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.errors import InputError
from evaluator.storage import open_store
from evaluator.storage.file import FileStore
from evaluator.storage.memory import MemoryStore


def test_a_path_is_a_local_folder(tmp_path: Path):
    store = open_store(str(tmp_path))

    assert (type(store), store.uri) == (FileStore, str(tmp_path))


@pytest.mark.parametrize("uri", ["file:///some/a%20b", "FILE:///some/a b", "file://localhost/some/a b", "/some/a b"])
def test_a_file_uri_is_a_local_folder(uri: str):
    store = open_store(uri)

    assert (type(store), store.uri) == (FileStore, "/some/a b")


def test_a_file_uri_of_another_machine_is_refused():
    with pytest.raises(InputError, match="does not name a local folder"):
        open_store("file://elsewhere/path")


def test_the_scheme_may_be_in_capitals():
    assert type(open_store("MEMORY://x")) is MemoryStore


@pytest.mark.parametrize("uri", ["base://x", "memori://x", "a.b://x", "a-b+c://x"])
def test_an_unknown_scheme_names_the_known_ones(uri: str):
    with pytest.raises(InputError, match=r"is not part of this version; .*known: file, memory"):
        open_store(uri)


def test_a_part_of_a_backend_is_no_scheme():
    """The message for an unknown scheme offered the modules that a backend is made of."""
    with pytest.raises(InputError) as caught:
        open_store("walking://x")

    assert "walking" not in caught.value.mistake.would_be_right


def test_the_nearest_scheme_is_suggested():
    with pytest.raises(InputError, match="did you mean 'memory'"):
        open_store("memry://x")


@pytest.mark.parametrize("uri", ["", "a\0b"])
def test_what_is_no_path_is_refused(uri: str):
    with pytest.raises(InputError, match="is not a path"):
        open_store(uri)
