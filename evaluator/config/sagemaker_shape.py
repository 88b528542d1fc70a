"""Rules in SageMaker's own shape: a map of RuleParameters that names its rule in `rule_to_invoke`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evaluator.config.request import RuleFile, RuleRequest
from evaluator.config.rule_files import file_rule_name
from evaluator.config.wire import is_unset
from evaluator.errors import Mistake

RULE_KEY = "rule_to_invoke"
SOURCE_KEY = "source_s3_uri"
ACTION_KEY = "action_json"
BASE_TRIAL_KEY = "base_trial"

RESERVED = frozenset({RULE_KEY, SOURCE_KEY, ACTION_KEY, BASE_TRIAL_KEY})
"""Keys that stand among the parameters and are none.

Source: processing-contract.md 3.3; the keys of other trials are in `other_trials`.
"""


def request_of(parameters: Mapping[str, object], name: str | None, where: str) -> RuleRequest | Mistake:
    """The rule that a map of RuleParameters asks for; its `name` names the configuration if nothing else does.

    With `source_s3_uri` the rule is in that file, and `rule_to_invoke` is its exact name; without, it is one known by
    name.
    """
    asked = _asked_for(parameters.get(RULE_KEY), parameters.get(SOURCE_KEY), where)
    if isinstance(asked, Mistake):
        return asked
    use, file = asked
    given = {key: value for key, value in parameters.items() if key not in (RULE_KEY, SOURCE_KEY)}
    if name is None and given.get("name"):
        name = str(given.pop("name"))
    return RuleRequest(use, given, "sagemaker", where, name, file)


def _asked_for(use: object, source: object, where: str) -> tuple[str, RuleFile | None] | Mistake:
    """What the rule is called, and the file that it is in where there is one."""
    if not is_unset(source) and not isinstance(source, str):
        return Mistake(where, f"{SOURCE_KEY!r} is {source!r}", "expected where the Python file with the rule is")
    file = None if is_unset(source) else RuleFile(str(source).strip())
    if use is None and file is not None:
        return file_rule_name(file), file
    if not isinstance(use, str) or not use.strip():
        what = f"{RULE_KEY!r} is missing" if use is None else f"{RULE_KEY!r} is {use!r}"
        return Mistake(where, what, "the name of a rule, for example 'VanishingGradient'")
    return use.strip(), None if file is None else replace(file, name=use.strip())
