"""What rules would see of a trial, found out from its index files alone, without reading a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.needs import OtherTrial, OtherWorker, Previous, Summary
from evaluator.other_trials import OtherTrials
from evaluator.plan import SeriesPart
from evaluator.reasons import unmatched, why_not_evaluated
from evaluator.recording import Moment
from evaluator.rule_run import Binding, RuleRun
from evaluator.series import Series
from evaluator.sources.base import Source
from evaluator.trial.completeness import Completeness, Waits
from evaluator.trial.opening import open_run
from evaluator.trial.trial import Step, Trial
from evaluator.window import Row


@dataclass
class NeedLook:
    """What one need of a rule would see.

    Args:
        looks_for: the selection in words.
        tensors: those it would see, in the order of training.
        points: steps at which at least one of them has a value.
        history: how many points it looks back over, and how many steps.
    """

    looks_for: str
    tensors: list[str]
    points: int
    history: tuple[int, int] = (1, 0)
    span: int = 0
    triggers: bool = True

    @property
    def is_short(self) -> bool:
        """Whether there are fewer points than it looks back over."""
        return self.points < self.history[0] or self.span < self.history[1]


@dataclass
class RuleLook:
    """What one rule configuration would see.

    Args:
        due: steps at which the rule would be judged; None when it is not judged at steps.
        reason: why it would never be judged.
        unmatched: parts of what it was told to look at that nothing is called by.
    """

    configuration: str
    rule: str
    candidate: bool
    needs: list[NeedLook]
    due: int | None
    reason: str | None
    ignored: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()

    @property
    def short(self) -> list[NeedLook]:
        """The needs with fewer points than they look back over."""
        return [need for need in self.needs if need.triggers and need.points and need.is_short]

    @property
    def enough(self) -> bool | None:
        """Whether there are enough points; None where only the rule itself can tell."""
        if self.reason is not None:
            return False
        return None if self.due is None or self.short else True


@dataclass
class Look:
    """What all rules would see of a trial."""

    steps: int
    first: int | None
    last: int | None
    rules: list[RuleLook]
    problems: Mapping[str, str] = field(default_factory=dict)
    more_problems: int = 0
    incomplete: list[str] = field(default_factory=list)
    """Steps and workers that are not whole."""


@dataclass
class _Points:
    """The steps at which one series would have a row."""

    count: int = 0
    first: int = 0
    last: int = 0
    tensors: dict[str, None] = field(default_factory=dict)


def look(config: JobConfig, clock: Clock) -> Look:
    """Look at a trial with the eyes of every rule of a job.

    Raises:
        InputError: there is no trial, or no other trial, where one was named.
    """
    source = open_run(config.trial)
    others = OtherTrials(open_run, clock)
    others.open(sorted({path for rule in config.rules for path in rule.other_trials}))
    trial = Trial(source, clock, Waits(0, 0), following=False)
    partners = Partners(source, config.settings.memory_budget, others.values)
    evaluation = Evaluation(config.rules, trial, partners, following=False)
    return _DryRun(trial, evaluation).run()


class _DryRun:
    """Goes through the steps as the loop would, and counts instead of reading."""

    def __init__(self, trial: Trial, evaluation: Evaluation) -> None:
        self._trial = trial
        self._evaluation = evaluation
        self._points: dict[Series, _Points] = {series: _Points() for series in evaluation.series.values()}
        self._due = dict.fromkeys(map(id, evaluation.runs), 0)
        self._last_check: dict[int, int] = {}
        self._saved: dict[Series, set[tuple[str, str]]] = {}
        self._elsewhere: dict[str, set[int]] = {}
        self._partial = 0

    def run(self) -> Look:
        """Look at every step."""
        steps = 0
        for step in self._trial.finish():
            self._trial.judged(step)
            steps += 1
            self._partial += step.completeness is Completeness.PARTIAL
            rows = self._rows(step)
            for run in self._evaluation.runs:
                self._judge(run, Moment(step.number, updated=rows))
        for series, points in self._points.items():
            if points.count:
                # so that the reasons know that there was something
                series.last_row = Row(np.empty(0), np.empty(0, np.int8), points.last, series.columns)
        counts = self._trial.counts
        rules = [self._look(run) for run in self._evaluation.runs]
        trial = self._trial
        return Look(
            steps, counts.first, counts.last, rules, trial.problems, trial.more_problems, self._incomplete(steps)
        )

    def _incomplete(self, steps: int) -> list[str]:
        """That workers are missing, and which."""
        if not self._partial:
            return []
        silent = ", ".join(self._trial.silent_workers) or "not known by name"
        wrote = f"{len(self._trial.writers)} of {self._trial.expected_workers} workers wrote"
        return [f"{self._partial} of {steps} steps without some worker's file; {wrote}; silent: {silent}"]

    def _rows(self, step: Step) -> set[Series]:
        """The series that would have a row of this step."""
        parts: dict[Series, list[tuple[str, SeriesPart]]] = {}
        for file in step.files:
            for part in self._evaluation.plan_of(file).parts:
                parts.setdefault(part.series, []).append((file.worker, part))
        rows = set()
        for series, found in parts.items():
            points = self._points[series]
            points.tensors.update(dict.fromkeys(name for _, part in found for name in part.names))
            if self._compared(series, found, step.number):
                points.first = points.first if points.count else step.number
                points.last = step.number
                points.count += 1
                rows.add(series)
        return rows

    def _compared(self, series: Series, found: list[tuple[str, SeriesPart]], step: int) -> bool:
        """Whether there is what the values are compared with, if they are."""
        partner = series.key.partner
        if isinstance(partner, Previous):
            before = self._saved.setdefault(series, set())
            now = {(worker, name) for worker, part in found for name in part.names}
            repeated = not before.isdisjoint(now)
            before |= now
            return repeated
        if isinstance(partner, OtherWorker):
            workers = [set(part.names) for _, part in found]
            return any(not one.isdisjoint(other) for at, one in enumerate(workers) for other in workers[:at])
        if isinstance(partner, OtherTrial):
            return bool(partner.path) and step in self._steps_of(partner.path)
        return partner is None or any(name is not None for _, part in found for name in part.partners)

    def _steps_of(self, path: str) -> set[int]:
        """The steps of another trial."""
        found = self._elsewhere.get(path)
        if found is None:
            source: Source = open_run(path)
            found = self._elsewhere[path] = {sighting.step for sighting in source.sightings()}
        return found

    def _judge(self, run: RuleRun, moment: Moment) -> None:
        """Count a step at which a rule is due."""
        rule = run.configuration.rule
        last = self._last_check.get(id(run))
        every = rule.every(run.configuration.parameters) if rule.every is not None else 0
        if run.due(moment) and (last is None or moment.step - last >= every):
            self._due[id(run)] += 1
            self._last_check[id(run)] = moment.step

    def _look(self, run: RuleRun) -> RuleLook:
        configuration = run.configuration
        due = self._due[id(run)] if "step" in configuration.rule.at else None
        needs = [self._need(binding) for binding in run.bindings if binding.series is not None]
        lacking = due == 0 or (due is None and any(need.triggers and not need.points for need in needs))
        return RuleLook(
            configuration.name,
            configuration.rule.name,
            configuration.candidate,
            needs,
            due,
            why_not_evaluated(run, self._trial) if lacking else None,
            configuration.ignored,
            () if lacking else tuple(unmatched(run, self._trial.names)),
        )

    def _need(self, binding: Binding) -> NeedLook:
        if binding.series is None or not isinstance(binding.need, Summary):
            raise TypeError("a need without a series looks for nothing")
        points = self._points[binding.series]
        order = self._trial.names.order
        tensors = sorted(points.tensors, key=lambda name: order.get(name, 0))
        history = (1, 0) if binding.need.state is not None else (binding.need.rows, binding.need.steps)
        span = points.last - points.first
        selection = str(binding.series.key.selection)
        return NeedLook(selection, tensors, points.count, history, span, binding.need.triggers)
