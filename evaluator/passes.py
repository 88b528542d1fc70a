"""The files of one step, sorted into rows: a tensor that was saved twice at a step makes a second one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.engine.summaries import FileSummary
from evaluator.formats.key_names import natural_key
from evaluator.modes import Mode


def mode_steps(files: Sequence[FileSummary]) -> dict[tuple[str, int], int]:
    """The mode step of a worker's values in each mode; a mode that only names tell counts as its file does."""
    told = {(one.file.worker, int(mode)): one.file.mode_step for one in files for mode in Mode}
    return told | {(one.file.worker, int(one.file.mode)): one.file.mode_step for one in files}


def passes(files: Sequence[FileSummary]) -> list[list[FileSummary]]:
    """Files that can stand in one row each: a tensor saved twice at a step (in two modes) makes a second one."""
    if len(files) == 1:
        return [list(files)]
    if len({one.file.worker for one in files}) == len(files):
        return [sorted(files, key=lambda one: natural_key(one.file.worker))]
    passes: list[tuple[list[FileSummary], dict[str, set[str]]]] = []
    for one in sorted(files, key=lambda one: one.file.mode):
        names: Mapping[str, object] = one.plan.layout.at
        for members, taken in passes:
            if taken.get(one.file.worker, set()).isdisjoint(names):
                members.append(one)
                taken.setdefault(one.file.worker, set()).update(names)
                break
        else:
            passes.append(([one], {one.file.worker: set(names)}))
    return [sorted(members, key=lambda one: natural_key(one.file.worker)) for members, _ in passes]
