"""The file store keeps the contract, stays below its root, and survives what training jobs and volumes do."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from evaluator.errors import KeyMissing, KeyRefused, StorageUnavailable
from evaluator.storage._walking import MOST_FOLDERS, Walker
from evaluator.storage.base import Store
from evaluator.storage.file import LONGEST_KEY, FileStore
from tests.storage.contract import StoreContract, keys


class TestFileStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore(tmp_path / "made" / "when needed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with one file, and a secret beside it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s").write_bytes(b"secret")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "x").write_bytes(b"x")
    return root


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed, as a growing list."""
    seen: list[str] = []
    scandir = os.scandir

    def noting(folder: int) -> Any:
        seen.append(Path(os.readlink(f"/proc/self/fd/{folder}")).name)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", noting)
    return seen


def failing(error: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    return fail


# the root


def test_the_uri_is_the_path_as_given(tmp_path: Path):
    assert (FileStore("some/./where").uri, FileStore(tmp_path).uri) == ("some/./where", str(tmp_path))


def test_a_relative_root_stays_where_it_was(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(root.parent)
    store = FileStore("root")
    monkeypatch.chdir("/")

    assert store.read("a/x") == b"x"


def test_the_root_itself_may_be_a_link(root: Path):
    (root.parent / "link").symlink_to(root)
    store = FileStore(root.parent / "link")
    store.write("b", b"1")

    assert (keys(store), (root / "b").read_bytes()) == (["a/x", "b"], b"1")


def test_a_root_that_is_a_file_holds_nothing_and_takes_nothing(root: Path):
    store = FileStore(root / "a" / "x")

    assert (store.list(), store.stat("y")) == ([], None)
    with pytest.raises(StorageUnavailable, match="a/x: File exists"):
        store.write("y", b"")


# links


def test_links_that_lead_out_are_neither_listed_nor_read(root: Path):
    (root / "file").symlink_to(root.parent / "secret" / "s")
    (root / "folder").symlink_to(root.parent / "secret")
    (root / "a" / "relative").symlink_to("../../secret/s")
    (root / "dangling").symlink_to("/nowhere/at/all")
    store = FileStore(root)

    assert (keys(store), store.folders()) == (["a/x"], ["a"])
    assert set(store.refused) == {"file", "folder", "a/relative", "dangling"}
    for key in ["file", "folder/s", "a/relative", "dangling"]:
        for call in [store.read, store.stat, lambda key: store.append(key, b"!")]:
            with pytest.raises(KeyRefused, match="leads out"):
                call(key)
    assert (root.parent / "secret" / "s").read_bytes() == b"secret"


def test_writing_never_goes_through_a_link_that_leads_out(root: Path):
    (root / "file").symlink_to(root.parent / "secret" / "s")
    (root / "folder").symlink_to(root.parent / "secret")
    store = FileStore(root)
    store.write("file", b"mine")
    with pytest.raises(KeyRefused):
        store.write("folder/s", b"mine")
    with pytest.raises(KeyRefused):
        store.write("folder/new/s", b"mine")
    with pytest.raises(KeyRefused):
        store.delete("folder/s")

    assert (store.read("file"), (root / "file").is_symlink()) == (b"mine", False)
    assert {path.name: path.read_bytes() for path in (root.parent / "secret").iterdir()} == {"s": b"secret"}


def test_a_prefix_does_not_lead_out_either(root: Path):
    (root / "folder").symlink_to(root.parent / "secret")
    store = FileStore(root)

    assert (store.list("folder/"), store.list("folder/s"), store.folders("folder")) == ([], [], [])
    assert store.refused == {"folder": "is a link to a folder"}


def test_a_link_to_a_file_inside_is_that_file_under_another_name(root: Path):
    """Kubernetes mounts a configuration so: `name -> ..data/name`."""
    (root / "..data").symlink_to("a")
    (root / "x").symlink_to("..data/x")
    store = FileStore(root)

    assert (keys(store), store.read("x"), store.stat("x")) == (["a/x", "x"], b"x", store.list("x")[0])


def test_links_to_folders_inside_are_not_walked_so_that_circles_end(root: Path):
    (root / "a" / "up").symlink_to("..")
    (root / "a" / "self").symlink_to("self")
    store = FileStore(root)

    assert (keys(store), set(store.refused)) == (["a/x"], {"a/up", "a/self"})
    assert store.read("a/up/a/x") == b"x"
    with pytest.raises(KeyRefused):
        store.read("a/self")


def test_deleting_a_link_leaves_what_it_leads_to(root: Path):
    (root / "file").symlink_to(root.parent / "secret" / "s")
    FileStore(root).delete("file")

    assert (os.path.lexists(root / "file"), (root.parent / "secret" / "s").exists()) == (False, True)


# what is not a regular file


def test_a_fifo_a_socket_and_a_folder_are_missing_and_block_nobody(root: Path, monkeypatch: pytest.MonkeyPatch):
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    store = FileStore(root)

    assert keys(store) == ["a/x"]
    assert store.refused == {"fifo": "is not a regular file", "socket": "is not a regular file"}
    for key in ["fifo", "socket", "a"]:
        assert store.stat(key) is None
        for read in [store.read, lambda key: store.read_range(key, 0, 1)]:
            with pytest.raises(KeyMissing):
                read(key)
        with pytest.raises(StorageUnavailable):
            store.append(key, b"")


def test_a_fifo_with_a_reader_is_not_appended_to(root: Path):
    os.mkfifo(root / "fifo")
    reader = os.open(root / "fifo", os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(StorageUnavailable, match="not a regular file"):
        FileStore(root).append("fifo", b"line")
    os.close(reader)


# names


def test_names_that_cannot_be_keys_are_refused_and_the_rest_is_listed(root: Path):
    (root / "back\\slash").write_bytes(b"")
    (root / "a" / os.fsdecode(b"\xff")).write_bytes(b"")
    store = FileStore(root)

    assert (keys(store), set(store.refused)) == (["a/x"], {"back\\slash", "a/\udcff"})


def test_a_very_deep_tree_is_cut_off(root: Path):
    at = os.open(root, os.O_RDONLY)
    for _ in range(LONGEST_KEY):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    store = FileStore(root)

    assert (keys(store), list(store.refused.values())) == (["a/x"], ["is longer than 1024 bytes"])
    subprocess.run(["/bin/rm", "-r", root / "d"], check=True)  # pytest's own clean-up stops at the recursion limit


def test_a_message_shows_control_characters_escaped(root: Path):
    with pytest.raises(KeyMissing) as raised:
        FileStore(root).read("a/\x1b[31mred")

    assert "\x1b" not in str(raised.value)


def test_a_message_tells_the_path_and_the_systems_words(root: Path):
    with pytest.raises(KeyMissing) as raised:
        FileStore(root).read("a/y")

    assert str(raised.value) == f"{root}/a/y: No such file or directory"


# walking only where it matters


def test_a_listing_with_a_prefix_walks_only_the_folders_that_match(root: Path, scanned: list[str]):
    for step in range(30):
        FileStore(root).write(f"index/{step:09}/w.json", b"")
    store = FileStore(root)

    assert (keys(store, "index/000000012/"), scanned) == (["index/000000012/w.json"], ["000000012"])


def test_folders_before_the_start_are_skipped_whole(root: Path, scanned: list[str]):
    for step in range(30):
        FileStore(root).write(f"index/{step:09}/w.json", b"")
    store = FileStore(root)
    listed = keys(store, "index/", start_after="index/000000028/v")

    assert listed == ["index/000000028/w.json", "index/000000029/w.json"]
    assert sorted(scanned) == ["000000028", "000000029", "index"]


# what happens meanwhile


def test_a_file_that_vanishes_between_listing_and_status_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch):
    (root / "a" / "y").write_bytes(b"")
    keys_of = Walker.keys

    def vanishing(*args: Any) -> Any:
        for key, entry in keys_of(*args):
            if key == "a/y":
                (root / "a" / "y").unlink()
            yield key, entry

    monkeypatch.setattr(Walker, "keys", vanishing)

    assert keys(FileStore(root)) == ["a/x"]


def test_a_folder_that_vanishes_before_it_is_walked_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch):
    (root / "b").mkdir()
    scan = Walker.scan

    def vanishing(self: Walker, folder: str, *, given: bool) -> Any:
        if folder == "b/":
            (root / "b").rmdir()
        return scan(self, folder, given=given)

    monkeypatch.setattr(Walker, "scan", vanishing)

    assert keys(FileStore(root)) == ["a/x"]


def test_a_file_that_is_cut_while_it_is_read_gives_what_is_left(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "pread", lambda *_: b"")

    assert FileStore(root).read_range("a/x", 0, 1) == b""


def test_a_range_is_put_together_from_short_reads(root: Path, monkeypatch: pytest.MonkeyPatch):
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, length, start: pread(file, min(length, 3), start))
    (root / "a" / "x").write_bytes(b"0123456789")

    assert FileStore(root).read_range("a/x", 1, 8) == b"12345678"


# writing


def test_a_reader_of_a_replaced_file_keeps_the_old_one_and_nothing_is_left_over(root: Path):
    with (root / "a" / "x").open("rb") as reader:
        FileStore(root).write("a/x", b"new")

        assert (reader.read(), sorted(os.listdir(root / "a"))) == (b"x", ["x"])


@pytest.mark.parametrize("error", [errno.EBUSY, errno.EXDEV, errno.EPERM])
def test_a_file_that_cannot_be_replaced_is_written_in_place(root: Path, monkeypatch: pytest.MonkeyPatch, error: int):
    (root / "a" / "x").write_bytes(b"longer than the new one")
    inode = (root / "a" / "x").stat().st_ino
    monkeypatch.setattr(os, "replace", failing(error))
    FileStore(root).write("a/x", b"new")

    assert ((root / "a" / "x").read_bytes(), (root / "a" / "x").stat().st_ino) == (b"new", inode)
    assert os.listdir(root / "a") == ["x"]


def test_a_file_that_is_a_mount_is_written_in_place(root: Path):
    """As Docker and Kubernetes mount a message file. It needs a mount namespace of its own, so it runs in a child."""
    script = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):  # CLONE_NEWNS; MS_REC | MS_PRIVATE
    sys.exit(77)
if libc.mount(os.fsencode(sys.argv[2]), os.fsencode(sys.argv[1] + "/a/x"), None, 4096, None):  # MS_BIND
    sys.exit(77)
from evaluator.storage.file import FileStore
FileStore(sys.argv[1]).write("a/x", b"message")
"""
    mounted = root.parent / "secret" / "s"
    child = subprocess.run([sys.executable, "-c", script, root, mounted], check=False, capture_output=True)
    if child.returncode == 77:
        pytest.skip("no right to mount here")

    assert (child.returncode, child.stderr, mounted.read_bytes()) == (0, b"", b"message")


def test_in_a_folder_that_takes_no_new_file_an_old_one_is_still_written(root: Path, monkeypatch: pytest.MonkeyPatch):
    """Root may write anywhere, so the missing right is played."""
    plain = os.open

    def read_only(path: Any, flags: int, *args: Any, **keywords: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return plain(path, flags, *args, **keywords)

    monkeypatch.setattr(os, "open", read_only)
    store = FileStore(root)
    store.write("a/x", b"new")

    assert store.read("a/x") == b"new"
    with pytest.raises(StorageUnavailable, match="a/y: Read-only file system"):
        store.write("a/y", b"new")


def test_a_folder_is_not_replaced_by_a_file(root: Path):
    with pytest.raises(StorageUnavailable, match="a: Is a directory"):
        FileStore(root).write("a", b"")

    assert os.listdir(root) == ["a"]


def test_a_file_is_no_folder_to_write_into(root: Path):
    with pytest.raises(StorageUnavailable, match="Not a directory"):
        FileStore(root).write("a/x/y", b"")


@pytest.mark.parametrize("key", ["", "a/", ".", "./y", "a//y", "\udcff", "a/" * LONGEST_KEY + "x"])
def test_a_key_that_can_name_no_file_is_not_written(root: Path, key: str):
    with pytest.raises(KeyRefused):
        FileStore(root).write(key, b"")

    assert keys(FileStore(root)) == ["a/x"]


def test_a_name_that_is_too_long_for_the_file_system_is_missing_and_not_written(root: Path):
    store = FileStore(root)

    assert store.stat("n" * 300) is None
    with pytest.raises(StorageUnavailable, match="File name too long"):
        store.write("n" * 300, b"")


def test_a_full_disk_is_told_and_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "replace", failing(errno.ENOSPC))

    with pytest.raises(StorageUnavailable, match="a/x: No space left on device"):
        FileStore(root).write("a/x", b"new")
    assert ((root / "a" / "x").read_bytes(), os.listdir(root / "a")) == (b"x", ["x"])


def test_a_line_that_was_appended_in_part_is_taken_back(root: Path, monkeypatch: pytest.MonkeyPatch):
    write = os.write

    def full_after_two(file: int, data: memoryview) -> int:
        if len(data) < 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[:2])

    monkeypatch.setattr(os, "write", full_after_two)

    with pytest.raises(StorageUnavailable, match="No space left"):
        FileStore(root).append("a/x", b"line\n")
    assert (root / "a" / "x").read_bytes() == b"x"


# what the system refuses


def test_one_unreadable_folder_does_not_cost_the_rest(root: Path, monkeypatch: pytest.MonkeyPatch):
    """lost+found of a fresh volume; root may read anything, so the missing right is played."""
    (root / "lost+found").mkdir()
    plain = os.scandir

    def refusing(folder: int) -> Any:
        if os.readlink(f"/proc/self/fd/{folder}").endswith("lost+found"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return plain(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    store = FileStore(root)

    assert (keys(store), store.refused) == (["a/x"], {"lost+found/": "Permission denied"})
    with pytest.raises(StorageUnavailable, match=r"lost\+found/: Permission denied"):
        store.list("lost+found/")


def test_a_device_error_while_listing_is_not_an_empty_folder(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "scandir", failing(errno.EIO))

    with pytest.raises(StorageUnavailable, match="Input/output error"):
        FileStore(root).list()


def test_a_device_error_at_one_file_is_not_its_absence(root: Path, monkeypatch: pytest.MonkeyPatch):
    class Broken:
        name = "x"

        def is_dir(self, *, follow_symlinks: bool) -> bool:
            return follow_symlinks

        def is_symlink(self) -> bool:
            return False

        def stat(self, *, follow_symlinks: bool) -> None:
            raise OSError(errno.EIO, f"Input/output error {follow_symlinks}")

    monkeypatch.setattr(os, "scandir", lambda _: nullcontext([Broken()]))

    with pytest.raises(StorageUnavailable, match="a/: Input/output error"):
        FileStore(root).list("a/")
    assert held_open(root) == []


def test_a_device_error_while_reading_names_the_path(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "pread", failing(errno.EIO))

    with pytest.raises(StorageUnavailable, match="root/a/x: Input/output error"):
        FileStore(root).read_range("a/x", 0, 1)


def held_open(*folders: object) -> list[str]:
    """The files and folders below these that the process has open; other tests may close theirs at any time."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that lists them
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [path for path in found if path.startswith(tuple(map(str, folders)))]


def test_no_descriptor_is_left_open_when_a_listing_has_let_go_of_the_folders(root: Path):
    (root / "out").symlink_to("/etc")
    store = FileStore(root)
    for key in ["a/x", "a", "absent", "out/passwd", "a/x/y"]:
        calls: list[Callable[[str], object]] = [store.stat, store.read, store.list, store.folders]
        calls += [lambda key: store.write(f"{key}/y/", b""), lambda key: store.append(key, b"")]
        for call in calls:
            with suppress(KeyMissing, KeyRefused, StorageUnavailable):
                call(key)
        assert len(held_open(root, "/etc")) <= MOST_FOLDERS
    store.list()

    assert held_open(root, "/etc") == []


def test_files_in_more_folders_than_stay_open_are_read_by_many_threads_at_once(tmp_path: Path):
    names = [f"{top}/{inner}/x" for top in range(3) for inner in range(MOST_FOLDERS)]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    store = FileStore(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            listing = pool.submit(store.list)
            assert list(pool.map(store.read, names)) == [name.encode() for name in names]
            assert len(listing.result()) == len(names)


def test_a_store_that_rests_holds_nothing_open(root: Path):
    store = FileStore(root)
    assert store.read("a/x")
    assert held_open(root) != []
    store.rest()

    assert held_open(root) == []
    assert store.read("a/x")


def test_a_folder_that_was_moved_away_is_not_read_on_after_a_listing(root: Path):
    store = FileStore(root)
    assert store.read("a/x")
    (root / "a").rename(root / "former")
    (root / "a").mkdir()
    (root / "a" / "x").write_bytes(b"new")
    store.list()

    assert store.read("a/x") == b"new"


def test_a_folder_that_was_replaced_is_found_where_the_file_is_no_more_in_the_former_one(root: Path):
    store = FileStore(root)
    assert store.read("a/x")
    shutil.rmtree(root / "a")
    (root / "a").mkdir()
    (root / "a" / "x").write_bytes(b"new")

    assert store.read("a/x") == b"new"


# rights


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that everybody can go to, with two files of which one may not be read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open").write_bytes(b"text")
        (folder / "closed").write_bytes(b"text")
        (folder / "closed").chmod(0)
        yield folder


def test_a_file_that_may_not_be_read_costs_only_itself(readable: Path):
    store = FileStore(readable)
    with as_nobody():
        with pytest.raises(KeyRefused, match="closed: may not be read: Permission denied; a file that user"):
            store.read("closed")
        with pytest.raises(KeyRefused, match="closed: may not be read"):
            store.read_range("closed", 0, 1)

        assert (store.read("open"), keys(store)) == (b"text", ["closed", "open"])


def test_an_empty_folder_is_removed_and_no_other(root: Path):
    store = FileStore(root)
    (root / "empty").mkdir()
    store.write("full/a", b"")
    (root / "link").symlink_to("empty")
    for name in ("full", "link", "absent", "empty"):
        store.drop_empty(name)

    assert sorted(path.name for path in root.iterdir()) == ["a", "full", "link"]
