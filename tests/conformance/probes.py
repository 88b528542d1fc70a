# ruff: noqa: B023, BLE001, C901, E731, PLC0415, PLR0915, PLW0108, PTH103, PTH118, PTH119, PTH123, PTH208, S102, S301
# mypy: ignore-errors
"""The calls that are made in both libraries: a script that imports `smdebug` and writes down what it got.

    python probes.py DATA RESULT [--only CASE,...]

It runs in the venv of the real smdebug and, with the served modules on the path, in ours; it imports nothing else of
this project. One function for each case of data.py; what a case reports is compared label by label.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import sys
import time

import numpy as np

SECONDS = 25
CASES = {}


class Hang(BaseException):
    """A case took too long."""


def case(function):
    CASES[function.__name__] = function
    return function


def shown(value):
    """A result as JSON that compares."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        kind = "array" if isinstance(value, np.ndarray) else "number"
        if array.size <= 24:
            return {kind: array.astype(str).ravel().tolist(), "dtype": array.dtype.str, "shape": list(array.shape)}
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        return {kind: digest, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(value, dict):
        return {str(shown(key)): shown(one) for key, one in value.items()}
    if isinstance(value, set):
        return sorted(map(shown, value))
    if isinstance(value, list | tuple) or type(value).__name__ in {"dict_keys", "dict_values"}:
        return [shown(one) for one in value]
    if type(value).__name__ in {"ModeKeys", "StepState"}:
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"<{type(value).__name__}>"


class Seen:
    """The results of one case."""

    def __init__(self):
        self.results = {}

    def __call__(self, label, call):
        try:
            result = shown(call())
        except Hang:
            result = {"raises": "Hang", "is": [], "text": ""}
        except BaseException as error:
            kinds = [kind.__name__ for kind in type(error).__mro__[:-2]]
            result = {"raises": type(error).__name__, "is": kinds, "text": str(error)}
        assert label not in self.results, label
        self.results[label] = result


def limited(seconds, call):
    """The call, ended when it takes too long."""

    def ring(*_):
        raise Hang

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def add(folder, stage, to="trial"):
    """Files that come later."""
    source = os.path.join(folder, stage)
    for where, _, names in sorted(os.walk(source), key=lambda item: "index" in item[0]):
        target = os.path.join(folder, to, os.path.relpath(where, source))
        os.makedirs(target, exist_ok=True)
        for name in names:
            shutil.copyfile(os.path.join(where, name), os.path.join(target, name))


def opened(folder, name="trial", **how):
    from smdebug.trials import create_trial

    return create_trial(os.path.join(folder, name), **how)


def state(seen, trial, label, passed=(), modes=()):
    """All that tells how far a trial is."""
    seen(f"{label}: workers", lambda: trial.workers())
    seen(f"{label}: steps", lambda: trial.steps())
    seen(f"{label}: steps with incomplete", lambda: trial.steps(show_incomplete_steps=True))
    seen(f"{label}: loaded_all_steps", lambda: trial.loaded_all_steps)
    seen(f"{label}: last_complete_step", lambda: trial.last_complete_step)
    seen(f"{label}: token", lambda: trial.last_index_token and os.path.basename(trial.last_index_token))
    for step in passed:
        seen(f"{label}: has_passed_step({step})", lambda step=step: trial.has_passed_step(step))
        for mode in modes:
            call = lambda step=step, mode=mode: trial.has_passed_step(step, mode)
            seen(f"{label}: has_passed_step({step}, {mode.name})", call)


@case
def a_local(seen, folder):
    trial = opened(folder)
    seen("names", lambda: trial.tensor_names())
    seen("steps of each", lambda: [len(trial.tensor(name).steps()) for name in trial.tensor_names()])
    seen("a value", lambda: trial.tensor("foo_3").value(7))
    seen("values", lambda: trial.tensor("foo_0").values())
    seen("workers of a step", lambda: trial.tensor("foo_0").workers(3))
    seen("value of worker", lambda: trial.tensor("foo_0").value(3, worker="algo-1"))
    seen("value of another worker", lambda: trial.tensor("foo_0").value(3, worker="worker_0"))
    seen("loaded at first", lambda: opened(folder).loaded_all_steps)
    seen("range", lambda: opened(folder, "trial//", range_steps=(0, 5)).steps())
    seen("range without begin", lambda: opened(folder, range_steps=(None, 3)).steps())
    seen("range without end", lambda: opened(folder, range_steps=(17, None)).steps())
    for wrong in ((5, 2), (3,), (-1, 4), ("a", 4)):
        seen(f"range {wrong}", lambda wrong=wrong: opened(folder, range_steps=wrong))
    seen("name", lambda: opened(folder).name)
    seen("name with slash", lambda: opened(folder, "trial/").name)
    seen("equal", lambda: opened(folder) == opened(folder))
    seen("equal to a number", lambda: opened(folder) == 3)
    from pathlib import Path

    from smdebug.trials import create_trial

    seen("given name", lambda: create_trial(os.path.join(folder, "trial"), name="x").name)
    seen("pathlib", lambda: create_trial(Path(folder) / "trial").steps())
    cached = opened(folder, cache=True)
    seen("cache", lambda: cached.tensor("foo_0").value(1) is cached.tensor("foo_0").value(1))
    seen("no cache", lambda: trial.tensor("foo_0").value(1) is trial.tensor("foo_0").value(1))
    seen("writable", lambda: trial.tensor("foo_0").value(1).flags.writeable)
    seen("same tensor", lambda: trial.tensor("foo_0") is trial.tensor("foo_0"))


@case
def a_four_trials(seen, folder):
    trials = [opened(folder, f"trial{number}") for number in range(4)]
    seen("steps", lambda: [trial.steps() for trial in trials])
    seen("names", lambda: [trial.tensor_names() for trial in trials])


@case
def a_ended(seen, folder):
    from smdebug.trials import create_trial

    path = os.path.join(folder, "trial")
    seen("blanks before", lambda: create_trial(f"  {path}").steps())
    seen("blanks behind", lambda: create_trial(f"{path} \n").steps())
    seen("nothing saved", lambda: opened(folder).wait_for_steps([0]))


@case
def a_many_workers_ended(seen, folder):
    seen("workers", lambda: len(opened(folder).workers()))


@case
def a_many_workers_missing(seen, folder):
    seen("workers", lambda: len(opened(folder).workers()))


@case
def a_many_workers_running(seen, folder):
    seen("workers", lambda: len(opened(folder).workers()))


@case
def a_objects(seen, folder):
    from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
    from smdebug.core.collection import Collection
    from smdebug.core.collection_manager import CollectionManager

    def collection():
        reductions = ReductionConfig(reductions=["min"], abs_norms=["l1"])
        return Collection("a", ["x"], ["n", "b"], reductions, SaveConfig(save_interval=2))

    seen("collection", lambda: collection().to_json())
    seen("collection again", lambda: Collection.from_json(collection().to_json()) == collection())
    seen("collection as text", lambda: str(collection()) + repr(collection()))
    seen("names are a set", lambda: collection().tensor_names)
    seen("names of none", lambda: Collection("a").tensor_names)
    seen("names of a text", lambda: setattr(collection(), "tensor_names", "abc"))
    seen("not equal", lambda: (collection() == Collection("a"), collection() == 3))
    part = {"name": "a", "save_config": {"TRAIN": {"save_interval": 5}}, "other": 1}
    seen("missing modes", lambda: Collection.from_dict(part).to_json_dict()["save_config"])
    seen("missing regex", lambda: Collection.from_dict(part).include_regex)

    def included():
        one = collection()
        one.include("q")
        one.include(["r", ["s"]])
        one.remove_tensor_name("zz")
        one.add_tensor_name("new")
        return one.include_regex, one.has_tensor_name("new"), one.has_tensor_name("zz")

    seen("include", included)
    seen("include a number", lambda: collection().include(5))

    def managed():
        manager = CollectionManager()
        manager.add("q")
        manager.add(collection())
        manager.set_num_workers(3)
        return manager

    seen("manager", lambda: managed().to_json_dict())
    seen("manager get", lambda: managed().get("new").name)
    seen("manager get without", lambda: managed().get("new", create=False))
    seen("manager as text", lambda: repr(managed()))
    seen("manager workers", lambda: managed().get_num_workers())
    seen("manager of a number", lambda: managed().add(5))

    def exported():
        managed().export(os.path.join(folder, "out"), "worker_7_collections.json")
        path = os.path.join(folder, "out/collections/000000000/worker_7_collections.json")
        return CollectionManager.load(path) == managed()

    seen("manager exported", exported)
    seen("manager of other text", lambda: CollectionManager.load_from_string('{"x": 1}'))
    keys = sorted(key for key in dir(CollectionKeys) if key.isupper())
    seen("keys", lambda: {key: getattr(CollectionKeys, key) for key in keys})
    seen("save config", lambda: SaveConfig(save_interval=4).to_json())
    seen("save config again", lambda: SaveConfig.from_json(SaveConfig(save_interval=4).to_json()).to_json())
    seen("save config as text", lambda: repr(SaveConfig(save_interval=4)))
    seen("save config of a mode", lambda: repr(SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=2)})))
    seen("save config of a number", lambda: SaveConfig({modes.TRAIN: 3}))
    seen("save config without mode", lambda: SaveConfig.from_dict({"save_interval": 3}))
    seen("never", lambda: [SaveConfig(end_step=0).should_save_step(modes.TRAIN, step) for step in (0, 19, 100)])
    some = SaveConfig(save_interval=5, save_steps=[3], start_step=2, end_step=11)
    seen("some", lambda: [some.should_save_step(modes.EVAL, step) for step in range(13)])
    seen("equal save configs", lambda: SaveConfig() == SaveConfig())
    seen("reductions", lambda: ReductionConfig(["min"], ["max"], ["l1"], ["l2"], save_shape=True).to_json())
    text = '{"reductions": "min,l1_norm,abs_max,abs_l2_norm", "save_shape": true, "x": 1}'
    seen("reductions again", lambda: ReductionConfig.from_json(text).to_json())
    seen("reductions as text", lambda: repr(ReductionConfig.from_json(text)))
    seen("median", lambda: ReductionConfig(reductions=["median"]))
    seen("modes", lambda: [(mode.name, mode.value) for mode in modes])


@case
def b_refresh(seen, folder):
    from smdebug.analysis.utils import no_refresh

    trial, ranged = opened(folder), opened(folder, range_steps=(0, 5))
    seen("at first", lambda: (trial.steps(), trial.has_tensor("foo_11")))
    seen("ranged at first", lambda: ranged.steps())
    with no_refresh([trial]) as several, no_refresh(opened(folder)) as one:
        add(folder, "stage1")
        seen("no refresh", lambda: several[0].steps())
        seen("no refresh of a tensor", lambda: trial.tensor("foo_1").steps())
        seen("no refresh of one", lambda: one.steps())
    seen("16 steps", lambda: trial.steps())
    seen("16 steps of a tensor", lambda: trial.tensor("foo_1").steps())
    add(folder, "stage2")
    seen("17 steps", lambda: trial.tensor("foo_1").steps())
    add(folder, "stage3")
    seen("13 tensors", lambda: trial.tensor("foo_11").steps())
    seen("ranged at last", lambda: ranged.steps())
    seen("flag", lambda: (trial.dynamic_refresh, one.dynamic_refresh))


@case
def b_odd_steps(seen, folder):
    trial = opened(folder)
    seen("steps", lambda: trial.steps())
    seen("bar", lambda: trial.tensor("bar"))
    tensor = trial.tensor("foo_1")
    for step in (7, 6, 16):
        seen(f"value {step}", lambda step=step: tensor.value(step))
        seen(f"shape {step}", lambda step=step: tensor.shape(step))
        seen(f"reduction {step}", lambda step=step: tensor.reduction_value(step, "max"))
    add(folder, "stage1")
    for step in (9, 8, 24):
        seen(f"later value {step}", lambda step=step: tensor.value(step))
    seen("prev_steps", lambda: [tensor.prev_steps(8, 2), tensor.prev_steps(9), tensor.prev_steps(0, 3)])


@case
def b_rule(seen, folder):
    from smdebug.analysis.utils import no_refresh
    from smdebug.rules import Rule

    class Looks(Rule):
        def __init__(self, base_trial):
            super().__init__(base_trial=base_trial, action_str="")

        def set_required_tensors(self, step):
            for name in self.base_trial.tensor_names():
                self.req_tensors.add(name, steps=[step])

        def invoke_at_step(self, step):
            self.got = [len(self.req_tensors.get()), sorted(self.req_tensors.get_names())]
            self.got.append(self.base_trial.tensor("foo_0").value(step + 1).sum())

    trial = opened(folder)
    rule = Looks(trial)
    seen("invoke 0", lambda: (rule.invoke(0), rule.got))
    seen("invoke 1", lambda: rule.invoke(1))
    add(folder, "stage1")
    with no_refresh(trial):
        seen("frozen", lambda: rule.invoke_at_step(1))
    seen("invoke 1 again", lambda: (rule.invoke(1), rule.got))
    seen("flags", lambda: trial.dynamic_refresh)


@case
def c_two_modes(seen, folder):
    from smdebug import modes

    for name in ("ended", "running"):
        trial = opened(folder, name)
        state(seen, trial, name, (0, 23, 30, 40, 80), (modes.TRAIN, modes.EVAL, modes.PREDICT))
        seen(f"{name}: steps by mode", lambda trial=trial: [trial.steps(mode) for mode in modes])
        seen(f"{name}: value without event file", lambda trial=trial: trial.tensor("gradients/dummy:0").value(30))


@case
def c_workers(seen, folder):
    for name in sorted(os.listdir(folder)):
        trial = opened(folder, name)
        state(seen, trial, name, (2, 3, 4, 6, 8))
        if name.endswith("ended"):
            wait = lambda steps, trial=trial: trial.wait_for_steps(steps)
            seen(f"{name}: wait for 0 to 6", lambda: wait(range(7)))
            seen(f"{name}: wait for some", lambda: wait([0, 1, 2, 5, 6, 7]))
        else:
            seen(f"{name}: wait for 0 to 2", lambda trial=trial: trial.wait_for_steps([0, 1, 2]))


@case
def c_window(seen, folder):
    os.environ["SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"] = "10"
    try:
        trial = opened(folder)
        seen("at first", lambda: (trial.last_complete_step, os.path.basename(trial.last_index_token)))
        for number in range(3):
            state(seen, trial, f"look {number}", (4, 9, 15))
    finally:
        del os.environ["SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"]


@case
def c_partial_tensors(seen, folder):
    trial = opened(folder)
    state(seen, trial, "trial", (3, 7, 8))
    for name in ("loss", "gradient", "weight"):
        seen(f"{name}: steps", lambda name=name: trial.tensor(name).steps())
        seen(f"{name}: with incomplete", lambda name=name: trial.tensor(name).steps(show_incomplete_steps=True))
        seen(f"{name}: value at 8", lambda name=name: trial.tensor(name).value(8))
        seen(f"{name}: workers at 6", lambda name=name: trial.tensor(name).workers(6))


@case
def d_modes(seen, folder):
    from smdebug import modes

    trial = opened(folder)
    seen("nothing yet", lambda: (trial.steps(), trial.modes(), trial.tensor_names()))
    for step in range(10):
        add(folder, f"stage{step}")
        mode, other = (modes.EVAL, modes.TRAIN) if step % 2 else (modes.TRAIN, modes.EVAL)
        seen(f"{step}: own", lambda: trial.has_passed_step(step // 2, mode))
        seen(f"{step}: other", lambda: trial.has_passed_step(step // 2, other))
        seen(f"{step}: global", lambda: [trial.has_passed_step(at) for at in (step, step + 1)])
        seen(f"{step}: next train", lambda: trial.has_passed_step(step + 1, modes.TRAIN))
    tensor = trial.tensor("arr")
    seen("names", lambda: trial.tensor_names())
    seen("modes", lambda: trial.modes())
    for mode in modes:
        seen(f"steps {mode.name}", lambda mode=mode: (trial.steps(mode), tensor.steps(mode)))
        seen(f"prev_steps {mode.name}", lambda mode=mode: tensor.prev_steps(3, 2, mode))
        seen(f"values {mode.name}", lambda mode=mode: tensor.values(mode))
    seen("mode", lambda: [trial.mode(step) for step in range(11)])
    seen("mode_step", lambda: [trial.mode_step(step) for step in range(11)])
    seen("mode_modestep", lambda: [trial.mode_modestep(step) for step in (3, 99)])
    seen("global_step", lambda: [trial.global_step(mode, step) for mode in modes for step in (0, 4, 9)])
    seen("private mapping", lambda: trial._global_to_mode[3])
    seen("values by both", lambda: [tensor.value(step) for step in range(10)])
    seen("values by mode", lambda: [tensor.value(step, mode=modes.EVAL) for step in range(5)])
    seen("steps of no mode", lambda: trial.steps(mode=None))
    from smdebug.core.reader import FileReader

    path = os.path.join(folder, "trial/events/000000000003/000000000003_localhost.tfevents")
    seen("raw", lambda: list(FileReader(path).read_tensors()))


@case
def d_names(seen, folder):
    trial = opened(folder)
    seen("all", lambda: trial.tensor_names())
    seen("regex", lambda: trial.tensor_names(regex="foo"))
    seen("regexes", lambda: trial.tensor_names(regex=["_3$", ["boo_1"]]))
    seen("step", lambda: trial.tensor_names(step=25))
    seen("step not there", lambda: trial.tensor_names(step=99))

    def made():
        trial.collection("test").include("foo")
        for name in ("boo_5", "boo_6", "boo_17"):
            trial.collection("test").add_tensor_name(name)
        return trial.tensor_names(collection="test"), trial.tensor_names(collection=trial.collection("test"))

    seen("collection", made)
    seen("both", lambda: trial.tensor_names(regex="a", collection="test"))
    seen("unknown collection", lambda: trial.tensor_names(collection="nothing"))
    seen("a number as collection", lambda: trial.tensor_names(collection=5))
    seen("collections", lambda: sorted(trial.collections()))
    from smdebug import modes

    two = opened(folder, "modes")
    seen("of both modes", lambda: two.tensor_names())
    for step in (0, 1):
        seen(f"at global {step}", lambda step=step: two.tensor_names(step=step))
    for mode in (modes.TRAIN, modes.EVAL, modes.PREDICT):
        seen(f"in {mode.name}", lambda mode=mode: two.tensor_names(mode=mode))
        seen(f"in {mode.name} at 0", lambda mode=mode: two.tensor_names(step=0, mode=mode))
        seen(f"in {mode.name} at 9", lambda mode=mode: two.tensor_names(step=9, mode=mode))
    seen("2019: tensors", lambda: trial.tensors(collection="gradients"))
    seen("2019: tensors_in_collection", lambda: trial.tensors_in_collection("gradients"))
    seen("2019: tensors_matching_regex", lambda: trial.tensors_matching_regex("foo"))
    seen("documented: positional step", lambda: trial.tensor_names(25))


@case
def e_event_files(seen, folder):
    from smdebug.core.reader import FileReader

    path = os.path.join(folder, "trial/events/{0:012d}/{0:012d}_worker_0.tfevents")
    seen("tensors", lambda: list(FileReader(path.format(20)).read_tensors()))
    seen("text", lambda: list(FileReader(path.format(21)).read_tensors()))
    seen("events", lambda: FileReader(path.format(20)).read_events(regex_list=["t3", "t4"]))
    for number in range(10):
        cut = os.path.join(folder, "cut", f"{number}.tfevents")
        seen(f"cut {number}", lambda cut=cut: [one[0] for one in FileReader(cut).read_tensors()])
    from smdebug.core.writer import FileWriter

    def written():
        out = os.path.join(folder, "out")
        with FileWriter(trial_dir=out, step=10, worker="worker_0") as writer:
            writer.write_tensor(tname="a", tdata=np.arange(6, dtype=np.float32).reshape(2, 3))
            writer.write_tensor(tname="b", tdata=np.array([7]))
        where = os.path.join(out, "events/000000000010/000000000010_worker_0.tfevents")
        index = os.path.join(out, "index/000000000/000000000010_worker_0.json")
        with open(index, encoding="utf-8") as file:
            return list(FileReader(where).read_tensors()), json.load(file)

    seen("written and read", written)


@case
def e_missing_events(seen, folder):
    for name in ("ended", "running"):
        trial = opened(folder, name)
        seen(f"{name}: steps", lambda trial=trial: trial.steps())
        for step in (0, 9, 199):
            seen(f"{name}: value {step}", lambda trial=trial, step=step: trial.tensor("t").value(step))


@case
def e_worker_names(seen, folder):
    trial = opened(folder)
    seen("workers", lambda: trial.workers())
    seen("workers of a step", lambda: sorted(trial.tensor("t").workers(0)))
    for worker in ("/job:worker/replica:0/task:1/device:GPU:6", "job-worker_1", "worker_2", "nobody", ""):
        seen(f"value of {worker!r}", lambda worker=worker: trial.tensor("t").value(0, worker=worker))
    seen("steps", lambda: trial.steps())


@case
def e_helpers(seen, folder):
    from smdebug.analysis.utils import parse_bool, parse_list_from_str
    from smdebug.core import utils
    from smdebug.core.logger import get_logger
    from smdebug.core.modes import str_to_mode_keys
    from smdebug.core.reductions import (
        get_basic_numpy_reduction,
        get_numpy_reduction,
        get_reduction_tensor_name,
        reverse_reduction_tensor_name,
    )

    for path in ("s3://a", "s3://a/", "s3://a/b/c", "/x", "s3n://q"):
        seen(f"is_s3 {path}", lambda path=path: utils.is_s3(path))
    for value in (1, 1.5, "a", (1, 2), [1, 2], {"a": 1}, np.ones(2), True, None):
        seen(f"make_numpy_array {value!r}", lambda value=value: utils.make_numpy_array(value))
    seen("match_inc", lambda: [utils.match_inc("abc", ["b"]), utils.match_inc("abc", ["^b", "z"])])
    seen("flatten", lambda: utils.flatten(["a", ("b", "c"), ["d", ["e"]]]))
    seen("split", lambda: utils.split("a, b,c"))
    seen("index", lambda: [utils.index([1, 3], 3)])
    seen("index of none", lambda: utils.index([1, 3], 2))
    seen("step_in_range", lambda: [utils.step_in_range(ends, 2) for ends in ((1, 3), (1, 2), (None, 3), (3, None))])
    for text in ("train", "eval", "predict", "global", "Train", "x"):
        seen(f"mode {text}", lambda text=text: str_to_mode_keys(text))
    for value in (None, "", "a,b", "a; b", ["a"], 5):
        seen(f"parse_list {value!r}", lambda value=value: parse_list_from_str(value))
    seen("parse_list by ;", lambda: parse_list_from_str("a;b", ";"))
    for value in (None, True, "True", "true", False, "False", "false", "yes", 1, 0):
        seen(f"parse_bool {value!r}", lambda value=value: parse_bool(value, "default"))
    seen("reduction name", lambda: get_reduction_tensor_name("a:0", "min", True))
    seen("reduction name with index", lambda: get_reduction_tensor_name("a:0", "min", False, remove_colon_index=False))
    seen("reduction name back", lambda: reverse_reduction_tensor_name("smdebug/reductions/abs_min/a/b"))
    for name in ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2"):
        vector = np.array([-1.0, 2.0, 0.5])
        seen(f"{name}", lambda name=name, vector=vector: float(get_numpy_reduction(name, vector)))
        seen(f"abs {name}", lambda name=name, vector=vector: float(get_numpy_reduction(name, vector, abs=True)))
    seen("reduction unknown", lambda: get_numpy_reduction("median", np.ones(2)))
    seen("basic reduction", lambda: float(get_basic_numpy_reduction("mean", np.ones(2))))
    seen("basic reduction unknown", lambda: get_basic_numpy_reduction("median", np.ones(2)))

    def repeated():
        logger, text = get_logger(), io.StringIO()
        handler = logger.handlers[0]
        before, handler.stream = handler.stream, text
        try:
            for _ in range(10):
                logger.error("the same")
        finally:
            handler.stream = before
        return text.getvalue().count("the same")

    seen("equal messages", repeated)


@case
def e_exceptions(seen, folder):
    import smdebug.exceptions as all_of_them
    from smdebug import modes

    namespace = {}
    exec("from smdebug.exceptions import *", namespace)
    seen("import *", lambda: sorted(name for name in namespace if not name.startswith("_")))
    made = {
        "StepNotYetAvailable": (3, modes.EVAL),
        "MissingCollectionFiles": (),
        "IndexReaderException": ("text",),
        "StepUnavailable": (3, modes.TRAIN),
        "TensorUnavailableForStep": ("a", 3, modes.EVAL, True),
        "ShapeUnavailableForStep": ("a", 3, modes.EVAL),
        "TensorUnavailable": ("a",),
        "InvalidWorker": ("w",),
        "NoMoreProfilerData": (12,),
        "NoMoreData": (3, modes.EVAL, 2),
        "RuleEvaluationConditionMet": ("r", 4, True),
        "InsufficientInformationForRuleInvocation": ("r", "text"),
        "InvalidCollectionConfiguration": ("c",),
        "SMDebugError": ("x",),
        "SMDebugCustomerError": ("x",),
        "SMDebugTypeError": ("x",),
        "SMDebugRuntimeError": ("x",),
        "SMDebugNotImplementedError": ("x",),
        "SMDebugValueError": ("x",),
    }
    for name, arguments in made.items():
        error = getattr(all_of_them, name)(*arguments)
        seen(f"{name}: text", lambda error=error: str(error))
        seen(f"{name}: attributes", lambda error=error: vars(error))
        seen(f"{name}: kinds", lambda error=error: [kind.__name__ for kind in type(error).__mro__])
    seen("default mode", lambda: str(all_of_them.TensorUnavailableForStep("a", 3)))
    import pickle

    def pickled():
        error = all_of_them.StepUnavailable(step=3, mode=modes.TRAIN)
        return str(pickle.loads(pickle.dumps(error)))

    seen("pickled", pickled)


@case
def f_end(seen, folder):
    from smdebug.core.access_layer.utils import has_training_ended, training_has_ended

    for name in ("ended", "running", "nothing"):
        seen(name, lambda name=name: has_training_ended(os.path.join(folder, name)))
    seen("written", lambda: training_has_ended(os.path.join(folder, "running")))
    seen("running at last", lambda: has_training_ended(os.path.join(folder, "running")))


@case
def f_signal(seen, folder):
    from smdebug.core.access_layer.utils import is_rule_signalled_gracetime_passed

    for name, ago in (("fresh", 0), ("old", 120)):
        with open(os.path.join(folder, name, "SIGNAL"), "w", encoding="utf-8") as file:
            file.write(str(int(time.time()) - ago))
    for name in ("none", "fresh", "old", "garbage"):
        seen(name, lambda name=name: is_rule_signalled_gracetime_passed(os.path.join(folder, name)))


@case
def i_records(seen, folder):
    trial = opened(folder)
    for step, name in enumerate(("plain", "true", "both", "twice", "flipped", "header", "cut", "checked")):
        seen(f"{name}: value", lambda step=step, name=name: trial.tensor(name).value(step))
        seen(f"{name}: shape", lambda step=step, name=name: trial.tensor(name).shape(step))
    seen("both: original name", lambda: trial.tensor("both").original_name)


@case
def i_dtypes(seen, folder):
    trial = opened(folder)
    for name in trial.tensor_names():
        seen(name, lambda name=name: trial.tensor(name).value(0))


@case
def i_bad_index(seen, folder):
    for name in ("empty", "half", "list"):
        box = []
        seen(f"{name}: open", lambda name=name, box=box: box.append(opened(folder, name)))
        trial = box[0] if box else None
        seen(f"{name}: steps", lambda trial=trial: trial.steps())
        seen(f"{name}: value after", lambda trial=trial: trial.tensor("t").value(3))
        add(folder, f"{name}_stage", name)
        seen(f"{name}: whole at last", lambda trial=trial: trial.steps())


@case
def i_late(seen, folder):
    trial = opened(folder)
    seen("at first", lambda: trial.steps())
    seen("worker at 7", lambda: trial.tensor("t").workers(7))
    add(folder, "stage1")
    seen("late step", lambda: trial.steps())
    seen("late worker", lambda: sorted(trial.tensor("t").workers(7)))
    seen("late value", lambda: trial.tensor("t").value(5))


@case
def i_dead_worker(seen, folder):
    os.environ["SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"] = "20"
    try:
        trial = opened(folder)
        seen("goes on", lambda: limited(6, lambda: trial.wait_for_steps([5000])))
        seen("steps", lambda: trial.steps())
    finally:
        del os.environ["SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"]


@case
def i_frozen(seen, folder):
    trial = opened(folder)
    seen("wait", lambda: trial.wait_for_steps([0]))
    add(folder, "stage1")
    seen("then steps", lambda: trial.steps())


@case
def i_half_eval(seen, folder):
    from smdebug import modes

    for name in ("running", "ended"):
        trial = opened(folder, name)
        seen(f"{name}: trial", lambda trial=trial: trial.steps(modes.EVAL))
        seen(f"{name}: tensor", lambda trial=trial: trial.tensor("t").steps(modes.EVAL))
        step = 1 if name == "running" else 501
        seen(f"{name}: passed", lambda trial=trial, step=step: trial.has_passed_step(step, modes.EVAL))
        seen(f"{name}: global passed", lambda trial=trial: trial.has_passed_step(5))


@case
def i_paths(seen, folder):
    trial = opened(folder, "my__trial")
    seen("workers", lambda: trial.workers())
    seen("value of worker", lambda: trial.tensor("foo_0").value(1, worker="worker_0"))
    seen("with slash", lambda: opened(folder, "my__trial/").steps())
    seen("steps", lambda: trial.steps())


@case
def i_rules(seen, folder):
    from smdebug.exceptions import RuleEvaluationConditionMet
    from smdebug.rules import Rule, invoke_rule

    trial, other = opened(folder), opened(folder, "other")

    def form(*arguments, **named):
        class Formed(Rule):
            def __init__(self):
                super().__init__(*arguments, **named)

            def invoke_at_step(self, step):
                return False

        rule = Formed()
        return len(rule.trials), rule.rule_name, rule.report, rule.invoke(0)

    mail = '[{"name": "email", "endpoint": "A@b.c"}]'
    seen("form (bt)", lambda: form(trial))
    seen("form (bt, other_trials=[..])", lambda: form(trial, other_trials=[other]))
    seen("form (bt, other_trials=None)", lambda: form(trial, other_trials=None))
    seen("form (bt, [..])", lambda: form(trial, [other]))
    seen("form (bt, text)", lambda: form(trial, ""))
    seen("form (bt, action_str, other_trials)", lambda: form(trial, action_str="", other_trials=None))
    seen("form (base_trial=, action_str=)", lambda: form(base_trial=trial, action_str=""))
    seen("form (bt, None, text)", lambda: form(trial, None, ""))
    seen("form (bt, text, [..])", lambda: form(trial, "", [other]))
    seen("form (bt, None)", lambda: form(trial, None))
    seen("no method", lambda: Rule(trial, ""))

    class Met(Rule):
        def __init__(self, steps, error=None, names=("foo_0",)):
            super().__init__(trial, "")
            self.steps, self.error, self.names, self.invoked = steps, error, names, []

        def set_required_tensors(self, step):
            for name in self.names:
                self.req_tensors.add(name, steps=[step])

        def invoke_at_step(self, step):
            self.invoked.append(step)
            if self.error is not None and step in self.steps:
                raise self.error
            return step in self.steps or None

    def invoked(*arguments, rule=None, **named):
        rule = rule or Met([1, 2])
        try:
            return [invoke_rule(rule, *arguments, **named), rule.invoked]
        except BaseException as error:
            return [type(error).__name__, str(error), rule.invoked]

    seen("invoke to the end", lambda: invoked())
    seen("invoke from 1 to 3", lambda: invoked(1, 3))
    seen("invoke with end_step 0", lambda: invoked(0, 0))
    seen("invoke and raise", lambda: invoked(raise_eval_cond=True, end_step=3))
    ends = RuleEvaluationConditionMet("Met", 1, end_of_rule=True)
    seen("invoke, end of rule", lambda: invoked(rule=Met([1], ends)))
    seen("invoke, an error", lambda: invoked(rule=Met([1], ZeroDivisionError("own"))))
    seen("other trials after an error", lambda: trial.dynamic_refresh)
    seen("invoke, unknown tensor", lambda: invoked(rule=Met([1], names=("nothing",)), end_step=3))
    seen("invoke a hole", lambda: Met([]).invoke(3))
    seen("invoke beyond", lambda: Met([]).invoke(9))
    seen("invoke met", lambda: Met([1]).invoke(1))

    def required():
        rule = Met([])
        steps = [0]
        rule.req_tensors.add("foo_", steps, should_match_regex=True)
        rule.req_tensors.add("foo_0", [1])
        names = list(rule.req_tensors.get_names())
        of_each = [rule.req_tensors.get_tensor_steps(name) for name in names]
        return names, of_each, steps, [tensor.name for tensor in rule.req_tensors.get()]

    seen("required", required)
    seen("required, unknown", lambda: Met([]).req_tensors.add("nothing", [0]))
    seen("required, no match", lambda: Met([]).req_tensors.add("nothing", [0], should_match_regex=True))

    def another():
        try:
            Met([]).req_tensors.add("foo_0", [0], trial=other)
        except KeyError:
            return "KeyError"

    seen("required, another trial", another)
    seen("required, steps of unknown", lambda: Met([]).req_tensors.get_tensor_steps("x"))
    seen("required, base trial", lambda: Met([]).req_tensors.add("foo_0", [0], trial=trial))

    def actions(text):
        class Acting(Rule):
            def invoke_at_step(self, step):
                return False

        found = Acting(trial, text)._actions._actions
        return [[type(one).__name__, getattr(one, "_message_endpoint", None)] for one in found]

    seen("actions: none", lambda: actions("  "))
    seen("actions: unknown", lambda: actions('{"name": "dance"}'))
    seen("actions: missing endpoint", lambda: actions('{"name": "sms"}'))
    seen("actions: a text", lambda: actions('"abc"'))
    seen("actions: not JSON", lambda: actions("{a"))
    seen("actions: missing prefix", lambda: actions('{"name": "stoptraining"}'))
    if os.environ.get("PROBE_ACTIONS"):
        # at construction the reference asks AWS, so only ours is asked
        seen("actions: mixed case", lambda: actions(mail))
        seen("actions: escaped", lambda: actions(mail.replace('"', '\\"')))


@case
def i_norms(seen, folder):
    trial = opened(folder)
    names = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2")
    for tensor in ("vector", "matrix", "kernel", "whole"):
        for name in names:
            call = lambda t=tensor, n=name: float(trial.tensor(t).reduction_value(0, n))
            seen(f"{tensor} {name}", lambda call=call: round(call(), 4))
            call = lambda t=tensor, n=name: float(trial.tensor(t).reduction_value(0, n, abs=True))
            seen(f"{tensor} abs {name}", lambda call=call: round(call(), 4))
    for name in names:
        seen(f"saved abs {name}", lambda name=name: trial.tensor("matrix").reduction_value(1, name, abs=True))
    seen("saved l2", lambda: trial.tensor("matrix").reduction_value(1, "l2"))
    seen("all saved", lambda: trial.tensor("matrix").reduction_values(1))
    seen("none saved", lambda: trial.tensor("matrix").reduction_values(0))
    seen("alone: value", lambda: trial.tensor("alone").value(1))
    seen("alone: reduction", lambda: trial.tensor("alone").reduction_value(1, "mean", abs=True))
    seen("alone: another reduction", lambda: trial.tensor("alone").reduction_value(1, "mean"))
    seen("alone: shape", lambda: trial.tensor("alone").shape(1))
    seen("alone: at 0", lambda: trial.tensor("alone").value(0))
    seen("unknown reduction", lambda: trial.tensor("matrix").reduction_value(0, "median"))
    seen("kind of a computed one", lambda: trial.tensor("matrix").reduction_value(0, "mean"))
    seen("removed step", lambda: trial.tensor("matrix").step(0))
    from smdebug.rules import Rule

    class Needs(Rule):
        def __init__(self):
            super().__init__(trial, "")

        def set_required_tensors(self, step):
            self.req_tensors.add("alone", [step])

        def invoke_at_step(self, step):
            return bool(self.base_trial.tensor("alone").reduction_value(step, "mean", abs=True) > 0)

    seen("required with reductions only", lambda: Needs().invoke(1))


@case
def i_replaced(seen, folder):
    trial = opened(folder)
    seen("before", lambda: trial.steps())
    time.sleep(0.05)
    add(folder, "stage1")
    seen("after: other tensor", lambda: trial.tensor("b").value(0))
    seen("after: steps", lambda: trial.steps())
    seen("after: first tensor", lambda: trial.tensor("a").value(0))


@case
def i_answers(seen, folder):
    from smdebug import modes

    trial = opened(folder)
    for step in (0, 4):
        for kind in ("inputs", "labels", "predictions"):
            seen(f"{kind} at {step}", lambda step=step, kind=kind: getattr(trial, kind)(step))
    for mode in (modes.TRAIN, modes.EVAL):
        for kind in ("inputs", "labels", "predictions"):
            seen(f"{kind} at 1 of {mode.name}", lambda kind=kind, mode=mode: getattr(trial, kind)(1, mode))
    seen("labels of no step", lambda: trial.labels(99))


@case
def w_writer(seen, folder):
    from smdebug import modes

    trial = opened(folder)
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    wrong = []
    for key, (kind, shape, numbers) in expected.items():
        name, step, worker = key.split("@")
        array = trial.tensor(name).value(int(step), worker=worker)
        if [array.dtype.str, list(array.shape), array.astype(str).ravel().tolist()] != [kind, shape, numbers]:
            wrong.append(key)
    seen("values not as written", lambda: wrong)
    seen("how many", lambda: len(expected))
    seen("steps", lambda: [trial.steps(mode) for mode in modes])
    seen("workers", lambda: trial.workers())
    seen("modes", lambda: trial._global_to_mode)
    seen("names", lambda: trial.tensor_names())
    seen("collection", lambda: trial.tensor_names(collection="losses"))
    seen("reductions", lambda: [trial.tensor("reduced").reduction_values(step) for step in range(6)])
    seen("shapes", lambda: [trial.tensor("shaped").shape(step) for step in range(6)])
    seen("loaded", lambda: trial.loaded_all_steps)


@case
def w_hook(seen, folder):
    from smdebug import modes

    trial = opened(folder)
    seen("steps", lambda: [trial.steps(mode) for mode in modes])
    seen("names", lambda: sorted(trial.tensor_names()))
    for name in ("weights", "gradients", "losses"):
        seen(name, lambda name=name: sorted(trial.tensor_names(collection=name)))
    seen("weight", lambda: trial.tensor("fc.weight").value(6))
    seen("loss", lambda: trial.tensor("loss").value(4))
    seen("evaluation", lambda: trial.tensor("val_loss").value(0, mode=modes.EVAL))
    seen("mean", lambda: trial.tensor("gradient/fc.weight").reduction_value(6, "mean", abs=True))
    seen("norm", lambda: trial.tensor("gradient/fc.weight").reduction_value(6, "l2"))
    seen("loaded", lambda: trial.loaded_all_steps)


@case
def shared(seen, folder):
    """Everything there is in the shared trials."""
    from smdebug import modes

    for name in sorted(os.listdir(folder)):
        trial = opened(folder, name)
        state(seen, trial, name, (0, 1, 7, 99))
        seen(f"{name}: names", lambda trial=trial: trial.tensor_names())
        seen(f"{name}: by mode", lambda trial=trial: [trial.steps(mode) for mode in modes])
        seen(f"{name}: mapping", lambda trial=trial: trial._global_to_mode)
        for collection in sorted(trial.collections()):
            call = lambda trial=trial, collection=collection: trial.tensor_names(collection=collection)
            seen(f"{name}: collection {collection}", call)
        for tensor in map(trial.tensor, trial.tensor_names()):
            whole(seen, f"{name}: {tensor.name}", trial, tensor, modes)


def whole(seen, label, trial, tensor, modes):
    """One tensor at all its steps."""
    for mode in modes:
        seen(f"{label}: steps {mode.name}", lambda: (tensor.steps(mode), tensor.prev_steps(8, 3, mode)))
        steps = tensor.steps(mode)
        for step in steps:
            seen(f"{label}: {mode.name} {step}: value", lambda: tensor.value(step, mode))
    for step in tensor.steps():
        seen(f"{label}: {step}: shape", lambda: tensor.shape(step))
        seen(f"{label}: {step}: reductions", lambda: tensor.reduction_values(step))
        seen(f"{label}: {step}: workers", lambda: sorted(tensor.workers(step)))
        for worker in tensor.workers(step):
            seen(f"{label}: {step}: value of {worker}", lambda: tensor.value(step, worker=worker))


def main(data, result, only=""):
    import smdebug

    results = {"smdebug.__version__": {"version": smdebug.__version__}}
    for name, function in CASES.items():
        if only and name not in only.split(","):
            continue
        seen = Seen()
        folder = os.path.join(data, name)
        os.makedirs(folder, exist_ok=True)
        try:
            limited(600 if name == "shared" else SECONDS * 4, lambda: function(seen, folder))
        except BaseException as error:
            seen.results["the case itself"] = {"raises": type(error).__name__, "is": [], "text": str(error)}
        results[name] = seen.results
    with open(result, "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
