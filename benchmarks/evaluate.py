"""Runs rules over a source in this process, without outputs, and gives what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.clock import SystemClock
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.ending import StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.loop import Loop, Pace
from evaluator.other_trials import OtherTrials
from evaluator.registry import builtin_rules
from evaluator.rule import ParameterSet
from evaluator.sources.base import Source
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import open_run
from evaluator.trial.trial import Trial

MEMORY = 256 * 2**20


@dataclass(frozen=True)
class Judged:
    """What the rules made of one run."""

    findings: list[Finding]
    evaluated: set[str]
    """The rules that judged at least one step."""
    raised: dict[str, str]
    """Rule -> traceback; a benchmark with any of these is void."""


def candidates(parameter_set: ParameterSet, other_trials: Sequence[str] = ()) -> list[RuleConfiguration]:
    """Every built-in rule with one of the two parameter sets, less those that need parameters they were not given."""
    found = []
    for name, rule in builtin_rules().items():
        parameters: dict[str, object] = {"parameter_set": parameter_set}
        if rule.other_trials and other_trials:
            parameters["other_trials"] = ",".join(other_trials)
        made = configure(RuleRequest(name, parameters, "candidate", name), rule)
        if isinstance(made, RuleConfiguration):
            found.append(made)
    return found


def judge(source: Source, configurations: Sequence[RuleConfiguration]) -> Judged:
    """Evaluate the rules over all that was saved."""
    clock = SystemClock()
    others = OtherTrials(open_run, clock)
    others.open({path for one in configurations for path in one.other_trials})
    trial = Trial(source, clock, Waits(0, 0), following=False)
    evaluation = Evaluation(configurations, trial, Partners(source, MEMORY, others.values), following=False)
    engine = LocalEngine(source, MEMORY)
    findings: list[Finding] = []
    try:
        stop = StopSignal("stop", 0, clock)
        Loop(trial, evaluation, engine, clock, stop, Pace(0, 0, 0), findings.extend).read_once()
    finally:
        engine.close()
    return Judged(
        [finding for finding in findings if finding.event == "met"],
        {run.configuration.name for run in evaluation.runs if run.counts.evaluated},
        {run.configuration.name: run.failure for run in evaluation.runs if run.failure is not None},
    )
