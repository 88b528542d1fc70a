"""Asks AWS about a training job: its description, logs, security groups and file systems. Nothing is changed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evaluator.aws import Refused, Service
from evaluator.clock import Clock
from evaluator.sagemaker.diagnose._file_systems import METRICS, MOST_POINTS, PERIOD

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
"""Source: Amazon SageMaker Developer Guide, "Log events that SageMaker sends to CloudWatch"; streams: JOB/HOST-TIME."""

THROTTLED = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "LimitExceeded")
PATIENCE = 5
"""How often what is refused for being too much is asked again; CloudWatch Logs allows a few requests a second only."""
LONGEST_PAUSE = 10.0
"""Seconds before that."""


class Aws:
    """The services that know something of a training job; a client of each is made when it is first needed."""

    def __init__(self, clock: Clock) -> None:
        """Ask nothing yet; the clock is for the pauses after refusals that pass."""
        self._clock = clock
        self._services: dict[str, Service] = {}

    def training_job(self, name: str) -> Mapping[str, Any]:
        """The description of a training job. Raises Refused, as all do here."""
        return self._ask("sagemaker", "DescribeTrainingJob", TrainingJobName=name)

    def security_groups(self, groups: Sequence[str]) -> Mapping[str, Any]:
        """What these groups allow."""
        return self._ask("ec2", "DescribeSecurityGroups", GroupIds=list(groups))

    def file_systems(self, systems: Sequence[str]) -> Mapping[str, Any]:
        """What these file systems are."""
        return self._ask("fsx", "DescribeFileSystems", FileSystemIds=list(systems))

    def transferred(self, system: str, start: float, end: float) -> Mapping[float, float]:
        """The bytes that a file system read and wrote, by the start of each period."""
        queries = [
            {
                "Id": f"m{number}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/FSx",
                        "MetricName": metric,
                        "Dimensions": [{"Name": "FileSystemId", "Value": system}],
                    },
                    "Period": PERIOD,
                    "Stat": "Sum",
                },
            }
            for number, metric in enumerate(METRICS)
        ]
        points: dict[float, float] = {}
        span = {"StartTime": datetime.fromtimestamp(start, UTC), "EndTime": datetime.fromtimestamp(end, UTC)}
        for page in self._pages("cloudwatch", "GetMetricData", "NextToken", MetricDataQueries=queries, **span):
            for result in page.get("MetricDataResults", []):
                for time, value in zip(result["Timestamps"], result["Values"], strict=False):
                    if len(points) < MOST_POINTS:
                        points[time.timestamp()] = points.get(time.timestamp(), 0.0) + value
        return points

    def log(self, name: str) -> Iterator[tuple[str, float, str]]:
        """The lines of a training job's logs: host, time, text."""
        given = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": f"{name}/"}
        for page in self._pages("logs", "FilterLogEvents", "nextToken", **given):
            for event in page.get("events", []):
                job, _, stream = event["logStreamName"].rpartition("/")
                if job != name:
                    # servers that are not AWS's own do not go by the prefix
                    continue
                host, _, started = stream.rpartition("-")
                for line in event["message"].splitlines() or [""]:
                    yield (host if started.isdecimal() and host else stream), event["timestamp"] / 1000, line

    def _pages(self, service: str, operation: str, token: str, **given: Any) -> Iterator[Mapping[str, Any]]:
        while True:
            page = self._ask(service, operation, **given)
            yield page
            if not page.get(token) or page[token] == given.get(token):
                return
            given[token] = page[token]

    def _ask(self, service: str, operation: str, **given: Any) -> Mapping[str, Any]:
        if service not in self._services:
            self._services[service] = Service(service, None)
        for tried in range(PATIENCE):
            try:
                return self._services[service].ask(operation, **given)
            except Refused as error:
                if not error.code.startswith(THROTTLED):
                    raise
            self._clock.wait(min(2.0**tried, LONGEST_PAUSE))
        return self._services[service].ask(operation, **given)
