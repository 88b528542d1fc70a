"""A whole trial out of bytes, evaluated by every built-in rule."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from evaluator import strict_json
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.logs import printable
from evaluator.registry import builtin_rules
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.file import FileStore
from evaluator.testing import ExampleResult, evaluate

BEGINS, CONTENT = b"\n%%FILE ", b"\n%%IS\n"
"""What stands before the name of a file and before its content, so that mutations of both are likely."""

MOST_FILES = 60
WORDS = {"NoIssuesFound", "IssuesFound", "Error"}


def join(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Files as one run of bytes."""
    return b"".join(BEGINS + os.fsencode(name) + CONTENT + content for name, content in files)


def split(data: bytes) -> list[tuple[str, bytes]]:
    """The same files again, whatever became of the bytes."""
    parts = (part.partition(CONTENT) for part in data.split(BEGINS)[1 : MOST_FILES + 1])
    return [(os.fsdecode(name), content) for name, _, content in parts]


def put(root: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write what can be written below a folder, as somebody does who may write only there."""
    for name, content in files:
        parts = name.split("/")
        if ".." in parts or name.startswith("/") or "\0" in name:
            continue
        path = root.joinpath(name)
        # a name that is too long, a file where a folder should be, a link of the trap
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.resolve().is_relative_to(root.resolve()) and not path.is_symlink() and not path.is_fifo():
                path.write_bytes(content)


@cache
def _rules() -> tuple[RuleConfiguration, ...]:
    made = (configure(RuleRequest(name, {}, "command line", name), rule) for name, rule in builtin_rules().items())
    return tuple(one for one in made if isinstance(one, RuleConfiguration))


def evaluate_files(data: bytes, root: Path, secret: bytes) -> ExampleResult:
    """Evaluate a trial that holds these files; every rule ends with a verdict, and the status can be written."""
    put(root, split(data))
    rules = _rules()
    result = evaluate(SmdebugFolder(FileStore(root)), rules)
    status = result.status
    written = strict_json.dumps(status.model_dump(mode="json"))
    steps = status.job.steps

    assert not result.failed, result.failure
    assert len(status.rules) + len(status.not_applicable) == len(rules)
    assert {rule.RuleEvaluationStatus for rule in status.rules} <= WORDS
    assert all(rule.StatusDetails for rule in status.rules if rule.RuleEvaluationStatus == "Error")
    assert min(steps.complete, steps.partial, steps.unreadable, steps.late_files) >= 0
    assert steps.unreadable <= steps.complete + steps.partial
    assert printable(written.decode()) == written.decode()
    assert secret not in written
    return result
