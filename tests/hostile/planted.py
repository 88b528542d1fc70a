"""What somebody who may write into a trial can put there, and a folder beside it that nothing may read."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.formats import wire
from evaluator.formats.event import encode_event
from evaluator.formats.key_names import collections_key, event_key, index_key
from evaluator.formats.tfrecord import frame
from evaluator.modes import Mode
from evaluator.writer import TrialWriter

WORKER = "worker_0"
INDEX, EVENTS, COLLECTIONS = index_key(1, WORKER), event_key(1, WORKER), collections_key(WORKER)
SECRET = "the secret beside the trial"  # noqa: S105 - what a test looks for
"""A tensor name and a text that stand only outside of the trial."""


@dataclass(frozen=True)
class Planted:
    """One hostile thing: how it is put into a trial of three steps, and what is said of it."""

    put: Callable[[Path, Path], object]
    """Given the trial and the folder outside."""
    told: str
    """What a note says of it, as a pattern."""
    steps: tuple[int, int] = (2, 1)
    """Complete and partial steps; the planted one is the middle of three."""
    unreadable: int = 1


def sound(folder: Path) -> Path:
    """A trial of three steps with one gradient."""
    with TrialWriter(folder, collections={"gradients": {"include_regex": ["^g"]}}) as writer:
        for step in range(3):
            writer.save(step, {"g": np.full(3, 1e-3, np.float32)}, mode=Mode.TRAIN, wall_time=float(step))
    # what is wrong with one collections file must not cost the others
    shutil.copy(folder / COLLECTIONS, folder / collections_key("worker_1"))
    return folder


def outside(folder: Path) -> Path:
    """A folder with an event file that would fit: its values would be a finding."""
    folder.mkdir()
    record = frame(
        encode_event("g", np.full(3, 1e-12, np.float32), step=1, mode=Mode.TRAIN, mode_step=1, wall_time=1.0)
    )
    (folder / Path(EVENTS).name).write_bytes(record)
    (folder / "secret.txt").write_text(SECRET)
    collections: dict[str, Any] = {"collections": {SECRET: {"name": SECRET}}, "_meta": {"num_workers": 1}}
    (folder / Path(COLLECTIONS).name).write_text(json.dumps(collections))
    meta = {"mode": "TRAIN", "mode_step": 0, "event_file_name": EVENTS}
    (folder / Path(index_key(1000, WORKER)).name).write_text(json.dumps({"meta": meta, "tensor_payload": []}))
    return folder


def change_index(trial: Path, **values: Any) -> None:
    """Other values in the middle step's index file."""
    index = json.loads((trial / INDEX).read_text())
    for name, value in values.items():
        (index["meta"] if name in index["meta"] else index["tensor_payload"][0])[name] = value
    (trial / INDEX).write_text(json.dumps(index))


def instead(key: str, put: Callable[[Path], object]) -> Callable[[Path, Path], object]:
    """Something else in the place of a file."""

    def replace(trial: Path, _: Path) -> None:
        (trial / key).unlink()
        put(trial / key)

    return replace


def link(key: str, target: str) -> Callable[[Path, Path], None]:
    """A link in the place of a file or folder, to something in the folder outside."""

    def replace(trial: Path, beside: Path) -> None:
        place = trial / key
        if place.is_dir():
            place.rename(beside / "was")
        elif place.exists():
            place.unlink()
        place.symlink_to(beside / target)

    return replace


def written(key: str, content: bytes) -> Callable[[Path, Path], object]:
    """Other content of a file."""
    return lambda trial, _: (trial / key).write_bytes(content)


def holes(path: Path) -> None:
    """A file that claims a gigabyte and takes none."""
    path.touch()
    os.truncate(path, 2**30)


def repeated(trial: Path, _: Path) -> None:
    """A thousand records of sixty bytes that stand for a million complex numbers each."""
    shape = wire.bytes_field(2, wire.bytes_field(2, wire.number_field(1, 2**20)))
    tensor = wire.number_field(1, 18) + shape + wire.bytes_field(12, struct.pack("<dd", 1, 0))
    names = [f"g{at:03}" for at in range(1000)]
    records = [
        frame(
            wire.bytes_field(5, wire.bytes_field(1, wire.bytes_field(1, name.encode()) + wire.bytes_field(8, tensor)))
        )
        for name in names
    ]
    size = len(records[0])
    (trial / EVENTS).write_bytes(b"".join(records))
    entries = [{"tensorname": name, "start_idx": size * at, "length": size} for at, name in enumerate(names)]
    meta = {"mode": "TRAIN", "mode_step": 1, "event_file_name": EVENTS}
    (trial / INDEX).write_text(json.dumps({"meta": meta, "tensor_payload": entries}))


def patterns(*given: str) -> bytes:
    """A collections file with these patterns."""
    saved = {"gradients": {"name": "gradients", "tensor_names": ["g"], "include_regex": given}}
    return json.dumps({"collections": saved, "_meta": {"num_workers": 1}}).encode()


DEEP = b'{"meta": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DENSE = b'{"meta": {}, "tensor_payload": [' + b"{}," * 2_000_000 + b"{}]}"
FINE = {"steps": (3, 0), "unreadable": 0}

PLANTED = {
    "../ in event_file_name": Planted(
        lambda trial, _: change_index(trial, event_file_name=f"../outside/{Path(EVENTS).name}"), "leaves the trial"
    ),
    "an absolute event_file_name": Planted(
        lambda trial, beside: change_index(trial, event_file_name=str(beside / Path(EVENTS).name)), "leaves the trial"
    ),
    "an event file that is a link out": Planted(link(EVENTS, Path(EVENTS).name), "leads out of the folder", (3, 0)),
    "an event folder that is a link out": Planted(link("events/000000000001", ""), "leads out of the folder", (3, 0)),
    "an index file that is a link out": Planted(link(INDEX, "secret.txt"), f"{INDEX}: .*leads out", (2, 0), 0),
    "an index folder that is a link out": Planted(link("index/000000001", ""), "index/000000001: .*link", **FINE),  # type: ignore[arg-type]
    "a collections file that is a link out": Planted(
        link(COLLECTIONS, Path(COLLECTIONS).name), f"{COLLECTIONS}: .*leads out", (3, 0), 0
    ),
    "a FIFO as event file": Planted(instead(EVENTS, os.mkfifo), "not a regular file", (3, 0)),
    "a FIFO as index file": Planted(instead(INDEX, os.mkfifo), f"{INDEX}: is not a regular file", (2, 0), 0),
    "a device as event file": Planted(
        instead(EVENTS, lambda path: path.symlink_to("/dev/zero")), "leads out of the folder", (3, 0)
    ),
    "a folder as event file": Planted(instead(EVENTS, Path.mkdir), "not read: .*tfevents", (3, 0)),
    "length 2^60": Planted(lambda trial, _: change_index(trial, length=2**60), "length is 1152921504606846976"),
    "start 2^60": Planted(lambda trial, _: change_index(trial, start_idx=2**60), "start_idx or length is 11529215046"),
    "length 2^53": Planted(
        lambda trial, _: change_index(trial, length=2**53), "is said to take 9007199254740992 bytes", (3, 0)
    ),
    "a gigabyte of index JSON": Planted(instead(INDEX, holes), f"{INDEX}: has 1073741824 bytes"),
    "a gigabyte of collections JSON": Planted(
        instead(COLLECTIONS, holes), f"{COLLECTIONS}: has 1073741824 bytes", (3, 0), 0
    ),
    "deep index JSON": Planted(written(INDEX, DEEP), f"{INDEX}: the file is no JSON"),
    "deep collections JSON": Planted(written(COLLECTIONS, DEEP), f"{COLLECTIONS}: the file is no JSON", (3, 0), 0),
    "millions of empty objects": Planted(written(INDEX, DENSE), f"{INDEX}: the file would take about"),
    "a tensor name of a megabyte": Planted(
        lambda trial, _: change_index(trial, tensorname="g" * 2**20), "has 1048576 characters"
    ),
    "records that stand for gigabytes": Planted(repeated, "tensors not read: .*there is room for", (3, 0)),
    "a pattern that takes all memory": Planted(
        written(COLLECTIONS, patterns("(?:a{50000}){50000}")), "is left out: it would take too much memory", (3, 0), 0
    ),
    "a pattern that nests": Planted(
        written(COLLECTIONS, patterns("(?:" * 40 + "a" + ")+" * 40)),
        "is left out: it would take too much memory",
        (3, 0),
        0,
    ),
    "a pattern that never ends": Planted(
        written(COLLECTIONS, patterns("^(g|g)*$", "^(a|a)*!$").replace(b'["g"]', b'["g", "' + b"a" * 40 + b'"]')),
        "",
        (3, 0),
        0,
    ),
    "a pattern of two minds": Planted(
        written(COLLECTIONS, patterns("(?a)(?u)x")), "is left out: ASCII and UNICODE", (3, 0), 0
    ),
}
