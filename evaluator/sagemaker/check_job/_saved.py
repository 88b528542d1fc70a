"""Which saved collections can hold what a rule needs, and how often they are saved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from evaluator.config.spelling import within_two_edits
from evaluator.needs import Selection
from evaluator.sagemaker.check_job._hosted import (
    FRAMEWORK_COLLECTIONS,
    SAVE_INTERVAL,
    XGBOOST_SAVE_INTERVAL,
    saved_anyway,
)
from evaluator.sagemaker.check_job._request import Collection, Hook, TrainingRequest

EVERYTHING = "all"
_STEMS = {"losses": "loss", "biases": "bias", "weights": "weight", "gradients": "gradient", "metrics": "metric"}


def saved(request: TrainingRequest, hook: Hook) -> list[Collection]:
    """The collections that are saved: those asked for, and those that the hook saves anyway."""
    asked = {one.name for one in hook.collections}
    more = [*sorted(saved_anyway(request.framework) - asked)]
    if "include_regex" in hook.parameters and "default" not in asked:
        more.append("default")
    if str(hook.parameters.get("save_all", "")).strip().lower() == "true" and EVERYTHING not in asked:
        more.append(EVERYTHING)
    return [*hook.collections, *(Collection(hook.where, name) for name in more)]


def candidates(selection: Selection, request: TrainingRequest, hook: Hook, *, given: bool) -> Iterator[Collection]:
    """The saved collections that can hold what is selected.

    Which tensors there will be, only the job shows: what may hold them counts.

    Args:
        selection: what the rule needs.
        request: the request.
        hook: its hook.
        given: whether patterns were given by the user, who knows the names in the model.
    """
    anyway = saved_anyway(request.framework)
    for one in saved(request, hook):
        if one.name == EVERYTHING or selection.everything or one.name in selection.collections:
            yield one
        elif selection.regexes or selection.names:
            by_pattern = "include_regex" in one.parameters or one.name == "default"
            # what the hooks do not know is filled by the training script, unless it is only misspelled
            by_script = one.name not in FRAMEWORK_COLLECTIONS
            misspelled = by_script and within_two_edits(one.name, FRAMEWORK_COLLECTIONS) is not None
            fits = by_script or _looks_alike(selection, one.name) or (given and one.name not in anyway)
            if by_pattern or (fits and not misspelled):
                yield one


def interval(one: Collection, request: TrainingRequest, hook: Hook) -> int | None:
    """Steps between two saved ones, the least of all modes; None where steps are listed instead or nothing fits."""
    usual = XGBOOST_SAVE_INTERVAL if request.framework == "xgboost" else SAVE_INTERVAL
    for parameters in (one.parameters, hook.parameters):
        if any(key.endswith("save_steps") for key in parameters):
            return None
        values = [_number(value) for key, value in parameters.items() if key.endswith("save_interval")]
        if values:
            found = [value for value in values if value is not None]
            return min(found) if len(found) == len(values) else None
    return usual


def stated_at(one: Collection, hook: Hook) -> str:
    """Where the interval of a collection comes from, in words."""
    for where, parameters in ((one.where, one.parameters), (hook.where, hook.parameters)):
        if any(key.endswith("save_interval") for key in parameters):
            return where
    return "the hook's default"


def collection_words(name: str, parameters: Mapping[str, str]) -> str:
    """A collection as a request would ask for it, for messages."""
    told = ", ".join(f"{key} {value}" for key, value in parameters.items())
    return f"{name!r}" + (f" ({told})" if told else "")


def _looks_alike(selection: Selection, name: str) -> bool:
    stem = _STEMS.get(name, name)
    if any(stem in pattern for pattern in (*selection.regexes, *selection.names)):
        return True
    return any(re.search(pattern, stem) for pattern in selection.regexes)


def _number(value: object) -> int | None:
    text = str(value).strip()
    return int(text) if text.isdecimal() and len(text) < 19 and int(text) > 0 else None
