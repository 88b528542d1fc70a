"""The keys of checkpoints, without their values: safetensors by its header, and lists of keys in JSON.

A pickle is never opened: it may run anything.

Source:
    safetensors format: 8 bytes little-endian length of the header, then the header in JSON, at most 100 MB; the index
    of sharded checkpoints (`*.safetensors.index.json`) has an object `weight_map`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator import strict_json
from evaluator.errors import EvaluatorError, Mistake

MOST_BYTES = 100_000_000
"""The format's own limit for a header; of lists the same."""
PICKLES = (b"PK\x03\x04", b"\x80")
"""How files of torch.save and pickles begin."""
LIST_THEM = "json.dump(list(state_dict), open('keys.json', 'w')) in the script lists them"


@dataclass(frozen=True)
class Checkpoint:
    """The keys of one file."""

    path: str
    keys: tuple[str, ...]


def read_checkpoint(path: str) -> Checkpoint | Mistake:
    """The keys that a file holds, or why they cannot be read."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(9)
            data = _header(start, file.read) if _is_safetensors(start) else _json(start, file.read)
    except FileNotFoundError:
        return Mistake(path, "there is no such file", "give the path of a checkpoint, or of a JSON list of its keys")
    except OSError as error:
        return Mistake(path, f"cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Mistake(path, str(error), f"expected a .safetensors file or a JSON list of keys; {LIST_THEM}")
    try:
        return _keys(path, strict_json.loads(data, path))
    except EvaluatorError as error:
        return error.mistake


def _is_safetensors(start: bytes) -> bool:
    # the length of a header that is not refused fits into the first four bytes
    return start[8:9] == b"{" and start[4:8] == bytes(4)


def _header(start: bytes, read: Callable[[int], bytes]) -> bytes:
    (size,) = struct.unpack("<Q", start[:8])
    if size > MOST_BYTES:
        raise ValueError(f"has a header of {size} bytes, where safetensors allows {MOST_BYTES}")
    header = (start[8:] + read(max(0, size - 1)))[:size]
    if len(header) < size:
        raise ValueError(f"ends within its header of {size} bytes")
    return header


def _json(start: bytes, read: Callable[[int], bytes]) -> bytes:
    if start.startswith(PICKLES):
        raise ValueError("is a pickle, which is never opened, since it may run anything")
    if start.lstrip()[:1] not in (b"[", b"{", b""):
        raise ValueError("is no checkpoint in the format of safetensors")
    data = start + read(MOST_BYTES)
    if len(data) > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES} bytes")
    return data


def _keys(path: str, document: object) -> Checkpoint | Mistake:
    if isinstance(document, Mapping):
        weights = document.get("weight_map")
        document = [key for key in (weights if isinstance(weights, Mapping) else document) if key != "__metadata__"]
    if not isinstance(document, list) or not all(isinstance(key, str) for key in document):
        return Mistake(path, "is no list of keys", f"expected a JSON list of texts; {LIST_THEM}")
    return Checkpoint(path, tuple(dict.fromkeys(document)))
