"""Reading what Debugger's hooks wrote: against what the reference read, and against every kind of damage."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import FormatError, KeyMissing, KeyRefused
from evaluator.formats import wire
from evaluator.formats.event import encode_event
from evaluator.formats.index_file import IndexFile, encode_index
from evaluator.formats.key_names import collections_key, event_key, index_key
from evaluator.formats.tfrecord import frame
from evaluator.modes import Mode
from evaluator.segments import Array
from evaluator.sources import detect
from evaluator.sources.base import SHAPE, VALUE, FileValues, Source, StepFile
from evaluator.sources.event_reading import MOST_BYTES, SPLIT_GAP
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.base import Store
from evaluator.storage.file import FileStore
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from evaluator.writer import TrialWriter
from tests.saved_run import SavedRun
from tests.sources.contract import Collections, SavedFile, SourceContract, opened, positions, same, values_of

ROOT = Path(__file__).parents[2]
TRIALS = {path.name.removesuffix(".expected.json"): path for folder in (
    ROOT / "tests/data/trials", ROOT.parent / "shared/trials"
) for path in sorted(folder.glob("*.expected.json"))}  # fmt: skip
"""The trials kept here, and those that lie beside the checkout, where there are any."""


class TestContract(SourceContract):
    def make(self, files: Sequence[SavedFile], collections: Collections | None = None) -> Source:
        run = SavedRun(FakeClock())
        run.announce(**(collections or {}))
        for file in files:
            run.save(file.step, file.worker, values=file.values, mode=file.mode)
        return SmdebugFolder(run.store)


# what the reference read


@pytest.fixture(params=TRIALS)
def trial(request: pytest.FixtureRequest) -> tuple[SmdebugFolder, dict[str, Any]]:
    path = TRIALS[request.param]
    folder = path.with_name(request.param)
    return SmdebugFolder(FileStore(folder)), json.loads(path.read_text("utf-8"))


def test_there_are_trials_to_compare_with():
    assert len(TRIALS) >= 3


def test_names_steps_modes_and_workers_are_those_of_the_reference(trial: tuple[SmdebugFolder, dict[str, Any]]):
    source, expected = trial
    files = opened(source)
    steps = {name: sorted({file.step for file in files if name in file.layout.at}) for name in expected["tensors"]}
    mode_steps = {
        mode: sorted({file.mode_step for file in files if file.mode.name == mode})
        for mode in {file.mode.name for file in files} - {"GLOBAL"}
    }

    assert sorted({name for file in files for name in file.layout.at}) == sorted(expected["tensors"])
    assert sorted({file.step for file in files}) == expected["steps"]
    assert steps == {name: tensor["steps"] for name, tensor in expected["tensors"].items()}
    assert mode_steps == expected["modes"]
    assert sorted({file.worker for file in files}) == expected["workers"]


def test_collections_are_those_of_the_reference(trial: tuple[SmdebugFolder, dict[str, Any]]):
    source, expected = trial
    collections = source.collections()

    assert collections is not None
    assert collections.num_workers == expected["num_workers"]
    assert collections.problems == {}
    saved = {name for file in opened(source) for name in file.layout.at}
    found = {
        name: sorted(
            tensor
            for tensor in saved
            if tensor in one.tensor_names or any(re.search(pattern, tensor) for pattern in one.include_regex)
        )
        for name, one in collections.by_name.items()
    }
    assert found == expected["collections"]


def test_values_shapes_and_reductions_are_those_of_the_reference(trial: tuple[SmdebugFolder, dict[str, Any]]):
    source, expected = trial
    files = {(str(file.step), file.worker): file for file in opened(source)}
    read = {key: Read(source, file) for key, file in files.items()}
    wrong = [
        (name, step, worker, difference)
        for name, tensor in expected["tensors"].items()
        for step, saved in tensor["at"].items()
        for worker, told in saved["workers"].items()
        for difference in read[step, worker].differences(name, saved, told)
    ]

    assert wrong == []


class Read:
    """Everything in one file, to be compared with what the reference told."""

    def __init__(self, source: SmdebugFolder, file: StepFile) -> None:
        self.file = file
        everything = np.array([at for at, kind in enumerate(file.layout.kinds) if kind != SHAPE], np.int64)
        self.arrays = source.read(file, [everything]).arrays()

    def differences(self, name: str, saved: dict[str, Any], told: dict[str, Any]) -> list[str]:
        kinds = self.file.layout.at[name]
        found: dict[str, Any] = {}
        if "shape" in told and SHAPE in kinds:
            found["shape"] = list(self.file.shapes[name])
        if VALUE in kinds:
            found.update(self.told(self.arrays[kinds[VALUE]]))
        reductions = {kind: float(self.arrays[at].item()) for kind, at in kinds.items() if kind not in {VALUE, SHAPE}}
        wanted = {key: value for key, value in told.items() if key not in {"error", "saved_reductions"}}
        place = (self.file.mode.name, self.file.mode_step) != (saved["mode"], saved["mode_step"])
        return [
            *(["mode"] if place else []),
            *(["value" for _ in [0] if (VALUE in kinds) == ("error" in told)]),
            *(key for key, value in wanted.items() if not alike(found.get(key), value)),
            *(
                kind
                for kind, value in told.get("saved_reductions", {}).items()
                if not alike(reductions.get(kind), value)
            ),
            *(kind for kind in reductions.keys() - told.get("saved_reductions", {}).keys()),
        ]

    @staticmethod
    def told(array: Array) -> dict[str, Any]:
        if array.dtype.kind == "U":
            # the oracle shows the first five strings
            return {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.tolist()[:5]}
        wide = array.astype(np.float64)
        with np.errstate(all="ignore"):
            return {
                "dtype": str(array.dtype), "shape": list(array.shape), "abs_mean": np.abs(wide).mean(),
                "l2": np.sqrt((wide * wide).sum()), "max": wide.max(), "mean": wide.mean(), "min": wide.min(),
            }  # fmt: skip


def alike(found: Any, told: Any) -> bool:
    """Equal; numbers up to what float32 arithmetic of the reference can have rounded."""
    if isinstance(told, float) or (isinstance(told, int) and isinstance(found, float)):
        if found is None:
            return False
        return math.isclose(found, told, rel_tol=1e-5, abs_tol=1e-7) or (math.isnan(found) and math.isnan(told))
    if told in ("nan", "inf", "-inf"):
        return bool(str(found) == told)
    return bool(found == told)


# where a run is


@pytest.mark.parametrize("folder", ["a__b", "plain/", "with space", "__", "index", "a/events/b"])
def test_the_path_of_a_trial_changes_nothing(tmp_path: Path, folder: str):
    path = f"{tmp_path}/{folder}"
    with TrialWriter(path) as writer:
        writer.save(1, {"x": np.ones(2)})
    source = detect(FileStore(path))

    assert source is not None
    assert [(file.step, file.worker) for file in opened(source)] == [(1, "worker_0")]
    assert same(values_of(source, opened(source)[0]), {"x": np.ones(2)})


@pytest.mark.parametrize("key", ["index/x", "collections/x", "events/x", "training_job_end.ts"])
def test_a_run_that_has_just_begun_or_holds_an_end_marker_only_is_a_run(key: str):
    store = MemoryStore()
    before = detect(store)
    store.write(key, b"")

    assert (before, isinstance(detect(store), SmdebugFolder)) == (None, True)


def test_device_names_of_workers_come_back():
    run = SavedRun(FakeClock())
    name = "/job:localhost/replica:0/task:0/device:GPU:0"
    run.announce(name)
    run.save(0, name)
    source = SmdebugFolder(run.store)
    collections = source.collections()

    assert [entry.key for entry in run.store.list("index/")] == [
        "index/000000000/000000000000__job-localhost_replica-0_task-0_device-GPU-0.json"
    ]
    assert ([file.worker for file in opened(source)], list(collections.files) if collections else []) == (
        [name],
        [name],
    )


@pytest.mark.parametrize("from_step", [None, 0, 5, 6])
def test_which_of_two_names_stands_for_a_file_does_not_depend_on_where_a_listing_begins(from_step: int | None):
    store = MemoryStore()
    odd = ["index/000000000/000000000005_w.csv", "index/000000000/6_w.json", "index/other/000000000004_w.json"]
    for key in [*odd, *(index_key(step, "w") for step in range(4, 8))]:
        store.write(key, b"")
    usual = {step: index_key(step, "w") for step in range(4, 8)}
    expected = {**usual, 6: odd[1], 4: odd[2]}
    shown = {sighting.step: sighting.key for sighting in SmdebugFolder(store).sightings(from_step=from_step)}

    assert shown == {step: key for step, key in expected.items() if step >= (from_step or 0)}


# entries of an index file


def save_entries(
    store: Store, names: Sequence[str], values: Sequence[Any], shapes: Sequence[tuple[str, tuple[int, ...]]] = ()
) -> None:
    """Save an index file with these entries, names repeated as they are."""
    how: dict[str, Any] = {"step": 0, "mode": Mode.TRAIN, "mode_step": 0, "wall_time": 1.5}
    records = [frame(encode_event(name, value, **how)) for name, value in zip(names, values, strict=True)]
    lengths = np.array([len(record) for record in records], np.int64)
    event = event_key(0, "worker_0") if records else None
    entries = tuple((name, f"original {name}", shape) for name, shape in shapes)
    index = IndexFile(Mode.TRAIN, 0, event, tuple(names), np.cumsum(lengths) - lengths, lengths, entries)
    if event is not None:
        store.write(event, b"".join(records))
    store.write(index_key(0, "worker_0"), encode_index(index))


def test_of_a_name_that_was_saved_twice_the_last_value_counts():
    store = MemoryStore()
    save_entries(store, ["loss", "other", "loss"], [np.ones(1), np.ones(2), np.full(3, 7.0)])
    source = SmdebugFolder(store)
    (file,) = opened(source)

    assert file.layout.names == ("loss", "other")
    assert same(values_of(source, file), {"loss": np.full(3, 7.0), "other": np.ones(2)})


def test_value_and_shape_of_one_tensor_are_both_there():
    store = MemoryStore()
    save_entries(store, ["a", "b"], [np.ones((2, 3)), np.ones(1)], [("a", (2, 3)), ("c", ()), ("a", (2, 3))])
    source = SmdebugFolder(store)
    (file,) = opened(source)

    assert dict(file.layout.at) == {"a": {VALUE: 0, SHAPE: 2}, "b": {VALUE: 1}, "c": {SHAPE: 3}}
    assert (file.shapes, list(values_of(source, file))) == ({"a": (2, 3), "c": ()}, ["a", "b"])


def test_a_step_with_shapes_only_has_no_values():
    store = MemoryStore()
    save_entries(store, [], [], [("a", (2, 3))])
    source = SmdebugFolder(store)
    (file,) = opened(source)
    read = source.read(file, [np.array([0], np.int64)])

    assert (read.problems, source.size_of(file, [np.array([0])]), source.wall_time(file)) == (
        {0: "only its shape was saved"},
        0,
        None,
    )


def test_a_shape_beside_values_is_no_value():
    store = MemoryStore()
    save_entries(store, ["a"], [np.ones(1)], [("b", (2,))])
    source = SmdebugFolder(store)
    (file,) = opened(source)
    read = source.read(file, [np.array([0, 1], np.int64)])

    assert (list(read.arrays()), read.problems) == ([0], {1: "only its shape was saved"})


def test_reductions_belong_to_their_tensor_with_or_without_its_value(tmp_path: Path):
    TrialWriter(tmp_path).save(0, {"b": np.ones(2)}, reductions={"a": {"abs_max": 3.0, "l2": 4.0}, "b": {"min": 5.0}})
    source = SmdebugFolder(FileStore(tmp_path))
    (file,) = opened(source)
    read = source.read(file, [np.arange(4)])

    assert dict(file.layout.at) == {"b": {VALUE: 0, "min": 3}, "a": {"abs_max": 1, "l2": 2}}
    assert {at: array.ravel().tolist() for at, array in read.arrays().items()} == {0: [1, 1], 1: [3], 2: [4], 3: [5]}


def test_an_index_file_that_names_no_event_file_gives_no_values():
    store = MemoryStore()
    entry = {"tensorname": "gradients/dummy:0", "start_idx": 0, "length": 1}
    meta = {"mode": "TRAIN", "mode_step": 5, "event_file_name": ""}
    store.write(index_key(5, "worker_0"), json.dumps({"meta": meta, "tensor_payload": [entry]}).encode())
    source = SmdebugFolder(store)
    (file,) = opened(source)

    assert source.read(file, [np.array([0], np.int64)]).problems == {0: "its index file names no event file"}


# collection files


def test_only_new_collection_files_are_read():
    run = SavedRun(FakeClock(), num_workers=50)
    source = SmdebugFolder(run.store)
    for number in range(50):
        run.announce(f"worker_{number}", own=[f"t{number}"])
        source.collections()
    merged = source.collections()
    reads = run.store.requests.get
    run.announce("worker_7", own=["changed"])
    run.clock.advance(1)
    run.announce("worker_7", own=["changed"])
    merged = source.collections()

    assert merged is not None
    assert (reads, run.store.requests.get, len(merged.files), "changed" in merged.by_name["own"].tensor_names) == (
        50,
        51,
        50,
        True,
    )


def test_what_a_collections_file_said_stays_known_when_it_is_moved_away():
    run = SavedRun(FakeClock(), num_workers=2)
    run.announce("worker_0", "worker_1", losses=["loss"])
    source = SmdebugFolder(run.store)
    first = source.collections()
    run.store.delete(collections_key("worker_0"))
    second = source.collections()
    run.clock.advance(1)
    run.announce("worker_1", losses=["loss"])
    third = source.collections()

    assert first is not None
    assert third is not None
    assert (second, list(third.files), third.num_workers) == (None, ["worker_0", "worker_1"], 2)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b'{"collections": 3}', b"[" * 100_000])
def test_a_bad_collections_file_costs_only_itself(data: bytes):
    run = SavedRun(FakeClock(), num_workers=2)
    run.announce("worker_0", losses=["loss"])
    run.store.write(collections_key("worker_1"), data)
    collections = SmdebugFolder(run.store).collections()

    assert collections is not None
    assert (list(collections.by_name), list(collections.problems)) == (["losses"], [collections_key("worker_1")])


# the fast way and the slow way

TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "b1"]
SHAPES = st.sampled_from([(), (1,), (3,), (2, 2), (0,), (2, 0), (40, 500)])


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Array]:
    """Tensors of all kinds: numbers, text, empty ones."""
    found: dict[str, Array] = {}
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True)):
        if draw(st.integers(0, 6)) == 0:
            found[name] = np.array(draw(st.lists(st.text("aä€", max_size=3), max_size=3)), dtype=np.str_)
            continue
        shape, kind = draw(SHAPES), draw(st.sampled_from(TYPES))
        seed = np.random.default_rng(draw(st.integers(0, 9)))
        found[name] = (seed.normal(size=shape) * 50).astype(kind)
    return found


def again(values: dict[str, Array], factor: int) -> dict[str, Array]:
    """Tensors of the same types and shapes with other values."""
    with np.errstate(all="ignore"):
        return {
            name: array if array.dtype.kind == "U" else np.asarray(array * factor).astype(array.dtype)
            for name, array in values.items()
        }


def joined(read: FileValues) -> dict[tuple[int, str], list[int]]:
    """Which positions were joined in which group, by type; large tensors may stand alone."""
    found: dict[tuple[int, str], list[int]] = {}
    for group, at, one in read.joined:
        found[group, one.flat.dtype.str] = sorted([*found.get((group, one.flat.dtype.str), []), *at.tolist()])
    return found


@settings(max_examples=60)
@given(tensors(), st.sampled_from([8, 98, 126, 998, 16_382]), st.sampled_from(Mode), st.data())
def test_a_reader_that_has_seen_files_alike_reads_the_same_as_a_new_one(
    values: dict[str, Array], first: int, mode: Mode, data: st.DataObject
):
    run = SavedRun(FakeClock())
    saved = {step: again(values, step % 3) for step in range(first, first + 5)}
    for step, tensor in saved.items():
        run.clock.advance(0.3)
        checked = data.draw(st.sampled_from([False, False, True]))
        run.save(step, values=tensor, mode=mode, mode_step=step - first + 8, true_checksum=checked)
    reader = SmdebugFolder(run.store)
    names = data.draw(st.permutations(list(values)))
    cut = data.draw(st.integers(0, len(names)))
    for file in opened(reader):
        groups = [positions(file, *names[:cut]), positions(file, *names[cut:])]
        seen = reader.read(file, groups)
        new = SmdebugFolder(run.store).read(file, groups)
        by_name = {file.layout.names[at]: array for at, array in seen.arrays().items()}

        assert seen.problems == {}
        assert same(by_name, saved[file.step])
        assert joined(seen) == joined(new)


def test_a_file_alike_is_not_decoded_tensor_by_tensor(monkeypatch: pytest.MonkeyPatch):
    run = SavedRun(FakeClock())
    for step in (1, 2):
        run.save(step, values={"a": np.full(3, step), "b": np.full((2, 2), float(step))})
    source = SmdebugFolder(run.store)
    first, second = opened(source)
    values_of(source, first)
    for name in ("event_records.locate", "event_templates.decode_event"):
        monkeypatch.setattr(f"evaluator.sources.{name}", lambda *_: pytest.fail("decoded"))

    assert same(values_of(source, second), {"a": np.full(3, 2), "b": np.full((2, 2), 2.0)})


def test_a_file_of_which_something_else_is_wanted_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch):
    run = SavedRun(FakeClock())
    for step in (1, 2):
        run.save(step, values={"a": np.full(3, step), "b": np.full((2, 2), float(step)), "c": np.full(5, step)})
    source = SmdebugFolder(run.store)
    first, second = opened(source)
    values_of(source, first)
    for name in ("event_records.locate", "event_templates.decode_event"):
        monkeypatch.setattr(f"evaluator.sources.{name}", lambda *_: pytest.fail("decoded"))

    found = source.read(second, [positions(second, "c"), positions(second, "a")])

    assert found.problems == {}
    named = {second.layout.names[at]: array for at, array in found.arrays().items()}
    assert same(named, {"a": np.full(3, 2), "c": np.full(5, 2)})


@pytest.mark.parametrize("other", [np.full(4, 1, np.float32), np.full((2, 2), 1, np.int32)], ids=["type", "shape"])
@pytest.mark.parametrize("place", range(3))
def test_a_record_that_is_laid_out_in_another_way_is_looked_at_again(place: int, other: Array):
    plain: dict[str, Array] = {name: np.full(4, 1, np.int32) for name in "abc"}
    run = SavedRun(FakeClock())
    run.save(1, values=plain)
    run.save(2, values=plain | {"abc"[place]: other})
    source = SmdebugFolder(run.store)
    first, second = opened(source)
    values_of(source, first)

    assert same(values_of(source, second), plain | {"abc"[place]: other})


def test_a_damaged_file_does_not_make_those_after_it_slow(monkeypatch: pytest.MonkeyPatch):
    run = SavedRun(FakeClock())
    for step in (1, 2, 3):
        run.save(step, values={"a": np.full(3, step), "b": np.full(4, step)})
    run.store.write(event_key(1, "worker_0"), run.store.read(event_key(1, "worker_0"))[:-10])
    source = SmdebugFolder(run.store)
    first, second, third = opened(source)
    everything = [positions(first, "a", "b")]
    damaged = source.read(first, everything)
    source.read(second, everything)
    monkeypatch.setattr("evaluator.sources.event_templates.decode_event", lambda *_: pytest.fail("decoded"))

    assert (list(damaged.problems), len(source.read(third, everything).arrays())) == ([1], 2)


# damage


@pytest.fixture
def run() -> SavedRun:
    """A run with the steps 1 to 3, whose files are laid out alike (at step 0 the number itself is left out)."""
    run = SavedRun(FakeClock())
    run.announce()
    for step in (1, 2, 3):
        run.save(step, values={"a": np.full(5, step), "b": np.full(3, float(step)), "c": np.array(["text"])})
    return run


@pytest.mark.parametrize("known", [False, True], ids=["first file", "alike"])
def test_a_file_cut_at_any_byte_gives_what_is_whole_and_names_the_rest(run: SavedRun, known: bool):
    key = event_key(2, "worker_0")
    whole = run.store.read(key)
    source = SmdebugFolder(run.store)
    before, file, _ = opened(source)
    groups = [positions(file, "b"), positions(file, "c", "a")]
    ends = [int(number) for number in file.place.starts + file.place.lengths]  # type: ignore[attr-defined]
    for length in range(len(whole)):
        reader = SmdebugFolder(run.store)
        file = opened(reader)[1]
        if known:
            reader.read(before, groups)
            file = opened(source)[1]
            reader = source
        run.store.write(key, whole[:length])
        read = reader.read(file, groups)

        assert sorted(read.arrays()) == [at for at in range(3) if ends[at] <= length]
        assert sorted(read.problems) == [at for at in range(3) if ends[at] > length]


def test_a_missing_event_file_is_a_problem_of_its_tensors(run: SavedRun):
    run.store.delete(event_key(2, "worker_0"))
    source = SmdebugFolder(run.store)
    file = opened(source)[1]
    read = source.read(file, [np.arange(3)])

    assert (sorted(read.problems), read.arrays(), source.wall_time(file)) == ([0, 1, 2], {}, None)


def test_an_event_file_that_was_replaced_after_it_was_indexed_is_noticed(run: SavedRun):
    source = SmdebugFolder(run.store)
    files = opened(source)
    groups = [positions(files[0], "a", "b", "c")]
    source.read(files[0], groups)
    # the same names and sizes in another order, so that only the records' own names tell
    run.save(2, values={"b": np.full(3, 9.0), "x": np.full(5, 9), "c": np.array(["text"])})
    read = source.read(files[1], groups)

    assert (list(read.arrays()), sorted(read.problems)) == ([2], [0, 1])


def test_swapped_records_of_the_same_size_are_noticed():
    run = SavedRun(FakeClock())
    for step in (1, 2):
        run.save(step, values={"a": np.full(5, step), "b": np.full(5, -step)})
    source = SmdebugFolder(run.store)
    files = opened(source)
    source.read(files[0], [np.arange(2)])
    run.save(2, values={"b": np.full(5, 9), "a": np.full(5, 9)})
    read = source.read(files[1], [np.arange(2)])

    assert (read.arrays(), sorted(read.problems)) == ({}, [0, 1])
    assert all("replaced" in problem for problem in read.problems.values())


def test_a_flipped_byte_in_a_header_costs_only_that_tensor(run: SavedRun):
    key = event_key(2, "worker_0")
    data = bytearray(run.store.read(key))
    data[2] ^= 1
    run.store.write(key, bytes(data))
    source = SmdebugFolder(run.store)
    files = opened(source)
    groups = [np.arange(3)]
    source.read(files[0], groups)

    assert [sorted(source.read(file, groups).problems) for file in files] == [[], [0], []]


# what a hostile run may hold


def hostile(store: Store, event_file: str, start: int = 0, length: int = 100, count: int = 1) -> StepFile:
    """A step file whose index file says this."""
    entries = [{"tensorname": f"t{number}", "start_idx": start, "length": length} for number in range(count)]
    meta = {"mode": "TRAIN", "mode_step": 0, "event_file_name": event_file}
    store.write(index_key(0, "worker_0"), json.dumps({"meta": meta, "tensor_payload": entries}).encode())
    (file,) = opened(SmdebugFolder(store))
    return file


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "events/../../secret", "..", "a\\..\\b", "a\0b"])
def test_an_event_file_name_that_leaves_the_trial_is_refused(name: str):
    with pytest.raises((FormatError, KeyRefused)):
        hostile(MemoryStore(), name)


@pytest.mark.parametrize("name", [".", "./x", "events", "events/", "index//x", "x" * 5000, "\u202e"])
def test_an_event_file_name_that_is_no_file_is_a_problem(tmp_path: Path, name: str):
    store = FileStore(tmp_path)
    store.write("events/x", b"")
    file = hostile(store, name)

    assert list(SmdebugFolder(store).read(file, [np.array([0])]).problems) == [0]


def test_a_link_that_leads_out_of_the_trial_is_a_problem(tmp_path: Path):
    secret, trial = tmp_path / "secret", tmp_path / "trial"
    secret.write_bytes(frame(encode_event("t0", np.ones(1), step=0, mode=Mode.TRAIN, mode_step=0, wall_time=0.0)))
    (trial / "events").mkdir(parents=True)
    (trial / "events/link").symlink_to(secret)
    store = FileStore(trial)
    file = hostile(store, "events/link", length=secret.stat().st_size)
    source = SmdebugFolder(store)

    assert list(source.read(file, [np.array([0])]).problems) == [0]
    assert source.wall_time(file) is None


def test_an_index_file_that_is_a_link_out_of_the_trial_is_not_there(tmp_path: Path):
    with TrialWriter(tmp_path / "trial") as writer:
        writer.save(0, {"x": np.ones(1)})
    outside = shutil.copy(tmp_path / "trial" / index_key(0, "worker_0"), tmp_path / "outside")
    (tmp_path / "trial" / index_key(1, "worker_0")).symlink_to(outside)

    assert [file.step for file in opened(SmdebugFolder(FileStore(tmp_path / "trial")))] == [0]


@pytest.mark.parametrize("start", [0, 10, 2**31, 2**53])
@pytest.mark.parametrize("length", [0, 1, 16, 2**31 - 1, 2**31, 2**53])
def test_places_beyond_the_file_are_problems_and_cost_nothing(tmp_path: Path, start: int, length: int):
    store = FileStore(tmp_path)
    store.write("events/x", b"short")
    file = hostile(store, "events/x", start, length, count=50)
    source = SmdebugFolder(store)
    read = source.read(file, [np.arange(50)])

    assert (len(read.problems), read.arrays(), source.size_of(file, [np.arange(50)]) >= 0) == (50, {}, True)


@pytest.mark.parametrize(("start", "length"), [(2**60, 1), (0, 2**60), (-1, 5), (0, -5), (2**70, 1), (1.5, 1)])
def test_places_that_are_no_places_make_the_index_file_unreadable(start: Any, length: Any):
    with pytest.raises(FormatError):
        hostile(MemoryStore(), "events/x", start, length)


def test_a_false_length_does_not_read_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = FileStore(tmp_path)
    store.write("events/x", b"")
    os.truncate(tmp_path / "events/x", 2**40)
    file = hostile(store, "events/x", 0, MOST_BYTES)
    source = SmdebugFolder(store)
    monkeypatch.setattr(store, "read_range", lambda *_: pytest.fail("read"))

    assert list(source.read(file, [np.array([0])]).problems) == [0]


def test_records_that_stand_for_more_than_their_bytes_share_a_limit():
    """A thousand records of sixty bytes stood for sixteen gigabytes."""
    how = wire.bytes_field(2, wire.bytes_field(2, wire.number_field(1, 1 << 17)))
    tensor = wire.number_field(1, 1) + how + wire.bytes_field(5, np.float32(3).tobytes())
    names = [f"t{number:02}" for number in range(40)]
    records = [
        frame(
            wire.bytes_field(5, wire.bytes_field(1, wire.bytes_field(1, name.encode()) + wire.bytes_field(8, tensor)))
        )
        for name in names
    ]
    store = MemoryStore()
    store.write("events/x", b"".join(records))
    lengths = np.array([len(record) for record in records])
    index = IndexFile(Mode.TRAIN, 0, "events/x", tuple(names), np.cumsum(lengths) - lengths, lengths, ())
    store.write(index_key(0, "w"), encode_index(index))
    source = SmdebugFolder(store)
    (file,) = opened(source)
    read = source.read(file, [np.arange(40)])

    # 1 MiB of float64 each, out of 32 MiB for all
    assert (len(read.arrays()), len(read.problems)) == (32, 8)
    assert all("there is room for" in problem for problem in read.problems.values())


def test_the_size_of_lengths_that_are_no_lengths_does_not_wrap_around(tmp_path: Path):
    """A thousand and more lengths of 2**53 made a negative size, which was read as a small one."""
    file = hostile(FileStore(tmp_path), "events/x", 0, 2**53, count=1500)

    assert SmdebugFolder(FileStore(tmp_path)).size_of(file, [np.arange(1500)]) > 2**40


@pytest.mark.parametrize("prefix", ["index", "collections"])
def test_files_too_large_to_be_what_they_are_said_to_be_are_not_read(tmp_path: Path, prefix: str):
    store = FileStore(tmp_path)
    key = index_key(0, "worker_0") if prefix == "index" else collections_key("worker_0")
    store.write(key, b"")
    os.truncate(tmp_path / key, 2**40)
    source = SmdebugFolder(store)
    if prefix == "index":
        with pytest.raises(FormatError, match="at most"):
            opened(source)
    else:
        collections = source.collections()
        assert collections is not None
        assert list(collections.problems) == [key]


def test_a_file_that_vanishes_after_it_was_listed_is_a_missing_key(run: SavedRun):
    source = SmdebugFolder(run.store)
    sightings = source.sightings()
    run.store.delete(sightings[1].key)

    with pytest.raises(KeyMissing):
        source.open(sightings[1])


# what is read


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all ranges that are asked for."""
    asked: list[int] = []
    original = MemoryStore.read_range

    def noted(store: MemoryStore, key: str, start: int, length: int) -> bytes:
        asked.append(length)
        return original(store, key, start, length)

    monkeypatch.setattr(MemoryStore, "read_range", noted)
    return asked


@pytest.mark.parametrize(("gap", "requests"), [(SPLIT_GAP, 2), (SPLIT_GAP - 1, 1), (10, 1), (0, 1)])
def test_only_large_gaps_are_left_out(ranges: list[int], gap: int, requests: int):
    store = MemoryStore()
    how: dict[str, Any] = {"step": 0, "mode": Mode.TRAIN, "mode_step": 0, "wall_time": 1.5}
    first, last = (frame(encode_event(name, np.ones(3), **how)) for name in ("first", "last"))
    store.write("events/x", first + bytes(gap) + last)
    starts, lengths = np.array([0, len(first) + gap]), np.array([len(first), len(last)])
    store.write(
        index_key(0, "w"), encode_index(IndexFile(Mode.TRAIN, 0, "events/x", ("first", "last"), starts, lengths, ()))
    )
    source = SmdebugFolder(store)
    (file,) = opened(source)

    assert same(values_of(source, file), {"first": np.ones(3), "last": np.ones(3)})
    assert (len(ranges), sum(ranges)) == (requests, len(first) + len(last) + (gap if requests == 1 else 0))


def test_a_file_is_read_with_one_request_however_many_tensors_are_asked_for(ranges: list[int]):
    run = SavedRun(FakeClock())
    run.save(0, values={f"t{number}": np.ones(100) for number in range(300)})
    source = SmdebugFolder(run.store)
    (file,) = opened(source)
    values_of(source, file)

    assert ranges == [len(run.store.read(event_key(0, "worker_0")))]


# wall time


def test_the_wall_time_is_that_of_the_first_record(run: SavedRun):
    source = SmdebugFolder(run.store)
    file = opened(source)[0]
    read = source.read(file, [positions(file, "a")])

    assert (source.wall_time(file), read.wall_time) == (run.clock.now(), run.clock.now())


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_a_wall_time_that_is_no_time_is_not_known(tmp_path: Path, seconds: float):
    TrialWriter(tmp_path).save(0, {"x": np.ones(1)}, wall_time=seconds)
    source = SmdebugFolder(FileStore(tmp_path))
    (file,) = opened(source)

    assert (source.wall_time(file), source.read(file, [np.array([0])]).wall_time) == (None, None)


def test_the_end_marker_ends_the_run(run: SavedRun):
    source = SmdebugFolder(run.store)
    before = source.ended()
    run.end()

    assert (before, source.ended()) == (False, True)
