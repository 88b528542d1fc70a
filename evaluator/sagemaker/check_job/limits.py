"""Limits of the API: how many rules and collections, how long names and values, and what must be there.

Source:
    Amazon SageMaker API, CreateTrainingJob: DebugHookConfig, CollectionConfiguration, DebugRuleConfiguration,
    ProfilerRuleConfiguration (service model of botocore 1.43).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evaluator.sagemaker.check_job._reading import short
from evaluator.sagemaker.check_job._request import Flaw, Hook, RuleEntry, TrainingRequest

MOST_RULES = 20
MOST_COLLECTIONS = 20
MOST_OF_A_COLLECTION = 20
MOST_OF_THE_HOOK = 20
MOST_PARAMETERS = 100
LONGEST = 256
"""Characters of a name, of a parameter's name and of its value."""
LONGEST_FIELD = {"RuleEvaluatorImage": 255, "LocalPath": 4096, "S3OutputPath": 1024}


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """Everything that is too many, too long, missing, or no text."""
    lists = (
        ("rules" if request.estimator else "DebugRuleConfigurations", request.rules),
        ("rules (profiler)" if request.estimator else "ProfilerRuleConfigurations", request.profiler_rules),
    )
    for where, entries in lists:
        yield from _most(len(entries), MOST_RULES, where, "rules", "spread them over several jobs, or leave some out")
        for entry in entries:
            yield from _entry(entry, required=not request.estimator)
    if request.hook is not None:
        yield from _hook(request.hook, required=not request.estimator)


def _entry(entry: RuleEntry, *, required: bool) -> Iterator[Flaw]:
    if entry.name is None and required:
        right = f"expected 1 to {LONGEST} characters"
        yield Flaw(f"{entry.where}.RuleConfigurationName", "is missing", right)
    elif entry.name is not None and len(entry.name) > LONGEST:
        what = f"the name has {len(entry.name)} characters"
        yield Flaw(entry.where, what, f"expected 1 to {LONGEST} characters")
    if entry.image is None and required:
        right = "'rule-evaluator image-uri REGION' prints the hosted service's"
        yield Flaw(f"{entry.where}.RuleEvaluatorImage", "is missing", right)
    for field, longest in LONGEST_FIELD.items():
        value = entry.fields.get(field)
        if isinstance(value, str) and len(value) > longest:
            yield Flaw(f"{entry.where}.{field}", f"has {len(value)} characters", f"expected at most {longest}")
    yield from _most(len(entry.parameters), MOST_PARAMETERS, entry.where, "parameters", "leave some out")
    yield from _texts(entry.parameters, entry.where)


def _hook(hook: Hook, *, required: bool) -> Iterator[Flaw]:
    if required and not hook.fields.get("S3OutputPath"):
        yield Flaw(f"{hook.where}.S3OutputPath", "is missing", "expected where the tensors go, s3://BUCKET/PREFIX")
    yield from _most(len(hook.collections), MOST_COLLECTIONS, hook.where, "collections", "leave some out")
    yield from _most(len(hook.parameters), MOST_OF_THE_HOOK, hook.where, "parameters of the hook", "leave some out")
    yield from _texts(hook.parameters, hook.where)
    for one in hook.collections:
        yield from _most(len(one.parameters), MOST_OF_A_COLLECTION, one.where, "parameters", "leave some out")
        yield from _texts(one.parameters, one.where)
        if not one.name:
            yield Flaw(one.where, "the name of the collection is missing", "for example 'gradients'")
        elif len(one.name) > LONGEST:
            what = f"the name of the collection has {len(one.name)} characters"
            yield Flaw(one.where, what, f"expected 1 to {LONGEST}")


def _texts(parameters: Mapping[str, object], where: str) -> Iterator[Flaw]:
    for name, value in parameters.items():
        if not 0 < len(name) <= LONGEST:
            yield Flaw(where, f"a parameter's name has {len(name)} characters", f"expected 1 to {LONGEST}")
        if not isinstance(value, str):
            yield Flaw(where, f"parameter {name!r} is {short(value)}", "every value is text: write it in quotes")
        elif len(value) > LONGEST:
            what = f"parameter {name!r} has a value of {len(value)} characters"
            yield Flaw(where, what, f"expected at most {LONGEST}; put what is longer into a file on S3 and name that")


def _most(count: int, most: int, where: str, what: str, right: str) -> Iterator[Flaw]:
    if count > most:
        yield Flaw(where, f"there are {count} {what}", f"at most {most} are allowed: {right}")
