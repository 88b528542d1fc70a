"""Files that appear whole or not at all: of many parts, when a write takes less than it was given, on a full disk."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from evaluator.formats.key_names import event_key, index_key
from evaluator.safe_writer import SafeWriter
from evaluator.saving.files import AT_ONCE, UNFINISHED, publish
from evaluator.testing import FakeClock
from evaluator.writer import TrialWriter

PIPE = 1 << 16
"""Bytes that a pipe holds on Linux; a larger write waits for who reads."""

needs_full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no /dev/full here to stand for a full disk"
)


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def many(count: int, size: int = 5) -> list[bytes]:
    """Parts that all differ; every tenth has no byte."""
    return [b"" if number % 10 == 9 else b"%0*d" % (size, number) for number in range(count)]


# many parts


@pytest.mark.parametrize("count", [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE, 2 * AT_ONCE + 1, 10_000])
def test_a_file_of_any_number_of_parts_is_whole(tmp_path: Path, count: int):
    publish(tmp_path, "a/b", *many(count))

    assert files(tmp_path) == {"a/b": b"".join(many(count))}


def test_arrays_are_written_as_they_lie_in_memory(tmp_path: Path):
    arrays = [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(2.5),
        np.array([True, False]),
        np.array([1, 2], np.float16),
    ]
    publish(tmp_path, "a", b"<", *(array.data for array in arrays), b">")

    assert files(tmp_path) == {"a": b"<" + b"".join(array.tobytes() for array in arrays) + b">"}


def test_a_file_that_is_written_again_is_replaced(tmp_path: Path):
    publish(tmp_path, "a", b"a longer text")
    publish(tmp_path, "a", b"short")

    assert files(tmp_path) == {"a": b"short"}


def test_what_a_killed_writer_left_unfinished_is_no_part_of_the_file(tmp_path: Path):
    (tmp_path / f"a{UNFINISHED}").write_bytes(b"a longer text")
    publish(tmp_path, "a", b"short")

    assert files(tmp_path) == {"a": b"short"}


def test_a_step_of_more_tensors_than_one_call_takes_is_whole(tmp_path: Path):
    values = {f"w{number}": np.full(3, number, np.float32) for number in range(AT_ONCE + 1)}
    one = TrialWriter(tmp_path / "one", clock=FakeClock())
    one.save(0, values)
    one.save(0, values)
    other = TrialWriter(tmp_path / "other", clock=FakeClock())
    other.save(0, values)

    assert files(tmp_path / "one") == files(tmp_path / "other")
    assert len(files(tmp_path / "one")[event_key(0, "worker_0")]) > 12 * len(values)


# writes that take less than they are given


class Interrupting(threading.Thread):
    """Reads a pipe, and interrupts the one who writes to it while it is full, so that a write ends before its end."""

    def __init__(self, pipe: Path, times: int) -> None:
        super().__init__(daemon=True)
        self.data = b""
        self.interrupted = 0
        self._pipe = pipe
        self._times = times
        self._writer = threading.main_thread().ident or 0
        self._came = threading.Event()

    def came(self, *_: object) -> None:
        """What the writer does when it is interrupted."""
        self.interrupted += 1
        self._came.set()

    def run(self) -> None:
        with self._pipe.open("rb", buffering=0) as file:
            for time in range(self._times):
                while len(self.data) < time * PIPE:
                    self.data += file.read(time * PIPE - len(self.data))
                # Where there is one byte more, a write is under way, and the pipe has no room for all that it has.
                self.data += file.read(1)
                self._came.clear()
                signal.pthread_kill(self._writer, signal.SIGUSR1)
                self._came.wait(60)
            self.data += file.readall()


@pytest.mark.skipif(sys.platform != "linux", reason="pipes of other systems hold another number of bytes")
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(
    "parts",
    [
        [b"x" * PIPE + b"y" * PIPE * 4],
        [b"a" * 3, np.arange(PIPE, dtype=np.float32).data, b"z" * 3],
        [b"a" * PIPE, b"b", b"c" * PIPE * 3],
        many(AT_ONCE, 400),
        many(3 * AT_ONCE + 7, 200),
    ],
    ids=["one", "in the middle of an array", "between two", "as many as one call takes", "more"],
)
def test_what_a_write_left_over_is_written_too(tmp_path: Path, parts: list[bytes | memoryview], times: int):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / f"a{UNFINISHED}").symlink_to(pipe)
    reader = Interrupting(pipe, times)
    before = signal.signal(signal.SIGUSR1, reader.came)
    try:
        reader.start()
        publish(tmp_path, "a", *parts)
        reader.join(60)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert reader.interrupted == times
    assert len(reader.data) == sum(memoryview(part).nbytes for part in parts)
    assert reader.data == b"".join(parts)


# a disk that is full


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may become larger; what would be, is written until there and then refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


PARTS = {"one": [bytes(10_000)], "several": [bytes(4000), bytes(5000), bytes(1000)], "more": many(3 * AT_ONCE)}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("room", [0, 1, 4000, 4001, 9999])
def test_a_disk_that_becomes_full_in_the_middle_is_left_as_it_was(tmp_path: Path, parts: str, room: int):
    publish(tmp_path, "kept/a", b"before")

    for key in ("kept/a", "new/a"):
        with room_for(room), pytest.raises(OSError, match="too large"):
            publish(tmp_path, key, *PARTS[parts])

    assert files(tmp_path) == {"kept/a": b"before"}
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("parts", PARTS)
def test_a_file_for_which_there_is_just_room_is_whole(tmp_path: Path, parts: str):
    whole = b"".join(PARTS[parts])
    with room_for(len(whole)):
        publish(tmp_path, "a", *PARTS[parts])

    assert files(tmp_path) == {"a": whole}


def test_a_step_for_which_there_was_no_room_is_not_there_and_the_next_one_like_it_is_right(tmp_path: Path):
    value = np.arange(5000, dtype=np.float32)
    writer = SafeWriter(tmp_path / "one", clock=FakeClock())
    writer.save(0, {"w": value})
    with room_for(10_000):
        writer.save(1, {"w": value + 1})
    writer.save(2, {"w": value + 2})
    other = TrialWriter(tmp_path / "other", clock=FakeClock())
    other.save(0, {"w": value})
    other.save(2, {"w": value + 2})

    assert writer.failures == 1
    assert files(tmp_path / "one") == files(tmp_path / "other")


@needs_full
def test_a_step_whose_index_found_no_room_leaves_no_values_either(tmp_path: Path):
    writer = SafeWriter(tmp_path, clock=FakeClock())
    writer.save(0, {"w": 1})
    before = files(tmp_path)
    (tmp_path / (index_key(1, "worker_0") + UNFINISHED)).symlink_to("/dev/full")
    writer.save(1, {"w": 1})

    assert writer.failures == 1
    assert files(tmp_path) == before


# folders


def test_folders_are_made_where_they_are_not_there(tmp_path: Path):
    publish(tmp_path / "x" / "y", "z/a", b"1")

    assert files(tmp_path) == {"x/y/z/a": b"1"}


def test_a_file_in_the_way_of_a_folder_is_said_and_left_alone(tmp_path: Path):
    publish(tmp_path, "a", b"1")

    with pytest.raises(NotADirectoryError):
        publish(tmp_path, "a/b", b"2")

    assert files(tmp_path) == {"a": b"1"}
