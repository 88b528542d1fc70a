# mypy: ignore-errors
"""Rules that look at a trial in many ways, and print what they see."""

from smdebug import modes
from smdebug.rules.rule import Rule


class SeesFirstStep(Rule):
    """Compares with the first step for ever."""

    def invoke_at_step(self, step):
        tensor = self.base_trial.tensor("gradient/w")
        return bool((tensor.value(step) - tensor.value(0)).max() > 3.5)


class SeesReductions(Rule):
    def invoke_at_step(self, step):
        tensor = self.base_trial.tensor("gradient/w")
        print(step, tensor.reduction_value(step, "max"), tensor.shape(step), self.base_trial.workers())


class SeesEverything(Rule):
    """Every name, value, shape and type of the step."""

    def invoke_at_step(self, step):
        trial = self.base_trial
        for name in trial.tensor_names(step=step):
            for worker in trial.tensor(name).workers(step):
                value = trial.tensor(name).value(step, worker=worker)
                print(step, name, worker, getattr(value, "dtype", None), getattr(value, "shape", None))


class CountsModes(Rule):
    def __init__(self, base_trial, wanted="EVAL"):
        super().__init__(base_trial)
        self.wanted = modes[wanted]

    def invoke_at_step(self, step):
        return self.base_trial.mode(step) == self.wanted and self.base_trial.mode_step(step) == 1


class WaitsForNext(Rule):
    """Asks for a step that has not come."""

    def invoke_at_step(self, step):
        self.base_trial.wait_for_steps([step + 1])
        return True


class Compares(Rule):
    def __init__(self, base_trial, other_trials=None):
        super().__init__(base_trial, other_trials)

    def invoke_at_step(self, step):
        mine = self.base_trial.tensor("gradient/w").value(step)
        theirs = self.other_trials[0].tensor("gradient/w").value(step)
        return bool((mine != theirs).any())


class HasInvoke(Rule):
    """Overrides invoke, through which it must be called."""

    def invoke(self, step):
        from smdebug.exceptions import RuleEvaluationConditionMet

        self.base_trial.wait_for_steps([step])
        if step == 4:
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def invoke_at_step(self, step):
        raise AssertionError("not called")


class Remembers(Rule):
    """State is kept between steps, which come in order."""

    seen = ()

    def invoke_at_step(self, step):
        assert list(self.seen) == sorted(self.seen)
        self.seen = (*self.seen, step)
        return len(self.seen) == 5


class CountsCalls(Rule):
    """How often it is invoked at a step."""

    calls = ()

    def invoke_at_step(self, step):
        self.calls = (*self.calls, step)
        return len(self.calls) != len(set(self.calls))
