"""JSON lines as a source: both forms, every way to write a number, damage, and growth."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.sources import detect
from evaluator.sources.json_lines import JsonLines
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sources.contract import opened
from tests.sources.log_reading import everything, problems

LOG = "metrics.jsonl"


def saved(text: str | bytes, key: str = LOG) -> MemoryStore:
    store = MemoryStore(clock=FakeClock())
    store.write(key, text.encode() if isinstance(text, str) else text)
    return store


def lines(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def read(*rows: object) -> JsonLines:
    return JsonLines(saved(lines(*rows)))


# what is one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"step": 0, "loss": 1}\n', True),
        ('{"step": 0, "loss": 1}', True),
        ('{"epoch": 0, "val_loss": "NaN"}\n', True),
        ('{"lr": 0.1, "name": "the arguments"}\n{"step": 0, "loss": 1}\n', True),
        ('{"global_step": 5, "name": "loss", "value": 2}\n', True),
        ('{"loss": 1}\n', False),
        ('{"step": 0, "text": "words"}\n', False),
        ('{"step": 0, "lo', False),
        ("[1, 2]\n", False),
        ("no JSON\n", False),
        ('{"schema": 1, "rule_configuration": "X", "step": 3, "measured": 4.0}\n', False),
        ("", False),
    ],
)
def test_lines_with_a_step_and_a_number_are_a_log(text: str, expected: bool):
    assert isinstance(detect(saved(text)), JsonLines) is expected


def test_two_logs_in_a_folder_are_no_run():
    store = saved(lines({"step": 0, "loss": 1}))
    store.write("other.jsonl", lines({"step": 0, "loss": 1}).encode())

    assert (detect(store), JsonLines.runs_beside(store)) == (None, ["metrics.jsonl", "other.jsonl"])


def test_other_files_beside_a_log_do_no_harm():
    store = saved(lines({"step": 0, "loss": 1}))
    store.write("arguments.json", b'{"lr": 0.1}')
    store.write("data/rows.jsonl", lines({"step": 0, "loss": 1}).encode())

    assert everything(JsonLines(store)) == {("loss", "TRAIN"): {0: 1.0}}


# rows


def test_a_wide_row_has_one_column_per_name():
    source = read({"step": 0, "loss": 2.5, "val_loss": 3.0, "lr": 0.1, "epoch": 0.0}, {"step": 1, "loss": 2})

    assert everything(source) == {
        ("loss", "TRAIN"): {0: 2.5, 1: 2.0},
        ("lr", "TRAIN"): {0: 0.1},
        ("val_loss", "EVAL"): {0: 3.0},
    }


def test_a_long_row_has_one_value():
    source = read(
        {"step": 3, "name": "loss", "value": 2.5, "mode": "TRAIN"},
        {"step": 3, "name": "top1", "value": "0.5", "mode": "eval"},
        {"step": 3, "name": "val_loss", "value": 4},
    )

    assert everything(source) == {
        ("loss", "TRAIN"): {3: 2.5},
        ("top1", "EVAL"): {3: 0.5},
        ("val_loss", "EVAL"): {3: 4.0},
    }


def test_the_same_name_in_two_modes_at_one_step_is_kept_twice():
    source = read({"step": 1, "mode": "train", "loss": 1.0}, {"step": 1, "mode": "val", "loss": 2.0})

    assert everything(source) == {("loss", "TRAIN"): {1: 1.0}, ("loss", "EVAL"): {1: 2.0}}


@pytest.mark.parametrize("column", ["step", "global_step", "Step", "iter", "iteration", "epoch", "_step"])
def test_steps_have_several_names(column: str):
    assert everything(read({column: 7, "loss": 1.0})) == {("loss", "TRAIN"): {7: 1.0}}


def test_a_step_counts_before_an_epoch():
    assert everything(read({"epoch": 1, "step": 700, "loss": 1.0})) == {("loss", "TRAIN"): {700: 1.0}}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1e-3", 0.001),
        ('"0.5"', 0.5),
        ("NaN", math.nan),
        ('"NaN"', math.nan),
        ('"nan"', math.nan),
        ("Infinity", math.inf),
        ('"Infinity"', math.inf),
        ('"inf"', math.inf),
        ('"-inf"', -math.inf),
        ('"-Infinity"', -math.inf),
        ("1" + "0" * 400, math.inf),
    ],
)
def test_numbers_are_written_in_many_ways(written: str, expected: float):
    found = everything(JsonLines(saved(f'{{"step": 0, "loss": {written}}}\n')))

    np.testing.assert_equal(found["loss", "TRAIN"], {0: expected})


def test_objects_in_objects_have_names_with_slashes():
    source = read({"step": 0, "train": {"loss": 1.0, "deep": {"lr": 2}}, "eval": {"loss": 3.0}})

    assert everything(source) == {
        ("train/loss", "TRAIN"): {0: 1.0},
        ("train/deep/lr", "TRAIN"): {0: 2.0},
        ("eval/loss", "EVAL"): {0: 3.0},
    }


def test_what_is_no_number_is_not_used_and_named():
    source = read({"step": 0, "loss": 1.0, "note": "words", "done": True, "parts": [1, 2], "gone": None})

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0}}
    assert problems(source) == {f"{LOG} (columns)": "what is no number is not used: 'note', 'done', 'parts'"}


def test_collections_are_told_by_the_names():
    names = ["loss", "eval_accuracy", "eval_wer", "grad_norm", "learning_rate", "x"]
    collections = read({"step": 0, **dict.fromkeys(names, 1)}).collections()

    assert collections is not None
    assert {name: saved.tensor_names for name, saved in collections.by_name.items()} == {
        "losses": ("loss",),
        "metrics": ("eval_accuracy", "eval_wer"),
        "rising_metrics": ("eval_accuracy",),
        "falling_metrics": ("eval_wer",),
        "gradient_norms": ("grad_norm",),
        "learning_rates": ("learning_rate",),
    }


def test_a_later_value_of_a_step_counts():
    assert everything(read({"step": 0, "loss": 1.0}, {"step": 0, "loss": 2.0})) == {("loss", "TRAIN"): {0: 2.0}}


# damage


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{not json}", "is no JSON: '{not json}'"),
        (b"[1, 2]", "is no object: '[1, 2]'"),
        (b'{"loss": 1}', "has nothing as 'step'; a whole number"),
        (b'{"step": -1, "loss": 1}', "has -1 as 'step'"),
        (b'{"step": 1.5, "loss": 1}', "has 1.5 as 'step'"),
        (b'{"step": "NaN", "loss": 1}', "has 'NaN' as 'step'"),
        (b'{"step": 1e300, "loss": 1}', "has 1e+300 as 'step'"),
        (b'{"step": 1, "name": "x", "value": "words"}', "has 'words' as value of 'x'"),
        (b'{"step": 1, "loss": "\xff"}', "is not UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"step": 1, "x": "' + b"x" * (1 << 20) + b'"}', "has 1048596 bytes; at most 1048576 are read"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_rest_is_used(line: bytes, what: str):
    good = [b'{"step": 0, "loss": 1.0}', b'{"step": 2, "loss": 3.0}']
    source = JsonLines(saved(b"\n".join([good[0], line, good[1]]) + b"\n"))

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 2: 3.0}}
    assert problems(source)[LOG].startswith(f"1 line not used: line 2 {what}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["step", "epoch", "mode", "name", "value", "loss", "", " "])


@given(rows=st.lists(st.dictionaries(KEYS, JSON, max_size=4) | JSON, max_size=4))
def test_whatever_rows_say_the_log_is_read(rows: list[object]):
    source = JsonLines(saved(lines({"step": 10**6, "loss": 1.0}, *rows)))

    assert everything(source)["loss", "TRAIN"].get(10**6) is not None


@given(content=st.binary(max_size=80))
def test_whatever_bytes_follow_the_log_is_read(content: bytes):
    source = JsonLines(saved(lines({"step": 10**6, "loss": 1.0}).encode() + content))

    assert everything(source)["loss", "TRAIN"][10**6] == 1.0


def test_many_wrong_rows_are_counted():
    source = JsonLines(saved('{"step": 0, "loss": 1}\n' + "x\n" * 50))
    source.sightings()

    what = problems(source)[LOG]
    assert (what[:27], what[-13:]) == ("50 lines not used: line 2 i", "; and 47 more")


def test_a_line_without_end_does_not_fill_the_memory():
    store = saved(lines({"step": 0, "loss": 1.0}))
    source = JsonLines(store)
    for _ in range(4):
        store.append(LOG, b"x" * (1 << 19))
        source.sightings()
    store.append(LOG, b"\n" + lines({"step": 1, "loss": 2.0}).encode())

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 1: 2.0}}
    assert problems(source)[LOG] == "1 line not used: line 2 has more than 1048576 bytes"


# growth

ROWS = [{"step": step, "loss": step / 8, "val_loss": step + 0.5} for step in range(12)]


@given(cut=st.integers(0, 10_000))
def test_a_log_cut_at_any_byte_is_read_up_to_its_last_whole_row(cut: int):
    data = lines(*ROWS).encode()
    cut %= len(data) + 1
    source = JsonLines(saved(data[:cut]))
    # an object that is closed is whole, also before its newline
    whole = (data[:cut] + b"\n").count(b"}\n")

    assert everything(source).get(("loss", "TRAIN"), {}) == {row["step"]: row["loss"] for row in ROWS[:whole]}


@given(cuts=st.lists(st.integers(0, 700), max_size=6))
def test_however_a_log_grows_the_result_is_the_same(cuts: list[int]):
    data = lines(*ROWS).encode()
    store = saved(b"")
    source = JsonLines(store)
    for cut in sorted(cuts):
        store.write(LOG, data[:cut])
        source.sightings()
    store.write(LOG, data)

    assert everything(source)["loss", "TRAIN"] == {row["step"]: row["loss"] for row in ROWS}
    assert problems(source) == {}


def test_the_newest_step_is_open_and_those_before_are_not():
    source = read({"step": 0, "loss": 1.0}, {"step": 10, "loss": 1.0})
    source.sightings()

    assert source.open_from == 10


def test_a_log_that_was_written_anew_is_read_anew():
    store = saved(lines({"step": 0, "loss": 1.0}, {"step": 1, "loss": 2.0}, {"step": 2, "loss": 3.0}))
    source = JsonLines(store)
    opened(source)
    before = source.sightings()
    store.write(LOG, lines({"note": 1}, {"step": 0, "loss": 1.0}, {"step": 1, "loss": 9.0}).encode())
    after = source.sightings()

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 1: 9.0}}
    assert [one == other for one, other in zip(before, after, strict=False)] == [True, False]


def test_a_log_that_is_half_written_anew_takes_nothing_back():
    """Some loggers write the whole file at each save; a reader may see it half done."""
    store = saved(lines(*ROWS))
    source = JsonLines(store)
    opened(source)
    before = source.sightings()
    store.write(LOG, lines(*ROWS[:5]).encode())
    source.sightings()
    store.write(LOG, lines(*ROWS).encode())

    assert source.sightings() == before
