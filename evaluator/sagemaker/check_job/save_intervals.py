"""Save intervals that are too coarse for a rule: the value that it compares with would never be there."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.config.parameters import RuleConfiguration
from evaluator.needs import Previous, Summary
from evaluator.sagemaker.check_job._configured import configurations, deciding_needs
from evaluator.sagemaker.check_job._request import Flaw, Hook, RuleEntry, TrainingRequest
from evaluator.sagemaker.check_job._saved import candidates, interval, stated_at


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """For each known rule, each need that looks back further than what is saved lets it."""
    if request.hook is None:
        return
    for entry, configuration in configurations(request):
        for need in deciding_needs(configuration):
            yield from _need(request, request.hook, entry, configuration, need)


def _need(
    request: TrainingRequest, hook: Hook, entry: RuleEntry, configuration: RuleConfiguration, need: Summary
) -> Iterator[Flaw]:
    given = any("regex" in name for name in entry.parameters)
    known = [
        (every, one)
        for one in candidates(need.selection, request, hook, given=given)
        if (every := interval(one, request, hook)) is not None
    ]
    if not known or len(known) < len(list(candidates(need.selection, request, hook, given=given))):
        # steps that are listed, or no interval that is a number
        return
    every, collection = min(known, key=lambda one: one[0])
    rule, where = configuration.rule.name, stated_at(collection, hook)
    within = need.partner.within if isinstance(need.partner, Previous) else None
    if within is not None and every > within:
        what = f"rule {rule} compares values at most {within} steps apart, and one in {every} is saved ({where})"
        yield Flaw(entry.where, what, f"save {collection.name!r} at least every {within} steps")
        return
    steps, said = _steps(request, configuration)
    if steps is None:
        return
    last = (steps - 1) // every * every
    count = last // every + 1
    points = max(need.rows, 2 if isinstance(need.partner, Previous) or need.steps else 1)
    if count < points or last < need.steps:
        saved = "only step 0 is" if count == 1 else f"only {count} steps, the last of them {last}, are"
        back = f"{points} saved steps" + (f" over {need.steps} steps" if need.steps else "")
        what = f"of {steps} steps ({said}) {saved} saved, one in {every} ({where}), and rule {rule} needs {back}"
        yield Flaw(entry.where, what, f"save {collection.name!r} more often", "warning")


def _steps(request: TrainingRequest, configuration: RuleConfiguration) -> tuple[int | None, str]:
    """How many steps a rule can see, and where that is said."""
    end = configuration.loop.end_step
    if end is not None and (request.steps is None or end < request.steps[0]):
        return end, "end_step"
    return request.steps or (None, "")
