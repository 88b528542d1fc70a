"""Structured inputs: what a training job would write, with hostile values in it and bytes changed."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import strategies as st

from evaluator.formats import wire
from evaluator.formats.tensor import DTYPES
from evaluator.formats.tfrecord import frame
from evaluator.modes import Mode
from tests.fuzz.pipeline import join
from tests.fuzz.seeds import KEYS, seeds

SEEDS = seeds()
KNOWN = [
    "loss",
    "conv0.weight",
    "gradient/conv0.weight",
    "labels",
    "words",
    "smdebug/reductions/mean/conv0.weight",
    "train-rmse",
]
HOSTILE = [
    *("", "..", "../../etc/passwd", "/etc/passwd", "\x1b[2J\x9b", "[red]x[/]", "<script>alert(1)</script>", "{{7*7}}"),
    *("\u202e\u2028", "a\0b", "x" * 20_000, "smdebug/reductions/", "smdebug/reductions/mean/", "%s%n", "${jndi:x}"),
]
PATTERNS = [
    *("^(a|a)*!$", "(?:a{50000}){50000}", "(?i)" + "[\0-\uffff]" * 100, "(?a)(?u)x", "(" * 400 + ")" * 400, "(?<=a+)b"),
    *(
        "(" * 20 + "a" + ")+" * 20,
        "[[:alpha:]]",
        "a{e<9}",
        "(?P<n>a)(?P=n)",
        "^(?!gradient).*weight",
        "\\p{L}",
        "(?(1)a|b)",
    ),
]
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-2, 400),
    st.sampled_from([2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**60, 2**63, 2**64, -(2**63), 10**25]),
    st.floats(),
    st.sampled_from(["1", " 7 ", "1e3", "", None, True, [], {}]),
)
TEXTS = st.one_of(st.sampled_from(KNOWN), st.sampled_from(HOSTILE), st.text(max_size=20))
JSON = st.recursive(
    st.one_of(NUMBERS, TEXTS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


@st.composite
def _object(draw: st.DrawFn, fields: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """An object with these fields; now and then one is missing or is something else."""
    made: dict[str, Any] = {}
    for name, right in fields.items():
        dice = draw(st.integers(0, 19))
        if dice:
            made[name] = draw(JSON if dice == 1 else right)
    return made


_META = _object({
    "mode": st.sampled_from([*Mode.__members__, " TRAIN"]),
    "mode_step": st.integers(0, 5) | NUMBERS,
    "event_file_name": st.sampled_from([
        *(f"events/{step:012d}/{step:012d}_worker_0.tfevents" for step in range(3)), "secret", "out/secret", "fifo",
    ]) | st.sampled_from(HOSTILE),
})  # fmt: skip
_ENTRY = _object({"tensorname": TEXTS, "start_idx": NUMBERS, "length": NUMBERS})
_SHAPE = _object({"tensorname": TEXTS, "originalname": TEXTS, "shape": st.lists(NUMBERS, max_size=4)})
_INDEX = _object(
    {"meta": _META, "tensor_payload": st.lists(_ENTRY, max_size=6), "shape_payload": st.lists(_SHAPE, max_size=3)}
)
_COLLECTION = _object({
    "name": TEXTS,
    "include_regex": st.lists(st.sampled_from(PATTERNS) | TEXTS, max_size=4),
    "tensor_names": st.lists(TEXTS, max_size=4),
})  # fmt: skip
_NAMES = st.sampled_from(["losses", "weights", "gradients", "biases", "metrics"]) | TEXTS
_COLLECTIONS = _object({
    "collections": st.dictionaries(_NAMES, _COLLECTION, max_size=4), "_meta": _object({"num_workers": NUMBERS}),
})  # fmt: skip
_SIZES = st.lists(st.sampled_from([0, 1, 2, 3, 1000, 2**20, 2**26, 2**31, 2**62, 2**63]), max_size=4)
_BYTES = st.binary(max_size=24)


@st.composite
def _tensor(draw: st.DrawFn) -> bytes:
    sizes = draw(_SIZES)
    shape = b"".join(wire.bytes_field(2, wire.number_field(1, size)) for size in sizes)
    code = draw(st.sampled_from([*DTYPES, 0, 7, 99, 2**40]))
    made = wire.number_field(1, code) + (wire.bytes_field(2, shape) if draw(st.booleans()) else b"")
    for _ in range(draw(st.integers(0, 3))):
        number = draw(st.sampled_from([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17]))
        content = draw(_BYTES)
        made += wire.bytes_field(number, bytes(draw(st.sampled_from([0, 8, 60_000]))) + content)
    return made


@st.composite
def _payload(draw: st.DrawFn, names: st.SearchStrategy[str] = TEXTS) -> bytes:
    name = draw(names).encode("utf-8", "backslashreplace")
    mode = b"".join(
        wire.bytes_field(1, wire.bytes_field(1, plugin) + wire.bytes_field(2, draw(_BYTES)))
        for plugin in (b"mode", b"mode_step")
    )
    value = wire.bytes_field(1, name) + wire.bytes_field(8, draw(_tensor())) + wire.bytes_field(9, mode)
    summary = wire.bytes_field(5, wire.bytes_field(1, value) * draw(st.sampled_from([1, 1, 1, 2])))
    return (
        wire.number_field(2, draw(st.integers(0, 2**63)))
        + summary
        + draw(st.sampled_from([b"", b"", b"\x18\x00", b"\x0b"]))
    )


@st.composite
def changed(draw: st.DrawFn, right: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of which some were flipped, cut out or doubled; half of the time none."""
    data = bytearray(draw(right))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2, 5]))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.sampled_from([1, 1, 4, 100])))
        data[at:until] = draw(st.sampled_from([b"", data[at:until] * 2, b"\xff", b"\0" * 8]) | _BYTES)
    return bytes(data)


INDEX = changed(_INDEX.map(_text) | st.sampled_from(SEEDS["index"]))
EVENTS = changed(
    st.lists(st.builds(frame, _payload(), true_checksum=st.booleans()), max_size=4).map(b"".join)
    | st.sampled_from(SEEDS["events"])
)
COLLECTIONS = changed(_COLLECTIONS.map(_text) | st.sampled_from(SEEDS["collections"]))
_PARTS = st.sampled_from(["..", ".", "", "out", "secret", "index", "fifo", "circle", "a\\b"]) | st.text(max_size=8)
KEY = st.one_of(
    st.lists(_PARTS, max_size=5).map("/".join),
    st.builds("{}_{}.json".format, st.integers(0, 10**20), TEXTS),
    st.sampled_from(KEYS),
).map(lambda key: key.encode("utf-8", "surrogatepass"))


@st.composite
def _indexed(draw: st.DrawFn, step: int, worker: str) -> list[tuple[str, bytes]]:
    """An event file and an index file that fits it, so that hostile tensors reach the rules."""
    names = draw(st.lists(TEXTS, min_size=1, max_size=4))
    records = [frame(draw(_payload(st.just(name))), true_checksum=draw(st.booleans())) for name in names]
    key = f"events/{step:012d}/{step:012d}_{worker}.tfevents"
    at, entries = 0, []
    for name, record in zip(names, records, strict=True):
        entries.append({"tensorname": name, "start_idx": at, "length": len(record)})
        at += len(record)
    meta = {"mode": "TRAIN", "mode_step": step, "event_file_name": key}
    index = _text({"meta": meta, "tensor_payload": entries})
    return [(key, b"".join(records)), (f"index/000000000/{step:012d}_{worker}.json", index)]


@st.composite
def _trial(draw: st.DrawFn) -> bytes:
    files: list[tuple[str, bytes]] = []
    for step in range(draw(st.integers(1, 4))):
        worker = draw(st.sampled_from(["worker_0", "worker_0", "worker_1"]) | st.sampled_from(HOSTILE[4:9]))
        safe = worker.replace("/", "_")
        files += draw(_indexed(step, safe))
        if draw(st.integers(0, 3)) == 0:
            files.append((f"index/000000000/{step:012d}_{safe}.json", draw(INDEX)))
    files.append(("collections/000000000/worker_0_collections.json", draw(COLLECTIONS)))
    if draw(st.integers(0, 3)) == 0:
        files.append((os.fsdecode(draw(KEY)), draw(INDEX)))
    return join(files)


STRATEGIES: dict[str, st.SearchStrategy[bytes]] = {
    "index": INDEX,
    "events": EVENTS,
    "collections": COLLECTIONS,
    "keys": KEY,
    "trial": _trial() | changed(st.sampled_from(SEEDS["trial"])),
}
