"""What goes wrong in an author's file, told as the author needs it: their own lines, and one line for the status."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.window import NotYet, Verdict

HEADING = "Traceback (most recent call last):"
"""How every traceback begins, also in files."""

_OURS = str(Path(__file__).parents[1])


class Failure:
    """An exception out of a user's file."""

    def __init__(self, error: BaseException) -> None:
        """Take what can be told; frames of ours are left out where there are any of theirs."""
        told = traceback.TracebackException.from_exception(error)
        frames = [frame for frame in told.stack if not _is_ours(frame.filename)]
        if frames or isinstance(error, SyntaxError):
            told.stack = traceback.StackSummary.from_list(frames)
        text = "".join(told.format())
        # a syntax error has no frames, and no heading either
        self.traceback = text if text.startswith(HEADING) else f"{HEADING}\n{text}"
        self.what = _what(error)
        if isinstance(error, SyntaxError) and error.lineno is not None:
            self.where = f"{Path(error.filename or '').name}, line {error.lineno}"
        elif frames:
            self.where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
        else:
            self.where = ""

    @property
    def line(self) -> str:
        """What was raised and where, in one line."""
        what = " ".join(self.what.split())
        return f"{what} ({self.where})" if self.where else what


class Budget:
    """Lets a condition raise at so many steps; they are skipped and counted, and the next one ends the rule."""

    def __init__(self, steps: int) -> None:
        """Nothing was raised yet."""
        self._left = steps
        self.failure: Failure | None = None
        """What ended the rule."""

    def around(self, condition: Callable[..., Verdict]) -> Callable[..., Verdict]:
        """The condition, with its exceptions counted."""

        def judge(*arguments: Any) -> Verdict:
            try:
                return condition(*arguments)
            except Exception as error:
                failure = Failure(error)
                if self._left <= 0:
                    self.failure = failure
                    raise
                self._left -= 1
                return NotYet(f"it raised {failure.line}")

        return judge


def _what(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"called sys.exit({error.code!r})"
    if isinstance(error, KeyboardInterrupt):
        return "raised KeyboardInterrupt"
    # the text of a syntax error says where it is too
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen "))
