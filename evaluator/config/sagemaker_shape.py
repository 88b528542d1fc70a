"""Rules in SageMaker's own shape: a map of RuleParameters that names its rule in `rule_to_invoke`."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.config.request import RuleRequest
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
    """The rule that a map of RuleParameters asks for; its `name` names the configuration if nothing else does."""
    if parameters.get(SOURCE_KEY):
        return users_rule_file(where, SOURCE_KEY)
    use = parameters.get(RULE_KEY)
    if not isinstance(use, str) or not use.strip():
        what = f"{RULE_KEY!r} is missing" if use is None else f"{RULE_KEY!r} is {use!r}"
        return Mistake(where, what, "the name of a rule, for example 'VanishingGradient'")
    given = {key: value for key, value in parameters.items() if key not in (RULE_KEY, SOURCE_KEY)}
    if name is None and given.get("name"):
        name = str(given.pop("name"))
    return RuleRequest(use.strip(), given, "sagemaker", where, name)


def users_rule_file(where: str, key: str) -> Mistake:
    """The mistake of asking for a rule from a file of the user's own."""
    return Mistake(where, f"{key!r}: users' rule files are not supported yet by this version", "name a built-in rule")
