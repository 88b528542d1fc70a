"""Host: one rule in its own process, judged by the same evaluation as the rules of the job."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from evaluator.clock import SystemClock
from evaluator.config.parameters import RuleConfiguration, configure, with_offered
from evaluator.engine.measuring import summarise
from evaluator.engine.partners import Partners
from evaluator.engine.summaries import StepSummary
from evaluator.errors import InputError
from evaluator.evaluation import Evaluation
from evaluator.hosting.author import Budget, Failure
from evaluator.hosting.class_rule import Instance, as_rule
from evaluator.hosting.fed import FedReader, FedSource, FedTrial
from evaluator.hosting.loading import choose, load
from evaluator.isolation.channel import RuleSide
from evaluator.isolation.messages import Ask, Finish, Start, Step, Values
from evaluator.other_trials import OtherTrials
from evaluator.reasons import why_not_evaluated
from evaluator.rule import Rule
from evaluator.rule_run import RuleRun
from evaluator.sources.base import Positions, StepFile
from evaluator.trial import trial as trials
from evaluator.trial.completeness import Completeness
from evaluator.trial.opening import open_run
from evaluator.user_rules.opening import create_trial
from evaluator.user_rules.reader import Limits
from evaluator.user_rules.surroundings import surround
from evaluator.user_rules.trial import Trial

SCRIPT_LIMITS = Limits(opening=5.0, waiting=5.0, quorum=5.0, event_file=5.0)
"""For trials that a file opens by itself: well below the time that an import or a step has."""

STEP_LIMITS = Limits(waiting=0.0)
"""For the trial that the job sends: nothing comes while a step is judged."""

Reply = dict[str, Any]


class Host:
    """The rule, and what it is judged with."""

    def __init__(self, start: Start, channel: RuleSide) -> None:
        """Import nothing of the user's yet."""
        self._start = start
        self._channel = channel
        self._clock = SystemClock()
        self._budget = Budget(start.error_budget)
        self._instance: Instance | None = None
        self._source = FedSource(self._read)
        self._reader = FedReader(start.trial, self._source)
        self._trial = FedTrial(self._source)
        self._others = OtherTrials(open_run, self._clock)
        self._evaluation: Evaluation | None = None
        self._page: tuple[str, str] | None = None

    def introduce(self) -> Reply:
        """Import the file and make a configuration of its rule: what it is, or why there is none."""
        try:
            surround(self._clock, SCRIPT_LIMITS)
            configuration = self._configure()
            self._others.open(configuration.other_trials)
            partners = Partners(self._source, self._start.memory_budget, self._others.values)
            self._evaluation = Evaluation([configuration], self._trial, partners, following=self._start.following)
        except InputError as error:
            return {"problem": "; ".join(map(str, error.mistakes)), "failure": ""}
        except BaseException as error:  # noqa: BLE001 - a file may raise anything when it is imported
            failure = Failure(error)
            return {"problem": f"its file cannot be imported: {failure.line}", "failure": failure.traceback}
        rule = configuration.rule
        return {
            "ready": {
                "rule": rule.name,
                "precedence": rule.precedence,
                "at": sorted(rule.at),
                "severity": configuration.severity,
                "shown": {name: dict(shown) for name, shown in configuration.shown.items()},
                "ignored": list(configuration.ignored),
                "notes": list(configuration.notes),
                "patience": None if rule.patience is None else rule.patience(configuration.parameters),
            }
        }

    def answer(self, message: object) -> Reply:
        """What came of a message."""
        evaluation = self._evaluation
        if evaluation is None:
            return {"problem": "it was asked before it was ready", "failure": ""}
        try:
            if isinstance(message, Step):
                findings = evaluation.judge(self._summary(message, evaluation))
            elif isinstance(message, Ask):
                evaluation.progress.ended, evaluation.progress.complete = message.ended, message.complete
                if message.ended:
                    self._reader.end()
                findings = evaluation.judge_idle(message.now, message.kind, message.step)
            elif isinstance(message, Finish):
                findings = evaluation.finish()
                if any(run.configuration.rule.report is not None for run in evaluation.runs):
                    # only few rules make pages, and this is a quarter of what would be imported at the start
                    from evaluator.reporting import make_reports  # noqa: PLC0415

                    make_reports(evaluation, self._clock, {}, self._keep_page, final=True)
            else:
                raise TypeError(f"{type(message).__name__} is no message for a rule")
        except BaseException as error:  # noqa: BLE001 - a rule may raise anything, and call sys.exit
            failure = Failure(error)
            return {"problem": self._told(failure), "failure": failure.traceback}
        return {"verdict": self._verdict(evaluation, findings)}

    def _configure(self) -> RuleConfiguration:
        request = self._start.request
        if request.file is None:
            raise TypeError("a rule in a process of its own has a file")
        chosen = choose(load(request.file.path, request.file.sha256), request.file)
        if isinstance(chosen, Rule):
            rule = chosen
        else:
            rule, self._instance = as_rule(chosen, self._trials)
        if rule.condition is not None:
            rule = replace(rule, condition=self._budget.around(rule.condition))
        configured = configure(with_offered(request, rule), rule)
        if isinstance(configured, list):
            raise InputError(configured)
        return replace(configured, name=self._start.name, other_trials=self._start.other_trials)

    def _trials(self) -> tuple[Trial, list[Trial]]:
        """The trial that the job sends, and the others, which are read from where they lie."""
        base = Trial(self._start.trial.rstrip("/").rpartition("/")[2], self._reader, self._clock, STEP_LIMITS)
        return base, [create_trial(path) for path in self._start.other_trials]

    def _summary(self, message: Step, evaluation: Evaluation) -> StepSummary:
        files = self._source.take(message)
        if message.restarted:
            self._reader = FedReader(self._start.trial, self._source)
            if message.collections is None:
                message = replace(message, collections=self._trial.names.collections)
            if self._instance is not None:
                self._instance.forget()
        self._trial.take(message, files)
        if self._instance is not None:
            self._reader.take(message, files)
        completeness = Completeness.COMPLETE if message.complete else Completeness.PARTIAL
        step = trials.Step(message.number, files, completeness, restarted=message.restarted)
        plans = [(file, evaluation.plan_of(file)) for file in files]
        return StepSummary(step, [summarise(self._source, file, plan, [plan.reads]) for file, plan in plans])

    def _read(self, file: StepFile, positions: Positions) -> Values:
        """Ask the job for values that it did not send."""
        place = {"key": file.key, "step": file.step, "worker": file.worker, "mode": file.mode.name}
        names, kinds = file.layout.names, file.layout.kinds
        entries = [[at, names[at], kinds[at]] for at in np.unique(positions).tolist()]
        self._channel.send({"read": {**place, "entries": entries}})
        values: Values = self._channel.receive()
        return values

    def _verdict(self, evaluation: Evaluation, findings: list[Any]) -> Reply:
        run = evaluation.runs[0]
        if not isinstance(run, RuleRun):
            raise TypeError("a rule in its own process has no further one")
        told: Reply = {
            "findings": [finding.document() for finding in findings],
            "counts": asdict(run.counts),
            "tensors": run.tensors if self._instance is None else self._instance.tensors,
            "decided": run.decided,
            "not_yet": run.not_yet,
            "why_not": None if run.counts.evaluated else why_not_evaluated(run, self._trial),
            "failure": None,
            "report": self._page,
        }
        if run.failure is not None:
            failure = self._budget.failure
            last = run.failure.strip().splitlines()[-1]
            told["failure"] = run.failure if failure is None else failure.traceback
            told["problem"] = f"{self._raised} {last}" if failure is None else self._told(failure)
        return told

    def _keep_page(self, folder: str, file_name: str, page: str) -> None:
        """Hold the rule's report, which the job writes."""
        del folder
        self._page = (file_name, page)

    def _told(self, failure: Failure) -> str:
        return f"{self._raised} {failure.line}"

    @property
    def _raised(self) -> str:
        last = self._trial.counts.last
        return f"at step {last}:" if last is not None else "before its first step:"
