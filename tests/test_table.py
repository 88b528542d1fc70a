"""The table of verdicts shows what was found, and names exactly as they are."""

from __future__ import annotations

import io

from rich.console import Console

from evaluator.status import EvaluationCounts, JobStatus, NotApplicable
from evaluator.table import print_verdicts
from tests.sinks.made import make_finding, make_rule, make_status


def shown(status: JobStatus, output: str = "", width: int = 200, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    print_verdicts(status, Console(file=stream, width=width, force_terminal=terminal), output)
    return stream.getvalue()


def row(status: JobStatus) -> list[str]:
    """The words of the last row."""
    return shown(status).strip().splitlines()[-1].split()


def test_a_finding_is_a_row_with_place_and_numbers():
    finding = make_finding(message="too small")
    status = make_status(make_rule(word="IssuesFound", Finding=finding))

    assert row(status) == [
        *("VanishingGradient", "IssuesFound", "3", "w0", "(worker_0)", "4.1e-08", "1e-07"),
        *("too", "small"),
    ]


def test_a_quiet_rule_says_how_much_it_saw():
    status = make_status(make_rule("AllZero", "NoIssuesFound", Evaluation=EvaluationCounts(evaluated=12)))

    assert row(status) == ["AllZero", "NoIssuesFound", "judged", "at", "12", "steps"]


def test_an_error_says_why():
    status = make_status(make_rule("AllZero", "Error", StatusDetails="no data"))

    assert row(status) == ["AllZero", "Error", "no", "data"]


def test_a_finding_about_the_whole_run_names_no_tensor():
    finding = make_finding(tensor=None, worker=None, measured=float("nan"), limit=None)

    assert row(make_status(make_rule(word="IssuesFound", Finding=finding)))[2:] == ["3", "the", "whole", "run", "NaN"]


def test_markup_in_names_is_shown_as_it_is():
    name = "[red]x[/] [/red] :smile: [link=http://x]"
    finding = make_finding(tensor=name, message=name)
    status = make_status(make_rule(word="IssuesFound", Finding=finding, RuleConfigurationName=name))
    status.not_applicable = [NotApplicable(rule=name, reason=name)]
    status.job.notes = [name]

    assert shown(status, output=name, width=300).count(name) == 7


def test_nothing_can_steer_the_terminal():
    name = "a\x1b[2J\x9b\r\n\u202e\ud800"
    finding = make_finding(tensor=name, worker=name, message=name)
    status = make_status(make_rule(name, "IssuesFound", Finding=finding, StatusDetails=name), make_rule(name, "Error"))
    status.not_applicable = [NotApplicable(rule=name, reason=name)]
    status.job.notes = [name]
    text = shown(status, output=name, width=400)

    assert all(character.isprintable() for character in text.replace("\n", ""))
    assert r"a\x1b[2J\x9b\r\n\u202e\ud800" in text


def test_rules_that_do_not_apply_are_told_once_per_reason():
    status = make_status()
    reasons = {"TreeDepth": "no trees", "X": "no x", "Y": "no x"}
    status.not_applicable = [NotApplicable(rule=rule, reason=reason) for rule, reason in reasons.items()]

    assert shown(status) == "not applicable: TreeDepth: no trees\nnot applicable: X, Y: no x\n"


def test_the_last_line_says_where_the_files_are_in_one_piece():
    output = "/out/" + "long" * 50

    assert shown(make_status(), output, width=40) == f"files: {output}\n"


def test_on_a_narrow_terminal_nothing_of_a_name_is_lost():
    finding = make_finding(tensor="abcdefghij" * 5)
    text = shown(make_status(make_rule(word="IssuesFound", Finding=finding)), width=60)

    assert "…" not in text
