"""What receivers require of a payload, as their documentation says it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from evaluator.actions._payloads import LARGEST_DETAILS, PAGERDUTY_SUMMARY, SHAPES, SLACK_TEXT
from evaluator.finding import Finding
from tests.sinks.made import make_finding

FINDING = make_finding(
    message="mean |gradient| is 4.1e-08",
    last_healthy_step=2,
    trial="s3://bucket/run",
    labels={"team": "vision", "not a label": "x", "empty": ""},
    recorded_at="2026-01-02T03:04:05.678Z",
)
HOSTILE = make_finding(
    message="<!channel> & <http://x|y>\n\x1b[2J" + "m" * 10_000,
    tensor="\u202e<@U1>\n" * 1000,
    trial="t" * 5000,
    details={"large": "x" * LARGEST_DETAILS},
)
BARE = make_finding(tensor=None, worker=None, measured=None, limit=None, mode=None, mode_step=None)


def payload(shape: str, finding: Finding = FINDING) -> Any:
    return SHAPES[shape](finding, "key")


def test_slack_is_given_a_text_that_says_what_to_go_back_to():
    text = payload("slack")["text"]

    assert set(payload("slack")) == {"text"}
    assert text.splitlines()[0] == "VanishingGradient (error) at step 3: mean |gradient| is 4.1e-08"
    assert "last healthy step: 2" in text.splitlines()
    assert "trial: s3://bucket/run" in text


def test_names_cannot_call_a_channel_or_make_a_link_in_slack():
    text = payload("slack", HOSTILE)["text"]

    assert not re.search("[<>\x1b\u202e]", text)
    assert "&lt;!channel&gt; &amp; " in text
    assert len(text) <= SLACK_TEXT


def test_alertmanager_is_given_a_list_of_one_alert():
    (alert,) = payload("alertmanager")

    assert set(alert) == {"labels", "annotations", "startsAt"}
    assert alert["labels"] == {
        "team": "vision",
        "alertname": "VanishingGradient",
        "severity": "error",
        "rule_configuration": "VanishingGradient",
        "trial": "s3://bucket/run",
        "tensor": "w0",
        "worker": "worker_0",
        "finding": FINDING.id,
    }
    assert alert["annotations"]["summary"].startswith("VanishingGradient (error) at step 3")
    assert alert["annotations"]["last_healthy_step"] == "2"
    assert datetime.fromisoformat(alert["startsAt"]).tzinfo is not None


@pytest.mark.parametrize("finding", [FINDING, HOSTILE, BARE], ids=["usual", "hostile", "bare"])
def test_labels_and_annotations_are_texts_under_names_that_prometheus_takes(finding: Finding):
    (alert,) = payload("alertmanager", finding)

    for name, text in [*alert["labels"].items(), *alert["annotations"].items()]:
        assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name)
        assert isinstance(text, str)
        assert text


def test_a_label_of_the_job_cannot_take_the_place_of_one_of_ours():
    (alert,) = payload("alertmanager", make_finding(labels={"alertname": "x", "severity": "info"}))

    assert (alert["labels"]["alertname"], alert["labels"]["severity"]) == ("VanishingGradient", "error")


@pytest.mark.parametrize("severity", ["critical", "error", "warning", "info"])
def test_pagerduty_is_given_what_an_event_must_have(severity: str):
    finding = FINDING.model_copy(update={"severity": severity})
    event = payload("pagerduty", finding)

    assert (event["routing_key"], event["event_action"], event["dedup_key"]) == ("key", "trigger", finding.id)
    assert event["payload"]["summary"].startswith(f"VanishingGradient ({severity}) at step 3")
    assert (event["payload"]["source"], event["payload"]["severity"]) == ("s3://bucket/run", severity)
    assert event["payload"]["custom_details"]["last_healthy_step"] == 2
    assert event["payload"]["timestamp"] == "2026-01-02T03:04:05.678Z"


def test_pagerduty_is_given_no_more_than_it_takes():
    event = payload("pagerduty", HOSTILE)

    assert len(event["payload"]["summary"]) <= PAGERDUTY_SUMMARY
    assert event["payload"]["custom_details"]["details"] == {}


def test_an_event_always_has_a_source():
    assert payload("pagerduty", BARE)["payload"]["source"] == "VanishingGradient"


def test_a_finding_that_never_was_healthy_says_so():
    assert "last healthy step: none" in payload("slack", BARE)["text"]


def test_json_is_the_finding():
    assert payload("json") == FINDING.document()
