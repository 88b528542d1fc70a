"""Opening, refreshing, names and values as rule files see them: conformance.md, sections A, B, D and I."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.user_rules.exceptions import (
    InvalidWorker,
    MissingCollectionFiles,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from evaluator.user_rules.helpers import no_refresh, refresh
from evaluator.user_rules.modes import modes
from evaluator.user_rules.opening import create_trial
from evaluator.writer import TrialWriter, write_end_marker
from tests.conformance import data


def built(tmp_path: Path, case: str, name: str = "trial", **how):
    data.BUILDS[case](tmp_path)
    return create_trial(str(tmp_path / name), **how)


def test_every_tensor_has_every_step_and_value(tmp_path: Path):
    trial = built(tmp_path, "a_local")

    assert len(trial.tensor_names()) == 10
    assert [len(trial.tensor(name).steps()) for name in trial.tensor_names()] == [20] * 10
    assert all((trial.tensor("foo_1").value(step) == step).all() for step in range(20))


def test_a_range_is_half_open_and_the_path_may_have_two_slashes(tmp_path: Path):
    data.BUILDS["a_local"](tmp_path)

    assert create_trial(f"  {tmp_path}//trial ", range_steps=(0, 5)).steps() == [0, 1, 2, 3, 4]
    assert create_trial(str(tmp_path / "trial"), range_steps=(17, None)).steps() == [17, 18, 19]
    with pytest.raises(AssertionError, match="begin is less than end"):
        create_trial(str(tmp_path / "trial"), range_steps=(5, 2))


def test_the_name_is_the_last_part_of_the_path(tmp_path: Path):
    data.announce(tmp_path / "trial")
    path = str(tmp_path / "trial")

    assert [create_trial(path).name, create_trial(f"{path}/").name, create_trial(path, "x").name] == ["trial", "", "x"]


def test_missing_collections_files_of_an_ended_run_are_an_error(tmp_path: Path):
    data.announce(tmp_path, data.ABC[:2], 3)
    write_end_marker(tmp_path)

    with pytest.raises(MissingCollectionFiles, match="could not be loaded"):
        create_trial(str(tmp_path))


def test_a_missing_collections_file_of_a_running_one_is_waited_for_a_while(tmp_path: Path, clock):
    data.announce(tmp_path, data.ABC[:2], 3)
    data.save(tmp_path, 0, {"a": np.float32(1)})

    assert create_trial(str(tmp_path)).workers() == ["worker_0", "worker_1"]
    assert clock.monotonic() == 300


def test_a_path_where_no_trial_begins_is_named_at_last(tmp_path: Path, clock):
    with pytest.raises(SMDebugRuntimeError, match=r"nothing: does not exist.*waited 3600 s"):
        create_trial(str(tmp_path / "nothing"))


def test_profiles_are_said_not_to_be_read(tmp_path: Path):
    with pytest.raises(SMDebugNotImplementedError, match="profiles"):
        create_trial(str(tmp_path), profiler=True)


def test_new_steps_and_tensors_are_seen_unless_a_block_forbids_it(tmp_path: Path):
    trial = built(tmp_path, "b_refresh")
    with no_refresh([trial]) as several:
        data.gd(tmp_path / "trial", 8, 13)
        frozen = several[0].steps(), trial.has_tensor("foo_11")

    assert frozen == ([*range(8)], False)
    assert trial.steps() == [*range(9)]
    assert trial.tensor("foo_11").steps() == [8]


def test_blocks_bring_back_what_was_before_also_after_an_error(tmp_path: Path):
    trial = built(tmp_path, "a_ended")
    with pytest.raises(ZeroDivisionError), no_refresh(trial), refresh([trial]):
        raise ZeroDivisionError

    assert trial.dynamic_refresh


def test_after_waiting_a_trial_still_shows_what_is_new(tmp_path: Path):
    trial = built(tmp_path, "i_frozen")
    trial.wait_for_steps([0])
    data.gd(tmp_path / "trial", 1, 2)

    assert trial.steps() == [0, 1]


def test_each_reason_for_a_missing_value_has_its_exception(tmp_path: Path):
    trial = built(tmp_path, "b_odd_steps")
    tensor = trial.tensor("foo_1")

    assert tensor.value(7)[0, 0, 0] == 7
    for step, error in ((6, StepUnavailable), (16, StepNotYetAvailable)):
        with pytest.raises(error):
            tensor.value(step)
    with pytest.raises(TensorUnavailable, match="Tensor bar was not saved"):
        trial.tensor("bar")
    with pytest.raises(InvalidWorker):
        tensor.value(7, worker="worker_0")
    assert tensor.prev_steps(6, 2) == [3, 5]


def test_names_by_pattern_collection_step_and_mode(tmp_path: Path):
    trial = built(tmp_path, "d_names")
    two = create_trial(str(tmp_path / "modes"))
    trial.collection("test").include("foo")
    for name in ("boo_5", "boo_6", "boo_17"):
        trial.collection("test").add_tensor_name(name)

    assert len(trial.tensor_names(regex="foo")) == 10
    assert len(trial.tensor_names(collection="test")) == 12
    assert trial.tensor_names(collection=trial.collection("test")) == trial.tensors(collection="test")
    assert [two.tensor_names(step=0), two.tensor_names(mode=modes.EVAL)] == [["arr_1"], ["arr_2"]]
    assert two.tensor_names(mode=modes.PREDICT) == two.tensor_names(step=9, mode=modes.TRAIN) == []
    with pytest.raises(ValueError, match="Only one of"):
        trial.tensor_names(regex="a", collection="test")


def test_a_value_with_its_shape_beside_it_is_read(tmp_path: Path):
    tensor = built(tmp_path, "i_records").tensor("both")

    assert (tensor.value(2).sum(), tensor.shape(2)) == (6, (2, 3))


@pytest.mark.parametrize(("name", "step"), [("header", 5), ("cut", 6), ("checked", 7)])
def test_damage_is_one_kind_of_error_that_names_the_file(tmp_path: Path, name, step):
    tensor = built(tmp_path, "i_records").tensor(name)

    with pytest.raises(SMDebugRuntimeError, match=r"cannot be read for step .*\.tfevents") as caught:
        tensor.value(step)
    assert isinstance(caught.value, TensorUnavailableForStep)


def test_a_missing_event_file_is_waited_for_only_where_it_may_come(tmp_path: Path, clock):
    trial = built(tmp_path, "e_missing_events", "running")
    waited = []
    for step in (9, 199):
        began = clock.monotonic()
        with pytest.raises(TensorUnavailableForStep):
            trial.tensor("t").value(step)
        waited.append(clock.monotonic() - began)

    assert waited == [0, 200]


@pytest.mark.parametrize("name", ["empty", "half", "list"])
def test_a_bad_index_file_costs_itself_until_it_is_whole(tmp_path: Path, name):
    trial = built(tmp_path, "i_bad_index", name)
    before = trial.steps()
    data.save(tmp_path / name, 2, {"t": np.float32(2)})

    assert (before, trial.steps()) == ([0, 1, 3, 4], [0, 1, 2, 3, 4])


def test_a_file_that_was_replaced_is_looked_up_anew(tmp_path: Path):
    trial = built(tmp_path, "i_replaced")
    trial.steps()
    with no_refresh(trial):
        data.save(tmp_path / "trial", 0, {"a": np.ones(9, np.float32), "b": np.full(5, 2, np.float32)})
        value = trial.tensor("b").value(0)

    assert value.tolist() == [2] * 5


def test_a_saved_reduction_is_used_and_others_are_computed_over_the_flattened_tensor(tmp_path: Path):
    trial = built(tmp_path, "i_norms")
    kernel, matrix = trial.tensor("kernel"), trial.tensor("matrix")

    assert matrix.reduction_value(1, "mean", abs=True) == 7
    assert kernel.reduction_value(0, "l2") == pytest.approx(np.sqrt((kernel.value(0) ** 2).sum()))
    assert matrix.reduction_value(0, "l2") == pytest.approx(matrix.reduction_value(1, "l2"))
    assert set(matrix.reduction_values(1)) >= {("l2", False), ("mean", True)}
    assert matrix.reduction_values(0) == {}


def test_a_tensor_of_reductions_only_has_neither_value_nor_shape(tmp_path: Path):
    alone = built(tmp_path, "i_norms").tensor("alone")

    with pytest.raises(TensorUnavailableForStep, match="query for the reductions"):
        alone.value(1)
    with pytest.raises(ShapeUnavailableForStep):
        alone.shape(1)
    with pytest.raises(TensorUnavailableForStep, match="tensor mean"):
        alone.reduction_value(1, "mean")


def test_inputs_labels_and_predictions_are_those_of_the_mode_in_the_order_of_their_numbers(tmp_path: Path):
    trial = built(tmp_path, "i_answers")

    assert [float(one[0]) for one in trial.labels(1, modes.EVAL)] == [4, 4.25, 4.5]
    assert [float(one[0]) for one in trial.inputs(4)] == [-4, 4]
    assert trial.predictions(99) == []


def test_a_value_belongs_to_the_caller(tmp_path: Path):
    trial, cached = built(tmp_path, "a_local"), create_trial(str(tmp_path / "trial"), cache=True)
    tensor, same = trial.tensor("foo_0"), cached.tensor("foo_0")
    tensor.value(1)[:] = 99

    assert tensor.value(1).max() == 1
    assert same.value(1) is same.value(1)


def test_workers_with_device_names_are_found(tmp_path: Path):
    trial = built(tmp_path, "e_worker_names")

    assert trial.workers() == ["/job:worker/replica:0/task:1/device:GPU:6", "job-worker_1", "worker_2"]
    assert trial.tensor("t").value(0, worker=trial.workers()[0]).size == 2


def test_many_types_and_empty_arrays_are_read_as_they_were_written(tmp_path: Path):
    trial = built(tmp_path, "i_dtypes")
    kinds = {name: trial.tensor(name).value(0).dtype for name in trial.tensor_names() if name[:2] in {"d_", "e_"}}

    assert trial.tensor("d_i1").value(0).tolist() == [-1, 5]
    assert {name: kind for name, kind in kinds.items() if name != "e_text" and kind != np.dtype(name[2:])} == {}
    assert trial.tensor("e_f4").value(0).shape == (0, 3)


def test_the_type_of_a_computed_number_is_plain(tmp_path: Path):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {"half": np.full(4000, 300, np.float16)})
    tensor = create_trial(str(tmp_path)).tensor("half")

    assert tensor.reduction_value(0, "sum") == 1_200_000
    assert isinstance(tensor.reduction_value(0, "mean"), float)
