"""Puts the status of a running or ended job together from what its parts have counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluator import __version__
from evaluator.actions.base import ActionResult
from evaluator.clock import Clock, timestamp
from evaluator.config.parameters import RuleConfiguration
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.formats.key_names import natural_key
from evaluator.isolation.isolated_run import IsolatedRun
from evaluator.reasons import why_not_evaluated
from evaluator.rule_run import RuleRun
from evaluator.rule_state import RuleState
from evaluator.status import (
    EndedBecause,
    EvaluationCounts,
    Job,
    JobStatus,
    NotApplicable,
    ParameterValue,
    Program,
    RequestCounts,
    RuleStatus,
    StatusWord,
    Steps,
    Workers,
    details_client,
    details_condition_met,
    details_insufficient,
    details_internal,
    details_no_data,
)
from evaluator.storage.base import Requests
from evaluator.story import story_key
from evaluator.trial.trial import Trial

MOST_REFUSED = 20
"""Refused keys that the notes name."""


@dataclass
class JobFacts:
    """What does not come from the trial: who runs what, since when."""

    job_id: str
    trial: str
    labels: Mapping[str, str]
    settings: Mapping[str, object]
    started_at: float
    notes: list[str] = field(default_factory=list)
    other_trials: Sequence[str] = ()
    requests: Sequence[Requests] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Keys of the trial that its store refuses to touch -> why."""
    ended_because: EndedBecause | None = None


@dataclass
class _Known:
    """The word a rule had last, and since when."""

    word: StatusWord
    since: str


class StatusMaker:
    """Makes the JobStatus; remembers since when each rule has its status."""

    def __init__(
        self, facts: JobFacts, clock: Clock, traceback_file: Callable[[RuleState], str],
        actions: Callable[[str], list[ActionResult]] | None = None,
    ) -> None:  # fmt: skip
        """Nothing is known of any rule yet; `traceback_file` writes an exception down, `actions` says what was done."""
        self.facts = facts
        self._clock = clock
        self._traceback_file = traceback_file
        self._actions = actions
        self._known: dict[str, _Known] = {}
        self._reasons: dict[str, str] = {}
        self._recorded: dict[tuple[str, str, str], str] = {}

    def now(self) -> str:
        """The time as output files write it."""
        return timestamp(self._clock.now())

    def complete(self, finding: Finding) -> Finding:
        """The finding with what only the job knows."""
        facts = self.facts
        recorded = self._recorded.setdefault((finding.rule_configuration, finding.id, finding.event), self.now())
        return finding.model_copy(update={"trial": facts.trial, "labels": dict(facts.labels), "recorded_at": recorded})

    def make(
        self, trial: Trial | None, evaluation: Evaluation | None, waiting: Sequence[RuleConfiguration] = ()
    ) -> JobStatus:
        """The status as of now; before a trial was found, `waiting` are the rules that will run."""
        now = timestamp(self._clock.now())
        facts = self.facts
        status = JobStatus(trial=facts.trial, labels=dict(facts.labels))
        status.job = Job(
            id=facts.job_id,
            program=Program(version=__version__),
            started_at=timestamp(facts.started_at),
            updated_at=now,
            ended_at=now if facts.ended_because else None,
            ended_because=facts.ended_because,
            settings=dict(facts.settings),
            other_trials=list(facts.other_trials),
            requests=_requests(facts.requests),
        )
        notes = list(facts.notes)
        if trial is not None:
            counts = trial.counts
            status.job.steps = Steps(
                complete=counts.complete, partial=counts.partial, late_files=counts.late_files,
                unreadable=counts.unreadable, first=counts.first, last=counts.last,
            )  # fmt: skip
            status.job.workers = _workers(trial)
            notes += [f"{where}: {what}" for where, what in trial.problems.items()]
            notes += [f"{key}: {why}" for key, why in list(facts.refused.items())[:MOST_REFUSED]]
            if trial.more_problems:
                notes.append(f"and {trial.more_problems} more problems of this kind")
        status.job.notes = notes
        rules = []
        for run in _cause_first(evaluation, trial) if evaluation is not None and trial is not None else []:
            made = self._rule(run, trial)
            if isinstance(made, NotApplicable):
                status.not_applicable.append(made)
            else:
                rules.append(made)
        rules += [self._waiting(configuration) for configuration in waiting if evaluation is None]
        status.DebugRuleEvaluationStatuses = rules
        return status

    def _rule(self, run: RuleRun | IsolatedRun, trial: Trial | None) -> RuleStatus | NotApplicable:
        word, details = self._word(run, trial)
        configuration = run.configuration
        if word is None:
            return NotApplicable(rule=configuration.name, reason=details or "")
        counts = run.counts
        made = _rule_status(configuration, word, self._since(configuration.name, word))
        made.StatusDetails = details
        made.Evaluation = EvaluationCounts(
            evaluated=counts.evaluated, skipped=counts.skipped, skipped_because=dict(counts.skipped_because),
            tensors=run.tensors,
            first_step=counts.first_step, last_step=counts.last_step,
        )  # fmt: skip
        made.Findings = run.findings
        made.Finding = self.complete(run.first_finding) if run.first_finding is not None else None
        if self._actions is not None and run.findings:
            made.Actions = self._actions(configuration.name)
        made.Report = run.report_file
        return made

    def _word(self, run: RuleRun | IsolatedRun, trial: Trial | None) -> tuple[StatusWord | None, str | None]:
        """The status word and its details; no word for a candidate that did not apply."""
        if run.failure is not None:
            written = f" (traceback: {self._traceback_file(run)})" if run.failure else ""
            if run.problem is not None:
                return "Error", details_client(run.problem + written)
            return "Error", details_internal(run.failure.strip().splitlines()[-1] + written)
        because = self.facts.ended_because
        if run.first_finding is not None and (run.ended or because is not None):
            return "IssuesFound", details_condition_met(run.configuration.rule.name, run.first_finding.step)
        if run.counts.evaluated and (run.decided is not None or (because and because != "stop_signal")):
            return "NoIssuesFound", None
        if because is None:
            return "InProgress", None
        if because == "stop_signal":
            return "Stopped", "stopped by a signal before the end of the run"
        reason = self._why_not(run, trial)
        if run.configuration.candidate:
            return None, reason
        nothing = trial is None or not trial.anything_seen
        return "Error", details_no_data(reason) if nothing else details_insufficient(reason)

    def _why_not(self, run: RuleRun | IsolatedRun, trial: Trial | None) -> str:
        """Why a rule was never evaluated; the job has ended, so it is worked out once."""
        name = run.configuration.name
        if name not in self._reasons:
            self._reasons[name] = _why_not(run, trial) or "no step was saved"
        return self._reasons[name]

    def _waiting(self, configuration: RuleConfiguration) -> RuleStatus:
        """The status of a rule for which there is no trial, yet or at all."""
        because = self.facts.ended_because
        word: StatusWord = "InProgress" if because is None else "Stopped" if because == "stop_signal" else "Error"
        made = _rule_status(configuration, word, self._since(configuration.name, word))
        if word == "Error":
            made.StatusDetails = details_no_data(f"nothing was saved under {self.facts.trial} in time")
        elif word == "Stopped":
            made.StatusDetails = "stopped by a signal before anything was saved"
        return made

    def _since(self, name: str, word: StatusWord) -> str:
        known = self._known.get(name)
        if known is None or known.word != word:
            known = self._known[name] = _Known(word, timestamp(self._clock.now()))
        return known.since


def _why_not(run: RuleRun | IsolatedRun, trial: Trial | None) -> str | None:
    """Why a rule was never evaluated, which a rule in a process of its own says itself."""
    if isinstance(run, IsolatedRun):
        return run.why_not
    return None if trial is None else why_not_evaluated(run, trial)


def _rule_status(configuration: RuleConfiguration, word: StatusWord, since: str) -> RuleStatus:
    return RuleStatus(
        RuleConfigurationName=configuration.name,
        Rule=configuration.rule.name,
        Severity=configuration.severity,
        RuleEvaluationStatus=word,
        LastModifiedTime=since,
        Parameters={
            name: ParameterValue(value=one["value"], origin=str(one["from"]))
            for name, one in configuration.shown.items()
        },
        ignored_parameters=list(configuration.ignored),
    )


def _cause_first(evaluation: Evaluation, trial: Trial) -> list[RuleRun | IsolatedRun]:
    """The rules that found something, as one story, then the others as they were configured."""
    order = trial.names.order

    found = [
        (story_key(run.first_finding, run.configuration.rule.precedence, order), number, run)
        for number, run in enumerate(evaluation.runs)
        if run.first_finding is not None
    ]
    return [*(run for *_, run in sorted(found)), *(run for run in evaluation.runs if run.first_finding is None)]


def _workers(trial: Trial) -> Workers:
    writers = set(trial.writers)
    silent = sorted({*trial.workers, *trial.silent_workers} - writers | set(trial.silent_workers), key=natural_key)
    return Workers(expected=trial.expected_workers, seen=len(writers), silent=silent)


def _requests(stores: Sequence[Requests]) -> RequestCounts:
    return RequestCounts(
        list=sum(one.list for one in stores), get=sum(one.get for one in stores),
        put=sum(one.put for one in stores), retries=sum(one.retries for one in stores),
    )  # fmt: skip
