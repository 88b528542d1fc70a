"""Small things that rule files import: actions, texts to values, the logger, signals and single files."""

from __future__ import annotations

import io
import json
import logging
import pickle
from pathlib import Path

import numpy as np
import pytest

from evaluator.user_rules import exceptions
from evaluator.user_rules.actions import Actions, MessageAction, StopTrainingAction
from evaluator.user_rules.collection import Collection, CollectionManager
from evaluator.user_rules.configs import ReductionConfig, SaveConfig
from evaluator.user_rules.event_files import FileReader, FileWriter
from evaluator.user_rules.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from evaluator.user_rules.helpers import parse_bool, parse_list_from_str
from evaluator.user_rules.logger import get_logger
from evaluator.user_rules.modes import ModeKeys, modes
from evaluator.user_rules.reductions import get_numpy_reduction
from evaluator.user_rules.signals import has_training_ended, is_rule_signalled_gracetime_passed, training_has_ended
from tests.conformance import data

MAIL = '[{"name": "Email", "endpoint": "Ann@Example.org"}, {"name": "stoptraining", "training_job_prefix": "My-Job"}]'


@pytest.mark.parametrize("text", [MAIL, MAIL.replace('"', '\\"')])
def test_actions_keep_their_case_plain_and_escaped(text):
    expected = [MessageAction("email", "Ann@Example.org"), StopTrainingAction("My-Job")]

    assert Actions(text, "MyRule")._actions == expected


@pytest.mark.parametrize("text", [None, "", "  ", '"abc"', '{"name": "sms"}', '{"name": "dance"}', "[5]"])
def test_what_is_no_action_is_left_out(text):
    assert Actions(text, "MyRule")._actions == []


def test_actions_that_are_not_json_are_refused():
    with pytest.raises(SMDebugValueError, match="is not JSON"):
        Actions("{a", "MyRule")


@pytest.mark.parametrize(
    ("given", "expected"), [(None, []), ("", []), ("a,b", ["a", "b"]), ("a, b", ["a", " b"]), (["a"], ["a"])]
)
def test_a_list_is_parsed(given, expected):
    assert parse_list_from_str(given) == expected


def test_what_is_no_list_is_refused():
    with pytest.raises(SMDebugTypeError):
        parse_list_from_str(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"), [(None, True), ("True", True), ("true", True), ("False", False), (False, False)]
)
def test_a_truth_value_is_parsed(given, expected):
    assert parse_bool(given, True) is expected


def test_what_is_no_truth_value_is_refused():
    with pytest.raises(ValueError, match="boolean argument expected"):
        parse_bool("yes", True)


def test_equal_messages_are_logged_three_times():
    logger, text = get_logger("smdebug-of-a-test"), io.StringIO()
    logger.addHandler(logging.StreamHandler(text))
    for _ in range(10):
        logger.warning("the same")

    assert text.getvalue().count("the same") == 3


@pytest.mark.parametrize(
    ("variable", "content", "passed"),
    [(None, "0", False), ("SIGNAL", None, False), ("SIGNAL", 0, False), ("SIGNAL", -120, True), ("SIGNAL", "x", True)],
)
def test_the_signal_to_stop_has_a_grace_time(tmp_path: Path, clock, monkeypatch, variable, content, passed):
    monkeypatch.delenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", raising=False)
    if variable:
        monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", variable)
    if content is not None:
        text = str(clock.now() + content) if isinstance(content, int) else content
        (tmp_path / "SIGNAL").write_text(text)

    assert is_rule_signalled_gracetime_passed(str(tmp_path)) is passed


def test_the_end_marker_is_written_and_seen(tmp_path: Path):
    before = has_training_ended(str(tmp_path / "run"))
    training_has_ended(str(tmp_path / "run"))

    assert (before, has_training_ended(str(tmp_path / "run"))) == (False, True)


def test_a_single_file_is_written_and_read(tmp_path: Path):
    with FileWriter(trial_dir=str(tmp_path), worker="worker_0", step=7, write_checksum=True) as writer:
        writer.write_tensor(tname="a", tdata=np.arange(3.0), mode=modes.TRAIN, mode_step=2)
        writer.write_shape("b", (4, 5), modes.TRAIN, 2)
    [(name, step, values, mode, mode_step)] = FileReader(writer.name()).read_tensors()

    assert (name, step, values.tolist(), mode, mode_step) == ("a", 7, [0, 1, 2], ModeKeys.TRAIN, 2)
    assert FileReader(writer.name()).read_events(regex_list=["x"]) == []


def test_the_text_array_of_a_file_is_read(tmp_path: Path):
    data.BUILDS["e_event_files"](tmp_path)
    path = tmp_path / "trial/events/000000000021/000000000021_worker_0.tfevents"
    [found] = FileReader(str(path)).read_tensors()

    assert found[2].tolist() == ["foo", "barz"]


def test_a_file_that_is_not_there_is_an_error_of_the_api(tmp_path: Path):
    with pytest.raises(SMDebugRuntimeError, match="nothing"):
        list(FileReader(str(tmp_path / "nothing")).read_tensors())


@pytest.mark.parametrize(
    "error",
    [
        exceptions.StepUnavailable(step=3, mode=modes.TRAIN),
        exceptions.TensorUnavailableForStep("a", 3, has_reductions=True),
        exceptions.TensorUnreadable("a", 3, modes.EVAL, "it is cut"),
        exceptions.NoMoreData(3, mode=modes.EVAL, last_step=2),
        exceptions.RuleEvaluationConditionMet("r", 4, end_of_rule=True),
        exceptions.IndexReaderException(message="text"),
        exceptions.MissingCollectionFiles(),
    ],
)
def test_an_exception_goes_from_process_to_process(error):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_collection_goes_through_json_and_is_equal():
    saved = SaveConfig.from_dict({"TRAIN": {"save_interval": 3}})
    one = Collection("a", ["x"], ["n", "b"], ReductionConfig(["min"], norms=["l1"]), saved)
    manager = CollectionManager({"a": one})
    manager.set_num_workers(3)

    assert Collection.from_json(one.to_json()) == one
    assert CollectionManager.load_from_string(json.dumps(manager.to_json_dict())) == manager


def test_a_collections_file_is_exported_and_loaded(tmp_path: Path):
    manager = CollectionManager({"a": Collection("a")})
    manager.export(str(tmp_path), "worker_0_collections.json")

    assert CollectionManager.load(str(tmp_path / "collections/000000000/worker_0_collections.json")) == manager


@pytest.mark.parametrize(("end", "expected"), [(0, []), (11, [3, 5, 10]), (None, [3, 5, 10])])
def test_a_step_is_saved_by_interval_range_and_list(end, expected):
    config = SaveConfig(save_interval=5, save_steps=[3] if end != 0 else [], start_step=2, end_step=end)

    assert [step for step in range(13) if config.should_save_step(modes.EVAL, step)] == expected


def test_reductions_of_nothing_and_of_text_are_defined():
    assert (get_numpy_reduction("sum", np.zeros(0)), get_numpy_reduction("prod", np.zeros(0))) == (0, 1)
    assert np.isnan(get_numpy_reduction("max", np.zeros(0)))
    with pytest.raises(SMDebugTypeError, match="is of numbers"):
        get_numpy_reduction("max", np.array(["a"]))
