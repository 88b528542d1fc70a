"""What rules would see of a trial, found out from its index files alone, without reading a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.clock import Clock
from evaluator.commands.looks import Look, NeedLook, RuleLook
from evaluator.config.job_config import JobConfig
from evaluator.config.parameters import RuleConfiguration
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.file_plan import SeriesPart
from evaluator.isolation.gathering import gather
from evaluator.isolation.isolated_run import IsolatedRun, Isolation
from evaluator.needs import OtherTrial, OtherWorker, Previous, Summary
from evaluator.other_trials import OtherTrials
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
    source = open_run(config.trial, clock, config.reading)
    others = OtherTrials(open_run, clock)
    others.open(sorted({path for rule in config.rules for path in rule.other_trials}))
    trial = Trial(source, clock, Waits(0, 0), following=False)
    partners = Partners(source, config.settings.memory_budget, others.values)
    known = [rule for rule in config.rules if rule.file is None]
    seen = _DryRun(trial, Evaluation(known, trial, partners, following=False)).run()
    looks = iter(seen.rules)
    isolation = Isolation.of(source, config.trial, config.settings, lambda: False)
    files = iter(_introduced([rule for rule in config.rules if rule.file is not None], isolation))
    seen.rules = [next(files) if rule.file is not None else next(looks) for rule in config.rules]
    return seen


def _introduced(configurations: Sequence[RuleConfiguration], isolation: Isolation) -> list[RuleLook]:
    """What the rules of files say of themselves when they are imported, each in its own process; no step is judged."""
    runs = [IsolatedRun(one, isolation) for one in configurations]
    gather(runs, isolation.interrupted)
    looks = []
    for run in runs:
        run.close()
        known = run.configuration
        path = known.file.path if known.file is not None else ""
        looks.append(
            RuleLook(
                known.name,
                known.rule.name,
                candidate=False,
                needs=[],
                ignored=known.ignored,
                file=path,
                broken=run.problem,
            )
        )
    return looks


class _DryRun:
    """Goes through the steps as the loop would, and counts instead of reading."""

    def __init__(self, trial: Trial, evaluation: Evaluation) -> None:
        self._trial = trial
        self._evaluation = evaluation
        self._runs = [run for run in evaluation.runs if isinstance(run, RuleRun)]
        self._points: dict[Series, _Points] = {series: _Points() for series in evaluation.series.values()}
        self._due = dict.fromkeys(map(id, self._runs), 0)
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
            for run in self._runs:
                self._judge(run, Moment(step.number, updated=frozenset(rows)))
        for series, points in self._points.items():
            if points.count:
                # so that the reasons know that there was something
                series.last_row = Row(np.empty(0), np.empty(0, np.int8), points.last, series.columns)
        counts = self._trial.counts
        rules = [self._look(run) for run in self._runs]
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
        if run.concerned(moment.updated) and run.due(moment) and (last is None or moment.step - last >= every):
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
