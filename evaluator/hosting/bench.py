"""Bench: the rules of a file where no job is at work: what each is, and what comes of its examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evaluator.clock import SystemClock
from evaluator.errors import InputError, Mistake
from evaluator.explaining import explanation
from evaluator.hosting.author import Budget, Failure
from evaluator.hosting.class_rule import as_rule
from evaluator.hosting.file_examples import examples_of
from evaluator.hosting.host import SCRIPT_LIMITS
from evaluator.hosting.loading import choose, load
from evaluator.hosting.replay import Replay
from evaluator.isolation.messages import Look, Try
from evaluator.rule import Example, Rule, RuleParameters
from evaluator.testing import ExampleResult, evaluate, example_configuration, saved_example
from evaluator.user_rules.collection import CollectionKeys
from evaluator.user_rules.surroundings import surround
from evaluator.window import ProgressView, Verdict

USUAL_COLLECTIONS = tuple(
    value
    for key, value in vars(CollectionKeys).items()
    if key.isupper() and key not in {"ALL", "DEFAULT"} and isinstance(value, str)
)
"""Which collections a class will ask for is not declared, so in its examples every tensor is in all that hooks make."""

LIMITS = replace(SCRIPT_LIMITS, end_delay=0.0)
"""For trials that a file opens by itself, and those that an example compares with: nobody writes them any more."""

READS_BY_ITSELF = ("whatever it asks its trial for",)

Reply = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A rule of the file, and the class that it was made of."""

    rule: Rule
    written_as: type | None


class Bench:
    """The file, in the process that imports it."""

    def __init__(self, look: Look) -> None:
        """Import nothing of the user's yet."""
        self._look = look
        self._subjects: dict[str, Subject] = {}

    def introduce(self) -> Reply:
        """Import the file: an explanation of each rule, or what is wrong with the file."""
        path = self._look.file.path
        try:
            surround(SystemClock(), LIMITS)
            self._open()
            return {"rules": [self._explained(subject) for subject in self._subjects.values()]}
        except InputError as error:
            return {"mistakes": [asdict(mistake) for mistake in error.mistakes], "failure": ""}
        except BaseException as error:  # noqa: BLE001 - a file may raise anything when it is imported
            failure = Failure(error)
            mistake = Mistake(path, f"cannot be imported: {failure.line}")
            return {"mistakes": [asdict(mistake)], "failure": failure.traceback}

    def answer(self, message: object) -> Reply:
        """What came of an example."""
        if not isinstance(message, Try):
            raise TypeError(f"{type(message).__name__} is no message for a bench")
        subject = self._subjects[message.rule]
        example = subject.rule.examples[message.example]
        budget = Budget(0)
        try:
            result = _run(subject, example, budget)
        except BaseException as error:  # noqa: BLE001 - a rule may raise anything, and call sys.exit
            return _told(example, None, Failure(error))
        return _told(example, result, budget.failure)

    def _open(self) -> None:
        file = self._look.file
        loaded = load(file.path, file.sha256)
        chosen: Sequence[Rule | type] = [choose(loaded, file)] if self._one else []
        if not chosen:
            chosen = [*([] if loaded.rule is None else [loaded.rule]), *loaded.classes.values()]
        mistakes: list[Mistake] = []
        for one in chosen or [choose(loaded, file)]:
            written_as = None if isinstance(one, Rule) else one
            rule = one if isinstance(one, Rule) else as_rule(one, Replay().trials)[0]
            rule = replace(rule, examples=examples_of(loaded, one, file.path))
            self._subjects[rule.name] = Subject(rule, written_as)
            mistakes += [mistake for example in rule.examples for mistake in _mistakes(rule, example, file.path)]
        if mistakes:
            raise InputError(mistakes)

    @property
    def _one(self) -> bool:
        """Whether one rule is asked for."""
        return self._look.file.name is not None or not self._look.every

    def _explained(self, subject: Subject) -> Reply:
        needs = None if subject.written_as is None else READS_BY_ITSELF
        return explanation(subject.rule, self._look.file.path, needs)


def _mistakes(rule: Rule, example: Example, path: str) -> list[Mistake]:
    """What is wrong with the parameters of an example."""
    try:
        example_configuration(rule, example)
    except InputError as error:
        where = f"{path}: example {example.title!r}"
        return [replace(mistake, where=where) for mistake in error.mistakes]
    return []


def _run(subject: Subject, example: Example, budget: Budget) -> ExampleResult:
    """Replay an example as a job would, with an object of its own where the rule is a class."""
    rule, replay = subject.rule, None
    if subject.written_as is not None:
        replay = Replay()
        made, instance = as_rule(subject.written_as, replay.trials)
        rule = replace(made, condition=_seeing(replay, instance.judge))
    if rule.condition is not None:
        rule = replace(rule, condition=budget.around(rule.condition))
    with saved_example(rule, example, () if replay is None else USUAL_COLLECTIONS) as (trial, configuration):
        if replay is not None:
            replay.open(trial, configuration.other_trials)
        return evaluate(trial, [configuration])


def _seeing(
    replay: Replay, judge: Callable[[ProgressView, RuleParameters], Verdict]
) -> Callable[[ProgressView, RuleParameters], Verdict]:
    """The condition, which sees nothing of later steps."""

    def condition(progress: ProgressView, parameters: RuleParameters) -> Verdict:
        replay.show(int(progress.last_step.max()))
        return judge(progress, parameters)

    return condition


def _told(example: Example, result: ExampleResult | None, failure: Failure | None) -> Reply:
    """The outcome, and whether it is what the example says."""
    met = [] if result is None else [finding for finding in result.findings if finding.event == "met"]
    tensors = {finding.tensor for finding in met}
    met_at = met[0].step if met else None
    right = met_at == example.met_at and example.tensor in {None, *tensors}
    traceback, raised = "", failure is not None or (result is not None and result.failed)
    if failure is not None:
        why, traceback = failure.line, failure.traceback
    elif result is not None and raised:
        # in a function that computes a value, not in the condition
        why, traceback = (result.failure.strip().splitlines() or [result.why])[-1], result.failure
    elif result is not None and result.word == "NoIssuesFound":
        why = f"judged at {result.evaluated} step{'' if result.evaluated == 1 else 's'}"
    else:
        why = "" if result is None else result.why
    return {
        "as_expected": right and not raised,
        "met_at": met_at,
        "tensor": met[0].tensor if met else None,
        "why": why,
        "failure": traceback,
        "evaluated": 0 if result is None else result.evaluated,
        "raised": raised,
    }
