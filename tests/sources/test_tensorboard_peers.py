"""Event files of libraries that we did not write, against TensorBoard's own reader."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.sources.tensorboard import TensorBoardLogs
from evaluator.storage.file import FileStore
from evaluator.trial.opening import open_run
from tests.sources.log_reading import Found, alike, everything

NOT_INSTALLED = "not installed (dependency group dev)"
writing = pytest.importorskip("tensorboardX", reason=f"tensorboardX is {NOT_INSTALLED}")
pytest.importorskip("tensorboard", reason=f"tensorboard is {NOT_INSTALLED}")
accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
file_writers = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
protos = pytest.importorskip("tensorboard.compat.proto")
scalar_metadata = pytest.importorskip("tensorboard.plugins.scalar.metadata")
tensor_util = pytest.importorskip("tensorboard.util.tensor_util")

VALUES = [2.5, 0.1, -3.0, math.inf, math.nan, 1e-40, 7.0, 1e38]


def by_their_reader(folder: Path, prefix: str = "") -> dict[str, dict[int, float]]:
    """Name -> step -> value, as TensorBoard's reader has them; the last one of a step."""
    accumulator = accumulators.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    found = {prefix + tag: {one.step: float(one.value) for one in accumulator.Scalars(tag)} for tag in tags["scalars"]}
    for tag in tags["tensors"]:
        arrays = {one.step: tensor_util.make_ndarray(one.tensor_proto) for one in accumulator.Tensors(tag)}
        if all(array.dtype.kind in "fiub" for array in arrays.values()):
            found[prefix + tag] = {step: float(array) for step, array in arrays.items()}
    return found


def by_ours(found: Found) -> dict[str, dict[int, float]]:
    return {name: steps for (name, _), steps in found.items()}


def same(one: dict[str, dict[int, float]], other: dict[str, dict[int, float]]) -> bool:
    return alike({(name, ""): one[name] for name in sorted(one)}, {(name, ""): other[name] for name in sorted(other)})


def test_a_folder_of_tensorboardx_gives_the_same_scalars(tmp_path: Path):
    for folder, shift in [("train", 0.0), ("validation", 0.5)]:
        with writing.SummaryWriter(str(tmp_path / folder)) as writer:
            for step, value in enumerate(VALUES * 5):
                writer.add_scalar("loss", value + shift, step * 10)
                writer.add_scalar("metrics/accuracy", shift, step * 10, summary_description="described")
            writer.add_histogram("weights", np.arange(10.0), 0)
            writer.add_text("note", "words", 0)
    theirs = {
        **by_their_reader(tmp_path / "train", "train/"),
        **by_their_reader(tmp_path / "validation", "validation/"),
    }

    assert len(theirs) == 4
    assert same(by_ours(everything(open_run(str(tmp_path)))), theirs)


@pytest.fixture
def proto_writer(tmp_path: Path) -> Iterator[Any]:
    """TensorBoard's own writer of event files."""
    writer = file_writers.EventFileWriter(str(tmp_path / "run"))
    yield writer
    writer.close()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"])
def test_scalars_as_tensors_are_the_same(tmp_path: Path, proto_writer: Any, dtype: str):
    for step in range(6):
        proto = tensor_util.make_tensor_proto(np.array(step % 2 * 0.75 + (step if dtype != "bool" else 0), dtype))
        described = scalar_metadata.create_summary_metadata("", "")
        value = protos.summary_pb2.Summary.Value(tag="x", tensor=proto, metadata=described if step == 0 else None)
        event = protos.event_pb2.Event(
            step=step, wall_time=1e9 + step, summary=protos.summary_pb2.Summary(value=[value])
        )
        proto_writer.add_event(event)
    proto_writer.flush()

    theirs = by_their_reader(tmp_path / "run")
    assert len(theirs["x"]) == 6
    assert same(by_ours(everything(open_run(str(tmp_path / "run")))), theirs)


def test_a_run_that_was_resumed_is_the_same(tmp_path: Path):
    for purge, first in [(None, 0), (4, 4)]:
        with writing.SummaryWriter(str(tmp_path), purge_step=purge, filename_suffix=f".{first}") as writer:
            for step in range(first, first + 8):
                writer.add_scalar("loss", step + first, step, walltime=1e9 + first * 100 + step)

    assert same(by_ours(everything(open_run(str(tmp_path)))), by_their_reader(tmp_path))


def test_a_growing_folder_is_the_same_after_every_flush(tmp_path: Path):
    with writing.SummaryWriter(str(tmp_path)) as writer:
        source = TensorBoardLogs(FileStore(tmp_path))
        for step in range(30):
            writer.add_scalar("loss", 1 / (step + 1), step)
            if step % 3 == 0:
                writer.flush()
                assert same(by_ours(everything(source)), by_their_reader(tmp_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(cut=st.integers(0, 10_000))
def test_cut_at_any_byte_the_result_is_that_of_their_reader(tmp_path_factory: pytest.TempPathFactory, cut: int):
    folder = tmp_path_factory.mktemp("cut")
    with writing.SummaryWriter(str(folder)) as writer:
        for step in range(12):
            writer.add_scalar("loss", step / 7, step)
    (file,) = folder.iterdir()
    data = file.read_bytes()
    file.write_bytes(data[: cut % (len(data) + 1)])

    assert same(by_ours(everything(TensorBoardLogs(FileStore(folder)))), by_their_reader(folder))
