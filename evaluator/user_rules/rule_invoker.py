"""Invokes a rule step by step, as scripts and notebooks do; a job has a loop of its own.

Source:
    smdebug-api.md, section 3. Unlike the reference, what was skipped is counted and told at the end.
"""

from __future__ import annotations

from evaluator.user_rules.exceptions import (
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    SMDebugTypeError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from evaluator.user_rules.logger import get_logger
from evaluator.user_rules.rule import Rule


def invoke_rule(
    rule_obj: Rule, start_step: int | None = 0, end_step: int | None = None, raise_eval_cond: bool = False
) -> None:
    """Invoke the rule at each step from `start_step` to before `end_step`.

    A step at which something was not saved is skipped, and a condition that is met does not end it.

    Args:
        rule_obj: the rule.
        start_step: the first global step.
        end_step: the step to stop before; None goes on until the trial has no more, which raises NoMoreData.
        raise_eval_cond: whether to raise when the condition is met.

    Raises:
        RuleEvaluationConditionMet: only with `raise_eval_cond`.
        NoMoreData: the run has ended before `end_step`; and all else that the rule raises.
    """
    name = getattr(rule_obj, "rule_name", type(rule_obj).__name__)
    if not callable(getattr(rule_obj, "invoke", None)):
        raise SMDebugTypeError(f"{name} has no method 'invoke'; a rule is derived from smdebug.rules.rule.Rule")
    logger = get_logger()
    step = start_step or 0
    evaluated = skipped = met = 0
    try:
        while end_step is None or step < end_step:
            try:
                rule_obj.invoke(step)
            except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as error:
                skipped += 1
                logger.debug("%s at step %s: %s", name, step, error)
            except RuleEvaluationConditionMet as error:
                evaluated += 1
                met += 1
                if raise_eval_cond:
                    raise
                logger.debug("%s", error)
                if error.end_of_rule:
                    return
            except NoMoreProfilerData as error:
                logger.info("%s", error)
                return
            else:
                evaluated += 1
            step += 1
    finally:
        counts = f"evaluated at {evaluated} steps, condition met at {met}, {skipped} steps skipped"
        logger.info("Rule %s: %s", name, counts)
