"""Finds the run that a path means, or says what is there instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from evaluator.clock import Clock
from evaluator.errors import InputError, KeyRefused, Mistake, StorageError, StorageUnavailable, did_you_mean
from evaluator.formats.key_names import END_MARKER
from evaluator.scalar_names import Naming
from evaluator.sources import detect, source_types
from evaluator.sources._log_source import LogSource
from evaluator.sources.base import Source
from evaluator.storage import open_store
from evaluator.storage._one_file import OneFile
from evaluator.storage.base import Store

LISTED = 10
LOOKED_INTO = 100
"""Folders that are looked into for runs where each look is a request or two; a bucket may hold many thousands."""


@dataclass(frozen=True)
class Reading:
    """How a run is to be read where its content does not tell it rightly.

    Args:
        source: the name of the only format that is asked for.
        naming: what the names in a log mean.
    """

    source: str | None = None
    naming: Naming | None = None


AS_FOUND = Reading()


def open_run(path: str, clock: Clock | None = None, reading: Reading = AS_FOUND) -> Source:
    """The run saved under this path, which must be there.

    Raises:
        InputError: there is none, or it may not be looked for; says what is there, and names runs one level above or
            below; or there is no such format.
    """
    _check(reading)
    store = open_store(path, clock)
    try:
        source = find_run(path, store, clock, reading)
        if source is None:
            raise InputError([explain_absence(path, store)])
    except StorageError as error:
        raise InputError([error.mistake]) from error
    return source


def find_run(path: str, store: Store, clock: Clock | None = None, reading: Reading = AS_FOUND) -> Source | None:
    """The run in the folder that `store` is, or the log in the file that the path names."""
    source = detect(store, reading.source) or _find_file(path, clock, reading)
    if isinstance(source, LogSource) and reading.naming is not None:
        source.naming = reading.naming
    return source


def _find_file(path: str, clock: Clock | None, reading: Reading) -> Source | None:
    """The log in the file that the path names."""
    folder, _, name = path.rpartition("/")
    # a folder is hardly ever named so, and on remote storage every look costs
    if "." not in name.strip(".") or folder.endswith(":/"):
        return None
    if path.startswith("file:"):
        name = unquote(name)
    beside = open_store(folder or ("/" if path.startswith("/") else "."), clock)
    try:
        there = beside.stat(name) is not None
    except (KeyRefused, StorageUnavailable):
        # who may read a folder may not be allowed to look beside it
        return None
    return detect(OneFile(path, beside, name), reading.source) if there else None


def _check(reading: Reading) -> None:
    known = [source.name for source in source_types()]
    if reading.source is not None and reading.source not in known:
        what = f"{reading.source!r} is no format of saved runs"
        raise InputError([Mistake("source", what, did_you_mean(reading.source, known))])


def await_run(
    path: str,
    clock: Clock,
    *,
    start_timeout: float,
    poll: float,
    stopped: Callable[[], bool],
    reading: Reading = AS_FOUND,
) -> Source | None:
    """The run that will be saved under this path; None when the time is up or a signal came.

    Raises:
        InputError: there is something else under the path, which waiting will not change; or there is no such format.
        StorageUnavailable: it never answered, or did not in the end.
    """
    _check(reading)
    store = open_store(path, clock)
    started = clock.monotonic()
    answered = False
    while True:
        outage = None
        try:
            source = find_run(path, store, clock, reading)
            if source is not None:
                return source
            below = runs_below(store)
            # folders of one log (train/, validation/) that came between the two looks are no runs of their own
            if below and find_run(path, store, clock, reading) is None:
                raise InputError([_runs_below(path, below)])
            answered = True
        except StorageUnavailable as error:
            if not answered:  # rather a mistake than an outage
                raise
            outage = error
        if stopped():
            return None
        if clock.monotonic() - started >= start_timeout:
            if outage is not None:
                raise outage
            return None
        clock.wait(poll)


def explain_absence(path: str, store: Store) -> Mistake:
    """Why there is no run under the path, and what would be right."""
    what = _what_is_wrong(store)
    below = runs_below(store)
    if below:
        return _runs_below(path, below)
    logs = [key for source in source_types() for key in source.runs_beside(store)]
    if logs:
        listed = ", ".join(_shown(f"{path.rstrip('/')}/{key}") for key in logs[:LISTED])
        return Mistake(path, "holds several logs", f"name one of them: {listed}{', ...' * (len(logs) > LISTED)}")
    above = _run_above(path)
    if above is not None:
        return Mistake(path, what, f"there is a trial one level above: {above}")
    names = _what_is_there(store)
    there = ", ".join(map(_shown, names[:LISTED])) + (", ..." if len(names) > LISTED else "")
    right = "a trial has folders index/, events/ and collections/"
    return Mistake(path, what, f"{right}; there is: {there}" if there else right)


def explain_no_step(path: str, store: Store) -> Mistake:
    """What there is of a run in which no step can be read, and what would be right."""
    right = "name a trial with at least one step, or --follow to wait for one"
    source = find_run(path, store)
    if source is not None and source.is_log:
        source.sightings()
        collections = source.collections()
        problems = [f"{where}: {what}" for where, what in (collections.problems if collections else {}).items()]
        found = "; ".join([f"it is a log ({source.name})", *map(_shown, problems[:3])])
        return Mistake(path, "holds no saved step", f"{found}; {right}")
    unfinished = store.unfinished()
    entries = [entry.key for entry in store.list()]
    there = []
    for folder in ("index", "events", "collections"):
        files = sum(key.startswith(f"{folder}/") for key in entries)
        writing = sum(key.startswith(f"{folder}/") for key in unfinished)
        holds = [_counted(files, "file")] if files else []
        holds += [_counted(writing, "unfinished file")] if writing else []
        if holds:
            there.append(f"{folder}/ with {' and '.join(holds)}")
        elif folder in store.folders():
            there.append(f"{folder}/ without a file")
        else:
            there.append(f"no {folder}/")
    there.append("the end marker" if END_MARKER in entries else "no end marker")
    if unfinished:
        there.append(f"being written or left over: {_shown(unfinished[0])}" + ", ..." * (len(unfinished) > 1))
    return Mistake(path, "holds no saved step", f"there is {', '.join(there)}; {right}")


def runs_below(store: Store) -> list[str]:
    """The names of the folders directly below the root that hold runs; those of a log are parts of it."""
    source = detect(store)
    if source is not None and source.is_log:
        return []
    found = []
    for folder in store.folders()[: None if store.is_local else LOOKED_INTO]:
        if detect(store.below(folder)) is not None:
            found.append(folder)
        if len(found) > LISTED:
            break
    return found


def _runs_below(path: str, below: list[str]) -> Mistake:
    base = path.rstrip("/")
    if len(below) == 1:
        return Mistake(path, "is not a trial", f"there is one a level below: {_shown(f'{base}/{below[0]}')}")
    listed = ", ".join(_shown(f"{base}/{folder}") for folder in below[:LISTED])
    listed += ", ..." if len(below) > LISTED else ""
    return Mistake(path, "holds several trials", f"name one of them: {listed}")


def _what_is_wrong(store: Store) -> str:
    problem = store.root_problem()
    if problem is not None:
        return problem
    return "is not a trial" if _what_is_there(store) else "is empty"


def _run_above(path: str) -> str | None:
    """The folder that holds this one, when it is a run (somebody named its index folder, say)."""
    base, _, last = path.rstrip("/").rpartition("/")
    if not last or last in {".", ".."}:
        return None
    parent = base or ("/" if path.startswith("/") else ".")
    if parent.endswith(":/"):
        return None
    above = open_store(parent)
    try:
        source = detect(above) if above.root_problem() is None else None
    except StorageError:
        # who may read this folder may not be allowed to look at the one above
        return None
    # a log may lie anywhere, beside folders that have nothing to do with it
    return parent if source is not None and not source.is_log else None


def _what_is_there(store: Store) -> list[str]:
    """The folders at the root, or else its files: a listing goes through all folders, and those may hold anything."""
    folders = [f"{folder}/" for folder in store.folders()]
    return folders or [entry.key for entry in store.list()] or store.unfinished()


def _shown(name: str) -> str:
    """A name that somebody else chose, as a message may show it."""
    return name if name.isprintable() else repr(name)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
