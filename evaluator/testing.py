"""For rule authors: a trial from series of numbers, a clock that stands still, an example replayed on the real loop.

result = run_example(RULE, Example("one layer dies", {"w": [1e-3, 1e-9]}, met_at=1))
assert result.met_at == 1, result.why
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.ending import StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.errors import InputError
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.job_status import JobFacts, StatusMaker
from evaluator.loop import Loop, Pace
from evaluator.modes import Mode
from evaluator.other_trials import OtherTrials
from evaluator.rule import Example, Rule, Selection, Summary
from evaluator.sources.base import Source
from evaluator.status import JobStatus
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import open_run
from evaluator.trial.trial import Trial
from evaluator.writer import TrialWriter, write_end_marker

BEGIN = 1_700_000_000.0
"""When examples begin: seconds since the epoch."""

Tensors = Mapping[str, Sequence[Any]]
"""Name -> its value at each step: a number, an array, a text, or None where it was not saved."""


class FakeClock:
    """Time as a test wants it; waiting takes no time, but moves the clock.

    Attributes:
        waits: how long each wait was meant to be.
    """

    def __init__(self, now: float = BEGIN) -> None:
        """Stand still at this time."""
        self._now = now
        self._began = now
        self._woken = False
        self.waits: list[float] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._now - self._began

    def wait(self, seconds: float) -> bool:
        """Move on by that much at once, unless woken."""
        self.waits.append(seconds)
        if not self._woken:
            self.advance(seconds)
        return self._woken

    def wake(self) -> None:
        """Let every wait end at once from now on."""
        self._woken = True

    def advance(self, seconds: float) -> None:
        """Move on by that much."""
        self._now += seconds


def trial_from_series(
    folder: str | os.PathLike[str],
    tensors: Tensors | Mapping[str, Tensors],
    *,
    steps: Sequence[int] | None = None,
    modes: Sequence[str] | None = None,
    collections: Mapping[str, Sequence[str]] | None = None,
    workers: bool = False,
    seconds: Sequence[float] | None = None,
    end: bool = True,
) -> None:
    """Write a trial folder.

    Args:
        folder: where; made if it is not there.
        tensors: name -> values; with `workers`, worker -> name -> values.
        steps: the step numbers, by default 0, 1, 2, ...
        modes: the mode of each step, by default GLOBAL; each counts its own steps.
        collections: collection -> tensor names.
        workers: whether `tensors` are those of several workers.
        seconds: when each step was saved, by default one second apart.
        end: whether the run has ended.
    """
    by_worker = cast("Mapping[str, Tensors]", tensors if workers else {"worker_0": tensors})
    for worker, series in by_worker.items():
        writer = TrialWriter(folder, worker=worker, num_workers=len(by_worker), collections=collections)
        count = max((len(values) for values in series.values()), default=0)
        counted: dict[Mode, int] = {}
        for place in range(count):
            mode = Mode[modes[place]] if modes is not None else Mode.GLOBAL
            step = steps[place] if steps is not None else place
            writer.save(
                step,
                {name: values[place] for name, values in series.items() if place < len(values)},
                mode=mode,
                mode_step=step if mode is Mode.GLOBAL else counted.get(mode, 0),
                wall_time=BEGIN + (seconds[place] if seconds is not None else place),
            )
            counted[mode] = counted.get(mode, 0) + 1
        writer.close(end=False)
    if end:
        write_end_marker(folder)


@dataclass(frozen=True)
class ExampleResult:
    """What came of an example."""

    findings: Sequence[Finding]
    status: JobStatus
    failure: str = ""
    """The traceback of a rule that raised."""

    @property
    def met_at(self) -> int | None:
        """The step of the first finding."""
        return next((finding.step for finding in self.findings if finding.event == "met"), None)

    @property
    def word(self) -> str:
        """The rule's status: IssuesFound, NoIssuesFound or Error."""
        return self.status.DebugRuleEvaluationStatuses[0].RuleEvaluationStatus

    @property
    def evaluated(self) -> int:
        """At how many steps the rule was judged."""
        return self.status.DebugRuleEvaluationStatuses[0].Evaluation.evaluated

    @property
    def failed(self) -> bool:
        """Whether a rule raised."""
        return any((rule.StatusDetails or "").startswith("InternalServerError") for rule in self.status.rules)

    @property
    def why(self) -> str:
        """The findings' messages, or the details of the status: why it was not judged, or what it raised."""
        details = self.status.DebugRuleEvaluationStatuses[0].StatusDetails
        return "; ".join(finding.message for finding in self.findings) or details or self.word


def run_example(rule: Rule, example: Example) -> ExampleResult:
    """Replay an example: its trial is written to a temporary folder and read by the real loop.

    Raises:
        InputError: the parameters do not fit the rule.
    """
    with saved_example(rule, example) as (trial, configuration):
        return evaluate(trial, [configuration])


@contextmanager
def saved_example(
    rule: Rule, example: Example, collections: Sequence[str] = ()
) -> Iterator[tuple[str, RuleConfiguration]]:
    """An example's trial in a temporary folder: its path, and the rule as the example configures it.

    Unless the example names its own collections, these and all that the rule asks for hold every tensor.

    Raises:
        InputError: the parameters do not fit the rule.
    """
    configuration = example_configuration(rule, example)
    with tempfile.TemporaryDirectory(prefix="example-") as folder:
        trial, other = Path(folder, "trial"), Path(folder, "other")
        given = example.collections
        if given is None:
            given = _all_in_all(configuration, example, collections)
        trial_from_series(
            trial,
            example.workers if example.workers is not None else example.tensors,
            steps=example.steps,
            modes=example.modes,
            collections=given,
            workers=example.workers is not None,
            seconds=example.seconds,
        )
        if example.other is not None:
            trial_from_series(other, example.other, steps=example.steps, modes=example.modes, collections=given)
            configuration = replace(configuration, other_trials=(*configuration.other_trials, str(other)))
        yield str(trial), configuration


def evaluate(
    trial: str | Source, configurations: Sequence[RuleConfiguration], memory_budget: int = 2**28
) -> ExampleResult:
    """Read a trial (its path, or an opened one) as it stands, and have rules judge it, as a job without outputs does.

    Raises:
        InputError: there is no trial under the path.
    """
    clock = FakeClock()
    source = open_run(trial) if isinstance(trial, str) else trial
    others = OtherTrials(open_run, clock)
    others.open(path for configuration in configurations for path in configuration.other_trials)
    saved = Trial(source, clock, Waits(late_grace=0, worker_quorum=0), following=False)
    evaluation = Evaluation(configurations, saved, Partners(source, memory_budget, others.values), following=False)
    engine = LocalEngine(source, memory_budget)
    findings: list[Finding] = []
    facts = JobFacts("example", "example", {}, {}, clock.now())
    maker = StatusMaker(facts, clock, lambda run: run.failure or "")
    try:
        loop = Loop(saved, evaluation, engine, clock, StopSignal("drain", 0, clock), Pace(1, 1, 0), findings.extend)
        facts.ended_because = loop.read_once()
    finally:
        engine.close()
    failure = "".join(run.failure or "" for run in evaluation.runs)
    return ExampleResult([maker.complete(finding) for finding in findings], maker.make(saved, evaluation), failure)


def example_configuration(rule: Rule, example: Example) -> RuleConfiguration:
    """As on the command line: recommended parameters, unless the example says parameter_set=sagemaker."""
    configured = configure(RuleRequest(rule.name, dict(example.parameters), "command line", rule.name), rule)
    if isinstance(configured, list):
        raise InputError(configured)
    return configured


def _all_in_all(configuration: RuleConfiguration, example: Example, collections: Sequence[str]) -> dict[str, list[str]]:
    """Every tensor in every collection that the rule asks for, and in these."""
    every = list((example.workers or {"": example.tensors}).values())
    names = list(dict.fromkeys(name for tensors in every for name in tensors))
    asked = dict.fromkeys(collections, names)
    for need in configuration.rule.requires(configuration.parameters):
        if not isinstance(need, Summary):
            continue
        beside = getattr(need.partner, "selection", Selection())
        asked.update((collection, names) for collection in (*need.selection.collections, *beside.collections))
    return asked
