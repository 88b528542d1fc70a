"""The parts of the program that read what a training job left, each as a function of bytes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluator.errors import FormatError, InputError, StorageError
from evaluator.formats import tfrecord
from evaluator.formats.collection_file import parse_collections
from evaluator.formats.event import decode_event, locate
from evaluator.formats.index_file import encode_index, parse_index
from evaluator.formats.key_names import collections_key, index_key, parse_collections_key, parse_index_key
from evaluator.sources.base import VALUE, Collections, Layout
from evaluator.sources.event_reading import EventReader, Place
from evaluator.storage.base import check_key
from evaluator.storage.file import FileStore
from evaluator.storage.memory import MemoryStore
from evaluator.trial.names import NameBook
from tests.fuzz.bounds import SECONDS
from tests.fuzz.pipeline import evaluate_files
from tests.sources.contract import same

NAMES = ("loss", "gradient/conv0.weight:0", "CrossEntropyLoss_output_0", "a" * 50 + "!")
"""Names in which the patterns of a collections file are searched."""

SECRET = b"outside of the trial"


@dataclass(frozen=True)
class Target:
    """A function of bytes, and how long it may take."""

    case: Callable[[bytes], object]
    seconds: float = SECONDS


def index(data: bytes) -> None:
    """An index file is read as what is written again from it, and names nothing outside of the trial."""
    read = parse_index(data, "index")
    again = parse_index(encode_index(read), "again")

    assert (again.names, again.shapes) == (read.names, read.shapes)
    assert same({"at": again.starts, "long": again.lengths}, {"at": read.starts, "long": read.lengths})
    assert min(read.starts.min(initial=0), read.lengths.min(initial=0)) >= 0
    check_key(read.event_file_name or "")


def events(data: bytes) -> None:
    """The fast and the slow way of reading an event file say the same, also when it is read again."""
    starts, lengths, names = [], [], []
    with suppress(FormatError):
        for start, payload in tfrecord.records(data):
            length = tfrecord.HEADER_SIZE + len(payload) + tfrecord.FOOTER_SIZE
            starts.append(start)
            lengths.append(length)
            names.append("unknown")
            with suppress(FormatError):
                event = decode_event(payload)
                names[-1] = "nothing" if event is None else event.name
                found = locate(data, start, length)
                assert found is None or event is not None
    # the first bytes also stand for an index file that is wrong
    starts.append(data[0] if data else 0)
    lengths.append(2 ** (data[1] % 54) if len(data) > 1 else 1)
    names.append("wrong")
    store = MemoryStore()
    store.write("events/x", data)
    reader = EventReader(store)
    place = Place("events/x", np.array(starts, np.int64), np.array(lengths, np.int64))
    layout = Layout(tuple(names), (VALUE,) * len(names))
    groups = [np.arange(0, len(names), 2), np.arange(1, len(names), 2)]
    first, second = (reader.read(layout, place, groups) for _ in range(2))

    assert same(
        {str(at): one for at, one in first.arrays().items()}, {str(at): one for at, one in second.arrays().items()}
    )
    assert first.problems == second.problems
    assert first.arrays().keys() | first.problems.keys() == set(range(len(names)))
    reader.wall_time(place)


def collections(data: bytes) -> None:
    """A collections file is read, and its patterns are searched in names."""
    read = parse_collections(data, "collections")
    book = NameBook()
    book.collections = Collections(read.collections, read.num_workers)
    for collection in read.collections:
        for name in NAMES:
            book.in_collection(collection, name)

    assert len(read.problems) <= 101
    assert read.num_workers is None or read.num_workers >= 1
    assert dict(book.problems) is not None


def keys(data: bytes) -> None:
    """A file name says a step and a worker or nothing, and no name leads out of a folder."""
    key = data.decode("utf-8", "surrogateescape")
    named = [prefix + key for prefix in ("", "index/000000000/", "collections/000000000/", "out/")]
    for key in named:
        _parse(key)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        outside, root = Path(folder, "outside"), Path(folder, "root")
        trap(root, outside)
        for key in named:
            _ask(FileStore(root), key)

        assert sorted(path.name for path in Path(folder).iterdir()) == ["outside", "root"]
        assert [path.name for path in outside.iterdir()] == ["secret"]
        assert (outside / "secret").read_bytes() == SECRET


def _parse(key: str) -> None:
    parsed = parse_index_key(key)
    if parsed is not None:
        with suppress(FormatError):
            assert parse_index_key(index_key(*parsed)) is not None
    worker = parse_collections_key(key)
    if worker is not None:
        with suppress(FormatError):
            assert parse_collections_key(collections_key(worker)) is not None


def _ask(store: FileStore, key: str) -> None:
    """Everything that a store can be asked for under a key."""
    for ask in (store.read, lambda key: store.read_range(key, 0, 100)):
        with suppress(StorageError):
            assert SECRET not in ask(key)
    for look in (store.stat, store.list, store.files, store.folders):
        with suppress(StorageError):
            look(key)
    for change in (lambda key: store.write(key, b"x"), lambda key: store.append(key, b"x"), store.delete):
        with suppress(StorageError):
            change(key)


def trap(root: Path, outside: Path) -> None:
    """A folder with links that lead out of it, a link in a circle and a FIFO."""
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    (root / "index/000000000").mkdir(parents=True)
    (root / "out").symlink_to(outside)
    (root / "secret").symlink_to(outside / "secret")
    (root / "circle").symlink_to("circle")
    os.mkfifo(root / "fifo")


def trial(data: bytes) -> None:
    """A whole trial: it ends with a verdict for each rule, and nothing of what lies outside is in it."""
    folder = tempfile.mkdtemp(prefix="fuzz-")
    try:
        root, outside = Path(folder, "root"), Path(folder, "outside")
        trap(root, outside)
        try:
            evaluate_files(data, root, SECRET)
        except (FormatError, StorageError, InputError) as error:
            raise AssertionError("the job was ended by what a file holds") from error
    finally:
        shutil.rmtree(folder)


TARGETS = {
    "index": Target(index),
    "events": Target(events),
    "collections": Target(collections, 4.0),  # twenty patterns that never end are given up after 0.1 s each
    "keys": Target(keys),
    "trial": Target(trial, 4.0),
}
