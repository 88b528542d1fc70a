"""One sink that fails costs neither the others nor the job."""

from __future__ import annotations

from typing import ClassVar, Self

import pytest

from evaluator import strict_json
from evaluator.errors import OutputError, StorageUnavailable
from evaluator.finding import Finding
from evaluator.sinks.base import Outputs, Sink
from evaluator.sinks.fan_out import FIRST_PAUSE, LONGEST_LOSS, LONGEST_PAUSE, SinkSet, build_sinks
from evaluator.sinks.findings import FindingsFile
from evaluator.sinks.status_file import StatusFile
from evaluator.status import JobStatus
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sinks.made import UnreliableStore, make_finding, make_rule, make_status


class Listener(Sink):
    """Writes down what it is told; fails while `down` (for one configuration, or "" for all), taking `slow` seconds."""

    name: ClassVar[str] = "listener"

    def __init__(self, clock: FakeClock | None = None, slow: float = 0.0) -> None:
        self.heard: list[str] = []
        self.tries = 0
        self.down: str | None = None
        self._clock = clock
        self._slow = slow

    @classmethod
    def build(cls, outputs: Outputs) -> Self:  # noqa: ARG003 - it needs nothing
        return cls()

    def start(self, status: JobStatus) -> None:
        self._hear("start", "")

    def finding(self, finding: Finding) -> None:
        self._hear(f"finding {finding.rule} {finding.step} {finding.event}", finding.rule)

    def status(self, status: JobStatus) -> None:
        self._hear("status", "")

    def report(self, folder: str, file_name: str, text: str) -> None:
        self._hear(f"report {text}", folder)

    def keep(self, key: str, data: bytes, beginning: bytes) -> None:
        self._hear(f"text {key}", key.partition("/")[0])

    def close(self, status: JobStatus) -> None:
        self._hear("close", "")

    def _hear(self, what: str, configuration: str) -> None:
        self.tries += 1
        if self.down is not None and self.down in ("", configuration):
            if self._clock:
                self._clock.advance(self._slow)
            raise StorageUnavailable("s3://bucket", "does not answer")
        self.heard.append(what)


class Essential(Listener):
    name: ClassVar[str] = "essential"
    essential: ClassVar[bool] = True


@pytest.fixture
def clock():
    return FakeClock()


def test_all_sinks_are_found_by_their_modules(tmp_path, clock: FakeClock):
    built = build_sinks(Outputs(MemoryStore(), clock, message_file=tmp_path / "message"))

    assert sorted(sink.name for sink in built) == ["findings file", "log", "message file", "reports", "status file"]


def test_every_sink_hears_everything(clock: FakeClock):
    first, second = Listener(), Listener()
    sinks = SinkSet([first, second], clock)
    sinks.start(make_status())
    sinks.finding(make_finding())
    sinks.report("folder", "page.html", "page")
    sinks.status(make_status())
    sinks.close(make_status())

    expected = ["start", "finding VanishingGradient 3 met", "report page", "status", "close"]
    assert (first.heard, second.heard, sinks.problems()) == (expected, expected, [])


def test_what_a_sink_could_not_take_is_told_again_in_order(clock: FakeClock):
    sink, healthy = Listener(), Listener()
    sinks = SinkSet([sink, healthy], clock)
    sink.down = ""
    sinks.start(make_status())
    sinks.finding(make_finding())
    sinks.finding(make_finding(event="cleared", last_step=4, steps_met=2))
    sinks.report("folder", "page.html", "old")
    sinks.report("folder", "page.html", "new")
    sinks.keep("folder/traceback.txt", b"Traceback", b"Trace")
    sinks.status(make_status())
    sink.down = None
    clock.advance(FIRST_PAUSE)
    sinks.status(make_status())

    assert sink.heard == [
        "start",
        "finding VanishingGradient 3 met",
        "finding VanishingGradient 3 cleared",
        "report new",
        "text folder/traceback.txt",
        "status",
    ]
    assert len(healthy.heard) == 8


def test_failures_are_counted_and_noted_in_the_status(clock: FakeClock):
    sink = Listener()
    sinks = SinkSet([sink], clock)
    status = make_status()
    status.job.notes = ["a note of the job"]
    sink.down = ""
    sinks.finding(make_finding())
    sinks.status(status)
    clock.advance(FIRST_PAUSE)
    sinks.status(status)

    assert sinks.failures == {"listener": 4}
    assert status.job.notes == [
        "a note of the job",
        "listener: failed 2 times, last: s3://bucket: does not answer; not written: 1 findings, 0 reports",
    ]


def test_failures_are_noted_in_a_status_that_is_made_anew(clock: FakeClock):
    sink = Listener()
    sinks = SinkSet([sink], clock)
    sink.down = ""
    sinks.report("folder", "page.html", "page")
    sink.down = None
    statuses = [make_status(), make_status()]
    for status in statuses:
        sinks.status(status)

    noted = [len(status.job.notes) for status in statuses]
    assert noted == [1, 1]


def test_one_configuration_that_cannot_be_written_does_not_hold_up_the_others(clock: FakeClock):
    sink = Listener()
    sinks = SinkSet([sink], clock)
    sink.down = "AllZero"
    sinks.finding(make_finding("AllZero"))
    sinks.finding(make_finding("AllZero", step=4))
    sinks.finding(make_finding())

    assert sink.heard == ["finding VanishingGradient 3 met"]


def test_what_fails_is_tried_again_less_and_less_often_and_everything_else_at_once(clock: FakeClock):
    sink = Listener()
    sinks = SinkSet([sink], clock)
    sink.down = "AllZero"
    sinks.finding(make_finding("AllZero"))
    for _ in range(600):
        clock.advance(1.0)
        sinks.status(make_status())
    failures = sinks.failures["listener"]
    sink.down = None
    clock.advance(LONGEST_PAUSE)
    sinks.status(make_status())

    # after 1, 2, 4, 8 and 16 seconds, and then every 30
    assert failures == 1 + 5 + (600 - 31) // 30
    assert (sink.heard.count("status"), sink.heard[-2:]) == (601, ["finding AllZero 3 met", "status"])


def test_a_sink_that_does_not_answer_is_asked_one_thing_only(clock: FakeClock):
    sink = Listener(clock, slow=30.0)
    sinks = SinkSet([sink], clock)
    sinks.start(make_status())
    sink.down = ""
    for rule in ("AllZero", "VanishingGradient", "NonFinite"):
        sinks.finding(make_finding(rule))
    clock.advance(300.0)
    sinks.status(make_status())

    assert (sink.tries, clock.monotonic()) == (1 + 2, 360.0)


def test_a_sink_that_fails_slowly_rests_so_that_the_job_goes_on(clock: FakeClock):
    sink = Listener(clock, slow=3.0)
    sinks = SinkSet([sink], clock)
    sink.down = ""
    sinks.status(make_status())
    for _ in range(29):
        clock.advance(1.0)
        sinks.status(make_status())
    tries = sink.tries
    clock.advance(1.0)
    sinks.status(make_status())

    assert (tries, sink.tries) == (1, 2)


def test_the_end_is_told_even_to_a_sink_that_rests(clock: FakeClock):
    sink = Listener(clock, slow=3.0)
    sinks = SinkSet([sink], clock)
    sink.down = ""
    sinks.finding(make_finding())
    sink.down = None
    sinks.close(make_status())

    assert sink.heard == ["finding VanishingGradient 3 met", "close"]


def test_an_essential_sink_begins_first_and_ends_last(clock: FakeClock):
    heard: list[str] = []
    sinks = SinkSet([Essential(), Listener()], clock)
    for told in sinks._told:
        told.sink.heard = heard  # type: ignore[attr-defined]
    sinks.start(make_status())
    sinks._told[0].sink.down = ""  # type: ignore[attr-defined]
    status = make_status()
    sinks.close(status)

    assert heard == ["start", "start", "close"]
    assert status.job.notes == ["listener: failed 1 times, last: s3://bucket: does not answer"]


def test_an_essential_sink_that_fails_at_the_start_ends_the_job(clock: FakeClock):
    store = UnreliableStore()
    store.down = True

    with pytest.raises(OutputError):
        SinkSet([StatusFile(store, clock)], clock).start(make_status())


def test_a_job_whose_status_cannot_be_written_for_long_is_over_and_the_path_is_named(clock: FakeClock):
    store = UnreliableStore("memory://output", clock)
    sinks = SinkSet([StatusFile(store, clock), Listener()], clock)
    status = make_status(make_rule())
    sinks.start(status)
    store.down = True
    status.DebugRuleEvaluationStatuses[0].RuleEvaluationStatus = "Stopped"
    sinks.status(status)
    clock.advance(LONGEST_LOSS - 10.0)
    sinks.status(status)
    clock.advance(10.0)

    with pytest.raises(OutputError, match="memory://output: does not answer; nothing could be written for 900 s"):
        sinks.status(status)


def test_a_status_that_can_be_written_again_in_time_ends_nothing(clock: FakeClock):
    store = UnreliableStore(clock=clock)
    sinks = SinkSet([StatusFile(store, clock)], clock)
    status = make_status(make_rule())
    sinks.start(status)
    for second in range(4 * int(LONGEST_LOSS)):
        clock.advance(1.0)
        # it works for half a minute now and then
        store.down = second % 600 > LONGEST_PAUSE
        status.job.steps.complete = second
        sinks.status(status)

    assert sinks.failures["status file"] > 100


def test_other_sinks_may_fail_for_ever(clock: FakeClock):
    sink = Listener()
    sinks = SinkSet([StatusFile(MemoryStore(clock=clock), clock), sink], clock)
    sinks.start(make_status())
    sink.down = ""
    sinks.finding(make_finding())
    for _ in range(10):
        clock.advance(LONGEST_LOSS)
        sinks.status(make_status())

    assert not sinks.status_lost


def test_a_status_that_is_lost_is_known_and_found_again(clock: FakeClock):
    store = UnreliableStore()
    sinks = SinkSet([StatusFile(store, clock)], clock)
    status = make_status(make_rule())
    sinks.start(status)
    status.DebugRuleEvaluationStatuses[0].RuleEvaluationStatus = "Stopped"
    store.down = True
    sinks.close(status)
    lost = sinks.status_lost
    store.down = False
    sinks.close(status)

    assert (lost, sinks.status_lost) == (True, False)


def test_the_final_status_says_which_findings_are_missing(clock: FakeClock):
    store, findings_store = MemoryStore(), UnreliableStore()
    sinks = SinkSet([StatusFile(store, clock), FindingsFile(findings_store, {"VanishingGradient": "v"})], clock)
    status = make_status(make_rule())
    sinks.start(status)
    findings_store.down = True
    sinks.finding(make_finding())
    sinks.close(status)

    notes = strict_json.loads(store.read("status.json"))["job"]["notes"]
    assert notes == [
        "findings file: failed 2 times, last: memory://: does not answer; not written: 1 findings, 0 reports"
    ]
