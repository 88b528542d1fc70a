"""FSx for Lustre file systems: what they can do, and what they did.

Source:
    Amazon FSx API, DescribeFileSystems, and CloudWatch API, GetMetricData and GetMetricStatistics (service models of
    botocore 1.43); Amazon FSx for Lustre User Guide, "Performance" (MB/s per TiB of the deployment types) and
    "Monitoring with CloudWatch" (DataReadBytes, DataWriteBytes: their Sum by the seconds of the period is the
    throughput).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from evaluator.errors import Mistake
from evaluator.sagemaker.diagnose._values import identified, moment, real, table, tables, text

METRICS = ("DataReadBytes", "DataWriteBytes")
SCRATCH = 200.0
"""MB/s per TiB of SCRATCH_1 and SCRATCH_2, which have no other size."""
PERIOD = 60
"""Seconds; the shortest that FSx reports."""
MOST_POINTS = 200_000


@dataclass(frozen=True)
class FileSystem:
    """A file system.

    Args:
        limit: bytes per second that it can do without bursts; None where its description does not tell.
    """

    id: str
    kind: str
    limit: float | None


@dataclass(frozen=True)
class Throughput:
    """What a file system did: bytes per second in each period, reads and writes together."""

    by_period: tuple[float, ...]
    period: float


def file_systems(document: object, where: str) -> list[FileSystem] | Mistake:
    """The file systems that a document lists, or the mistake that it lists none."""
    listed = identified(document, "FileSystems", "FileSystemId")
    if listed is None:
        right = "expected what 'aws fsx describe-file-systems' answers, an object with a list FileSystems"
        return Mistake(where, "lists no file systems", right)
    return [_file_system(one) for one in listed]


def _file_system(one: Mapping[str, object]) -> FileSystem:
    lustre = table(one.get("LustreConfiguration"))
    kind = text(lustre.get("DeploymentType")) or text(one.get("FileSystemType")) or "unknown"
    whole, size = real(lustre.get("ThroughputCapacity")), real(one.get("StorageCapacity"))
    per_unit = real(lustre.get("PerUnitStorageThroughput"))
    if per_unit is None and kind.startswith("SCRATCH"):
        per_unit = SCRATCH
    limit = whole if whole is not None else per_unit * size / 1024 if per_unit and size else None
    return FileSystem(str(one["FileSystemId"]), kind, None if limit is None or limit <= 0 else limit * 1e6)


def throughput(document: object, where: str) -> Throughput | Mistake:
    """The throughput that metrics come to, or the mistake that a document holds none."""
    whole = table(document)
    points: dict[float, float] = {}
    if isinstance(whole.get("MetricDataResults"), list):
        for one in tables(whole["MetricDataResults"]):
            if _is_metric(one):
                times, values = one.get("Timestamps"), one.get("Values")
                if isinstance(times, list) and isinstance(values, list):
                    _add(points, zip(times, values, strict=False))
    elif isinstance(whole.get("Datapoints"), list) and _is_metric(whole):
        _add(points, ((one.get("Timestamp"), one.get("Sum")) for one in tables(whole["Datapoints"])))
    else:
        what = (
            f"expected what 'aws cloudwatch get-metric-data' answers for the Sum of {' and '.join(METRICS)} (AWS/FSx)"
        )
        return Mistake(where, "holds no metrics of a file system", what)
    return throughput_of(points)


def throughput_of(points: Mapping[float, float], period: float | None = None) -> Throughput:
    """The throughput of sums by their time; the period is told by the times where nobody says it."""
    times = sorted(points)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    seconds = period if period is not None else min(gaps, default=0.0)
    if seconds <= 0:
        return Throughput((), 0.0)
    return Throughput(tuple(points[time] / seconds for time in times), seconds)


def _is_metric(one: Mapping[str, object]) -> bool:
    label = f"{text(one.get('Label')) or ''} {text(one.get('Id')) or ''}".lower().replace("_", "")
    return any(name.lower() in label for name in METRICS)


def _add(points: dict[float, float], pairs: Iterable[tuple[object, object]]) -> None:
    for time, value in pairs:
        at, amount = moment(time), real(value)
        if at is not None and amount is not None and (at in points or len(points) < MOST_POINTS):
            points[at] = points.get(at, 0.0) + amount
