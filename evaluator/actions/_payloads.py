"""What a webhook sends, in the shapes that receivers take.

Source:
    Slack API, "Sending messages using incoming webhooks" (`text`, and which characters are escaped);
    Prometheus Alertmanager API v2, POST /api/v2/alerts (`labels` with `alertname`, `annotations`, `startsAt`);
    PagerDuty Events API v2, "Send an alert event" (`routing_key`, `event_action`, `dedup_key`, `payload`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from evaluator import strict_json
from evaluator.actions._told import facts, headline, lines, named, short
from evaluator.finding import Finding

SLACK_TEXT = 3000
"""Characters; ours: Slack takes more, and nobody reads it."""
PAGERDUTY_SUMMARY = 1024
"""Characters. Source: PagerDuty Events API v2, payload.summary."""
LARGEST_DETAILS = 64 * 1024
"""Bytes of a rule's own details that go along; ours, well below the 512 KiB that PagerDuty takes."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
"""Source: Prometheus, data model: names of labels."""

Shape = Callable[[Finding, str | None], object]
"""Finding, routing key -> JSON value."""


def as_json(finding: Finding, _: str | None) -> object:
    """The line of findings.jsonl."""
    return finding.document()


def as_slack(finding: Finding, _: str | None) -> object:
    """One message."""
    text = lines(finding)
    for character, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, escape)
    return {"text": text if len(text) <= SLACK_TEXT else f"{text[: SLACK_TEXT - 3]}..."}


def as_alertmanager(finding: Finding, _: str | None) -> object:
    """A list of one alert; the finding's id is among the labels, by which alerts are told apart."""
    labels = {name: short(text) for name, text in finding.labels.items() if _LABEL.fullmatch(name) and text}
    own = {
        "alertname": finding.rule,
        "severity": finding.severity,
        "rule_configuration": finding.rule_configuration,
        "trial": finding.trial,
        "tensor": finding.tensor,
        "worker": finding.worker,
        "finding": finding.id,
    }
    about = {name.replace(" ", "_"): text for name, text in facts(finding) if not name.startswith("label ")}
    return [
        {
            "labels": labels | {name: short(text) for name, text in own.items() if text},
            "annotations": {"summary": headline(finding), "step": str(finding.step)} | about,
            "startsAt": finding.recorded_at,
        }
    ]


def as_pagerduty(finding: Finding, routing_key: str | None) -> object:
    """An event that begins an incident; one of the same id is the same incident."""
    document = finding.document()
    if len(strict_json.dumps([document["details"], document["parameters"]])) > LARGEST_DETAILS:
        document["details"] = document["parameters"] = {}
    payload = {
        "summary": short(headline(finding), PAGERDUTY_SUMMARY),
        "source": finding.trial or finding.rule_configuration,
        # its four words are ours
        "severity": finding.severity,
        "timestamp": finding.recorded_at,
        "component": finding.tensor,
        "group": named(finding),
        "class": finding.rule,
        "custom_details": document,
    }
    return {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": finding.id,
        "payload": {name: value for name, value in payload.items() if value},
    }


SHAPES: Mapping[str, Shape] = {
    "json": as_json,
    "slack": as_slack,
    "alertmanager": as_alertmanager,
    "pagerduty": as_pagerduty,
}
