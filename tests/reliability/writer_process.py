"""A training run as storage sees it: files of several workers appear late, in pieces, twice, or never.

python -m tests.reliability.writer_process FINISHED_TRIAL TARGET SEED SECONDS_PER_STEP
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

JITTER = 0.2
"""Seconds by which files of one step differ, and the two files of one worker."""

Put = Callable[[str, bytes], None]


@dataclass(order=True, frozen=True)
class Act:
    """At a time, a file gets this content."""

    at: float
    key: str
    content: bytes


def plan(folder: Path, seed: int, pace: float) -> list[Act]:
    """What to write when: all that the finished trial holds, in the disorder of this seed."""
    dice = random.Random(seed)  # noqa: S311 - a test repeats itself
    keys = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    steps = sorted({_step(key) for key in keys if key.startswith("index/")})
    workers = sorted({key.rpartition("_worker_")[2].split(".")[0] for key in keys if key.startswith("index/")})
    # one of them dies in the second half of the run, for every third seed
    dies = (workers[-1], dice.choice(steps[len(steps) // 2 :])) if seed % 3 == 0 else None
    last = len(steps) * pace
    acts = []
    for key in keys:
        content = (folder / key).read_bytes()
        if not key.startswith(("index/", "events/")):
            # the marker of the end comes last, and for every fourth seed once before, from a worker that is early
            acts.append(Act(last + 1.0 if "END" in key else dice.uniform(0, JITTER), key, content))
            if "END" in key and seed % 4 == 0:
                acts.append(Act(last - dice.uniform(0, 3 * pace), key, content))
            continue
        step, worker = _step(key), key.rpartition("_worker_")[2].split(".")[0]
        if dies is not None and worker == dies[0] and step >= dies[1]:
            continue
        at = steps.index(step) * pace + dice.uniform(0, JITTER)
        acts.append(Act(at, key, content))
        if dice.random() < 0.05:
            # half of it was there for a moment
            acts.append(Act(at - dice.uniform(0, JITTER), key, content[: dice.randrange(len(content))]))
        if dice.random() < 0.02:
            acts.append(Act(at + dice.uniform(0, JITTER), key, content))
    return sorted(acts)


def _step(key: str) -> int:
    return int(Path(key).name.split("_")[0])


def putter(target: str) -> Put:
    """How a file gets to the target: a folder, by renaming; or s3://."""
    if target.startswith("s3://"):
        import boto3  # noqa: PLC0415 - only for runs on S3

        bucket, _, prefix = target.removeprefix("s3://").partition("/")
        client = boto3.client("s3", region_name="us-east-1")
        return lambda key, content: client.put_object(Bucket=bucket, Key=f"{prefix}/{key}", Body=content)

    def put(key: str, content: bytes) -> None:
        path = Path(target, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_bytes(content)
        path.with_suffix(".tmp").rename(path)

    return put


def waited(acts: list[Act]) -> Iterator[Act]:
    """The acts, each when its time has come."""
    began = time.monotonic()
    for act in acts:
        time.sleep(max(0.0, act.at - (time.monotonic() - began)))
        yield act


def main(arguments: list[str]) -> None:
    """Write."""
    folder, target, seed, pace = arguments
    put = putter(target)
    for act in waited(plan(Path(folder), int(seed), float(pace))):
        put(act.key, act.content)


if __name__ == "__main__":
    main(sys.argv[1:])
