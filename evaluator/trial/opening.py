"""Finds the run that a path means, or says what is there instead."""

from __future__ import annotations

from collections.abc import Callable

from evaluator.clock import Clock
from evaluator.errors import InputError, Mistake
from evaluator.formats.key_names import END_MARKER
from evaluator.sources import detect
from evaluator.sources.base import Source
from evaluator.storage import open_store
from evaluator.storage.base import Store

LISTED = 10


def open_run(path: str) -> Source:
    """The run saved under this path, which must be there.

    Raises:
        InputError: there is none; says what is there, and names runs one level above or below.
    """
    store = open_store(path)
    source = detect(store)
    if source is None:
        raise InputError([explain_absence(path, store)])
    return source


def await_run(
    path: str, clock: Clock, *, start_timeout: float, poll: float, stopped: Callable[[], bool]
) -> Source | None:
    """The run that will be saved under this path; None when the time is up or a signal came.

    Raises:
        InputError: there is something else under the path, which waiting will not change.
    """
    store = open_store(path)
    started = clock.monotonic()
    while True:
        source = detect(store)
        if source is not None:
            return source
        below = runs_below(store)
        if below:
            raise InputError([_runs_below(path, below)])
        if stopped() or clock.monotonic() - started >= start_timeout:
            return None
        clock.wait(poll)


def explain_absence(path: str, store: Store) -> Mistake:
    """Why there is no run under the path, and what would be right."""
    what = _what_is_wrong(store)
    below = runs_below(store)
    if below:
        return _runs_below(path, below)
    above = _run_above(path)
    if above is not None:
        return Mistake(path, what, f"there is a trial one level above: {above}")
    names = _what_is_there(store)
    there = ", ".join(map(_shown, names[:LISTED])) + (", ..." if len(names) > LISTED else "")
    right = "a trial has folders index/, events/ and collections/"
    return Mistake(path, what, f"{right}; there is: {there}" if there else right)


def explain_no_step(path: str, store: Store) -> Mistake:
    """What there is of a run in which no step can be read, and what would be right."""
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
    right = "name a trial with at least one step, or --follow to wait for one"
    return Mistake(path, "holds no saved step", f"there is {', '.join(there)}; {right}")


def runs_below(store: Store) -> list[str]:
    """The names of the folders directly below the root that hold runs."""
    found = []
    for folder in store.folders():
        below = open_store(f"{store.uri.rstrip('/')}/{folder}")
        if detect(below) is not None:
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
    return parent if above.root_problem() is None and detect(above) is not None else None


def _what_is_there(store: Store) -> list[str]:
    """The folders at the root, or else its files: a listing goes through all folders, and those may hold anything."""
    folders = [f"{folder}/" for folder in store.folders()]
    return folders or [entry.key for entry in store.list()] or store.unfinished()


def _shown(name: str) -> str:
    """A name that somebody else chose, as a message may show it."""
    return name if name.isprintable() else repr(name)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
