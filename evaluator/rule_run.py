"""RuleRun: one configured rule in a job: when it is due, what it is given, and what its verdicts come to."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from evaluator.config.parameters import RuleConfiguration
from evaluator.finding import Finding
from evaluator.needs import Accumulator, OtherTrial, Partner, Progress, Summary
from evaluator.recording import Moment, checked, columns_of, judged_columns, make_finding
from evaluator.rule_state import Counts, RuleState
from evaluator.series import Series, SeriesKey
from evaluator.window import Column, Decided, Met, NotYet, ProgressView, Window
from evaluator.window import State as StateView

Arguments = list[Window | StateView | ProgressView]


@dataclass(frozen=True, slots=True)
class Binding:
    """A need, and the series that fills it; Progress has none."""

    need: Summary | Progress
    series: Series | None
    accumulator: Accumulator | None
    give: Callable[[], Window | StateView] | None
    """What the condition is given for this need, as it is now."""


@dataclass(slots=True)
class Issue:
    """A condition that is met at present, for a rule that goes on after a finding."""

    finding: Finding
    last_step: int
    steps_met: int = 1


class RuleRun(RuleState):
    """One rule that is judged in this process."""

    def __init__(self, configuration: RuleConfiguration, series: dict[SeriesKey, Series]) -> None:
        """Bind the rule's needs to series; `series` holds those of other rules, to be shared and added to.

        Raises:
            Exception: whatever the rule's own `requires` raises.
        """
        super().__init__(configuration)
        self.bindings: list[Binding] = []
        self._shared = series
        self._in_a_row: dict[Column | None, int] = {}
        self._last_healthy: int | None = None
        self._last_check: int | None = None
        self._asked_at: int | None = None
        self._issue: Issue | None = None
        self._before: list[Issue] = []
        """Issues that were open when training went back, and may be met again or not."""
        self._told: set[tuple[str, str]] = set()
        self._triggers: list[list[Series]] = []
        """Per need that makes the rule due, the series of which one must have a value."""
        for need in configuration.rule.requires(configuration.parameters):
            bindings = self._bind(need)
            self.bindings += bindings
            triggers = [binding.series for binding in bindings if binding.series is not None]
            if need.triggers and triggers:
                self._triggers.append(triggers)

    def _bind(self, need: Summary | Progress) -> list[Binding]:
        if isinstance(need, Progress):
            return [Binding(need, None, None, None)]
        return [self._bound(need, partner) for partner in self._partners(need.partner)]

    def _bound(self, need: Summary, partner: Partner | None) -> Binding:
        selection = need.selection.without(self.configuration.loop.exclude_regex)
        key = SeriesKey(selection, need.measure, need.modes, partner)
        series = self._shared.get(key)
        if series is None:
            series = self._shared[key] = Series(key)
        series.keep(need.rows, need.steps)
        if need.state is not None:
            series.fold(need.state)
            return Binding(need, series, need.state, partial(series.state, need.state))
        return Binding(need, series, None, partial(series.window, need.rows, need.steps))

    def _partners(self, partner: Partner | None) -> list[Partner | None]:
        """The partner, with the path of the other trial it means: two rules can have different lists of them."""
        paths = self.configuration.other_trials
        if not isinstance(partner, OtherTrial):
            return [partner]
        if partner.number is not None:
            return [replace(partner, path=path) for path in paths[partner.number : partner.number + 1]] or [partner]
        return [OtherTrial(number, path) for number, path in enumerate(paths)] or [OtherTrial()]

    @cached_property
    def series(self) -> list[Series]:
        """The series of its needs."""
        return [binding.series for binding in self.bindings if binding.series is not None]

    @property
    def not_folded(self) -> list[str]:
        """What its own states raised when a row was added."""
        bound = [(one.series, one.accumulator) for one in self.bindings if one.series is not None]
        return [series.failures[state] for series, state in bound if state is not None and state in series.failures]

    def concerned(self, updated: AbstractSet[Series]) -> bool:
        """Whether a step at which these series have a row can be one for this rule."""
        if "step" not in self.configuration.rule.at:
            return False
        return not any(updated.isdisjoint(series) for series in self._triggers)

    def due(self, moment: Moment) -> bool:
        """Whether the rule is judged at this moment; at a step, if it is concerned."""
        rule, loop = self.configuration.rule, self.configuration.loop
        if moment.kind not in rule.at:
            return False
        if moment.kind != "step":
            if moment.step < loop.start_step and loop.start_step > 0:
                return False
            # since the last step only progress can have changed: without it, a rule has judged all there is
            return "step" not in rule.at or any(isinstance(binding.need, Progress) for binding in self.bindings)
        if moment.step < loop.start_step or (loop.end_step is not None and moment.step >= loop.end_step):
            return False
        if not self._triggers and moment.step == self._asked_at:
            # values of two modes make two rows of a step, which is one step for who looks at no row
            return False
        if rule.every is not None and self._last_check is not None:
            return moment.step - self._last_check >= rule.every(self.configuration.parameters)
        return True

    def judge(self, moment: Moment, progress: ProgressView, order: Mapping[str, int]) -> list[Finding]:
        """Ask the condition, and make findings of what it says; `order` is the order of the tensors."""
        condition = self.configuration.rule.condition
        if condition is None:
            self._count_evaluated(moment.step)
            return []
        arguments = self.arguments(progress)
        try:
            verdict = checked(condition(*arguments, self.configuration.parameters))
        except Exception:  # noqa: BLE001 - a rule may raise anything; it must end that rule only
            self.failure = traceback.format_exc()
            return []
        if verdict is None and moment.kind == "step" and not (self._issue or self._before or self._in_a_row):
            # as at almost every step
            self._asked_at = self._last_check = self._last_healthy = moment.step
            self._count_evaluated(moment.step)
            return []
        # asked once more, on an idle poll or at the end, it is no further step: nothing of later ones concerned it
        at = moment.step
        if moment.kind != "step" and "step" in self.configuration.rule.at and self._asked_at is not None:
            at = self._asked_at
        again = moment.kind != "step" and at == self._asked_at
        self._asked_at = at
        if isinstance(verdict, NotYet):
            self.not_yet = verdict.reason
            if not again:
                self.skip(verdict.reason)
            return []
        self._last_check = moment.step
        if not again or self.counts.last_step != at:
            self._count_evaluated(at)
        if isinstance(verdict, Decided):
            self.decided = verdict.reason
            return self._clear()
        met = self._lasting(verdict, arguments)
        if met is None:
            self._last_healthy = moment.step
            return self._clear(moment.step)
        return self._found(met, moment, order)

    def retell(self, finding: Finding) -> None:
        """Put a finding that was told otherwise in the place of the one this rule has just made."""
        super().retell(finding)
        if self._issue is not None and self._issue.finding.id == finding.id:
            self._issue.finding = finding

    def not_reported(self, reason: str) -> None:
        """No page can be made of the steps that were counted until now, so nothing came of them."""
        self.not_yet = reason
        counts, self.counts = self.counts, Counts()
        times = counts.skipped_because.get(reason, 0) + counts.evaluated
        self.counts.skipped = counts.skipped + counts.evaluated
        self.counts.skipped_because = {**counts.skipped_because, reason: times}

    def finish(self) -> list[Finding]:
        """The job has ended: an issue that is still there is closed at the last step that met it."""
        return self._clear()

    def forget(self) -> None:
        """All steps come anew; what was found stands, and is not told twice."""
        self.counts = Counts()
        self.not_yet = None
        self._in_a_row.clear()
        self._last_check = self._last_healthy = self._asked_at = None
        if self._issue is not None:
            self._before.append(self._issue)
            self._issue = None

    def arguments(self, progress: ProgressView) -> Arguments:
        """What the condition, or a report, is given."""
        return [progress if binding.give is None else binding.give() for binding in self.bindings]

    def _count_evaluated(self, step: int) -> None:
        self.counts.evaluated += 1
        if self.counts.first_step is None:
            self.counts.first_step = step
        self.counts.last_step = step

    def _lasting(self, verdict: Met | None, arguments: Arguments) -> Met | None:
        """The columns that have met the condition often enough in a row."""
        wanted = self.configuration.loop.consecutive
        if wanted == 1:
            return verdict
        met = dict.fromkeys(columns_of(verdict)) if verdict is not None else {}
        if self._in_a_row:
            for column in judged_columns(arguments):
                if column not in met:
                    self._in_a_row.pop(column, None)
        if verdict is None:
            self._in_a_row.pop(None, None)
            return None
        keys: list[Column | None] = list(met) or [None]
        for key in keys:
            self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
        lasting = np.array([self._in_a_row[key] >= wanted for key in keys])
        if not lasting.any():
            return None
        if not met:
            return verdict
        return verdict.only(lasting)

    def _found(self, met: Met, moment: Moment, order: Mapping[str, int]) -> list[Finding]:
        if self._issue is not None:
            self._issue.last_step = moment.step
            self._issue.steps_met += 1
            return []
        finding = make_finding(met, self.configuration, moment, order, self._last_healthy)
        if self.configuration.loop.on_finding == "continue":
            self._issue = Issue(finding, moment.step)
            self._before = [issue for issue in self._before if issue.finding.id != finding.id]
        if not self._new(finding):
            return []
        self.findings += 1
        if self.first_finding is None:
            self.first_finding = finding
        return [finding]

    def _clear(self, step: float = math.inf) -> list[Finding]:
        """Close the open issue, and those from before training went back that began at this step or earlier."""
        if self._issue is None and not self._before:
            return []
        over = [issue for issue in self._before if issue.finding.step <= step]
        self._before = [issue for issue in self._before if issue.finding.step > step]
        if self._issue is not None:
            over.append(self._issue)
            self._issue = None
        return [finding for finding in map(_cleared, over) if self._new(finding)]

    def _new(self, finding: Finding) -> bool:
        """Whether this was not told before training went back; remembers that it is told now."""
        key = (finding.id, finding.event)
        known = key in self._told
        self._told.add(key)
        return not known


def _cleared(issue: Issue) -> Finding:
    update: dict[str, Any] = {"event": "cleared", "last_step": issue.last_step, "steps_met": issue.steps_met}
    return issue.finding.model_copy(update=update)
