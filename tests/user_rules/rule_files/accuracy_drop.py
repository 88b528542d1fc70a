# mypy: ignore-errors
"""No. 3: a lower-case class that follows the accuracy of evaluation steps by the trial's private mapping."""

import numpy as np
from smdebug import modes
from smdebug.rules.rule import Rule


class check_accuracy(Rule):  # noqa: N801 - so it is published
    def __init__(self, base_trial, predictions="preds", labels="labels", previous_accuracy=0.0, threshold=0.05):
        super().__init__(base_trial)
        self.predictions, self.labels = predictions, labels
        self.previous, self.threshold = float(previous_accuracy), float(threshold)
        self.right = self.seen = 0

    def invoke_at_step(self, step):
        mode, mode_step = self.base_trial._global_to_mode[step]
        if mode != modes.EVAL:
            return False
        guessed = np.argmax(self.base_trial.tensor(self.predictions).value(mode_step, mode=modes.EVAL), axis=1)
        true = self.base_trial.tensor(self.labels).value(mode_step, mode=modes.EVAL)
        self.right += int(np.sum(guessed == true))
        self.seen += len(true)
        accuracy = self.right / self.seen
        self.logger.info("accuracy at step %s: %s", step, accuracy)
        return self.previous - accuracy > self.threshold
