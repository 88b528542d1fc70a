"""Finds the outputs that paths, patterns and parent folders name, and reads their statuses."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from pydantic import ValidationError

from evaluator import strict_json
from evaluator.clock import Clock
from evaluator.errors import FormatError, KeyMissing, StorageError
from evaluator.sinks.status_file import FILE_NAME as STATUS
from evaluator.status import JobStatus
from evaluator.storage import open_store
from evaluator.storage._sharing import Shared, sharing
from evaluator.watching.patterns import Pattern
from evaluator.watching.summary import Row

AT_ONCE = 8
"""Outputs that are read at the same time; on remote storage each takes as long as an answer."""
NAMED = 10
NONE_MATCHES = "no folder that matches"
"""How the problem of a pattern begins that names no output."""


def find_outputs(paths: Iterable[str], clock: Clock | None = None) -> list[Row]:
    """One row for each output that these name, in their order; what names none is a row that says so.

    Args:
        paths: each an output, a folder of outputs, or a pattern for outputs.
        clock: for storage that has to be asked again.

    Raises:
        InputError: one of them cannot be a path or a pattern.
    """
    patterns = [Pattern(_without_file(path), clock) for path in paths]
    shared = Shared()
    rows: dict[str, Row] = {}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="status") as pool:
        for pattern in patterns:
            for row in _of_pattern(pattern, pool, shared, clock):
                rows.setdefault(row.output, row)
    return _named(list(rows.values()))


def _named(rows: list[Row]) -> list[Row]:
    """The rows with names as short as they can be: without the folders in which all of the outputs are."""
    paths = [row.output.rstrip("/").split("/") for row in rows]
    common = 0
    while (
        len(rows) > 1 and all(len(path) > common + 1 for path in paths) and len({path[common] for path in paths}) == 1
    ):
        common += 1
    return [replace(row, name="/".join(path[common:])) for row, path in zip(rows, paths, strict=True)]


def _of_pattern(pattern: Pattern, pool: ThreadPoolExecutor, shared: Shared, clock: Clock | None) -> list[Row]:
    try:
        with sharing(shared):
            found = [match.uri for match in pattern.matches()]
        rows = _read_all(found, pool, shared, clock)
        if rows or pattern.wild:
            return rows or [Row(pattern.text, pattern.text, problem=f"{NONE_MATCHES} holds a {STATUS}")]
        with sharing(shared):
            store = open_store(found[0], clock)
            folders, problem = store.folders(), store.root_problem()
        rows = _read_all([f"{found[0].rstrip('/')}/{folder}" for folder in folders], pool, shared, clock)
    except StorageError as error:
        return [Row(pattern.text, pattern.text, problem=str(error))]
    if rows:
        return rows
    there = f"; there is: {', '.join(folders[:NAMED])}{', ...' * (len(folders) > NAMED)}" if folders else ""
    what = problem or f"holds no {STATUS}, nor do folders in it"
    right = "name the output of run, wrap or watch, or a folder of outputs"
    return [Row(pattern.text, pattern.text, problem=f"{what}; {right}{there}")]


def _read_all(outputs: Iterable[str], pool: ThreadPoolExecutor, shared: Shared, clock: Clock | None) -> list[Row]:
    found = pool.map(partial(_read, shared, clock), outputs)
    return [row for row in found if row is not None]


def _read(shared: Shared, clock: Clock | None, output: str) -> Row | None:
    """The row of one output; None where there is none."""
    try:
        with sharing(shared):
            data = open_store(output, clock).read(STATUS)
    except KeyMissing:
        return None
    except StorageError as error:
        return Row(output, output, problem=str(error))
    try:
        return Row(output, output, JobStatus.model_validate(strict_json.loads(data, STATUS)))
    except (FormatError, ValidationError):
        return Row(output, output, problem=f"its {STATUS} was not written by rule-evaluator")


def _without_file(path: str) -> str:
    """The output that a path means that names the status file itself."""
    return path.removesuffix(f"/{STATUS}") or "/"
