"""IsolatedRun: one rule of a user's file in a job: what it is sent, and what its answers come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evaluator.clock import SystemClock
from evaluator.config.parameters import RuleConfiguration
from evaluator.config.settings import Settings
from evaluator.engine.summaries import StepSummary
from evaluator.finding import Finding
from evaluator.isolation.files import Files, Layouts
from evaluator.isolation.messages import Ask, Finish, Start, Step
from evaluator.isolation.process import NO_ANSWER, Abandoned, ProcessEnded, ProcessLimits, RuleProcess, too_long
from evaluator.isolation.replies import MOST_TEXT, VerdictReply
from evaluator.rule_state import RuleState
from evaluator.sources.base import Source
from evaluator.trial.completeness import Completeness
from evaluator.trial.names import NameBook


@dataclass(frozen=True, slots=True)
class Isolation:
    """What all rules of users' files in a job have in common."""

    source: Source
    trial: str
    following: bool
    memory_budget: int
    limits: ProcessLimits
    memory: int
    error_budget: int
    interrupted: Callable[[], bool]
    """Whether nobody waits for an answer any more."""

    @classmethod
    def of(cls, source: Source, trial: str, settings: Settings, interrupted: Callable[[], bool]) -> Isolation:
        """As the settings of a job have it."""
        return cls(
            source, trial, settings.follow, settings.memory_budget,
            ProcessLimits(settings.user_import_timeout, settings.user_step_timeout),
            settings.user_memory, settings.user_error_budget, interrupted,
        )  # fmt: skip


class IsolatedRun(RuleState):
    """One rule that is judged in a process of its own."""

    def __init__(self, configuration: RuleConfiguration, around: Isolation) -> None:
        """Start the process and tell it which rule it is for; what it makes of that is heard like a verdict."""
        super().__init__(configuration)
        self._around = around
        self._tensors = 0
        self.why_not: str | None = None
        """Why it was never evaluated, as its process says."""
        self.page: tuple[str, str] | None = None
        """File name and content of its report."""
        self._process = RuleProcess()
        self.waited_for = False
        """Whether it owes an answer."""
        # a process takes the machine's time, whatever clock the job goes by
        self._clock = SystemClock()
        self._limit, self._until = (0.0, ""), 0.0
        self._over = False
        """Whether its process is not there any more."""
        self._layouts = Layouts()
        self._collections: int | None = None
        self._met: dict[str, Finding] = {}
        self._new: list[Finding] = []
        self._files = Files(around.source)
        request = configuration.request
        if request is None:
            raise TypeError(f"{configuration.name}: a rule in a process of its own has a file")
        others = tuple(map(_absolute, configuration.other_trials))
        limits = around.memory, around.memory_budget, around.error_budget
        start = Start(request, configuration.name, around.trial, others, around.following, *limits)
        self._tell(start, importing=True)

    @property
    def tensors(self) -> int:
        """As its process counts them."""
        return self._tensors

    @property
    def output(self) -> bytes:
        """What it has printed until now."""
        return self._process.output.text()

    notes: tuple[str, ...] = ()
    """What the user should know about the configuration."""

    def hand(self, summary: StepSummary, names: NameBook) -> None:
        """Send a step; the process judges it while the job does other things."""
        if summary.step.restarted:
            self._files.forget()
        self._files.present = [one.file for one in summary.files]
        files, new = self._layouts.files(summary.files)
        collections = None if self._collections == names.version else names.collections
        self._collections = names.version
        step = summary.step
        complete = step.completeness is Completeness.COMPLETE
        self._tell(Step(step.number, files, complete, step.restarted, new, collections))

    def ask(self, kind: Literal["idle", "end"], now: float, step: int | None, *, ended: bool, complete: bool) -> None:
        """Have it judge what can be judged without a new step."""
        if kind == "end" or kind in self.configuration.rule.at:
            self._tell(Ask(kind, now, step, ended, complete))

    def fileno(self) -> int:
        """For waiting until it says something."""
        return self._process.fileno()

    def allow(self, seconds: float | None = None) -> None:
        """Let its time begin now, or allow it so much more because the job was busy with something else."""
        self._until = self._clock.monotonic() + self._limit[0] if seconds is None else self._until + seconds

    @property
    def left(self) -> float:
        """Seconds in which it has to answer."""
        return self._until - self._clock.monotonic()

    def hear(self) -> None:
        """Take what it says: what its rule is, a verdict, that it cannot go on, or that it wants to read something."""
        try:
            reply = self._process.hear()
            if "read" in reply:
                self._send(self._files.values(reply["read"]))
                return
            self.waited_for = False
            if "ready" in reply:
                self._take_introduction(reply["ready"])
            elif "verdict" in reply:
                self._take(reply["verdict"])
            else:
                self._fail(reply)
        except ProcessEnded as error:
            self._lost(str(error))
        except Exception:  # noqa: BLE001 - whatever it sent, it must not end the job
            self._lost(NO_ANSWER)

    def expire(self) -> None:
        """It did not answer in time."""
        self._lost(too_long(*self._limit))

    def abandon(self) -> None:
        """The job was stopped while it was at work: that is nobody's fault."""
        self.close()

    def heard(self) -> list[Finding]:
        """What it found since this was asked last."""
        findings, self._new = self._new, []
        return findings

    def end(self) -> None:
        """Ask for what it says last, as nothing that is saved later can matter to it."""
        self._tell(Finish())

    def close(self) -> None:
        """End the process."""
        self._over, self.waited_for = True, False
        self._process.close()

    def _take_introduction(self, told: dict[str, Any]) -> None:
        configuration = self.configuration
        patience = told["patience"]
        rule = replace(
            configuration.rule, name=str(told["rule"]), precedence=int(told["precedence"]), at=frozenset(told["at"]),
            patience=None if patience is None else lambda _: float(patience),
        )  # fmt: skip
        self.configuration = replace(
            configuration, rule=rule, severity=told["severity"], shown=told["shown"], ignored=tuple(told["ignored"])
        )
        self.notes = tuple(told["notes"])

    def _tell(self, message: object, *, importing: bool = False) -> None:
        """Send a message that is answered within the limit from now on."""
        limits = self._around.limits
        self._limit = (limits.importing, "user_import_timeout") if importing else (limits.step, "user_step_timeout")
        self._until = self._clock.monotonic() + self._limit[0]
        self._send(message)

    def _send(self, message: object) -> None:
        if self._over:
            return
        try:
            self._process.tell(message, max(self.left, 1.0), self._around.interrupted)
            self.waited_for = True
        except Abandoned:
            self.close()
        except ProcessEnded as error:
            self._lost(str(error))

    def _lost(self, problem: str) -> None:
        """Its process is of no use any more."""
        if not self.ended:
            # what has come to its end stays as it is
            self.failure, self.problem = "", f"rule {self.configuration.rule.name}: {problem}"
        self.close()

    def _fail(self, reply: dict[str, Any]) -> None:
        """Its process says why it cannot go on."""
        self.failure = str(reply.get("failure", ""))
        problem = reply.get("problem", NO_ANSWER)
        self.problem = f"rule {self.configuration.rule.name}: {problem}"
        self.close()

    def _take(self, told: dict[str, Any]) -> None:
        """Take over where the rule stands by now."""
        verdict = VerdictReply.model_validate(told)
        configuration = self.configuration
        mine = {
            "rule_configuration": configuration.name,
            "rule": configuration.rule.name,
            "severity": configuration.severity,
        }
        findings = [one.model_copy(update={**mine, "message": one.message[:MOST_TEXT]}) for one in verdict.findings]
        self.counts = verdict.counts
        self.decided, self.not_yet, self.why_not = verdict.decided, verdict.not_yet, verdict.why_not
        self._tensors = verdict.tensors
        taken = [self._told_before(finding) for finding in findings]
        for finding in taken:
            self.findings += finding.event == "met"
            if self.first_finding is None:
                self.first_finding = finding
        if verdict.report is not None:
            self.page = (Path(verdict.report[0]).name, verdict.report[1])
        self._new += taken
        if verdict.failure is not None:
            self._fail(told)

    def _told_before(self, finding: Finding) -> Finding:
        """A finding that is over, as it was told when it began: the job may have added what it follows from."""
        before = self._met.pop(finding.id, None)
        if finding.event == "met":
            self._met[finding.id] = finding
        elif before is not None:
            over = {"event": "cleared", "last_step": finding.last_step, "steps_met": finding.steps_met}
            return before.model_copy(update=over)
        return finding

    def retell(self, finding: Finding) -> None:
        """Put a finding that was told otherwise in the place of the one this rule has just made."""
        super().retell(finding)
        if finding.id in self._met:
            self._met[finding.id] = finding


def _absolute(path: str) -> str:
    """The path as it is from any folder: a rule file may change its own."""
    return path if "://" in path else str(Path(path).absolute())
