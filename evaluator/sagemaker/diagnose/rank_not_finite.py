"""One rank got NaN or an infinity and left the step; the others wait for it in silence.

In the trial, values of each worker's last saved step are looked at: some workers have NaN and others have none, and the
run has no end and has been silent for ten of its steps (a minute at least), or those workers ended before the others.
In logs, a rank whose loss is NaN, after which no rank gets farther than one more of its lines.
Source: user report 52 (pytorch/audio issue 3749).
"""

from __future__ import annotations

import re
from typing import Any

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign, gravest
from evaluator.sagemaker.diagnose._evidence import Evidence, listed
from evaluator.sagemaker.diagnose._log import LogFacts
from evaluator.sagemaker.diagnose._trial import TrialFacts

SIGN = "loss is not finite"
REACH = 60
"""Characters between the word loss or gradient and its value."""
_VALUE = re.compile(r"[-+:= \"\[](?:nan|inf|infinity)(?![a-z])")
_ANOTHER = re.compile(r"[\d,;]")

SILENT, SILENT_STEPS = 60.0, 10
"""Seconds, and times its usual step, after which nothing more is expected of a run without an end. Our choice."""

VALUES = (
    *(" nan", "=nan", ":nan", "-nan", '"nan', "[nan"),
    *("=inf", ":inf", "-inf", '"inf', "[inf", "= inf", ": inf", "is inf"),
)


def is_not_finite(line: str) -> bool:
    """Whether a line says of a loss or gradient that it is NaN or infinite, and not of something after it."""
    lowered = line.lower()
    for found in _VALUE.finditer(lowered):
        before = lowered[max(0, found.start() - REACH) : found.start()]
        at = max(before.rfind("loss"), before.rfind("grad"))
        if at >= 0 and _ANOTHER.search(before, at) is None:
            return True
    return False


def check(evidence: Evidence) -> Result:
    """What trial and logs say; what is found in either counts."""
    results: list[Result] = []
    if evidence.trial is not None and evidence.trial.steps:
        results.append(_of_trial(evidence.trial, evidence.now))
    if evidence.log is not None:
        results.append(_of_log(evidence, evidence.log))
    return gravest(results) or NotChecked(evidence.lacks("needs a trial with steps, or a log", "trial", "log"))


def _of_trial(trial: TrialFacts, now: float) -> Result:
    if len(trial.workers) < 2:
        return NotChecked("one worker saved")
    bad = trial.not_finite
    if not bad:
        return Ok("the last steps of all workers hold numbers")
    if len(bad) == len(trial.workers):
        return Ok("the last steps of all workers hold NaN or infinities, so that none waits for another; see NonFinite")
    newest = max(trial.last_step.values())
    if trial.ended and all(trial.last_step[worker] == newest for worker in bad):
        return Ok(f"{listed(bad)} ended with values that are not finite, and the run went on to its end; see NonFinite")
    quiet = now - trial.newest_at if trial.newest_at is not None else 0.0
    if not trial.ended and quiet < max(SILENT, SILENT_STEPS * (trial.seconds or 0.0)):
        return NotChecked(
            f"{listed(bad)} has values that are not finite; the run may go on, {quiet:.0f} s after its last step"
        )
    lines = [f"{worker}: step {trial.last_step[worker]}, in {listed(tensors)}" for worker, tensors in bad.items()]
    silent = "the run has no end" if not trial.ended else f"others went on to step {newest}"
    return Found(f"{listed(bad)} has values that are not finite, and then nothing; {silent}", tuple(lines[:20]))


def _of_log(evidence: Evidence, log: LogFacts) -> Result:
    hits = evidence.hits(SIGN)
    if not hits.count:
        return Ok("no loss in the log is NaN") if log.moves else NotChecked("the log names neither steps nor NaN")
    if not hits.speakers:
        return NotChecked("a loss in the log is NaN; on which rank, it does not say")
    if set(hits.speakers) >= set(log.speakers):
        return Ok("all ranks in the log have NaN, so that none waits for another; see NonFinite")
    if log.succeeded or (evidence.job is not None and evidence.job.status == "Completed"):
        return Ok(f"{listed(hits.speakers)} had NaN, and the training went on to its end; see NonFinite")
    places = [line.place for line in hits.speakers.values() if line.place is not None]
    if not places:
        return NotChecked(f"{listed(hits.speakers)} has NaN; at which step, the log does not say")
    epoch, step = min(places)
    gap = max(walk.gap for walk in log.ranks.walks.values())
    if any(walk.place > (epoch, step + gap) for walk in log.ranks.walks.values()):
        return Ok(f"{listed(hits.speakers)} had NaN at step {step}, and ranks went on after it; see NonFinite")
    what = f"{listed(hits.speakers)} has NaN at step {step}, and then no rank gets farther"
    return Found(what, tuple(map(str, list(hits.speakers.values())[:5])))


GOOD, NAN = {"w": [1.0, 2.0, 3.0]}, {"w": [1.0, float("nan"), None]}
ONE: dict[str, dict[str, list[Any]]] = {"worker_0": GOOD, "worker_1": NAN}
CHECK = Check(
    name="RankNotFinite",
    place=9,
    inputs=("--training-job", "--trial", "--log"),
    check=check,
    remedy=(
        "Let ranks agree before one skips a step: all_reduce `torch.isfinite(loss)`, and skip on all or on none.",
        "Look for the first cause with `rule-evaluator run TRIAL --rule NonFinite`.",
    ),
    signs={
        # "inf" alone is in every line of level INFO
        SIGN: tuple(Sign((value,), is_not_finite) for value in VALUES),
    },
    examples=(
        Example("NaN on one worker, then no end", "found", trial=ONE, ended=False, now=600),
        Example("one rank of a log", "found", log="rank 0 step 7 loss=1.5\nrank 1 step 7 loss=nan\n"),
        Example("all numbers", "ok", trial={"worker_0": GOOD, "worker_1": GOOD}),
        Example("NaN on all workers", "ok", trial={"worker_0": NAN, "worker_1": NAN}, ended=False),
        Example("NaN, and it goes on", "ok", log="rank 0 step 1 loss=1.5\nrank 1 step 1 loss=nan\nrank 0 step 2\n"
                "rank 1 step 2\nrank 0 step 3\nrank 1 step 3 loss=0.9\n"),
        Example("words with nan in them", "ok", log="rank 0 step 1 nanoseconds=3 loss=0.3\nrank 1 step 1 loss=0.4\n"),
        Example("NaN a moment ago", "not checked", trial=ONE, ended=False, now=3),
        Example("no rank is named", "not checked", log="step 3 loss=nan\n"),
        Example("one worker", "not checked", trial={"worker_0": NAN}),
    ),
)  # fmt: skip
