"""Bench: a rule file in a process of its own where no job is at work: what is in it, and what comes of its examples."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from evaluator.errors import InputError, Mistake
from evaluator.isolation.messages import Look, Try
from evaluator.isolation.process import ProcessEnded, ProcessLimits, RuleProcess

MOST_TOLD = 2000
"""Characters of what a process said that did not survive the import."""


class Bench:
    """The file, as a command sees it; it is imported by the first call, and again after an example ended its process.

    An example has as much time as a step has in a job.
    """

    def __init__(self, look: Look, limits: ProcessLimits) -> None:
        """Start nothing yet."""
        self._look = look
        self._limits = limits
        self._process: RuleProcess | None = None
        self.output = b""
        """What the file has printed in processes that have ended."""
        self.failure = ""
        """Why the file cannot be imported: the author's traceback, or what its process said last."""

    def __enter__(self) -> Self:
        """Start nothing yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the process."""
        self.close()

    def introduce(self) -> list[dict[str, Any]]:
        """Import the file; gives an explanation of each rule that is asked for.

        Raises:
            InputError: it cannot be imported, there is no such rule in it, or its examples are not in form.
        """
        self.close()
        self._process = RuleProcess()
        try:
            self._process.tell(self._look, self._limits.importing)
            reply = self._process.answer(self._limits.importing, "user_import_timeout")
        except ProcessEnded as error:
            self.close()
            self.failure = self.output.decode("utf-8", "replace")[-MOST_TOLD:]
            raise InputError([Mistake(self._look.file.path, f"cannot be imported: {error}")]) from None
        if "rules" not in reply:
            self.failure = str(reply.get("failure", ""))
            raise InputError([Mistake(**mistake) for mistake in reply["mistakes"]])
        rules: list[dict[str, Any]] = reply["rules"]
        return rules

    def try_example(self, rule: str, example: int) -> dict[str, Any]:
        """What came of an example of a rule, by its number: a process that did not survive it is an outcome too."""
        if self._process is None:
            self.introduce()
        process = self._process
        if process is None:
            raise TypeError("a bench that was introduced has a process")
        try:
            process.tell(Try(rule, example), self._limits.step)
            return process.answer(self._limits.step, "user_step_timeout")
        except ProcessEnded as error:
            self.close()
            nothing = {"met_at": None, "tensor": None, "failure": "", "evaluated": 0}
            return {**nothing, "as_expected": False, "raised": True, "why": str(error)}

    def close(self) -> None:
        """End the process, and keep what it printed."""
        if self._process is not None:
            self._process.close()
            self.output += self._process.output.text()
            self._process = None
