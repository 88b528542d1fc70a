"""CSV tables as a source: those of Lightning, Keras and Ultralytics, damage, and growth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.sources import detect
from evaluator.sources.csv_table import CsvTable
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sources.contract import opened
from tests.sources.log_reading import everything, members, problems

LOG = "metrics.csv"

LIGHTNING = """\
epoch,step,train_loss_step,train_loss_epoch,val_loss,val_acc
0,49,0.9,,,
0,99,0.8,,,
0,99,,,0.95,0.5
0,99,,0.85,,
1,149,0.7,,,
"""
KERAS = """\
epoch,accuracy,loss,val_accuracy,val_loss
0,0.5,1.0,0.4,1.1
1,0.6,0.9,0.5,nan
"""
ULTRALYTICS = """\
                  epoch,         train/box_loss,       metrics/mAP50(B),           val/box_loss,                 lr/pg0
                      1,                1.25,                 0.1,                1.5,               0.01
                      2,                   1,                 0.2,                inf,              0.009
"""


def saved(text: str | bytes) -> MemoryStore:
    store = MemoryStore(clock=FakeClock())
    store.write(LOG, text.encode() if isinstance(text, str) else text)
    return store


def read(text: str) -> CsvTable:
    return CsvTable(saved(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LIGHTNING, True),
        (KERAS, True),
        (ULTRALYTICS, True),
        ("epoch,loss\n", True),
        ("step\tloss\n1\t2\n", True),
        ("iter;loss\n", True),
        ("step,name,value\n", True),
        ("name,age\nx,1\n", False),
        ("step\n1\n", False),
        ("", False),
    ],
)
def test_a_header_with_a_step_makes_a_log(text: str, expected: bool):
    assert isinstance(detect(saved(text)), CsvTable) is expected


def test_sparse_rows_of_lightning_come_together():
    source = read(LIGHTNING)

    assert everything(source) == {
        ("train_loss_step", "TRAIN"): {49: 0.9, 99: 0.8, 149: 0.7},
        ("train_loss_epoch", "TRAIN"): {99: 0.85},
        ("val_loss", "EVAL"): {99: 0.95},
        ("val_acc", "EVAL"): {99: 0.5},
    }
    assert problems(source) == {}


def test_training_and_validation_of_keras_stand_at_the_same_step():
    found = everything(read(KERAS))

    np.testing.assert_equal(
        found,
        {
            ("accuracy", "TRAIN"): {0: 0.5, 1: 0.6},
            ("loss", "TRAIN"): {0: 1.0, 1: 0.9},
            ("val_accuracy", "EVAL"): {0: 0.4, 1: 0.5},
            ("val_loss", "EVAL"): {0: 1.1, 1: math.nan},
        },
    )


def test_padded_names_of_ultralytics_are_plain():
    source = read(ULTRALYTICS)

    assert everything(source) == {
        ("train/box_loss", "TRAIN"): {1: 1.25, 2: 1.0},
        ("metrics/mAP50(B)", "EVAL"): {1: 0.1, 2: 0.2},
        ("val/box_loss", "EVAL"): {1: 1.5, 2: math.inf},
        ("lr/pg0", "TRAIN"): {1: 0.01, 2: 0.009},
    }
    assert (members(CsvTable(saved(ULTRALYTICS)), "losses")) == ("train/box_loss", "val/box_loss")


def test_long_rows_have_one_value_each():
    source = read("step,name,value,mode\n0,loss,1.5,TRAIN\n0,loss,2.5,EVAL\n1,val_f1,NaN,\n")

    np.testing.assert_equal(
        everything(source),
        {("loss", "TRAIN"): {0: 1.5}, ("loss", "EVAL"): {0: 2.5}, ("val_f1", "EVAL"): {1: math.nan}},
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_delimiters_newlines_and_a_mark_of_the_encoding(newline: str, delimiter: str, mark: bytes):
    text = newline.join([delimiter.join(row) for row in [("step", '"my, loss"'), ("0", "1.5"), ("1", "")]]) + newline
    source = CsvTable(saved(mark + text.encode()))

    assert everything(source) == {("my, loss", "TRAIN"): {0: 1.5}}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("1,2", "has 2 cells; the header has 3"),
        ("1,2,3,4", "has 4 cells; the header has 3"),
        (",2,3", "has nothing as 'step'"),
        ("x,2,3", "has 'x' as 'step'"),
        ("-1,2,3", "has '-1' as 'step'"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_rest_is_used(row: str, what: str):
    source = read(f"step,loss,lr\n0,1,1\n{row}\n2,3,1\n")

    assert everything(source)["loss", "TRAIN"] == {0: 1.0, 2: 3.0}
    assert problems(source)[LOG].startswith(f"1 line not used: line 3 {what}")


@given(content=st.binary(max_size=80) | st.text(',;"\n0123456789.e-nastep \r', max_size=80).map(str.encode))
def test_whatever_bytes_follow_the_table_is_read(content: bytes):
    source = CsvTable(saved(b"step,loss\n1000000,1\n" + content))

    assert 10**6 in everything(source)["loss", "TRAIN"]


def test_words_in_a_column_are_named():
    source = read("step,loss,when\n0,1,yesterday\n")
    source.sightings()

    assert problems(source) == {f"{LOG} (columns)": "what is no number is not used: 'when'"}


def test_a_header_that_comes_again_begins_anew():
    source = read("epoch,loss\n0,1\nepoch,loss,val_loss\n1,2,3\n")

    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 1: 2.0}, ("val_loss", "EVAL"): {1: 3.0}}
    assert problems(source) == {}


def test_a_header_that_was_extended_is_read_anew():
    """Lightning writes the file again when a new name comes."""
    store = saved("epoch,step,loss\n0,9,1\n0,19,2\n")
    source = CsvTable(store)
    opened(source)
    before = source.sightings()
    store.write(LOG, b"epoch,step,loss,val_loss\n0,9,1,\n0,19,2,\n0,19,,3\n0,29,1,\n")

    assert source.sightings()[:2] == before
    assert everything(source) == {("loss", "TRAIN"): {9: 1.0, 19: 2.0, 29: 1.0}, ("val_loss", "EVAL"): {19: 3.0}}


def test_a_last_line_without_newline_waits():
    store = saved("step,loss\n0,1\n1,12")
    source = CsvTable(store)
    waiting = everything(source)
    named = problems(source)
    store.append(LOG, b"34\n")
    source.sightings()

    assert waiting == {("loss", "TRAIN"): {0: 1.0}}
    assert named == {f"{LOG} (last line)": "has no newline, so it may not be whole; not used yet"}
    assert everything(source) == {("loss", "TRAIN"): {0: 1.0, 1: 1234.0}}


def test_a_table_that_is_seen_half_rewritten_has_no_late_values():
    rows = ["epoch,step,loss,val_loss", "0,9,1,", "0,9,,2", "0,19,3,"]
    store = saved("\n".join(rows) + "\n")
    source = CsvTable(store)
    opened(source)
    before = source.sightings()
    store.write(LOG, "\n".join(rows[:2]).encode() + b"\n")
    source.sightings()
    store.write(LOG, "\n".join(rows).encode() + b"\n")

    assert source.sightings() == before
    assert problems(source) == {}


@given(cut=st.integers(0, 10_000))
def test_a_table_cut_at_any_byte_is_read_up_to_its_last_whole_row(cut: int):
    data = ("step,loss,val_loss\n" + "".join(f"{step},{step / 8},{step + 0.5}\n" for step in range(12))).encode()
    cut %= len(data) + 1
    source = CsvTable(saved(data[:cut]))
    whole = max(0, data[:cut].count(b"\n") - 1)

    assert everything(source).get(("loss", "TRAIN"), {}) == {step: step / 8 for step in range(whole)}
