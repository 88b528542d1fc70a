"""What is logged of a job, and that no log line can steer a terminal or carry an unknown key."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from evaluator import logs, strict_json
from evaluator.sinks.log import Log
from evaluator.testing import FakeClock
from tests.sinks.contract import SinkContract
from tests.sinks.made import make_finding, make_rule, make_status

ROOT = Path(__file__).parents[2]
TOLD = {"debug", "info", "warning", "error", "exception", "critical"}


def unlisted(event: Mapping[str, object]) -> set[str]:
    """The keys of a log line that are not on the list."""
    of_every_line = {"event", "level", "log_level", "time", "timestamp", "exception", "exc_info"}
    return set(event) - logs.EVENT_KEYS - of_every_line


class TestLog(SinkContract):
    @pytest.fixture
    def sink(self):
        return Log()

    def test_a_job_is_four_kinds_of_lines(self, sink):
        status = make_status(make_rule(word="IssuesFound"), make_rule("AllZero", "Error"), ended_because="read_once")
        with capture_logs() as lines:
            sink.finding(make_finding())
            sink.finding(make_finding(event="cleared", last_step=5, steps_met=2))
            sink.status(status)
            sink.status(status)
            sink.close(status)

        assert [line["event"] for line in lines] == [
            "condition_met",
            "condition_cleared",
            "rule_ended",
            "rule_ended",
            "job_ended",
        ]
        assert [unlisted(line) for line in lines] == [set()] * 5


@pytest.fixture
def configured() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def logged(log_format: logs.LogFormat, level: str = "info", **values: object) -> str:
    stream = io.StringIO()
    logs.configure(FakeClock(0.0), level, log_format, stream)
    structlog.get_logger().info("condition_met", **values)
    return stream.getvalue()


@pytest.mark.usefixtures("configured")
class TestConfigure:
    def test_away_from_a_terminal_a_line_is_strict_json(self):
        line = logged("auto", tensor="\x1b[31m\ud800", measured=float("nan"))

        assert strict_json.loads(line) == {
            "time": "1970-01-01T00:00:00.000Z",
            "level": "info",
            "event": "condition_met",
            "tensor": "\x1b[31m\\ud800",
            "measured": "NaN",
        }
        assert "\x1b" not in line

    def test_a_value_without_a_json_form_is_logged_as_text(self):
        assert strict_json.loads(logged("json", value=1 + 2j))["value"] == "(1+2j)"

    def test_on_a_console_control_characters_are_shown(self):
        line = logged("console", tensor="a\x1b[2J\u202e\nb", message="\udc80")

        assert "\x1b" not in line
        assert line.count("\n") == 1
        assert r"a\x1b[2J\u202e\nb" in line

    def test_what_is_below_the_level_is_left_out(self):
        assert logged("json", level="warning") == ""

    def test_an_exception_is_told_without_the_values_of_variables(self):
        stream = io.StringIO()
        logs.configure(FakeClock(), "info", "console", stream)
        hidden = "a secret"
        try:
            len(hidden) / 0
        except ZeroDivisionError:
            structlog.get_logger().exception("rule_ended")

        assert "ZeroDivisionError" in stream.getvalue()
        assert hidden not in stream.getvalue()

    def test_an_unknown_level_is_refused(self):
        with pytest.raises(ValueError, match="log_level: 'loud' is not known; known: debug"):
            logs.configure(FakeClock(), "loud")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gradient/w:0", "gradient/w:0"),
        ("größe 🙂", "größe 🙂"),
        ("\x1b\x9b\x00", r"\x1b\x9b\x00"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_acts_is_escaped_and_what_is_seen_is_not(text: str, shown: str):
    assert logs.printable(text) == shown


@pytest.mark.parametrize("path", sorted((ROOT / "evaluator").rglob("*.py")), ids=lambda path: path.stem)
def test_every_logged_key_is_on_the_list(path: Path):
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    told = [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in TOLD | {"bind"}
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in {"log", "logger", "_log"}
    ]
    keys = {keyword.arg for call in told for keyword in call.keywords if keyword.arg is not None}

    assert unlisted(dict.fromkeys(keys)) == set()
