"""Actions are done once for each finding, aside, and what came of them is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from evaluator import logs, strict_json
from evaluator.actions.base import Action, ActionParameters, Call, Kind, NotDone, Surroundings
from evaluator.finding import Finding
from evaluator.sinks._acting import Acting
from evaluator.sinks.actions import Actions
from evaluator.sinks.base import Outputs
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sinks.contract import SinkContract
from tests.sinks.made import UnreliableStore, make_finding, make_rule, make_status

KEY = "VanishingGradient/actions.jsonl"
FOLDERS = {"VanishingGradient": "VanishingGradient", "AllZero": "AllZero"}
PATIENCE = 30.0


class Doer:
    """Does nothing but remember for what; raises what it is given."""

    def __init__(self, raises: Exception | None = None) -> None:
        self.done: list[str] = []
        self.raises = raises
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, call: Call[ActionParameters]) -> Mapping[str, object]:
        assert self.go_on.wait(60)
        self.done.append(call.finding.id)
        if self.raises is not None:
            raise self.raises
        return {"said": "yes"}


def action(doer: Callable[[Call[Any]], Mapping[str, object]], name: str = "probe", **more: Any) -> Action:
    return Action(name, f"key-{name}", Kind(name, ActionParameters, doer), ActionParameters(), **more)


def sink_of(store: MemoryStore, *actions: Action) -> tuple[Actions, Acting]:
    acting = Acting(actions, Surroundings("/trials/one"), FakeClock())
    return Actions(store, FOLDERS, acting), acting


def do(sink: Actions, acting: Acting, *findings: Finding) -> None:
    """The life of a job with these findings."""
    sink.start(make_status(make_rule()))
    for finding in findings:
        sink.finding(finding)
    acting.settle(PATIENCE, lambda: None)
    sink.close(make_status(make_rule()))


def lines(store: MemoryStore, key: str = KEY) -> list[dict[str, Any]]:
    return [strict_json.loads(line) for line in store.read(key).splitlines()]


def words(acting: Acting) -> list[tuple[str, str]]:
    return [(one.action, one.result) for one in acting.told("VanishingGradient")]


class TestActions(SinkContract):
    @pytest.fixture
    def store(self):
        return UnreliableStore()

    @pytest.fixture
    def doer(self):
        return Doer()

    @pytest.fixture
    def sink(self, store: UnreliableStore, doer: Doer):
        return sink_of(store, action(doer))[0]

    def test_it_takes_part_only_where_there_is_something_to_do(self):
        acting = Acting([action(Doer())], Surroundings("x"), FakeClock())

        assert Actions.build(Outputs(MemoryStore(), FakeClock())) is None
        assert Actions.build(Outputs(MemoryStore(), FakeClock(), acting=acting)) is not None

    def test_what_was_done_is_a_line_beside_the_findings(self, store, doer):
        finding = make_finding()
        do(*sink_of(store, action(doer)), finding)

        (line,) = lines(store)
        assert (line["schema"], line["finding"], line["action"], line["key"]) == (1, finding.id, "probe", "key-probe")
        assert (line["result"], line["reason"], line["details"]) == ("done", None, {"said": "yes"})

    def test_what_failed_is_a_line_with_the_reason(self, store):
        sink, acting = sink_of(store, action(Doer(NotDone("no \x1b[2J such thing"))))
        do(sink, acting, make_finding())

        (line,) = lines(store)
        assert (line["result"], line["reason"]) == ("failed", "no \\x1b[2J such thing")
        assert acting.problems() == ["action probe: failed: no \\x1b[2J such thing"]

    def test_a_defect_fails_the_action_alone_and_says_nothing_of_its_values(self, store, doer):
        sink, acting = sink_of(store, action(Doer(KeyError("a secret")), "bad"), action(doer, "good"))
        do(sink, acting, make_finding())

        assert sorted(words(acting)) == [("bad", "failed"), ("good", "done")]
        assert "a secret" not in store.read(KEY).decode()

    def test_each_finding_is_done_once_however_often_it_is_told(self, store, doer):
        one, other = make_finding(), make_finding(step=4)
        do(*sink_of(store, action(doer)), one, one, other, one)

        assert doer.done == [one.id, other.id]

    def test_a_finding_that_is_over_is_nothing_to_act_on(self, store, doer):
        do(*sink_of(store, action(doer)), make_finding(event="cleared", last_step=5, steps_met=2))

        assert (doer.done, store.list()) == ([], [])

    def test_a_job_that_is_started_again_does_nothing_twice(self, store, doer):
        do(*sink_of(store, action(doer)), make_finding())
        sink, acting = sink_of(store, action(doer))
        do(sink, acting, make_finding(), make_finding(step=9))

        assert doer.done == [make_finding().id, make_finding(step=9).id]
        assert words(acting) == [("probe", "done")] * 2
        assert len(lines(store)) == 2

    def test_what_failed_is_tried_again_by_a_job_that_is_started_again(self, store):
        doer = Doer(NotDone("not today"))
        do(*sink_of(store, action(doer)), make_finding())
        doer.raises = None
        sink, acting = sink_of(store, action(doer))
        do(sink, acting, make_finding())

        assert len(doer.done) == 2
        assert words(acting) == [("probe", "done")]

    def test_another_action_is_done_for_a_finding_that_is_known(self, store, doer):
        do(*sink_of(store, action(doer)), make_finding())
        do(*sink_of(store, action(doer), action(doer, "more")), make_finding())

        assert len(doer.done) == 2

    def test_a_line_that_was_cut_off_counts_as_not_done(self, store, doer):
        do(*sink_of(store, action(doer)), make_finding())
        store.write(KEY, store.read(KEY)[:-5])
        do(*sink_of(store, action(doer)), make_finding())

        assert (len(doer.done), len(lines(store))) == (2, 1)

    def test_lines_of_somebody_else_are_left_and_logged(self, store, doer):
        store.write(KEY, b'{"schema": 1}\nnonsense\n')
        with capture_logs() as logged:
            do(*sink_of(store, action(doer)), make_finding())

        assert store.read(KEY).startswith(b'{"schema": 1}\nnonsense\n{')
        assert [(line["event"], line["lines"]) for line in logged if line["log_level"] == "warning"] == [
            ("lines_ignored", 2)
        ]

    @pytest.mark.parametrize(
        ("severity", "least", "times"),
        [
            ("critical", "error", 1), ("error", "error", 1), ("warning", "error", 0), ("info", "error", 0),
            ("info", "info", 1), ("error", "critical", 0), ("warning", None, 1),
        ],
    )  # fmt: skip
    def test_only_findings_that_are_severe_enough_are_acted_on(self, store, doer, severity, least, times):
        do(*sink_of(store, action(doer, at_least=least)), make_finding(severity=severity))

        assert len(doer.done) == times

    def test_the_action_of_a_rule_is_for_that_rule(self, store, doer):
        do(*sink_of(store, action(doer, rule="AllZero")), make_finding(), make_finding("AllZero"))

        assert doer.done == [make_finding("AllZero").id]
        assert len(lines(store, "AllZero/actions.jsonl")) == 1

    def test_the_same_action_asked_for_twice_is_done_once(self, store, doer):
        do(*sink_of(store, action(doer, rule="VanishingGradient"), action(doer, at_least="error")), make_finding())

        assert len(doer.done) == 1

    def test_one_that_hangs_holds_up_neither_the_job_nor_the_others(self, store, doer):
        hanging = Doer()
        hanging.go_on.clear()
        sink, acting = sink_of(store, action(hanging, "hangs"), action(doer))
        do_not_wait = 0.3
        sink.start(make_status())
        sink.finding(make_finding())
        began = words(acting)
        acting.settle(do_not_wait, lambda: None)
        sink.close(make_status())
        hanging.go_on.set()

        assert began[0] == ("hangs", "pending")
        assert min(words(acting)) == ("hangs", "failed")
        assert {line["action"]: line["reason"] for line in lines(store)} == {
            "probe": None,
            "hangs": "had not ended when the job did",
        }

    def test_who_is_in_a_hurry_waits_less(self, store):
        hanging = Doer()
        hanging.go_on.clear()
        sink, acting = sink_of(store, action(hanging))
        sink.finding(make_finding())
        acting.settle(1e9, lambda: 0.1)
        hanging.go_on.set()

        assert acting.told("VanishingGradient")[0].reason == "had not ended when the job did"

    def test_with_nothing_begun_nobody_waits(self, store, doer):
        _, acting = sink_of(store, action(doer))

        acting.settle(1e9, lambda: None)

    def test_what_cannot_be_written_down_is_written_later(self, store, doer):
        sink, acting = sink_of(store, action(doer))
        sink.finding(make_finding())
        acting.settle(PATIENCE, lambda: None)
        store.down = True
        with pytest.raises(Exception, match="does not answer"):
            sink.status(make_status())
        store.down = False
        sink.status(make_status())
        sink.status(make_status())

        assert len(lines(store)) == 1

    def test_nothing_is_done_before_it_is_known_what_was_done(self, store, doer):
        do(*sink_of(store, action(doer)), make_finding())
        sink, acting = sink_of(store, action(doer))
        store.down = True
        with pytest.raises(Exception, match="does not answer"):
            sink.finding(make_finding())
        store.down = False
        sink.finding(make_finding())
        acting.settle(PATIENCE, lambda: None)

        assert len(doer.done) == 1

    def test_each_result_is_one_log_line(self, store, doer):
        sink, acting = sink_of(store, action(doer, "good"), action(Doer(NotDone("no")), "bad"))
        with capture_logs() as logged:
            do(sink, acting, make_finding())

        assert sorted((line["event"], line["what"], line["reason"]) for line in logged) == [
            ("action_done", "good", None),
            ("action_failed", "bad", "no"),
        ]
        assert set(logged[0]) - logs.EVENT_KEYS == {"event", "log_level"}

    def test_failures_of_a_kind_are_counted(self, store):
        sink, acting = sink_of(store, action(Doer(NotDone("no"))))
        do(sink, acting, *(make_finding(step=step) for step in range(3)))

        assert acting.problems() == ["action probe: failed: no (3 times)"]
