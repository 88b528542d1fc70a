"""What every sink does; a sink's test file inherits `SinkContract` and says how to make one."""

from __future__ import annotations

import importlib
import inspect

import pytest

from evaluator.sinks.base import Sink
from tests.sinks.made import make_finding, make_rule, make_status


class SinkContract:
    """The behaviours of `Sink`; the fixture `sink` gives one that can reach what it writes to."""

    @pytest.fixture
    def sink(self) -> Sink:
        raise NotImplementedError("a sink's test class gives a sink")

    def test_it_bears_the_whole_life_of_a_job(self, sink: Sink):
        status = make_status(make_rule())

        sink.start(status)
        sink.status(status)
        sink.finding(make_finding())
        sink.report("VanishingGradient", "page.html", "<p>text</p>")
        status.DebugRuleEvaluationStatuses[0] = make_rule(word="IssuesFound")
        sink.status(status)
        sink.close(status)

    def test_it_bears_a_job_without_rules(self, sink: Sink):
        sink.start(make_status())
        sink.status(make_status())
        sink.close(make_status(ended_because="read_once"))

    def test_it_bears_being_told_a_finding_twice(self, sink: Sink):
        sink.start(make_status(make_rule()))
        sink.finding(make_finding())
        sink.finding(make_finding())

    def test_it_bears_names_that_are_not_text(self, sink: Sink):
        finding = make_finding(tensor="\x1b[2J\ud800\n[red]x[/]", message="\x00\udfff", measured=float("nan"))
        status = make_status(make_rule(word="IssuesFound", Finding=finding, StatusDetails=finding.message))

        sink.start(status)
        sink.finding(finding)
        sink.report("VanishingGradient", "page.html", "\ud800")
        sink.close(status)

    def test_it_is_found_by_its_module(self, sink: Sink):
        module = importlib.import_module(type(sink).__module__)

        assert module.SINK is type(sink)
        assert inspect.getdoc(module)
        assert sink.name
