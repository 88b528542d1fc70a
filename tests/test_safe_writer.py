"""SafeWriter: whatever goes wrong, the training goes on, one warning says so, and the rest is saved."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.safe_writer import SafeWriter
from tests.test_writer import INDEX, index_of, saved


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is said in the log."""
    caplog.set_level(logging.WARNING, "evaluator.saving")
    return caplog


def test_what_goes_well_is_saved_as_by_the_strict_one(tmp_path: Path, warnings):
    with SafeWriter(tmp_path) as writer:
        writer.save(5, {"a": np.eye(2)})

    assert [event.name for event in saved(tmp_path)] == ["a"]
    assert (tmp_path / "training_job_end.ts").exists()
    assert (writer.failures, warnings.messages) == (0, [])


@pytest.mark.parametrize("value", [object(), b"bytes", np.datetime64("2026-01-01"), {"a": 1}, [[1], [2, 3]]])
def test_a_value_that_cannot_be_saved_costs_only_itself(tmp_path: Path, warnings, value: object):
    writer = SafeWriter(tmp_path)
    writer.save(5, {"good": 1, "bad": value, "fine": 2})

    assert [event.name for event in saved(tmp_path)] == ["good", "fine"]
    assert (writer.failures, len(warnings.messages)) == (1, 1)
    assert "a tensor of step 5 was not saved" in warnings.messages[0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_a_value(tmp_path: Path, value: float):
    writer = SafeWriter(tmp_path)
    writer.save(5, {"a": value})

    assert writer.failures == 0
    np.testing.assert_array_equal(saved(tmp_path)[0].values, [value])


def test_a_folder_that_cannot_be_written_is_one_warning_and_a_count(tmp_path: Path, warnings):
    (tmp_path / "file").write_bytes(b"")

    with SafeWriter(tmp_path / "file" / "trial") as writer:
        for step in range(10):
            writer.save(step, {"a": 1})

    assert writer.failures >= 10
    assert ["training goes on" in message for message in warnings.messages] == [True, False]
    assert warnings.messages[-1].startswith(f"saving failed {writer.failures} times; the first: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here to stand for a full disk")
def test_a_full_disk_leaves_no_half_file_and_saving_begins_again_when_there_is_room(tmp_path: Path, warnings):
    writer = SafeWriter(tmp_path)
    writer.save(4, {"a": 1})
    folder = tmp_path / "events" / "000000000005"
    folder.mkdir()
    (folder / "000000000005_worker_0.tfevents.tmp").symlink_to("/dev/full")
    writer.save(5, {"a": 1})
    full = writer.failures, (tmp_path / INDEX).exists(), list(folder.parent.glob("*5/*"))
    writer.save(5, {"a": 2})

    assert full == (1, False, [])
    assert "No space left on device" in warnings.messages[0]
    assert [event.values.tolist() for event in saved(tmp_path)] == [[2]]


@pytest.mark.parametrize("options", [{"keep_steps": 0}, {"collections": {"losses": "loss"}}, {"nonsense": 1}])
def test_a_writer_that_could_not_be_opened_does_nothing(tmp_path: Path, warnings, options: dict[str, Any]):
    with SafeWriter(tmp_path, **options) as writer:
        writer.save(5, {"a": 1})
        writer.collect({"losses": ["a"]})

    assert (list(tmp_path.iterdir()), writer.should_stop) == ([], False)
    assert "the trial cannot be opened" in warnings.messages[0]


@pytest.mark.parametrize("step", [-1, 2**64, "five", None])
def test_a_step_that_is_none_is_not_saved(tmp_path: Path, step: Any):
    writer = SafeWriter(tmp_path)
    writer.save(step, {"a": 1})

    assert writer.failures == 1


def test_what_ends_a_program_on_purpose_passes(tmp_path: Path):
    class Ends:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SafeWriter(tmp_path).save(5, {"a": Ends()})


def test_a_log_that_is_broken_breaks_nothing(tmp_path: Path):
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError(record)

    log, handler = logging.getLogger("evaluator.saving"), Broken()
    log.addHandler(handler)
    try:
        SafeWriter(tmp_path).save(5, {"bad": object()})
    finally:
        log.removeHandler(handler)


def test_a_file_named_stop_is_seen(tmp_path: Path):
    (tmp_path / "STOP").write_bytes(b"")

    assert SafeWriter(tmp_path).should_stop


def test_collections_that_grow_are_written_with_the_next_step(tmp_path: Path):
    writer = SafeWriter(tmp_path, collections={"losses": ["a"]})
    writer.save(4, {"a": 1})
    writer.collect({"losses": ["b", "a"], "metrics": {"include_regex": ["acc"]}})
    writer.save(5, {"b": 1})

    assert index_of(tmp_path).names == ("b",)
    text = (tmp_path / "collections/000000000/worker_0_collections.json").read_text()
    assert '"tensor_names": ["a", "b"]' in text
    assert '"acc"' in text
