"""What a rule says it needs at a step, so that it is there when the rule is invoked.

Source:
    smdebug-api.md, section 2. Unlike the reference, lists of steps are never shared (smdebug-review.md, R24), and a
    tensor of which only reductions or the shape were saved is no reason not to invoke the rule (R25).
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, ValuesView

from evaluator.sources.base import StepFile
from evaluator.user_rules.exceptions import TensorUnavailable
from evaluator.user_rules.tensor import Tensor
from evaluator.user_rules.trial import Trial


class RequiredTensorsForTrial:
    """What is needed of one trial."""

    def __init__(self, trial: Trial) -> None:
        """Nothing is needed yet."""
        self.trial = trial
        self._tensors: dict[str, Tensor] = {}
        self._steps: dict[str, list[int]] = {}

    def add(self, name: str, steps: Iterable[int], should_match_regex: bool = False) -> None:
        """Need a tensor at these steps, or all those in whose names the pattern is found.

        Raises:
            TensorUnavailable: the trial does not know the name.
        """
        wanted = [steps] if isinstance(steps, int) else list(steps)
        if not should_match_regex and not self.trial.has_tensor(name):
            raise TensorUnavailable(name)
        for one in self.trial.tensor_names(regex=[name]) if should_match_regex else [name]:
            self._tensors[one] = self.trial.tensor(one)
            self._steps.setdefault(one, []).extend(wanted)

    def get_tensor_steps(self, name: str) -> list[int]:
        """The steps at which the tensor is needed."""
        return self._steps[name]

    def get_names(self) -> KeysView[str]:
        """The names, in the order in which they were added."""
        return self._tensors.keys()

    def get(self) -> ValuesView[Tensor]:
        """The tensors, in the order in which they were added."""
        return self._tensors.values()

    def clear(self) -> None:
        """Need nothing."""
        self._tensors.clear()
        self._steps.clear()

    def fetch(self) -> None:
        """Wait for the steps, and read all that is needed at once.

        Raises:
            TensorUnavailableForStep: a step is there without one of the tensors; and as `wait_for_steps` does.
        """
        self.trial.wait_for_steps(sorted({step for steps in self._steps.values() for step in steps}))
        wanted: dict[StepFile, list[int]] = {}
        for name, steps in self._steps.items():
            for step in dict.fromkeys(steps):
                file, positions = self._tensors[name].file_to_fetch(step)
                wanted.setdefault(file, []).extend(positions)
        for file, positions in wanted.items():
            self.trial.saved_values.fetch(file, positions)


class RequiredTensors:
    """What is needed of the base trial and of the others."""

    def __init__(self, base_trial: Trial, other_trials: Iterable[Trial] | None = None) -> None:
        """Nothing is needed yet."""
        self.base_trial = base_trial
        self._per_trial = {trial: RequiredTensorsForTrial(trial) for trial in [base_trial, *(other_trials or [])]}

    def add(
        self, name: str, steps: Iterable[int], trial: Trial | None = None, should_match_regex: bool = False
    ) -> None:
        """Need a tensor at these steps; of the base trial when none is given."""
        self._of(trial).add(name, steps, should_match_regex)

    def get_tensor_steps(self, name: str, trial: Trial | None = None) -> list[int]:
        """The steps at which the tensor is needed."""
        return self._of(trial).get_tensor_steps(name)

    def get_names(self, trial: Trial | None = None) -> KeysView[str]:
        """The names, in the order in which they were added."""
        return self._of(trial).get_names()

    def get(self, trial: Trial | None = None) -> ValuesView[Tensor]:
        """The tensors, in the order in which they were added."""
        return self._of(trial).get()

    def clear(self) -> None:
        """Need nothing of any trial."""
        for required in self._per_trial.values():
            required.clear()

    def fetch(self) -> None:
        """Wait for and read what is needed of all trials."""
        for required in self._per_trial.values():
            required.fetch()

    def _of(self, trial: Trial | None) -> RequiredTensorsForTrial:
        return self._per_trial[self.base_trial if trial is None else trial]
