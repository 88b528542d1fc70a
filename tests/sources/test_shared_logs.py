"""Labelled logs as files: the verdicts are those of the benchmark, which puts them into a run in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.evaluate import candidates, judge
from benchmarks.logs.__main__ import DEFAULT
from benchmarks.logs.load import load_log
from evaluator.finding import Finding
from evaluator.sources.base import Source
from evaluator.trial.opening import open_run

RUNS = ("asr-006", "det-001", "llm-024", "llm-034", "nlp-023", "opt-039", "ts-008")
"""A few short ones: healthy, overfit, diverging, not learning; with and without findings."""


def verdicts(source: Source) -> tuple[list[tuple[object, ...]], set[str]]:
    judged = judge(source, candidates("recommended"))

    def facts(finding: Finding) -> tuple[object, ...]:
        return finding.rule, finding.step, finding.mode, finding.tensor, finding.measured, finding.message

    assert judged.raised == {}
    return sorted(map(facts, judged.findings), key=str), judged.evaluated


@pytest.mark.skipif(not DEFAULT.is_dir(), reason="the labelled logs are not there; they are no part of the project")
@pytest.mark.parametrize("form", ["as it is", "without modes", "wide"])
@pytest.mark.parametrize("run", RUNS)
def test_a_log_as_json_lines_gets_the_verdicts_of_the_benchmark(tmp_path: Path, run: str, form: str):
    path = DEFAULT / f"{run}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if form == "without modes":
        rows = [{key: value for key, value in row.items() if key != "mode"} for row in rows]
    if form == "wide":
        rows = [{"step": row["step"], row["name"]: row["value"]} for row in rows]
    copy = tmp_path / "log.jsonl"
    copy.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    assert verdicts(open_run(str(copy))) == verdicts(load_log(path))
