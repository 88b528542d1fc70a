"""Trial folders written by TrialWriter: what is in them, in which order, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluator.errors import FormatError
from evaluator.formats.collection_file import SavedCollection, parse_collections
from evaluator.formats.event import Event, decode_event
from evaluator.formats.index_file import IndexFile, parse_index
from evaluator.formats.tfrecord import read_record
from evaluator.modes import Mode
from evaluator.writer import TrialWriter, write_end_marker

INDEX = "index/000000000/000000000005_worker_0.json"
EVENTS = "events/000000000005/000000000005_worker_0.tfevents"
COLLECTIONS = "collections/000000000/worker_0_collections.json"


def files(folder: Path) -> list[str]:
    """The keys of all files in a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def index_of(folder: Path, key: str = INDEX) -> IndexFile:
    """The content of an index file."""
    return parse_index((folder / key).read_bytes(), key)


def saved(folder: Path, key: str = INDEX) -> list[Event]:
    """All events that an index file leads to."""
    index = index_of(folder, key)
    data = (folder / str(index.event_file_name)).read_bytes()
    places = zip(index.starts.tolist(), index.lengths.tolist(), strict=True)
    events = [decode_event(read_record(data, start, length)) for start, length in places]
    return [event for event in events if event is not None]


def test_a_saved_step_is_read_back_through_its_index_file(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)

    writer.save(5, {"a": np.eye(2), "b": 3, "absent": None}, mode=Mode.TRAIN, mode_step=2, wall_time=9.5)

    events = saved(tmp_path)
    assert [(event.name, event.values.tolist()) for event in events] == [("a", [[1, 0], [0, 1]]), ("b", [3])]
    assert {(event.step, event.mode, event.mode_step, event.wall_time) for event in events} == {(5, Mode.TRAIN, 2, 9.5)}
    assert (index_of(tmp_path).mode, index_of(tmp_path).mode_step) == (Mode.TRAIN, 2)


def test_the_mode_step_of_a_step_without_a_mode_is_the_step(tmp_path: Path) -> None:
    TrialWriter(tmp_path).save(5, {"a": 1})

    assert (index_of(tmp_path).mode, index_of(tmp_path).mode_step) == (Mode.GLOBAL, 5)


def test_a_step_can_be_read_as_soon_as_it_is_saved_and_nothing_unfinished_is_left(tmp_path: Path) -> None:
    TrialWriter(tmp_path).save(5, {"a": 1})

    assert files(tmp_path) == [COLLECTIONS, EVENTS, INDEX]


def test_a_step_with_only_shapes_has_no_event_file(tmp_path: Path) -> None:
    TrialWriter(tmp_path).save(5, {}, shapes={"w": (2, 3)})

    assert files(tmp_path) == [COLLECTIONS, INDEX]
    assert (index_of(tmp_path).shapes, index_of(tmp_path).event_file_name) == ((("w", "w", (2, 3)),), None)


def test_a_step_with_nothing_to_save_has_no_file(tmp_path: Path) -> None:
    TrialWriter(tmp_path).save(5, {"a": None})

    assert files(tmp_path) == []


def test_reductions_are_saved_under_their_long_names(tmp_path: Path) -> None:
    TrialWriter(tmp_path).save(5, {}, reductions={"w:0": {"abs_max": 2.5, "l2": np.float32(1)}})

    assert [(event.name, event.values.tolist()) for event in saved(tmp_path)] == [
        ("smdebug/reductions/abs_max/w:0", [2.5]),
        ("smdebug/reductions/l2/w:0", [1.0]),
    ]


def test_collections_are_given_as_names_or_as_names_and_patterns(tmp_path: Path) -> None:
    spec = {"losses": ["loss"], "weights": {"include_regex": ["weight$"], "tensor_names": ["w"]}}
    TrialWriter(tmp_path, num_workers=2, collections=spec).write_collections()

    found = parse_collections((tmp_path / COLLECTIONS).read_bytes(), "x")

    losses = SavedCollection("losses", (), ("loss",))
    weights = SavedCollection("weights", ("weight$",), ("w",))
    assert (found.collections, found.num_workers) == ({"losses": losses, "weights": weights}, 2)


def test_leaving_the_context_marks_the_run_as_ended(tmp_path: Path) -> None:
    with TrialWriter(tmp_path):
        pass

    assert files(tmp_path) == [COLLECTIONS, "training_job_end.ts"]


def test_one_of_several_workers_does_not_end_the_run(tmp_path: Path) -> None:
    with TrialWriter(tmp_path, worker="worker_1", num_workers=2) as writer:
        writer.save(0, {"a": 1})

    assert "training_job_end.ts" not in files(tmp_path)


def test_a_run_that_failed_is_not_marked_as_ended(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), TrialWriter(tmp_path):
        raise RuntimeError

    assert files(tmp_path) == [COLLECTIONS]


@pytest.mark.parametrize("end", [True, False])
def test_close_marks_the_end_only_if_asked(tmp_path: Path, end: bool) -> None:
    TrialWriter(tmp_path, num_workers=2).close(end=end)

    assert (tmp_path / "training_job_end.ts").exists() == end


def test_the_end_marker_is_empty(tmp_path: Path) -> None:
    write_end_marker(tmp_path / "new")

    assert (tmp_path / "new" / "training_job_end.ts").read_bytes() == b""


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    writer.save(5, {"a": 1, "b": 2})

    writer.save(5, {"a": 3})

    assert [(event.name, event.values.tolist()) for event in saved(tmp_path)] == [("a", [3])]


def test_numpy_integers_are_steps(tmp_path: Path) -> None:
    TrialWriter(tmp_path).save(np.int64(5), {"a": 1}, mode_step=np.int64(5))  # type: ignore[arg-type]

    assert json.loads((tmp_path / INDEX).read_bytes())["meta"]["mode_step"] == 5


@pytest.mark.parametrize(
    ("step", "values", "reductions"),
    [
        (-1, {"a": 1}, {}),
        (0, {"a": object()}, {}),
        (0, {"": 1}, {}),
        (0, {"good": 1, "bad": b"x"}, {}),
        (0, {}, {"a": {"median": 1}}),
    ],
)
def test_what_cannot_be_saved_leaves_no_file(
    tmp_path: Path, step: int, values: dict[str, object], reductions: dict[str, dict[str, object]]
) -> None:
    with pytest.raises(FormatError):
        TrialWriter(tmp_path).save(step, values, reductions=reductions)

    assert files(tmp_path) == []


def test_a_collection_that_is_one_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="collection 'losses': its tensors are 'loss'; a list of tensor names"):
        TrialWriter(tmp_path, collections={"losses": "loss"})
