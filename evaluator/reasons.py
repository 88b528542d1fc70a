"""Says why a rule was never evaluated: what it looked for, and what there was."""

from __future__ import annotations

from evaluator.errors import nearest
from evaluator.needs import OtherTrial, Selection
from evaluator.rule_run import RuleRun
from evaluator.series import Series
from evaluator.trial.names import NameBook
from evaluator.trial.trial import Trial


def why_not_evaluated(run: RuleRun, trial: Trial) -> str:
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


def _what_lacks(series: Series, trial: Trial, steps: int) -> str | None:
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
    close = [name for wanted in asked for name in nearest(wanted, names.order)]
    there = [name for name in names.collections.by_name if names.selected(Selection(collections=(name,)))]
    parts = []
    if close:
        parts.append(f"nearest names: {', '.join(repr(name) for name in dict.fromkeys(close))}")
    if selection.collections and not names.collections.files:
        parts.append("no collection file was found")
    elif selection.collections:
        parts.append(f"collections with saved tensors: {', '.join(sorted(there)) or 'none'}")
    if not parts:
        first = [repr(name) for name in list(names.order)[:5]] + ["..."] * (len(names.order) > 5)
        parts.append(f"saved are {len(names.order)} tensors: {', '.join(first)}")
    return "; ".join(parts)


def _tensors(count: int) -> str:
    return f"{count} tensor" if count == 1 else f"{count} tensors"
