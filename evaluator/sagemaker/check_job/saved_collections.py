"""Collections that a rule needs and the request does not save, so that the rule would never be evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.config.parameters import RuleConfiguration
from evaluator.config.spelling import within_two_edits
from evaluator.needs import Summary
from evaluator.sagemaker.check_job import _hosted as hosted
from evaluator.sagemaker.check_job._configured import configurations, deciding_needs
from evaluator.sagemaker.check_job._request import Flaw, Hook, RuleEntry, TrainingRequest
from evaluator.sagemaker.check_job._saved import candidates, collection_words


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """A hook that is not there at all; then for each known rule what it needs."""
    hook = request.hook
    if hook is None:
        if request.rules:
            where = "debugger_hook_config" if request.estimator else "DebugHookConfig"
            what = "is off" if request.estimator else "is missing"
            yield Flaw(where, f"{what}, so nothing is saved for the rules", "say what to save, or leave the rules out")
        return
    for entry, configuration in configurations(request):
        needs = deciding_needs(configuration)
        given = any("regex" in name for name in entry.parameters)
        if needs and not any(list(candidates(need.selection, request, hook, given=given)) for need in needs):
            yield _flaw(entry, configuration, needs, hook)


def _flaw(entry: RuleEntry, configuration: RuleConfiguration, needs: tuple[Summary, ...], hook: Hook) -> Flaw:
    selections = [need.selection for need in needs]
    wanted = " or ".join(dict.fromkeys(map(str, selections)))
    rule = configuration.rule.name
    what = f"rule {rule} needs {wanted}, and no collection that is saved has it"
    named = [name for one in selections for name in one.collections]
    patterns = [pattern for one in selections for pattern in (*one.names, *one.regexes)]
    in_patterns = [name for name in sorted(hosted.FRAMEWORK_COLLECTIONS) for one in patterns if name in one]
    misspelled = next(
        (
            f"did you mean {close!r} by {one.name!r} in {one.where}?"
            for one in hook.collections
            if (close := within_two_edits(one.name, [*named, *in_patterns]))
        ),
        None,
    )
    right = misspelled or f"save {_suggestion(rule, named, in_patterns, patterns)}"
    # by its name a collection is missing for certain; what a pattern would find, only the job shows
    return Flaw(entry.where, what, right, "error" if named else "warning")


def _suggestion(rule: str, named: list[str], in_patterns: list[str], patterns: list[str]) -> str:
    """What to save, as the SDK's configuration of the rule does it where that fits."""
    known = hosted.COLLECTIONS.get(rule, {})
    if known and (not named or set(named) & set(known)):
        return "collection " + " and ".join(collection_words(name, given) for name, given in known.items())
    if named or in_patterns:
        return "collection " + " or ".join(map(repr, dict.fromkeys(named or in_patterns)))
    return f"a collection of your own with include_regex {'|'.join(patterns)!r}"
