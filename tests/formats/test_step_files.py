"""Steps that are filled in from what they have in common with an earlier one: byte for byte as if they were encoded."""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError
from evaluator.formats.event import encode_event, encode_parts
from evaluator.formats.index_file import IndexFile, encode_index
from evaluator.formats.step_files import Named, Payload, Shapes, StepFiles
from evaluator.formats.tfrecord import frame
from evaluator.modes import Mode
from evaluator.testing import FakeClock
from evaluator.writer import TrialWriter

KEY = "events/000000000005/000000000005_worker_0.tfevents"
WALL_TIME = 1700000000.5
SHAPES: Shapes = (("w", "w", (2, 3)),)


class Encoder:
    """Encodes steps, and counts how many were not filled in; values can be made to fail, once each."""

    def __init__(self, *, safe: bool = False) -> None:
        self.anew = 0
        self.failing: set[str] = set()
        self._safe = safe
        self._files = StepFiles(self._encoded)

    def __call__(self, named: Named, shapes: Shapes = (), **how: Any) -> tuple[bytes, bytes]:
        """The event file and the index file."""
        parts, size, index_of = self._files.encode(named, shapes, **_how(**how))
        data = b"".join(parts)
        assert size == len(data)
        return data, index_of(KEY)

    def _encoded(self, named: Iterable[tuple[str, object]], **how: Any) -> Iterator[tuple[str, Payload]]:
        self.anew += 1
        for name, value in named:
            try:
                if name in self.failing:
                    self.failing.remove(name)
                    raise MemoryError(name)
                yield name, encode_parts(name, value, **how)
            except (FormatError, MemoryError):
                if not self._safe:
                    raise


def _how(
    step: int = 5, mode: Mode = Mode.TRAIN, mode_step: int | None = None, wall_time: float = WALL_TIME
) -> dict[str, Any]:
    return {"step": step, "mode": mode, "mode_step": step if mode_step is None else mode_step, "wall_time": wall_time}


def plain(named: Named, shapes: Shapes = (), **how: Any) -> tuple[bytes, bytes]:
    """The same, record by record."""
    given = _how(**how)
    records = [frame(encode_event(name, value, **given)) for name, value in named]
    lengths = np.array([len(record) for record in records], np.int64)
    starts = np.cumsum(lengths) - lengths
    index = IndexFile(given["mode"], given["mode_step"], KEY, tuple(name for name, _ in named), starts, lengths, shapes)
    return b"".join(records), encode_index(index)


def numbers(dtype: str = "float32", *shape: int, seed: int = 0) -> Any:
    """An array of this shape; other seeds give other values."""
    return np.random.default_rng(seed).integers(0, 100, shape or (2, 3)).astype(dtype)


# what is filled in

FLOATS = ["float16", "float32", "float64"]
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, "bool"])
@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3), (2, 1, 4), (100, 50)], ids=str)
def test_a_step_like_the_first_is_filled_in_as_if_it_were_encoded(dtype: str, shape: tuple[int, ...]):
    encode = Encoder()
    encode([("w", numbers(dtype, *shape)), ("b", numbers(dtype, 3))], SHAPES)
    named = [("w", numbers(dtype, *shape, seed=1)), ("b", numbers(dtype, 3, seed=2))]
    found = encode(named, SHAPES, step=6, mode_step=7, wall_time=WALL_TIME + 1)

    assert encode.anew == 1
    assert found == plain(named, SHAPES, step=6, mode_step=7, wall_time=WALL_TIME + 1)


@pytest.mark.parametrize("value", [np.array(2.5), np.array(7, np.int32), np.array(True)], ids=repr)
def test_an_array_without_dimensions_is_filled_in(value: Any):
    encode = Encoder()
    encode([("loss", np.zeros_like(value))])

    assert encode([("loss", value)], step=6) == plain([("loss", value)], step=6)
    assert encode.anew == 1


@pytest.mark.parametrize("value", [2.5, -0.0, float("nan"), float("inf")])
def test_a_plain_number_is_filled_in(value: float):
    encode = Encoder()
    encode([("loss", 1.0)])

    assert encode([("loss", value)], step=6) == plain([("loss", value)], step=6)
    assert encode.anew == 1


def test_an_array_that_may_only_be_read_and_a_piece_of_a_larger_one_are_filled_in():
    whole = numbers("float32", 8, 3, seed=1)
    frozen = numbers("float32", 8, 3, seed=2)
    frozen.flags.writeable = False
    named = [("w", whole[2:4]), ("v", frozen[5:7])]
    encode = Encoder()
    encode([("w", numbers()), ("v", numbers())])

    assert encode(named) == plain(named)
    assert encode.anew == 1


def test_a_step_with_shapes_only_is_an_index_file_alone():
    encode = Encoder()

    assert [encode([], SHAPES, step=step) for step in (5, 6)] == [plain([], SHAPES, step=step) for step in (5, 6)]


# where a number takes more bytes than before

MOMENTS: list[dict[str, Any]] = [
    {"step": 0}, {"step": 127}, {"step": 128}, {"step": 2**14}, {"step": 2**35}, {"step": 2**63 - 1},
    {"mode_step": 9}, {"mode_step": 10}, {"mode_step": -1}, {"mode_step": 10**9}, {"mode": Mode.EVAL},
    {"mode": Mode.GLOBAL}, {"mode": Mode.PREDICT}, {"wall_time": 0.0}, {"wall_time": 1e-300},
]  # fmt: skip


@pytest.mark.parametrize("later", MOMENTS, ids=str)
@pytest.mark.parametrize("first", [{"step": 5}, {"step": 2**40, "mode_step": 12345}, {"wall_time": 0.0}], ids=str)
def test_steps_modes_and_times_of_every_length_are_right(first: dict[str, Any], later: dict[str, Any]):
    named = [("w", numbers()), ("b", numbers("int64", 3))]
    encode = Encoder()
    encode(named, **first)

    assert encode(named, **later) == plain(named, **later)


def test_a_step_that_is_too_large_is_refused_also_when_others_like_it_are_known():
    encode = Encoder()
    encode([("w", numbers())], step=2**63 - 1)

    with pytest.raises(FormatError, match=r"step 9223372036854775808 cannot be saved"):
        encode([("w", numbers())], step=2**63)


# what changes

FIRST = [("a", numbers()), ("b", numbers("float32", 4))]
CHANGES: dict[str, tuple[Named, Shapes]] = {
    "another type of the same size": ([("a", numbers("int32")), FIRST[1]], ()),
    "another type of another size": ([("a", numbers("float64")), FIRST[1]], ()),
    "another shape of the same size": ([("a", numbers("float32", 3, 2)), FIRST[1]], ()),
    "one dimension more": ([("a", numbers("float32", 1, 2, 3)), FIRST[1]], ()),
    "another size": ([("a", numbers("float32", 2, 4)), FIRST[1]], ()),
    "another name of the same length": ([("c", FIRST[0][1]), FIRST[1]], ()),
    "a longer name": ([("a" * 200, FIRST[0][1]), FIRST[1]], ()),
    "another order": (FIRST[::-1], ()),
    "names exchanged": ([("b", FIRST[0][1]), ("a", FIRST[1][1])], ()),
    "one less": (FIRST[:1], ()),
    "one more": ([*FIRST, ("c", numbers())], ()),
    "one twice": ([*FIRST, FIRST[0]], ()),
    "a shape": (FIRST, SHAPES),
    "a name that JSON writes otherwise": ([('ü"\\', FIRST[0][1]), FIRST[1]], ()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_step_that_differs_is_not_taken_for_one_that_is_known(change: str):
    encode = Encoder()
    encode(FIRST)
    named, shapes = CHANGES[change]
    there = encode(named, shapes, step=6)
    back = encode(FIRST, step=7)

    assert (there, back) == (plain(named, shapes, step=6), plain(FIRST, step=7))
    assert encode.anew == 2


def test_other_shapes_to_the_same_values_are_not_taken_for_them():
    encode = Encoder()
    encode(FIRST, (("w", "w", (2, 3)),))
    shapes: Shapes = (("w", "w", (3, 2)),)

    assert encode(FIRST, shapes) == plain(FIRST, shapes)


# arrays that are not written as they lie in memory

OTHERS: dict[str, Any] = {
    "every second column": numbers("float32", 4, 6)[:, ::2],
    "backwards": numbers("float32", 6)[::-1],
    "transposed": numbers("float32", 4, 6).T,
    "by columns": np.asfortranarray(numbers("float32", 4, 6)),
    "one value repeated": np.broadcast_to(np.float32(3), (4, 6)),
    "big-endian": numbers(">f4", 4, 6),
    "big-endian whole numbers": numbers(">i8", 4, 6),
    "empty": np.zeros(0, np.float32),
    "empty in one dimension": np.zeros((3, 0, 2), np.float64),
    "complex": numbers("complex128", 3),
    "text": np.array(["ab", "ü", ""]),
    "text of objects": np.array(["ab", "a longer one"], object),
    "one text": "ab",
    "a whole number": 7,
    "a number of numpy": np.float32(2.5),
    "a list": [[1.0, 2.0], [3.0, 4.0]],
    "a subclass": numbers("float32", 2, 2).view(np.recarray),
}


@pytest.mark.parametrize("what", OTHERS)
def test_an_array_that_is_not_written_as_it_lies_in_memory_is_right_each_time(what: str):
    named = [("a", numbers()), ("other", OTHERS[what])]
    encode = Encoder()

    for step in (5, 6):
        assert encode(named, step=step) == plain(named, step=step)


@pytest.mark.parametrize("what", ["every second column", "transposed", "big-endian", "a subclass"])
def test_such_an_array_is_right_after_one_of_the_same_shape_that_was_remembered(what: str):
    other = OTHERS[what]
    encode = Encoder()
    encode([("other", np.zeros(other.shape, other.dtype.newbyteorder("=")))])

    assert encode([("other", other)]) == plain([("other", other)])


# what fails

REFUSED: dict[str, Any] = {
    "bfloat16 as two bytes": np.zeros(3, "V2"),
    "bfloat16 as a field": np.zeros(3, [("bfloat16", "<u2")]),
    "longer than double": np.zeros(3, np.longdouble),
    "dates": np.zeros(3, "M8[s]"),
    "objects": np.array([{}, {}], object),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_saved_is_refused_each_time(what: str):
    if what == "longer than double" and np.dtype(np.longdouble) == np.dtype(np.float64):
        pytest.skip("this machine has no longer floats than double")
    encode = Encoder()

    for _ in range(2):
        with pytest.raises(FormatError, match="cannot be saved"):
            encode([("a", numbers()), ("other", REFUSED[what])])


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_be_saved_beside_it_is_right_each_time(what: str):
    if what == "longer than double" and np.dtype(np.longdouble) == np.dtype(np.float64):
        pytest.skip("this machine has no longer floats than double")
    encode = Encoder(safe=True)

    for step in (5, 6):
        named = [("a", numbers(seed=step)), ("other", REFUSED[what]), ("b", numbers(seed=step + 10))]
        assert encode(named, step=step) == plain([named[0], named[2]], step=step)


@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_step_of_which_a_part_failed_once_is_no_model_for_others(safe: bool, name: str):
    encode = Encoder(safe=safe)
    encode.failing.add(name)
    if safe:
        assert encode(FIRST) == plain([one for one in FIRST if one[0] != name])
    else:
        with pytest.raises(MemoryError):
            encode(FIRST)

    assert encode(FIRST, step=6) == plain(FIRST, step=6)


def test_a_failure_after_a_step_was_remembered_does_not_spoil_what_is_known():
    encode = Encoder(safe=True)
    encode(FIRST)
    encode.failing.add("c")
    encode([*FIRST, ("c", numbers())])

    assert encode(FIRST, step=6) == plain(FIRST, step=6)
    assert encode.anew == 2


# what is kept


def test_of_what_is_remembered_no_array_stays_in_memory():
    encode = Encoder()
    value = numbers()
    kept = weakref.ref(value)
    encode([("a", value)])
    del value

    assert kept() is None


def test_the_kinds_of_steps_of_a_training_are_all_remembered():
    """Whole steps, losses alone, evaluations."""
    kinds = [(FIRST, Mode.TRAIN), ([("loss", 0.5)], Mode.TRAIN), ([("loss", 0.5), ("accuracy", 0.5)], Mode.EVAL)]
    encode = Encoder()
    for step in range(10, 70):
        named, mode = kinds[step % 3]
        assert encode(named, step=step, mode=mode) == plain(named, step=step, mode=mode)

    assert encode.anew == 3


def test_steps_of_which_none_is_like_another_do_not_fill_the_memory():
    """Some 100,000 bytes for each."""

    def some(first: int, last: int) -> int:
        for number in range(first, last):
            encode(FIRST, tuple((f"{number}/{one:030d}", f"{one:030d}", (number, one)) for one in range(500)))
        return tracemalloc.get_traced_memory()[0]

    encode = Encoder()
    tracemalloc.start()
    try:
        before = some(0, 10)
        after = some(10, 100)
    finally:
        tracemalloc.stop()

    assert encode.anew == 100
    assert after - before < 2_000_000


POOL: list[tuple[Named, Shapes]] = [(FIRST, ()), *CHANGES.values()]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(range(len(POOL))),
            st.sampled_from([0, 1, 127, 128, 10**6]),
            st.sampled_from([Mode.TRAIN, Mode.EVAL]),
            st.sampled_from([0, 9, 10]),
        ),
        max_size=30,
    )
)
def test_whatever_came_before_a_step_is_right(steps: list[tuple[int, int, Mode, int]]):
    encode = Encoder()
    for seed, (kind, step, mode, mode_step) in enumerate(steps):
        layout, shapes = POOL[kind]
        named = [(name, numbers(value.dtype.name, *value.shape, seed=seed)) for name, value in layout]
        how: dict[str, Any] = {"step": step, "mode": mode, "mode_step": mode_step, "wall_time": float(seed)}
        assert encode(named, shapes, **how) == plain(named, shapes, **how)


# as files


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_writer_writes_the_same_files_as_one_for_each_step(tmp_path: Path):
    one = TrialWriter(tmp_path / "one", clock=FakeClock())
    for step in range(12):
        values = {"w": numbers("float16", seed=step), "loss": 0.5 * step, "on": np.array([step % 2 == 0])}
        if step % 3 == 2:
            values = {"loss": np.array(step, np.float32)}
        how: dict[str, Any] = {"mode": Mode.TRAIN if step % 2 else Mode.EVAL, "shapes": {"w": (2, 3)}}
        one.save(step, values, **how)
        TrialWriter(tmp_path / "new", clock=FakeClock()).save(step, values, **how)

    assert len(files(tmp_path / "one")) == 25
    assert files(tmp_path / "one") == files(tmp_path / "new")


@pytest.mark.parametrize("value", [numbers(), numbers("float32", 4, 6).T, numbers(">f4")], ids=["plain", "T", "big"])
def test_values_that_the_caller_changes_after_saving_do_not_change_what_was_saved(tmp_path: Path, value: Any):
    value = value.copy()
    first = value.copy()
    one = TrialWriter(tmp_path / "one", clock=FakeClock())
    one.save(0, {"w": value})
    value += 1
    one.save(1, {"w": value})
    value += 1
    other = TrialWriter(tmp_path / "other", clock=FakeClock())
    other.save(0, {"w": first})
    TrialWriter(tmp_path / "other", clock=FakeClock()).save(1, {"w": first + 1})

    assert files(tmp_path / "one") == files(tmp_path / "other")
