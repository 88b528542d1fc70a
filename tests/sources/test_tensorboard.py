"""TensorBoard's event files: encodings, runs, damage, growth, and several writers."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.formats.tfrecord import masked_crc
from evaluator.modes import Mode
from evaluator.scalar_names import Naming
from evaluator.sources import detect
from evaluator.sources.tensorboard import TensorBoardLogs
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sources.contract import opened, values_of
from tests.sources.event_files import FIRST, event, scalars, session_start, simple, stored, typed, value, version
from tests.sources.log_reading import everything, members, problems

FILE = "events.out.tfevents.1700000000.host.1.0"
LATER = "events.out.tfevents.1700005000.host.2.0"


def saved(**files: bytes) -> MemoryStore:
    """A store with these event files, by folder ("root" for none)."""
    store = MemoryStore()
    for folder, data in files.items():
        store.write(FILE if folder == "root" else f"{folder}/{FILE}", data)
    return store


# what is one


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([FILE], True),
        ([f"{FILE}.v2"], True),
        ([f"train/{FILE}", f"validation/{FILE}"], True),
        ([f"eval/{FILE}"], True),
        ([f"run_a/{FILE}", f"run_b/{FILE}"], False),
        (["notes.txt"], False),
        ([], False),
    ],
)
def test_event_files_at_the_root_or_in_a_folder_of_a_mode_are_a_run(keys: list[str], expected: bool):
    store = MemoryStore()
    for key in keys:
        store.write(key, version())
    found = detect(store)

    assert isinstance(found, TensorBoardLogs) is expected


# encodings


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (simple("x", 0.25), 0.25),
        (simple("x", 0.25, "scalars"), 0.25),
        (simple("x", float("nan")), float("nan")),
        (simple("x", float("-inf")), float("-inf")),
        (stored("x", np.array(0.1, np.float32), "scalars"), float(np.float32(0.1))),
        (stored("x", np.array(0.1, np.float64), "scalars"), 0.1),
        (stored("x", np.array(0.5, np.float16), "scalars"), 0.5),
        (stored("x", np.array(-7, np.int64), "scalars"), -7.0),
        (stored("x", np.array(7, np.int32), "scalars"), 7.0),
        (stored("x", np.array([3.0], np.float32)), 3.0),
        (typed("x", 1, 5, struct.pack("<f", 1.5)), 1.5),
        (typed("x", 2, 6, struct.pack("<d", 1.5)), 1.5),
        (typed("x", 3, 7, b"\x05"), 5.0),
        (typed("x", 9, 10, b"\x06"), 6.0),
        (typed("x", 19, 13, bytes([0x80, 0x70])), 0.5),
        (typed("x", 14, 13, b"\x80\x7f"), 1.0),
        (typed("x", 10, 11, b"\x01"), 1.0),
    ],
)
def test_a_scalar_is_read_in_every_encoding(written: bytes, expected: float):
    found = everything(TensorBoardLogs(saved(root=version() + event(4, written))))

    assert list(found) == [("x", "TRAIN")]
    np.testing.assert_equal(found["x", "TRAIN"], {4: expected})


def test_tensors_are_read_when_they_are_asked_for():
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    source = TensorBoardLogs(saved(root=version() + event(0, simple("loss", 1), stored("w", weights))))
    (file,) = opened(source)

    found = values_of(source, file)
    assert (found["w"].tolist(), found["w"].dtype.name) == (weights.tolist(), "float32")
    assert float(found["loss"]) == 1.0


def test_a_tag_says_its_plugin_once():
    """TensorBoard keeps metadata of the first value of a tag only."""
    bins = np.zeros((3, 3))
    data = event(0, stored("h", bins, "histograms")) + event(1, stored("h", bins))
    source = TensorBoardLogs(saved(root=version() + data))

    assert everything(source) == {}
    assert problems(source) == {f"{FILE} (other data)": "not used: histograms 2"}


def test_images_and_texts_are_counted_and_not_used():
    image = value("picture", b"\x22\x02\x08\x01")
    text = stored("note", ["words"], "text")
    source = TensorBoardLogs(saved(root=version() + event(0, image, text, simple("loss", 1))))

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0}}
    assert "images 1, text 1" in problems(source)[f"{FILE} (other data)"]


def test_evaluations_that_keras_logs_twice_are_read_once():
    data = event(500, simple("evaluation_loss_vs_iterations", 1)) + event(0, simple("epoch_loss", 1))
    source = TensorBoardLogs(saved(validation=data))

    assert everything(source) == {("validation/epoch_loss", "EVAL"): {0: 1.0}}
    assert list(problems(source).values()) == ["not used: evaluations counted in iterations too 1"]


def test_the_wall_time_of_an_event_is_that_of_its_step():
    source = TensorBoardLogs(saved(root=version() + event(3, simple("x", 1), wall_time=FIRST + 33)))
    (file,) = opened(source)

    assert source.wall_time(file) == FIRST + 33


# runs and modes


def test_folders_of_modes_keep_both_values_of_a_step():
    store = saved(train=scalars("epoch_loss", [2.0, 1.0]), validation=scalars("epoch_loss", [2.5, 1.5]))
    source = TensorBoardLogs(store)

    assert everything(source) == {
        ("train/epoch_loss", "TRAIN"): {0: 2.0, 1: 1.0},
        ("validation/epoch_loss", "EVAL"): {0: 2.5, 1: 1.5},
    }
    assert members(source, "losses") == ("train/epoch_loss", "validation/epoch_loss")


def test_names_tell_the_mode_at_the_root():
    data = event(0, simple("train/loss", 1), simple("eval/loss", 2), simple("val_accuracy", 3), simple("lr", 4))
    source = TensorBoardLogs(saved(root=data))

    assert {(name, mode) for name, mode in everything(source)} == {
        ("train/loss", "TRAIN"),
        ("lr", "TRAIN"),
        ("eval/loss", "EVAL"),
        ("val_accuracy", "EVAL"),
    }


def test_other_runs_beside_the_run_are_named():
    source = TensorBoardLogs(saved(root=scalars("loss", [1.0]), run_b=scalars("loss", [2.0])))

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0}}
    assert problems(source)["run_b/"] == "holds event files of another run, which are not read; name it by itself"


def test_test_and_validation_data_stay_apart():
    source = TensorBoardLogs(saved(val=scalars("loss", [1.0]), test=scalars("loss", [2.0])))

    assert everything(source) == {("test/loss", "EVAL"): {0: 2.0}, ("val/loss", "EVAL"): {0: 1.0}}


def test_a_configuration_can_say_otherwise():
    naming = Naming(collections={"losses": ("^score$",)}, modes={Mode.EVAL: ("^score",)})
    source = TensorBoardLogs(saved(root=scalars("score", [1.0])), naming)
    collections = source.collections()

    assert list(everything(source)) == [("score", "EVAL")]
    assert collections is not None
    assert collections.by_name["losses"].include_regex == ("^score$",)


# growth


@given(cut=st.integers(0, 10_000))
def test_a_file_cut_at_any_byte_is_read_up_to_its_last_whole_record(cut: int):
    records = [version(), *(event(step, simple("loss", step / 8), simple("lr", 1)) for step in range(20))]
    data = b"".join(records)
    cut %= len(data) + 1
    ends = np.cumsum([len(record) for record in records])
    whole = max(0, int((ends <= cut).sum()) - 1)
    source = TensorBoardLogs(saved(root=data[:cut]))

    assert everything(source).get(("loss", "TRAIN"), {}) == {step: step / 8 for step in range(whole)}
    assert problems(source) == {}


@given(cuts=st.lists(st.integers(0, 1200), max_size=6))
def test_however_a_file_grows_the_result_is_the_same(cuts: list[int]):
    data = version() + scalars("loss", list(np.arange(20.0)))
    store = saved(root=b"")
    source = TensorBoardLogs(store)
    for cut in sorted(cuts):
        store.write(FILE, data[:cut])
        source.sightings()
    store.write(FILE, data)

    assert everything(source) == {("loss", "TRAIN"): dict(enumerate(np.arange(20.0)))}


def test_a_poll_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch):
    store = saved(root=version() + scalars("loss", [1.0] * 50))
    ranges: list[tuple[int, int]] = []
    read: Callable[[str, int, int], bytes] = store.read_range

    def noted(key: str, start: int, length: int) -> bytes:
        ranges.append((start, length))
        return read(key, start, length)

    monkeypatch.setattr(store, "read_range", noted)
    source = TensorBoardLogs(store)
    before = store.list()[0].size
    source.sightings()
    source.sightings()
    added = event(50, simple("loss", 2.0))
    store.append(FILE, added)
    source.sightings()

    assert ranges == [(0, before), (before, len(added))]


def test_a_step_that_was_opened_does_not_change_by_what_comes_late():
    store = saved(train=scalars("loss", [3.0, 2.0]), validation=b"")
    source = TensorBoardLogs(store)
    before = source.sightings()
    source.open(before[0])
    store.write(f"validation/{FILE}", scalars("loss", [4.0, 3.0]))
    after = source.sightings()

    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    assert problems(source)["late values"] == "1 value came after their step was taken; not evaluated"


def test_every_folder_must_have_passed_a_step():
    source = TensorBoardLogs(saved(train=scalars("loss", [1.0] * 10), validation=scalars("loss", [1.0] * 3)))
    source.sightings()

    assert source.open_from == 2


# restarts and writers


def test_a_session_that_begins_voids_what_was_logged_from_its_step_on():
    store = saved(root=version() + scalars("loss", [9.0, 8.0, 7.0, 6.0]))
    source = TensorBoardLogs(store)
    for sighting in source.sightings():
        source.open(sighting)
    resumed = session_start(2, FIRST + 5000) + event(2, simple("loss", 1.0), wall_time=FIRST + 5001)
    store.write(LATER, version(FIRST + 5000) + resumed)
    before = {sighting.step: (sighting.modified, sighting.size) for sighting in source.sightings()}

    assert everything(source) == {("loss", "TRAIN"): {0: 9.0, 1: 8.0, 2: 1.0}}
    assert list(before) == [0, 1, 2]


def test_a_value_that_is_logged_again_after_it_was_opened_is_another_sighting():
    store = saved(root=version() + scalars("loss", [9.0, 8.0, 7.0]))
    source = TensorBoardLogs(store)
    opened(source)
    before = source.sightings()
    store.write(LATER, version(FIRST + 5000) + event(1, simple("loss", 1.0), wall_time=FIRST + 5001))
    after = source.sightings()

    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert everything(source) == {("loss", "TRAIN"): {0: 9.0, 1: 1.0, 2: 7.0}}


def test_of_two_writers_at_the_same_time_one_counts():
    """Every process of a distributed run writes into the same folder."""
    store = saved(root=version() + scalars("loss", [1.0, 2.0]))
    store.write(f"{FILE}.other", version() + scalars("loss", [5.0, 6.0]) + scalars("lr", [3.0]))
    source = TensorBoardLogs(store)

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 1: 2.0}, ("lr", "TRAIN"): {0: 3.0}}
    assert problems(source) == {f"{FILE}.other (twice)": f"2 values not used: {FILE} logs the same at the same time"}


def test_a_writer_that_goes_on_where_another_stopped_takes_over():
    """Also where the clock of the second machine is behind."""
    store = saved(root=version() + scalars("loss", [1.0, 2.0]))
    store.write(LATER, version(FIRST - 60) + event(2, simple("loss", 3.0), wall_time=FIRST - 59))

    assert everything(TensorBoardLogs(store)) == {("loss", "TRAIN"): {0: 1.0, 1: 2.0, 2: 3.0}}


def test_a_restart_that_is_seen_in_parts_is_one():
    store = saved(train=version() + scalars("loss", [9.0, 8.0]), validation=version() + scalars("loss", [5.0, 4.0]))
    source = TensorBoardLogs(store)
    opened(source)
    before = source.sightings()
    store.write(f"train/{LATER}", version(FIRST + 5000) + session_start(1, FIRST + 5000))
    between = source.sightings()
    store.append(f"train/{LATER}", event(1, simple("loss", 1.0), wall_time=FIRST + 5001))
    after = source.sightings()

    assert (between == before, after[0] == before[0], after[1] == before[1]) == (True, True, False)
    assert everything(source)["train/loss", "TRAIN"] == {0: 9.0, 1: 1.0}


def test_a_file_that_was_replaced_is_read_anew_and_what_is_the_same_stays():
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    store.write(FILE, version() + scalars("loss", [9.0, 8.0, 7.0]))
    source = TensorBoardLogs(store)
    opened(source)
    before = source.sightings()
    clock.advance(10)
    store.write(FILE, version() + scalars("loss", [9.0, 5.0]))
    after = source.sightings()

    assert [one.step for one in after] == [0, 1]
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


# damage


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_damage_loses_nothing_before_it_and_is_named(at: int, bit: int):
    records = [version(), *(event(step, simple("loss", step + 1.0)) for step in range(10))]
    data = bytearray(b"".join(records))
    at %= len(data)
    data[at] ^= 1 << bit
    hit = int(np.searchsorted(np.cumsum([len(record) for record in records]), at, side="right"))
    source = TensorBoardLogs(saved(root=bytes(data)))
    found = everything(source).get(("loss", "TRAIN"), {})

    assert {step: found.get(step) for step in range(hit - 1)} == {step: step + 1.0 for step in range(hit - 1)}
    assert all(amount == step + 1.0 for step, amount in found.items())
    assert len(problems(source)) == 1


def test_a_record_with_a_wrong_checksum_costs_only_itself():
    records = [version(), *(event(step, simple("loss", step)) for step in range(3))]
    damaged = bytearray(records[2])
    damaged[-1] ^= 1
    source = TensorBoardLogs(saved(root=records[0] + records[1] + bytes(damaged) + records[3]))

    assert everything(source) == {("loss", "TRAIN"): {0: 0.0, 2: 2.0}}
    (what,) = problems(source).values()
    assert what.startswith(f"1 record not used: at byte {len(records[0] + records[1])}: the checksum of the payload")


def test_bytes_that_are_on_their_way_are_looked_at_again():
    first, second = version() + scalars("loss", [1.0]), scalars("loss", [2.0], first=1)
    store = saved(root=first + bytes(len(second)))
    source = TensorBoardLogs(store)
    source.sightings()
    wrong = problems(source)
    source.sightings()
    store.write(FILE, first + second)

    assert list(wrong) == [f"{FILE} at byte {len(first)}"]
    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 1: 2.0}}
    assert problems(source) == {}


def test_negative_steps_are_named():
    source = TensorBoardLogs(saved(root=version() + event(-5, simple("loss", 1.0)) + event(0, simple("loss", 2.0))))

    assert everything(source) == {("loss", "TRAIN"): {0: 2.0}}
    assert "has step -5; steps count from 0" in problems(source)[FILE]


def test_a_giant_length_is_passed_over():
    size = (1 << 40).to_bytes(8, "little")
    giant = size + masked_crc(size).to_bytes(4, "little")
    source = TensorBoardLogs(saved(root=version() + scalars("loss", [1.0]) + giant + bytes(100)))

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0}}
    assert "at most 67108864 are read" in problems(source)[FILE]
