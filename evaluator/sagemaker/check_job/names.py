"""Names that must not be given twice: of rule configurations in a job, and of collections in a hook."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.sagemaker.check_job._request import Flaw, TrainingRequest


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """Every second one of a name."""
    taken: dict[str, str] = {}
    for entry in (*request.rules, *request.profiler_rules):
        if entry.name is None:
            continue
        if entry.name in taken:
            what = f"configuration name {entry.name!r} is given twice"
            yield Flaw(entry.where, what, f"names are unique in a job; {taken[entry.name]} has it too")
        taken.setdefault(entry.name, entry.where)
    collections: dict[str, str] = {}
    for one in request.hook.collections if request.hook else ():
        if one.name and one.name in collections:
            what = f"collection {one.name!r} is given twice"
            right = f"only one of them can count; {collections[one.name]} has it too"
            yield Flaw(one.where, what, right, "warning")
        collections.setdefault(one.name, one.where)
