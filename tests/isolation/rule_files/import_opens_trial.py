# mypy: ignore-errors
"""Opens a trial that is not there, when it is imported."""

from smdebug.rules.rule import Rule
from smdebug.trials import create_trial

trial = create_trial("./no_such_output_folder")


class Never(Rule):
    def invoke_at_step(self, step):
        return True
