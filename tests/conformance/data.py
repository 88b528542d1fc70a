"""The trials that both libraries read, written by our writer into one folder per case.

A case's folder holds `trial`, and stages (`stage1`, ...) whose files come later. Helper names as in conformance.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.formats.collection_file import encode_collections
from evaluator.formats.event import encode_event
from evaluator.formats.index_file import IndexFile, encode_index
from evaluator.formats.key_names import collections_key, event_key, index_key
from evaluator.formats.tfrecord import frame
from evaluator.hooks._hooked_trial import HookedTrial
from evaluator.modes import Mode
from evaluator.writer import TrialWriter, write_end_marker

ABC = ("worker_0", "worker_1", "worker_2")
TIME = 1_700_000_000.0


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def announce(folder: Path, workers: Iterable[str] = ("worker_0",), num_workers: int = 1, **collections: Any) -> None:
    for worker in workers:
        TrialWriter(folder, worker=worker, num_workers=num_workers, collections=collections).write_collections()


def gd(
    folder: Path, step: int, n: int = 10, prefix: str = "foo", worker: str = "algo-1", announced: bool = True
) -> None:
    """conformance.md GD: n tensors `<prefix>_<i>`, ones times the step."""
    names = [f"{prefix}_{number}" for number in range(n)]
    save(folder, step, {name: np.ones((3, 3, 3), np.float32) * step for name in names}, worker=worker)
    announce(folder, default=names, gradients=names)


def save(folder: Path, step: int, values: Mapping[str, Any], *, worker: str = "worker_0", **how: Any) -> None:
    """One step of one worker, by our writer, without a collections file."""
    writer = TrialWriter(folder, worker=worker)
    writer._announced = True
    writer.save(step, values, wall_time=TIME + step, **how)


def ds(folder: Path, step: int, mode: str, mode_step: int, worker: str = "worker_0") -> None:
    """conformance.md DS: only an index file, without an event file."""
    meta = {"mode": mode, "mode_step": mode_step, "event_file_name": ""}
    content = {"meta": meta, "tensor_payload": [{"tensorname": "gradients/dummy:0", "start_idx": 0, "length": 1}]}
    write(folder / index_key(step, worker), json.dumps(content).encode())


def w3(folder: Path, steps: Mapping[int, Iterable[str]], *, ended: bool, workers: tuple[str, ...] = ABC) -> None:
    """conformance.md W3: which of a, b, c wrote which step."""
    announce(folder, workers, len(workers))
    for step, wrote in steps.items():
        for letter in wrote:
            save(folder, step, {"w": np.full(2, step, np.float32)}, worker=workers["abc".index(letter)])
    if ended:
        write_end_marker(folder)


def raw(
    folder: Path, step: int, records: list[tuple[str, bytes]], worker: str = "worker_0", shapes: tuple[Any, ...] = ()
) -> None:
    """An event file of these records, and its index file."""
    lengths = np.array([len(data) for _, data in records], np.int64)
    key = event_key(step, worker)
    write(folder / key, b"".join(data for _, data in records))
    names = tuple(name for name, _ in records)
    index = IndexFile(Mode.GLOBAL, step, key, names, np.cumsum(lengths) - lengths, lengths, shapes)
    write(folder / index_key(step, worker), encode_index(index))


def record(name: str, value: Any, step: int, *, true_checksum: bool = False, mode: Mode = Mode.GLOBAL) -> bytes:
    payload = encode_event(name, value, step=step, mode=mode, mode_step=step, wall_time=TIME)
    return frame(payload, true_checksum=true_checksum)


Build = Callable[[Path], None]
BUILDS: dict[str, Build] = {}


def data(build: Build) -> Build:
    """Register what builds the data of the case of that name."""
    BUILDS[build.__name__] = build
    return build


@data
def a_local(folder: Path) -> None:
    for step in range(20):
        gd(folder / "trial", step)


@data
def a_four_trials(folder: Path) -> None:
    for number in range(4):
        for step in range(5):
            gd(folder / f"trial{number}", step, 5)


@data
def a_ended(folder: Path) -> None:
    announce(folder / "trial")
    write_end_marker(folder / "trial")


def _many(folder: Path, files: int, *, ended: bool) -> None:
    data_of_all = encode_collections({}, 2001)
    for number in range(files):
        write(folder / "trial" / collections_key(f"worker_{number}"), data_of_all)
    if ended:
        write_end_marker(folder / "trial")


@data
def a_many_workers_ended(folder: Path) -> None:
    _many(folder, 2001, ended=True)


@data
def a_many_workers_missing(folder: Path) -> None:
    _many(folder, 1446, ended=True)


@data
def a_many_workers_running(folder: Path) -> None:
    _many(folder, 2001, ended=False)


@data
def b_refresh(folder: Path) -> None:
    for step in range(8):
        gd(folder / "trial", step)
        gd(folder / "stage1", step + 8)
    gd(folder / "stage2", 17)
    gd(folder / "stage3", 18, 13)


@data
def b_odd_steps(folder: Path) -> None:
    for step in (1, 3, 5, 7):
        gd(folder / "trial", step)
        gd(folder / "stage1", step + 8)


@data
def b_rule(folder: Path) -> None:
    gd(folder / "trial", 0, 3)
    gd(folder / "trial", 1, 3)
    gd(folder / "stage1", 2, 3)


def _two_modes(folder: Path, *, ended: bool) -> None:
    announce(folder)
    for at, step in enumerate(range(0, 80, 10)):
        ds(folder, step, "TRAIN" if at < 4 else "EVAL", step if at < 4 else step - 40)
    if ended:
        write_end_marker(folder)


@data
def c_two_modes(folder: Path) -> None:
    _two_modes(folder / "ended", ended=True)
    _two_modes(folder / "running", ended=False)


C_CASES: dict[str, tuple[dict[int, str], tuple[str, ...]]] = {
    "single_all": (dict.fromkeys(range(7), "a"), ABC[:1]),
    "single_hole": (dict.fromkeys([0, 1, 2, 3, 5, 6], "a"), ABC[:1]),
    "three_all": (dict.fromkeys(range(7), "abc"), ABC),
    "three_not_all": ({**dict.fromkeys(range(3), "abc"), **dict.fromkeys(range(3, 7), "ac")}, ABC),
    "three_later": ({**dict.fromkeys(range(3), "abc"), **dict.fromkeys(range(3, 6), "ac"), 6: "abc"}, ABC),
    "three_missing_later": ({**dict.fromkeys(range(3), "abc"), 4: "ac", 5: "ac", 6: "abc"}, ABC),
    "three_missing_partial": ({**dict.fromkeys(range(3), "abc"), 4: "ac", 5: "ac", 6: "ac"}, ABC),
}


@data
def c_workers(folder: Path) -> None:
    for name, (steps, workers) in C_CASES.items():
        for ended in (True, False):
            w3(folder / f"{name}_{'ended' if ended else 'running'}", steps, ended=ended, workers=workers)


@data
def c_window(folder: Path) -> None:
    w3(folder / "trial", dict.fromkeys(range(20), "a"), ended=False)


@data
def c_partial_tensors(folder: Path) -> None:
    two = ABC[:2]
    announce(folder / "trial", two, 2)
    for step in range(10):
        for worker in two:
            if worker == "worker_1" and step in {3, 4, 8, 9}:
                continue
            values = {"weight": np.float32(step), "gradient" if step >= 5 else "loss": np.float32(step)}
            save(folder / "trial", step, values, worker=worker)


@data
def d_modes(folder: Path) -> None:
    announce(folder / "trial", ("localhost",))
    for step in range(10):
        mode = Mode.EVAL if step % 2 else Mode.TRAIN
        value = {"arr": np.full((2, 2), step, np.float32)}
        save(folder / f"stage{step}", step, value, worker="localhost", mode=mode, mode_step=step // 2)


@data
def d_names(folder: Path) -> None:
    for step in range(20):
        gd(folder / "trial", step, prefix="foo")
        gd(folder / "trial", step + 20, prefix="boo")
    announce(folder / "modes")
    save(folder / "modes", 0, {"arr_1": np.ones(2)}, mode=Mode.TRAIN, mode_step=0)
    save(folder / "modes", 1, {"arr_2": np.ones(2)}, mode=Mode.EVAL, mode_step=0)


@data
def e_event_files(folder: Path) -> None:
    values = {f"t{number}": np.arange(16, dtype=np.float32).reshape(4, 4) + number for number in range(10)}
    save(folder / "trial", 20, values)
    save(folder / "trial", 21, {"text": np.array(["foo", "barz"])}, mode=Mode.TRAIN, mode_step=3)
    index = json.loads((folder / "trial" / index_key(20, "worker_0")).read_bytes())
    event = (folder / "trial" / event_key(20, "worker_0")).read_bytes()
    for number, entry in enumerate(index["tensor_payload"]):
        cut = event[entry["start_idx"] : entry["start_idx"] + entry["length"]]
        write(folder / "cut" / f"{number}.tfevents", cut)


@data
def e_missing_events(folder: Path) -> None:
    for name in ("running", "ended"):
        announce(folder / name)
        for step in range(0, 200, 9):
            save(folder / name, step, {"t": np.ones(3, np.float32) * step})
        save(folder / name, 199, {"t": np.ones(3, np.float32)})
        for step in (9, 199):
            (folder / name / event_key(step, "worker_0")).unlink()
    write_end_marker(folder / "ended")


@data
def e_worker_names(folder: Path) -> None:
    names = ("/job:worker/replica:0/task:1/device:GPU:6", "job-worker_1", "worker_2")
    announce(folder / "trial", names, 3)
    for worker in names:
        save(folder / "trial", 0, {"t": np.ones(2)}, worker=worker)
    write(folder / "trial/index/000000000/000000001230_worker_2.json.tmp", b"")


@data
def f_end(folder: Path) -> None:
    announce(folder / "ended")
    write_end_marker(folder / "ended")
    announce(folder / "running")


@data
def f_signal(folder: Path) -> None:
    for name in ("none", "fresh", "old", "garbage"):
        (folder / name).mkdir(parents=True)
    (folder / "garbage/SIGNAL").write_text("Hello")


@data
def i_records(folder: Path) -> None:
    trial = folder / "trial"
    announce(trial)
    raw(trial, 0, [("plain", record("plain", np.ones(2, np.float32), 0))])
    raw(trial, 1, [("true", record("true", np.ones(2, np.float32), 1, true_checksum=True))])
    both = (("both", "orig", (2, 3)),)
    raw(trial, 2, [("both", record("both", np.ones((2, 3), np.float32), 2))], shapes=both)
    raw(trial, 3, [("twice", record("twice", np.float32(1), 3)), ("twice", record("twice", np.float32(2), 3))])
    damaged = bytearray(record("flipped", np.ones(4, np.float32), 4))
    damaged[damaged.index(np.float32(1).tobytes())] ^= 1
    raw(trial, 4, [("flipped", bytes(damaged))])
    header = bytearray(record("header", np.ones(4, np.float32), 5))
    header[9] ^= 1
    raw(trial, 5, [("header", bytes(header))])
    raw(trial, 6, [("cut", record("cut", np.ones(40, np.float32), 6))])
    path = trial / event_key(6, "worker_0")
    path.write_bytes(path.read_bytes()[:80])
    flipped = bytearray(record("checked", np.ones(4, np.float32), 7, true_checksum=True))
    flipped[-6] ^= 1
    raw(trial, 7, [("checked", bytes(flipped))])
    write_end_marker(trial)


DTYPES = ("i1", "i2", "u2", "u4", "u8", "c8", "f2", "f4", "f8", "i4", "i8", "u1", "?", "c16")
EMPTY = ("f4", "f8", "i4", "i8", "?", "u1")


@data
def i_dtypes(folder: Path) -> None:
    values: dict[str, Any] = {f"d_{name}": np.array([[0, 1, -2 % 100]]).astype(name) for name in DTYPES}
    values["d_i1"] = np.array([-1, 5], np.int8)
    values.update({f"e_{name}": np.zeros((0, 3), name) for name in EMPTY})
    values["text"] = np.array(["a", "bcd"])
    values["e_text"] = np.array([], "<U1")
    with TrialWriter(folder / "trial") as writer:
        writer.save(0, values, wall_time=TIME)


@data
def i_bad_index(folder: Path) -> None:
    for name, content in (("empty", b""), ("half", b'{"meta": {"mode": "TR'), ("list", b"[]")):
        announce(folder / name)
        for step in range(5):
            save(folder / name, step, {"t": np.float32(step)})
        write(folder / name / index_key(2, "worker_0"), content)
        save(folder / f"{name}_stage", 2, {"t": np.float32(2)})


@data
def i_late(folder: Path) -> None:
    announce(folder / "trial", ABC[:2], 2)
    for worker in ABC[:2]:
        save(folder / "trial", 0, {"t": np.float32(0)}, worker=worker)
        save(folder / "trial", 10, {"t": np.float32(10)}, worker=worker)
        save(folder / "stage1", 5, {"t": np.float32(5)}, worker=worker)
    save(folder / "trial", 7, {"t": np.float32(7)}, worker="worker_0")
    save(folder / "stage1", 7, {"t": np.float32(7)}, worker="worker_1")


@data
def i_dead_worker(folder: Path) -> None:
    trial = folder / "trial"
    announce(trial, ABC[:2], 2)
    for step in range(0, 15_000, 500):
        save(trial, step, {"t": np.float32(step)})
        if step < 1000:
            save(trial, step, {"t": np.float32(step)}, worker="worker_1")


@data
def i_frozen(folder: Path) -> None:
    gd(folder / "trial", 0, 2)
    gd(folder / "stage1", 1, 2)


@data
def i_half_eval(folder: Path) -> None:
    for name in ("running", "ended"):
        trial = folder / name
        announce(trial, ABC[:2], 2)
        for worker in ABC[:2]:
            for step in range(4):
                save(trial, step, {"t": np.float32(step)}, worker=worker, mode=Mode.TRAIN, mode_step=step)
            save(trial, 4, {"t": np.float32(4)}, worker=worker, mode=Mode.EVAL, mode_step=0)
        # numbers of mode steps that are no global steps, for the ended one
        save(trial, 5, {"t": np.float32(5)}, mode=Mode.EVAL, mode_step=1 if name == "running" else 501)
    write_end_marker(folder / "ended")


@data
def i_paths(folder: Path) -> None:
    for step in range(2):
        gd(folder / "my__trial", step, 2, worker="worker_0")
    write(folder / "my__trial/index/000000000/000000000007_worker_0.json.sagemaker-uploaded", b"x")
    write(folder / "my__trial/collections/000000000/x.sagemaker-uploaded", b"x")
    write_end_marker(folder / "my__trial")


@data
def i_rules(folder: Path) -> None:
    for step in (0, 1, 2, 4):
        gd(folder / "trial", step, 2)
    gd(folder / "other", 0, 2)
    write_end_marker(folder / "trial")


@data
def i_norms(folder: Path) -> None:
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(4, 3)).astype(np.float32)
    kernel = rng.normal(size=(2, 3, 2, 2)).astype(np.float32)
    names = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2")
    with TrialWriter(folder / "trial") as writer:
        values = {"matrix": matrix, "kernel": kernel, "vector": matrix[:, 0], "whole": np.array([3, -4, 12])}
        writer.save(0, values, wall_time=TIME)
        saved = {f"abs_{name}": np.float32(7) for name in names} | {"l2": np.float32(np.sqrt((matrix**2).sum()))}
        writer.save(1, {"matrix": matrix}, reductions={"matrix": saved, "alone": saved}, wall_time=TIME)


@data
def i_replaced(folder: Path) -> None:
    announce(folder / "trial")
    save(folder / "trial", 0, {"a": np.float32(1), "b": np.ones(5, np.float32)})
    save(folder / "stage1", 0, {"a": np.ones(9, np.float32), "b": np.full(5, 2, np.float32)})


@data
def i_answers(folder: Path) -> None:
    with TrialWriter(folder / "trial", collections={"inputs": ["x_10", "x_2"]}) as writer:
        for mode in (Mode.TRAIN, Mode.EVAL):
            for step in range(3):
                at = step if mode is Mode.TRAIN else step + 3
                named = {"labels": at, "labels_10": at + 0.5, "labels_2": at + 0.25, "predictions": at + 10}
                values = {name: np.float32(value) for name, value in {**named, "x_10": at, "x_2": -at}.items()}
                writer.save(at, values, mode=mode, mode_step=step, wall_time=TIME)


@data
def w_writer(folder: Path) -> None:
    """All that our writer writes: the expectation is what was given to it."""
    rng = np.random.default_rng(3)
    expected: dict[str, list[Any]] = {}
    for worker in ABC[:2]:
        writer = TrialWriter(folder / "trial", worker=worker, num_workers=2, collections={"losses": ["loss"]})
        for step in range(6):
            mode = (Mode.TRAIN, Mode.EVAL, Mode.PREDICT, Mode.GLOBAL)[step % 4]
            values: dict[str, Any] = {
                f"v_{kind}": (rng.normal(size=(2, 3)) * 50).astype(kind)
                for kind in ("f2", "f4", "f8", "i4", "i8", "u1", "?", "c16")
            }
            values["text"] = np.array(["ä", "xyz"])
            values["loss"] = np.float32(step)
            for name, value in values.items():
                array = np.asarray(value)
                array = array.reshape(1) if name == "loss" else array
                expected[f"{name}@{step}@{worker}"] = [
                    array.dtype.str,
                    list(array.shape),
                    array.astype(str).ravel().tolist(),
                ]
            reductions = {"reduced": {"mean": np.float32(step), "abs_max": np.float32(2)}}
            within = None if mode is Mode.GLOBAL else step // 4
            writer.save(step, values, mode=mode, mode_step=within, reductions=reductions, shapes={"shaped": (4, 5)})
        writer.close(end=True)
    write(folder / "expected.json", json.dumps(expected).encode())


@data
def w_hook(folder: Path) -> None:
    """What hooks write: collections that grow, reductions without values, and only the last steps."""
    trial = HookedTrial(folder / "trial", rank_of=(0, 1), keep_steps=4)
    for number in range(7):
        mode = Mode.EVAL if number == 5 else Mode.TRAIN
        step, mode_step = trial.count(mode)
        if mode is Mode.EVAL:
            values: dict[str, Any] = {"val_loss": np.float32(number)}
            trial.save(step, values, mode=mode, mode_step=mode_step, collections={"losses": ["val_loss"]})
            continue
        values = {"fc.weight": np.full((2, 3), number, np.float32), "loss": np.array(number, np.float32)}
        reductions = {"gradient/fc.weight": {"abs_mean": 0.5 * number, "l2": 2.0 * number, "max": 1.0}}
        collections = {"weights": ["fc.weight"], "gradients": ["gradient/fc.weight"], "losses": ["loss"]}
        more: Any = {"reductions": reductions, "collections": collections}
        trial.save(step, values, mode=mode, mode_step=mode_step, **more)
    trial.close()


def build_all(folder: Path, shared: Iterable[Path]) -> None:
    """Write the data of every case, and copy the shared trials."""
    for name, build in BUILDS.items():
        (folder / name).mkdir(parents=True)
        build(folder / name)
    for trial in shared:
        if not (folder / "shared" / trial.name).exists():
            shutil.copytree(trial, folder / "shared" / trial.name)
