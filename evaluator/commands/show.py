"""show: what a trial holds, and how large its numbers are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from evaluator import strict_json
from evaluator.commands.base import Command, JsonOption, Session, SourceOption, count, names, session_of, shown
from evaluator.commands.contents import Contents, Numbers, TensorContents, kinds_of
from evaluator.errors import InputError, Mistake, did_you_mean, nearest
from evaluator.needs import Selection
from evaluator.outcome import NOTHING_FOUND
from evaluator.reductions import REDUCTIONS
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import Reading, open_run
from evaluator.trial.trial import Trial

MOST_SHAPES = 3


def show(
    context: typer.Context,
    trial: Annotated[
        str, typer.Argument(metavar="TRIAL", show_default=False, help="The folder that one training run saved under.")
    ],
    tensor: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Only tensors in whose name this is found; only they are read."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REDUCTION",
            help="The number that is made of each saved tensor, abs_mean if none is given; may be given several times.",
        ),
    ] = None,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what a trial holds: steps, workers, collections, and every tensor with its size over the steps.

    A rule's threshold is best chosen with these numbers in view.
    """
    session = session_of(context)
    reductions = list(dict.fromkeys(by or ["abs_mean"]))
    _check(tensor, reductions)
    run = open_run(trial, session.clock, Reading(source))
    reader = Trial(run, session.clock, Waits(0, 0), following=False)
    contents = Contents(run, reader, Selection(regexes=(tensor,) if tensor else ()), reductions)
    if session.err.is_terminal:
        with session.err.status("reading", spinner="line") as line:
            contents.read(lambda step, steps: line.update(f"reading step {step} ({count(steps, 'step')})"))
    else:
        contents.read(lambda *_: None)
    if tensor and contents.steps and not contents.tensors:
        close = nearest(tensor, reader.names.order)
        right = f"nearest names: {', '.join(close)}" if close else f"saved are {names(list(reader.names.order), 5)}"
        raise InputError([Mistake("--tensor", f"{tensor!r} is found in no tensor's name", right)])
    if as_json:
        session.print_json(_document(trial, run.name, contents))
    else:
        _print(session, trial, contents)
    return NOTHING_FOUND


def _check(tensor: str | None, reductions: Sequence[str]) -> None:
    mistakes = [
        Mistake("--by", f"reduction {one!r} is not known", did_you_mean(one, REDUCTIONS, "reductions"))
        for one in reductions
        if one not in REDUCTIONS
    ]
    try:
        re.compile(tensor or "")
    except (re.error, OverflowError, RecursionError) as error:
        mistakes.append(Mistake("--tensor", f"{tensor!r} is no regular expression", str(error)))
    if mistakes:
        raise InputError(mistakes)


def _document(path: str, source: str, contents: Contents) -> dict[str, Any]:
    trial, counts = contents.trial, contents.trial.counts
    return {
        "schema": 1,
        "trial": path,
        "format": source,
        "ended": trial.source.ended(),
        "steps": {
            "count": contents.steps,
            "first": counts.first,
            "last": counts.last,
            "intervals": {str(distance): times for distance, times in sorted(contents.distances.items())},
            "partial": counts.partial,
            "unreadable": counts.unreadable,
        },
        "modes": dict(sorted(contents.modes.items())),
        "workers": {"expected": trial.expected_workers, "seen": contents.workers},
        "collections": contents.collections(),
        "tensors": [_tensor_document(one, contents.by) for one in contents.selected],
        "problems": {**trial.problems, **_unread(contents)},
        "more_problems": trial.more_problems,
    }


def _tensor_document(one: TensorContents, by: Sequence[str]) -> dict[str, Any]:
    numbers = {
        name: _numbers_document(found) for name, found in zip(by, one.numbers, strict=True) if found.count or found.nan
    }
    return {
        "name": one.name,
        "dtypes": list(one.dtypes),
        "shapes": [list(shape) for shape in one.shapes],
        "steps": one.steps,
        "modes": sorted(mode.name for mode in one.modes),
        "workers": len(one.workers),
        "saved": sorted(one.kinds),
        "unreadable": one.unreadable,
        "by": numbers,
    }


def _numbers_document(found: Numbers) -> dict[str, Any]:
    known = (found.least, found.median, found.largest) if found.count else (None, None, None)
    return {**dict(zip(("min", "median", "max"), known, strict=True)), "values": found.count, "nan": found.nan}


def _unread(contents: Contents) -> dict[str, str]:
    return {
        one.name: f"{count(one.unreadable, 'value')} not read: {one.why}" for one in contents.selected if one.unreadable
    }


def _print(session: Session, path: str, contents: Contents) -> None:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, text in _facts(path, contents):
        facts.add_row(label, shown(text))
    session.print(facts)
    groups: dict[str, list[TensorContents]] = {}
    for one in contents.selected:
        groups.setdefault(_alike(one), []).append(one)
    for title, tensors in groups.items():
        session.print(Text(), shown(f"{count(len(tensors), 'tensor')}, {title}", "bold"))
        session.print(_table(tensors, contents.by))
    problems = {**contents.trial.problems, **_unread(contents)}
    for where, what in problems.items():
        session.print(shown(f"problem: {where}: {what}", "yellow"), wrap=False)
    if contents.trial.more_problems:
        session.print(shown(f"and {count(contents.trial.more_problems, 'more problem')}", "yellow"))


def _facts(path: str, contents: Contents) -> list[tuple[str, str]]:
    """The lines above the table."""
    trial, counts = contents.trial, contents.trial.counts
    facts = [("trial", path), ("steps", _steps(contents))]
    if contents.modes:
        modes = ", ".join(f"{mode} {times}" for mode, times in sorted(contents.modes.items()))
        facts.append(("modes", f"{modes} (steps)"))
    expected = trial.expected_workers
    workers = names(contents.workers, 4) or "none"
    missing = f" of {expected} expected" if expected is not None and expected != len(contents.workers) else ""
    facts.append(("workers", f"{len(contents.workers)}{missing}: {workers}"))
    if counts.partial:
        facts.append(("", f"at {count(counts.partial, 'step')} not all of them wrote something readable"))
    saved = contents.collections()
    filled = [f"{name} {number}" for name, number in saved.items() if number]
    facts.append(("collections", (", ".join(filled) + " (tensors)") if filled else "none with saved tensors"))
    empty = [name for name, number in saved.items() if not number]
    if empty and trial.names.collections.by_name:
        facts.append(("", f"without saved tensors: {', '.join(empty)}"))
    if not trial.names.collections.files:
        facts.append(("", "there is no collections file, so rules that ask for a collection find nothing"))
    facts.append(("end marker", "there" if trial.source.ended() else "not there"))
    if contents.tensors:
        facts.append(("numbers", f"{', '.join(contents.by)} of each saved tensor, over all steps and workers"))
    return facts


def _steps(contents: Contents) -> str:
    if not contents.steps:
        return "none"
    counts = contents.trial.counts
    text = f"{contents.steps}, {counts.first} to {counts.last}"
    if not contents.distances:
        return text
    (usual, times), *others = contents.distances.most_common()
    if not others:
        return f"{text}, every {usual}" if usual > 1 else text
    least, most = min(contents.distances), max(contents.distances)
    return f"{text}, {least} to {most} apart, mostly {usual} ({times} times)"


def _alike(one: TensorContents) -> str:
    """What the tensors of one table have in common."""
    modes = ", ".join(sorted(mode.name for mode in one.modes))
    return f"{count(one.steps, 'step')} ({modes}), {count(len(one.workers), 'worker')}, saved as {kinds_of(one)}"


def _table(tensors: Sequence[TensorContents], by: Sequence[str]) -> Table:
    """One row per tensor and reduction."""
    several = len(by) > 1
    some_nan = any(found.nan for one in tensors for found in one.numbers)
    some_numbers = any(found.count or found.nan for one in tensors for found in one.numbers)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("tensor", overflow="fold", min_width=16)
    described = {"type": [", ".join(one.dtypes) for one in tensors], "shape": [_shapes(one) for one in tensors]}
    described = {heading: texts for heading, texts in described.items() if any(texts)}
    for heading in described:
        table.add_column(heading, overflow="fold")
    if several:
        table.add_column("number", no_wrap=True)
    for heading in ("min", "median", "max", *(("NaN",) if some_nan else ())) if some_numbers else ():
        table.add_column(heading, justify="right", no_wrap=True)
    for place, one in enumerate(tensors):
        for name, found in list(zip(by, one.numbers, strict=True))[: None if some_numbers else 1]:
            first = name == by[0]
            cells = [text if first else "" for text in (one.name, *(texts[place] for texts in described.values()))]
            if several:
                cells.append(name)
            if some_numbers:
                cells += [_number(value, found.count) for value in (found.least, found.median, found.largest)]
            if some_nan:
                cells.append(str(found.nan or ""))
            table.add_row(*(shown(cell) for cell in cells))
    return table


def _shapes(tensor: TensorContents) -> str:
    shapes = [_shape(shape) for shape in tensor.shapes]
    more = f" and {len(shapes) - MOST_SHAPES} more" if len(shapes) > MOST_SHAPES else ""
    return " or ".join(shapes[:MOST_SHAPES]) + more


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if shape else "scalar"


def _number(value: float, values: int) -> str:
    if not values:
        return ""
    number = strict_json.number(value)
    return number if isinstance(number, str) else f"{number:.3g}"


COMMAND = Command("show", show, 2)
