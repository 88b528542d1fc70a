"""Says why a rule was never evaluated: what it looked for, and what there was."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from evaluator.errors import nearest
from evaluator.modes import Mode
from evaluator.needs import OtherTrial, Selection
from evaluator.rule_run import RuleRun
from evaluator.series import Series
from evaluator.trial.names import NameBook
from evaluator.trial.tally import StepCounts

ALIKE = 0.7
"""From this likeness on, a name is suggested; 1 is equal."""
LOOKED_AT = 5_000
"""Names that are looked at for one that was meant; a run with more of them must not make its end slow."""
LONGEST = 200
"""Characters of a word that is compared."""
TOLD = 50
"""Collections that are listed; a collections file can name any number of them."""


class Seen(Protocol):
    """What was seen of a trial."""

    @property
    def counts(self) -> StepCounts:
        """Its steps."""

    @property
    def names(self) -> NameBook:
        """Its tensors."""

    @property
    def modes_seen(self) -> set[Mode]:
        """The modes of its steps."""


def why_not_evaluated(run: RuleRun, trial: Seen) -> str:
    """One line about the first of the rule's needs that had nothing, or about what kept the rule from judging."""
    steps = trial.counts.complete + trial.counts.partial
    if not steps:
        return "no step was saved"
    for binding in run.bindings:
        if binding.series is None or not binding.need.triggers:
            continue
        lacking = _what_lacks(binding.series, trial, steps)
        if lacking is not None:
            return lacking
    if run.not_yet is not None:
        return f"{run.not_yet} (not judged at {run.counts.skipped} of {steps} steps)"
    if run.counts.skipped_because:
        reason, times = max(run.counts.skipped_because.items(), key=lambda item: item[1])
        return f"{reason} (at {times} of {steps} steps)"
    loop = run.configuration.loop
    if loop.start_step or loop.end_step is not None:
        span = f"from {loop.start_step}" + (f" to before {loop.end_step}" if loop.end_step is not None else "")
        there = f"saved steps: {trial.counts.first} to {trial.counts.last}"
        return f"none of the steps {span} had what the rule needs; {there}"
    return f"at none of {steps} steps was everything saved that the rule needs together"


def unmatched(run: RuleRun, names: NameBook) -> list[str]:
    """What the rule was told to look at and nothing is called by: each part by itself, with the nearest names."""
    given = _given(run)
    problems = []
    for series in run.series:
        selection = series.key.selection
        parts = [(f"collection {one!r}", one, Selection(collections=(one,))) for one in selection.collections]
        parts += [(f"regex {one!r}", one, Selection(regexes=(one,))) for one in selection.regexes]
        parts += [(f"tensor {one!r}", one, Selection(names=(one,))) for one in selection.names]
        for what, one, alone in parts:
            if one in given and not names.selected(alone):
                close = _near(one, names.collections.by_name if alone.collections else names.order)
                guess = f"; nearest names: {', '.join(map(repr, close))}" if close else ""
                problems.append(f"{what} matches no saved tensor{guess}")
    return list(dict.fromkeys(problems))


def unmatched_notes(runs: Iterable[object], trial: Seen) -> list[str]:
    """The same of all rules of a job: slips of the pen that nobody would notice otherwise.

    Rules in processes of their own say by themselves what they looked for.
    """
    judged = [run for run in runs if isinstance(run, RuleRun) and run.counts.evaluated]
    return [f"{run.configuration.name}: {problem}" for run in judged for problem in unmatched(run, trial.names)]


def _given(run: RuleRun) -> set[str]:
    """The texts among the parameters that the configuration itself gave, as against defaults."""
    found: set[str] = set()
    for shown in run.configuration.shown.values():
        if shown["from"] == "configuration":
            value = shown["value"]
            found.update(map(str, value) if isinstance(value, list | tuple) else [str(value)])
    return found


def _what_lacks(series: Series, trial: Seen, steps: int) -> str | None:
    """What is missing for a series that never had a row."""
    if series.last_row is not None:
        return None
    selection = series.key.selection
    matched = trial.names.selected(selection)
    if not matched:
        return f"no tensor of {selection} in {steps} steps; {_what_there_is(selection, trial.names)}"
    found = f"{_tensors(len(matched))} of {selection} matched"
    for why, names in series.without_value.items():
        if len(names) >= len(matched):
            return f"{found}, but {why}"
    partner = series.key.partner
    if isinstance(partner, OtherTrial) and not partner.path:
        return "no other trial was given; name one with other_trials"
    if series.key.modes is not None:
        modes = " or ".join(sorted(mode.name for mode in series.key.modes))
        seen = ", ".join(sorted(mode.name for mode in trial.modes_seen))
        if not series.key.modes & trial.modes_seen and not series.columns:
            return f"{found}, but none was saved in mode {modes}; modes saved: {seen}"
    if partner is not None:
        return f"{found}, but none had a value to be compared with, in {steps} steps"
    return None


def _what_there_is(selection: Selection, names: NameBook) -> str:
    """The names and collections that are there, the nearest first."""
    asked = [*selection.names, *selection.regexes]
    close = [name for wanted in asked for name in _near(wanted, names.order)]
    close += [name for wanted in selection.collections for name in nearest(wanted, names.collections.by_name, 1)]
    there = (name for name in names.collections.by_name if names.selected(Selection(collections=(name,))))
    parts = []
    if close:
        parts.append(f"nearest names: {', '.join(repr(name) for name in dict.fromkeys(close))}")
    if selection.collections and not names.collections.files:
        parts.append("no collection file was found")
    elif selection.collections:
        # the names stand in the status once for each rule
        first = sorted(islice(there, TOLD)) + ["..."] * (next(there, None) is not None)
        parts.append(f"collections with saved tensors: {', '.join(first) or 'none'}")
    if not parts:
        first = [repr(name) for name in list(names.order)[:5]] + ["..."] * (len(names.order) > 5)
        parts.append(f"saved are {len(names.order)} tensors: {', '.join(first)}")
    return "; ".join(parts)


def _tensors(count: int) -> str:
    return f"{count} tensor" if count == 1 else f"{count} tensors"


def _near(wanted: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The names that look most like a name or pattern, as a whole or in one of their words."""
    plain = re.sub(r"\\.|[^A-Za-z0-9_./:]", "", wanted).lower()
    matcher = difflib.SequenceMatcher(None, "", plain)
    likeness: dict[str, float] = {}
    scored = []
    for name in islice(known, LOOKED_AT):
        words = [name.lower(), *re.split(r"[^a-z0-9]+", name[:LONGEST].lower())]
        # a name may have no word in it, and a long one is like nothing that somebody asks for
        words = [word for word in words if 0 < len(word) <= LONGEST]
        for word in words:
            if word not in likeness:
                likeness[word] = _likeness(matcher, word)
        scored.append((max((likeness[word] for word in words), default=0.0), name))
    best = sorted((one for one in scored if one[0] >= ALIKE), key=lambda one: -one[0])
    return [name for _, name in best[:count]]


def _likeness(matcher: difflib.SequenceMatcher[str], word: str) -> float:
    """From 0 to 1; 0 for what is not alike at all."""
    matcher.set_seq1(word)
    # the bounds cost far less than the number itself, and most words are not alike
    near = matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE
    return matcher.ratio() if near else 0.0
