"""Index files whose entries are those of a former one are read as if each were the first."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from evaluator.errors import FormatError
from evaluator.formats.index_file import IndexFile, parse_index
from evaluator.modes import Mode
from evaluator.sources import index_reading
from evaluator.sources.index_reading import IndexReader

NAMES = ("w0", "w1", "loss")
META = b'{"mode": "EVAL", "mode_step": 9, "event_file_name": "e"}'


def index_file(
    step: int, *, names: tuple[str, ...] = NAMES, length: int = 100, mode: str = "TRAIN", **more: Any
) -> bytes:
    meta = {"mode": mode, "mode_step": step, "event_file_name": f"events/{step}/w.tfevents"} | more
    entries = [{"tensorname": name, "start_idx": at * length, "length": length} for at, name in enumerate(names)]
    return json.dumps({"meta": meta, "tensor_payload": entries, "shape_payload": []}).encode()


def told(index: IndexFile) -> tuple[object, ...]:
    places = index.starts.tolist(), index.lengths.tolist()
    return index.mode, index.mode_step, index.event_file_name, index.names, places, index.shapes


def test_files_with_the_same_entries_share_them_and_say_their_own_step():
    reader = IndexReader()
    first, second = (reader.parse(index_file(step, mode=mode), "a", "x") for step, mode in ((0, "TRAIN"), (7, "EVAL")))

    assert (second.mode, second.mode_step, second.event_file_name) == (Mode.EVAL, 7, "events/7/w.tfevents")
    assert second.names is first.names
    assert second.starts is first.starts
    assert second.lengths is first.lengths


@pytest.mark.parametrize(
    "changed",
    [
        index_file(1, names=("w0", "w2", "loss")),
        index_file(1, length=200),
        index_file(1, names=NAMES[:2]),
        index_file(1, event_file_name="events/tensor_payload/w"),
        index_file(1, event_file_name='events/"tensor_payload": []}'),
        index_file(1).replace(b'"shape_payload": []', b'"meta": ' + META),
        index_file(1).replace(b'"shape_payload": []', b'"m\\u0065ta": ' + META),
        index_file(1).replace(b'{"meta"', b'{"tensor_payload": [], "meta"'),
        b'{"shape_payload": [{"tensorname": "w", "shape": [2]}], "meta": {"mode": "TRAIN", "mode_step": 1}}',
    ],
)  # fmt: skip
def test_whatever_differs_is_read_as_if_nothing_had_been_read_before(changed: bytes):
    reader = IndexReader()
    reader.parse(index_file(0), "a", "x")

    for _ in range(2):
        assert told(reader.parse(changed, "a", "x")) == told(parse_index(changed, "x"))
    assert told(reader.parse(index_file(3), "a", "x")) == told(parse_index(index_file(3), "x"))


@pytest.mark.parametrize(
    "damaged",
    [
        index_file(1, mode="NO_SUCH"),
        index_file(1, event_file_name="../secret"),
        index_file(1, event_file_name=None),
        index_file(1)[:-5],
        b'{"other": {' + index_file(1)[1:],
        b'{"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "e", ' + index_file(1).partition(b"}, ")[2],
    ],
)
def test_a_damaged_file_is_refused_also_after_a_sound_one_with_the_same_entries(damaged: bytes):
    reader = IndexReader()
    reader.parse(index_file(0), "a", "x")

    with pytest.raises(FormatError) as alone:
        parse_index(damaged, "x")
    with pytest.raises(FormatError) as after:
        reader.parse(damaged, "a", "x")
    assert str(after.value) == str(alone.value)


def test_workers_do_not_share_what_they_did_not_write():
    reader = IndexReader()
    mine, theirs = (reader.parse(index_file(0), worker, "x") for worker in ("a", "b"))

    assert mine.starts is not theirs.starts
    assert np.array_equal(mine.starts, theirs.starts)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_reading, "MOST_REMEMBERED", 1000)
    reader = IndexReader()
    for number in range(50):
        data = index_file(number, names=tuple(f"w{one}" for one in range(number % 9 + 1)))
        assert told(reader.parse(data, "a", "x")) == told(parse_index(data, "x"))
        assert sum(len(former.text) for former in reader._former.values()) <= 1000
