"""Workload F: what a job asks of S3, for each saved file, at each look and in a day, and what that costs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.judging import RULE
from benchmarks.speed.measuring import Bench, Row, Workload, table
from benchmarks.speed.trials import write_many
from evaluator import logs
from evaluator.clock import Clock, SystemClock
from evaluator.config.load import Arguments, load
from evaluator.formats.key_names import COLLECTIONS_PREFIX, EVENTS_PREFIX, INDEX_PREFIX
from evaluator.job import Job
from evaluator.storage._s3_connection import make_client
from evaluator.testing import FakeClock
from tests.s3.moto_process import moto_server
from tests.s3.traffic import Traffic, traffic

PRICES = {"LIST": 5e-6, "PUT": 5e-6, "GET": 4e-7, "HEAD": 4e-7, "DELETE": 0.0}
"""Dollars a request.

Source:
    Amazon S3 pricing, S3 Standard, US East (N. Virginia), as published in 2025: 0.005 dollars per 1,000 PUT, COPY, POST
    and LIST requests, 0.0004 per 1,000 of all others; nothing for DELETE, nor for bytes within the region.
"""
ASSUMED = "S3 Standard, US East, 2025: 0.005 dollars per 1,000 LIST and PUT, 0.0004 per 1,000 GET and HEAD"

STEPS, WORKERS = 40, 2
DAY = 86_400
IDLE = 3 * 3600
"""Seconds, by the job's own clock, for which nothing comes."""
MOST = 0.05


@dataclass(frozen=True)
class Idle:
    """Requests of a job for which nothing comes any more."""

    looks: int
    asked: Mapping[str, int]
    listed: Mapping[str, int]
    """Listings by what was listed."""
    seconds: float

    @property
    def dollars(self) -> float:
        """A day, at list prices."""
        return sum(PRICES[kind] * count for kind, count in self.asked.items()) * DAY / self.seconds


def asked_per_file(trial: str, output: str, flow: Traffic) -> tuple[float, float]:
    """GETs of index files and of event files per saved (step, worker), over a whole job."""
    flow.forget()
    _job(trial, output, SystemClock()).run()
    gets = [one.key for one in flow.asked if one.kind == "GET"]
    files = STEPS * WORKERS
    return tuple(sum(f"/{part}" in f"/{key}" for key in gets) / files for part in (INDEX_PREFIX, EVENTS_PREFIX))  # type: ignore[return-value]


def idle(trial: str, output: str, flow: Traffic, seconds: float = IDLE) -> Idle:
    """A job that follows a run of which nothing more comes; its clock stands in for the machine's."""
    clock = FakeClock()
    job = _job(trial, output, clock, f"idle_timeout={seconds}")
    flow.forget()
    job.run()
    prefixes = [one.key for one in flow.asked if one.kind == "LIST"]
    listed = {
        part: sum(part.rstrip("/") in prefix for prefix in prefixes) for part in (INDEX_PREFIX, COLLECTIONS_PREFIX)
    }
    # reading the run is not idling
    saved = sum(one.kind == "GET" and (INDEX_PREFIX in one.key or EVENTS_PREFIX in one.key) for one in flow.asked)
    asked = {kind: count - (saved if kind == "GET" else 0) for kind, count in flow.counts.items()}
    return Idle(len(clock.waits), asked, listed, clock.monotonic())


def requests(_: Bench) -> list[Row]:
    """F."""
    with served() as (flow, bucket), TemporaryDirectory() as folder:
        trial = upload(write_many(Path(folder, "trial"), steps=STEPS, workers=WORKERS, ended=False), bucket, "trial")
        index, event = asked_per_file(trial, f"{folder}/output", flow)
        local = idle(trial, f"{folder}/idle", flow)
        remote = idle(trial, f"s3://{bucket}/output", flow)
    per_look = local.listed[INDEX_PREFIX] / local.looks
    every = local.asked["LIST"] / local.looks
    head = local.asked.get("HEAD", 0) / local.looks
    return [
        Row("F", "GET of index files per (step, worker)", f"{index:.2f}", "", f"{index:.2f}", "1", index == 1),
        Row("F", "GET of event files per (step, worker)", f"{event:.2f}", "", f"{event:.2f}", "1", event == 1),
        Row(
            "F", "LIST per look, one active bucket", f"{every:.2f}", f"of the index: {per_look:.2f}",
            f"{every:.2f}, and {head:.2f} HEAD", "1", round(every) <= 1,
        ),
        _money("idle for a day, output in a folder", local),
        _money("idle for a day, output on S3", remote),
    ]  # fmt: skip


def _money(what: str, idle: Idle) -> Row:
    a_day = {kind: round(count * DAY / idle.seconds) for kind, count in sorted(idle.asked.items())}
    measured = ", ".join(f"{count:,} {kind}" for kind, count in a_day.items())
    value = f"{idle.dollars:.4f} dollars"
    return Row("F", what, measured, "list prices", value, f"at most {MOST} dollars", idle.dollars <= MOST)


@contextmanager
def served() -> Iterator[tuple[Traffic, str]]:
    """A server with an empty bucket, seen through a proxy that counts; nothing of the machine's own configuration."""
    variables = {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
    }
    before = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    with moto_server() as server, traffic(server) as flow:
        for name in before:
            del os.environ[name]
        os.environ.update(variables, AWS_ENDPOINT_URL=flow.url)
        try:
            make_client("benchmark").create_bucket(Bucket="runs")
            yield flow, "runs"
        finally:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                del os.environ[name]
            os.environ.update(before)


def upload(folder: Path, bucket: str, prefix: str) -> str:
    """Put the files of a folder into a bucket; gives the URI."""
    client = make_client("benchmark")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(folder).as_posix()}"
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    return f"s3://{bucket}/{prefix}"


def _job(trial: str, output: str, clock: Clock, *settings: str) -> Job:
    logs.configure(clock, level="error")
    arguments = Arguments(trial=trial, rules=[RULE], output=output, set=settings, follow=bool(settings) or None)
    return Job(load(arguments, {}), clock)


WORKLOADS = (Workload("speed-s3", "F", lambda bench: table(requests(bench))),)
