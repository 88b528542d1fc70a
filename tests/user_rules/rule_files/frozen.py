# mypy: ignore-errors
"""No. 13: asserts that a trial stands still while a rule is invoked."""

from smdebug.analysis.utils import no_refresh
from smdebug.exceptions import StepNotYetAvailable
from smdebug.rules import Rule


class TestRule(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial=base_trial, action_str="")

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names():
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            tensor.value(step)
        with no_refresh(self.base_trial):
            try:
                self.base_trial.tensor("t").value(step + 1)
            except StepNotYetAvailable:
                return
            if step != 0:
                raise AssertionError(step)
