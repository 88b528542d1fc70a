"""Does the actions of a job aside, each within its own time, and knows what came of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue

import structlog

from evaluator import strict_json
from evaluator.actions.base import Action, ActionResult, NotDone, Surroundings
from evaluator.clock import Clock, timestamp
from evaluator.finding import Finding
from evaluator.logs import printable

LOOK = 0.05
"""Seconds for which a result is waited for before it is looked whether there is hurry."""

Key = tuple[str, str]
"""The id of a finding, and the key of an action."""

log = structlog.get_logger(__name__)


class Acting:
    """Has each action done once for each finding that it concerns, in a thread of its own kind and parameters.

    Only queues are shared with the threads: everything else is the job's thread's.
    """

    def __init__(self, actions: Sequence[Action], around: Surroundings, clock: Clock) -> None:
        """Start nothing yet."""
        self._actions = actions
        self._around = around
        self._clock = clock
        self._results: dict[str, dict[Key, ActionResult]] = {}
        """Configuration -> what came of the actions at its findings."""
        self._asked: dict[str, SimpleQueue[tuple[Action, Finding]]] = {}
        self._heard: SimpleQueue[tuple[str, ActionResult]] = SimpleQueue()
        self._unwritten: deque[tuple[str, ActionResult]] = deque()
        self._pending = 0

    def know(self, configuration: str, result: ActionResult) -> None:
        """Take over what came of an action in a former job; what was not done then is done again."""
        if result.result == "done":
            self._results.setdefault(configuration, {})[result.finding, result.key] = result

    def due(self, finding: Finding) -> None:
        """Have everything begun that is to be done for a finding and was not yet."""
        if finding.event != "met":
            return
        results = self._results.setdefault(finding.rule_configuration, {})
        for action in self._actions:
            key = finding.id, action.key
            if key in results or not action.concerns(finding):
                continue
            results[key] = self._result(action, finding, "pending")
            self._pending += 1
            if action.key not in self._asked:
                # one that hangs must hold up neither the job nor the others
                asked = self._asked[action.key] = SimpleQueue()
                threading.Thread(target=self._work, args=(asked,), name=f"action {action.name}", daemon=True).start()
            self._asked[action.key].put((action, finding))

    def told(self, configuration: str) -> list[ActionResult]:
        """What came of the actions at the findings of a configuration until now."""
        self._hear()
        # as findings spell it
        return list(self._results.get(strict_json.text(configuration), {}).values())

    def unwritten(self) -> deque[tuple[str, ActionResult]]:
        """(configuration, result) of what is known and was not written down yet; who writes one takes it out."""
        self._hear()
        return self._unwritten

    def problems(self) -> list[str]:
        """One line for each kind of failure, with a count."""
        failed: dict[str, int] = {}
        for results in self._results.values():
            for one in results.values():
                if one.result == "failed":
                    text = f"action {one.action}: failed: {one.reason}"
                    failed[text] = failed.get(text, 0) + 1
        return [text if count == 1 else f"{text} ({count} times)" for text, count in failed.items()]

    def settle(self, patience: float, hurried: Callable[[], float | None]) -> None:
        """Wait until everything is done; what is not within that time counts as failed.

        Args:
            patience: seconds of waiting for one result or another.
            hurried: a shorter patience, as soon as there is a reason for it.
        """
        waited = 0.0
        while self._pending and waited < min(patience, hurried() or patience):
            try:
                self._take(*self._heard.get(timeout=LOOK))
            except Empty:
                waited += LOOK
        self._hear()
        for configuration, results in self._results.items():
            for one in results.values():
                if one.result == "pending":
                    late = one.model_copy(update={"result": "failed", "reason": "had not ended when the job did"})
                    self._take(configuration, late)

    def _work(self, asked: SimpleQueue[tuple[Action, Finding]]) -> None:
        """Do one action after the other; runs in a thread that ends with the process."""
        while True:
            action, finding = asked.get()
            self._heard.put((finding.rule_configuration, self._done(action, finding)))

    def _done(self, action: Action, finding: Finding) -> ActionResult:
        try:
            details = action.do(finding, self._around, self._clock)
        except NotDone as error:
            return self._result(action, finding, "failed", reason=printable(str(error)))
        except Exception as error:  # noqa: BLE001 - an action must never end a job; what it says may hold a secret
            return self._result(action, finding, "failed", reason=f"could not be done ({type(error).__name__})")
        return self._result(action, finding, "done", details=dict(details))

    def _result(self, action: Action, finding: Finding, word: str, **more: object) -> ActionResult:
        at = timestamp(self._clock.now())
        values = {"finding": finding.id, "action": action.name, "key": action.key, "result": word, "at": at}
        return ActionResult.model_validate({**values, **more})

    def _hear(self) -> None:
        while True:
            try:
                configuration, result = self._heard.get_nowait()
            except Empty:
                return
            self._take(configuration, result)

    def _take(self, configuration: str, result: ActionResult) -> None:
        results: Mapping[Key, ActionResult] = self._results[configuration]
        if results[result.finding, result.key].result == "pending":
            self._pending -= 1
        self._results[configuration][result.finding, result.key] = result
        self._unwritten.append((configuration, result))
        told = log.info if result.result == "done" else log.error
        told(
            "action_done" if result.result == "done" else "action_failed",
            rule_configuration=configuration, id=result.finding, what=result.action, reason=result.reason,
        )  # fmt: skip
