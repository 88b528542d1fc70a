"""Evaluation: takes the summaries of one step after the other, and lets the rules that are due judge them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from evaluator.config.parameters import RuleConfiguration
from evaluator.engine.partners import Partners
from evaluator.engine.summaries import Chosen, FileSummary, StepSummary, chosen
from evaluator.file_plan import FilePlan, SeriesPart
from evaluator.finding import Finding
from evaluator.formats.key_names import natural_key
from evaluator.isolation.gathering import gather
from evaluator.isolation.isolated_run import IsolatedRun, Isolation
from evaluator.judged_trial import JudgedTrial
from evaluator.modes import Mode
from evaluator.needs import Progress
from evaluator.passes import mode_steps, passes
from evaluator.plan import Plan
from evaluator.progress import ProgressTracker
from evaluator.recording import Moment
from evaluator.rule_run import RuleRun
from evaluator.series import RowPart, Series, SeriesKey
from evaluator.sources.base import StepFile
from evaluator.story import in_story_order
from evaluator.window import ProgressView

MOST_KINDS = 256
"""Kinds of steps of which is remembered which rules they concern."""


class Evaluation:
    """All rules of a job over one trial: one read, one row per step for each thing that any rule needs."""

    def __init__(
        self,
        configurations: Sequence[RuleConfiguration],
        trial: JudgedTrial,
        partners: Partners,
        *,
        following: bool,
        isolation: Isolation | None = None,
    ) -> None:
        """Bind every rule to the series it needs, and start the processes of those that have one of their own.

        Args:
            configurations: the rules.
            trial: whose steps will be judged.
            partners: finds what values are compared with.
            following: whether the run may still be going on.
            isolation: for rules of users' files; without it there are none.
        """
        self.series: dict[SeriesKey, Series] = {}
        self.runs: list[RuleRun | IsolatedRun] = [
            RuleRun(one, self.series) if one.file is None or isolation is None else IsolatedRun(one, isolation)
            for one in configurations
        ]
        self._isolation = isolation
        self._gather(self.runs)
        self._by_name = {run.configuration.name: run for run in self.runs}
        self._precedence = {run.configuration.name: run.configuration.rule.precedence for run in self.runs}
        self.progress = ProgressTracker()
        self.plan = Plan(trial.names)
        self._trial = trial
        self._partners = partners
        self._following = following
        self._active = [run for run in self.runs if not run.ended]
        self._concerned: dict[frozenset[Series], dict[RuleRun, None]] = {}
        self._no_progress = self.progress.view()
        self._progress_wanted = self._times_wanted = False
        self._last_words: list[Finding] = []
        self._replan()

    @property
    def active(self) -> list[RuleRun | IsolatedRun]:
        """The rules that are not decided yet."""
        return self._active

    def plan_of(self, file: StepFile) -> FilePlan:
        """What to read of a file that was just taken."""
        only_global = self._trial.modes_seen <= {Mode.GLOBAL}
        return self.plan.of(file.layout, file.mode, only_global=only_global)

    def is_current(self, summary: StepSummary) -> bool:
        """Whether no rule has ended since a step was read ahead."""
        return all(self.plan.renewed(one.plan) is one.plan for one in summary.files)

    def judge(self, summary: StepSummary) -> list[Finding]:
        """Add a step's rows and judge every rule that is due there."""
        with np.errstate(all="ignore"):
            return self._judge(summary)

    def _judge(self, summary: StepSummary) -> list[Finding]:
        step = summary.step.number
        self._trial.judged(summary.step)
        for one in summary.files:
            # what rules that have ended since wanted of it is nobody's any more
            one.plan = self.plan.renewed(one.plan)
        if summary.step.restarted:
            self._forget()
        for isolated in self._isolated:
            isolated.hand(summary, self._trial.names)
        findings: list[Finding] = []
        for files in passes(summary.files):
            self._partners.skipped.clear()
            updated = self._add_rows(step, files)
            moment = Moment(step, partial(mode_steps, files), updated)
            findings += self._judge_runs(moment, self._progress_at(step, files), files)
        findings += self._gather(self._active)
        for one in summary.files:
            self._trial.count_unreadable(one.file, one.problems)
        self._retire(step)
        return self._as_story(findings)

    def judge_idle(self, now: float, kind: Literal["idle", "end"], step: int | None) -> list[Finding]:
        """Judge the rules that want to be asked when nothing new has come, or at the end."""
        at = step if step is not None else -1
        moment = Moment(at, kind=kind)
        progress = self.progress.view(now if self._following else None)
        findings: list[Finding] = []
        told = self.progress
        for isolated in self._isolated:
            isolated.ask(kind, now, step, ended=told.ended, complete=told.complete)
        with np.errstate(all="ignore"):
            for run in self._local:
                if run.due(moment):
                    findings += run.judge(moment, progress, self._trial.names.order)
        findings += self._gather(self._active)
        self._retire(at)
        return self._as_story(findings)

    def finish(self) -> list[Finding]:
        """Close the issues that are still open."""
        for run in self._isolated:
            run.end()
        over = [*self._last_words, *self._gather(self.runs)]
        return [*over, *(finding for run in self.runs if isinstance(run, RuleRun) for finding in run.finish())]

    def _gather(self, runs: Sequence[RuleRun | IsolatedRun]) -> list[Finding]:
        """What the processes say of what they were sent."""
        isolated = [run for run in runs if isinstance(run, IsolatedRun)]
        return gather(isolated, self._isolation.interrupted) if isolated and self._isolation is not None else []

    def _as_story(self, findings: Sequence[Finding]) -> list[Finding]:
        """What is over first, then what began at this step, its cause first."""
        if not findings:
            return []
        met = in_story_order(findings, self._precedence, self._trial.names.order)
        for finding in met[1:]:
            self._by_name[finding.rule_configuration].retell(finding)
        return [*(finding for finding in findings if finding.event == "cleared"), *met]

    def _progress_at(self, step: int, files: Sequence[FileSummary]) -> ProgressView:
        """How far the workers are with these files; nothing where no rule wants to know."""
        if not self._progress_wanted:
            return self._no_progress
        for one in files:
            at = one.file.modified if self._following else self._wall_time(one)
            self.progress.wrote(one.file.worker, step, at, one.file.mode)
        self.progress.expected = self._trial.expected_workers
        return self.progress.view()

    def _judge_runs(self, moment: Moment, progress: ProgressView, files: Sequence[FileSummary]) -> list[Finding]:
        failures = {measure: text for one in files for measure, text in one.failures.items()}
        trouble = bool(failures) or any(series.failures for series in moment.updated)
        unreadable = any(one.problems for one in files)
        lacking = unreadable or bool(self._partners.skipped)
        concerned = self._concerned_by(moment.updated)
        # others have nothing to judge, which is only worth a word where something went wrong
        asked: Iterable[RuleRun] = self._local if trouble or unreadable else concerned
        if lacking and not (trouble or unreadable):
            asked = dict.fromkeys([*concerned, *self._comparing])
        findings: list[Finding] = []
        for run in asked:
            raised = [failures[one.key.measure] for one in run.series if one.key.measure in failures] if trouble else []
            raised += run.not_folded if trouble else []
            if raised:
                run.failure = raised[0]
            elif run in concerned and run.due(moment):
                findings += run.judge(moment, progress, self._trial.names.order)
            elif lacking:
                self._say_why_not(run, moment, files)
        return findings

    def _concerned_by(self, updated: frozenset[Series]) -> Mapping[RuleRun, None]:
        """The rules that can be due where these series have a row; worked out once for steps that are alike."""
        found = self._concerned.get(updated)
        if found is None:
            if len(self._concerned) >= MOST_KINDS:
                self._concerned.clear()
            found = self._concerned[updated] = dict.fromkeys(run for run in self._local if run.concerned(updated))
        return found

    def _say_why_not(self, run: RuleRun, moment: Moment, files: Sequence[FileSummary]) -> None:
        """Count a step that a rule could have been judged at, had what it needs been readable."""
        for series in run.series:
            if series in moment.updated:
                continue
            if series in self._partners.skipped:
                run.skip(self._partners.skipped[series])
                return
            for one in files:
                if one.problems and any(part.series is series for part in one.plan.parts):
                    run.skip("what was saved could not be read")
                    return

    def _add_rows(self, step: int, files: Sequence[FileSummary]) -> frozenset[Series]:
        """Add one row to every series that has a value in these files."""
        rows: dict[Series, list[RowPart]] = {}
        self._make_columns(files)
        for one in files:
            for part in one.plan.parts:
                found = self._results(part, one, files)
                if found is None:
                    continue
                values, there = found
                row = RowPart(part.columns_of(one.file.worker), values, part.codes)
                if there is not None:
                    columns = np.arange(len(part.series.columns))[row.columns]
                    row = RowPart(columns[there], values[there], part.codes[there])
                rows.setdefault(part.series, []).append(row)
        for one in files:
            for part in one.plan.with_earlier:
                self._partners.remember(part, one)
        for series, parts in rows.items():
            series.add(step, parts)
        return frozenset(rows)

    def _results(self, part: SeriesPart, one: FileSummary, files: Sequence[FileSummary]) -> Chosen | None:
        """What was computed of the tensors that feed a series, in their order."""
        if part.series.key.partner is not None:
            return self._partners.compare(part, one, files)
        if one.block is not None:
            return one.block.row(part, one.at)
        measured = one.measured.get(part.series.key.measure)
        return None if measured is None else chosen(measured.values, measured.present, part.positions)

    def _make_columns(self, files: Sequence[FileSummary]) -> None:
        """Add the columns that are new at this step in column order."""
        unseated = [one for one in files if one.file.worker not in one.plan.seated]
        if not unseated:
            return
        parts = [(part, one.file.worker) for one in unseated for part in one.plan.parts]
        new = [(part, worker) for part, worker in parts if worker not in part.columns]
        columns: dict[Series, list[tuple[str, str]]] = {}
        for part, worker in new:
            columns.setdefault(part.series, []).extend((name, worker) for name in part.names)
        order = self._trial.names.order
        for series, added in columns.items():
            for name, worker in sorted(added, key=lambda column: (order[column[0]], natural_key(column[1]))):
                series.column(name, worker)
        for part, worker in new:
            part.columns_of(worker)
        for one in unseated:
            one.plan.seated.add(one.file.worker)

    def _wall_time(self, one: FileSummary) -> float | None:
        """When a file was written, as the training script says; read for it alone only where a rule wants to know."""
        if one.wall_time is not None or not self._times_wanted:
            return one.wall_time
        return self._trial.source.wall_time(one.file)

    def _forget(self) -> None:
        """Training went back: all steps come anew, for the rules that are not decided yet."""
        self.progress = ProgressTracker()
        self._partners.forget()
        for run in self._local:
            run.forget()
            for series in run.series:
                series.forget()

    def _retire(self, step: int) -> None:
        """Let go of rules that have ended; what only they needed is read no more."""
        for run in self._with_end:
            if run.past_end(step) and run.decided is None:
                run.decided = f"end_step {run.configuration.loop.end_step} was reached"
        if any(run.ended for run in self._active):
            remaining = [run for run in self._active if not run.ended]
            for run in self._active:
                if run.ended and isinstance(run, IsolatedRun):
                    # what it says last is told when the job ends
                    run.end()
                    self._last_words += self._gather([run])
                    run.close()
            self._active = remaining
            self._replan()

    def _replan(self) -> None:
        self._local = [run for run in self._active if isinstance(run, RuleRun)]
        self._isolated = [run for run in self._active if isinstance(run, IsolatedRun)]
        self._with_end = [run for run in self._active if run.configuration.loop.end_step is not None]
        self._comparing = [run for run in self._local if any(one.key.partner is not None for one in run.series)]
        self._concerned.clear()
        needed = dict.fromkeys(series for run in self._active for series in run.series)
        self.plan.use(needed, whole=bool(self._isolated))
        self._partners.retain(list(needed))
        needs = [binding.need for run in self._local for binding in run.bindings]
        self._progress_wanted = any(isinstance(need, Progress) for need in needs)
        self._times_wanted = any(isinstance(need, Progress) and need.times for need in needs)
