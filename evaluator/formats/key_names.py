"""Builds and parses the names of files below the root of a trial.

Source:
    saved format of smdebug 1.0.34, section 1 (core/locations.py, core/utils.py:341-466).
    Unlike the reference, only the last part of a name decides whether a worker name was serialized:
    a folder with "__" in its name must not turn `worker_0` into `worker/0`.
"""

from __future__ import annotations

import re
import sys

from evaluator.errors import FormatError

END_MARKER = "training_job_end.ts"
INDEX_PREFIX = "index/"
EVENTS_PREFIX = "events/"
COLLECTIONS_PREFIX = "collections/"

STEPS_PER_BUCKET = 1000
"""Index files of so many steps share one folder. Source: core/locations.py:228-252."""

# 18 digits, so that every step fits an int64.
_INDEX_NAME = re.compile(r"([0-9]{1,18})_([^/\0]+)\.(?:json|csv)")
_COLLECTIONS_NAME = re.compile(r"([^/\0]+)_collections\.json")
_DIGITS = re.compile(r"([^0-9]*)([0-9]*)")


def index_bucket(step: int) -> str:
    """The name of the folder below `index/` that holds the index files of this step."""
    return f"{step // STEPS_PER_BUCKET:09d}"


def index_key(step: int, worker: str) -> str:
    """Where the index file of one step and worker is."""
    return f"{INDEX_PREFIX}{index_bucket(step)}/{step:012d}_{serialize_worker(worker)}.json"


def event_key(step: int, worker: str) -> str:
    """Where the event file of one step and worker is."""
    return f"{EVENTS_PREFIX}{step:012d}/{step:012d}_{serialize_worker(worker)}.tfevents"


def collections_key(worker: str) -> str:
    """Where the collections file of one worker is; the bucket is always 0."""
    return f"{COLLECTIONS_PREFIX}{0:09d}/{serialize_worker(worker)}_collections.json"


def parse_index_key(key: str) -> tuple[int, str] | None:
    """The step and the worker of an index file, or None for a name that is not one."""
    if not key.startswith(INDEX_PREFIX):
        return None
    match = _INDEX_NAME.fullmatch(key, key.rindex("/") + 1)
    # one text for all files of a worker, of which there can be very many
    return (int(match[1]), sys.intern(_deserialize_worker(match[2]))) if match else None


def parse_collections_key(key: str) -> str | None:
    """The worker of a collections file, or None for a name that is not one."""
    if not key.startswith(COLLECTIONS_PREFIX):
        return None
    match = _COLLECTIONS_NAME.fullmatch(key, key.rindex("/") + 1)
    return _deserialize_worker(match[1]) if match else None


def serialize_worker(worker: str) -> str:
    """A worker name as it stands in file names: TensorFlow device names lose their "/" and ":".

    Raises:
        FormatError: no file can have this name.
    """
    if not worker or "\0" in worker or "\\" in worker:
        raise FormatError("worker", f"the name {worker!r} cannot be part of a file name", "a name such as 'worker_0'")
    return worker.replace("/", "_").replace(":", "-")


def natural_key(worker: str) -> tuple[tuple[tuple[str, int, str], ...], str]:
    """A key for sorting workers as people count: worker_9 before worker_10."""
    parts = []
    for text, digits in _DIGITS.findall(worker):
        # Comparing the length first avoids int(), which refuses very long numbers.
        number = digits.lstrip("0")
        parts.append((text, len(number), number))
    return tuple(parts), worker


def _deserialize_worker(name: str) -> str:
    """The worker name from its form in file names; only device names begin with "_"."""
    return name.replace("_", "/").replace("-", ":") if name.startswith("_") else name
