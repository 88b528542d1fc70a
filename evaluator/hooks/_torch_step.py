"""What is collected of one step: arrays of small tensors, reductions of large ones, each copied at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from evaluator.hooks._torch_values import array_of, dense, fetched, first_rows, reduced
from evaluator.saving.failures import Failures

if TYPE_CHECKING:
    from torch import Tensor

Save = Literal["auto", "values", "reductions"]
SAVES: tuple[Save, ...] = ("auto", "values", "reductions")


class Collected:
    """Values and reductions by their names."""

    def __init__(self, save: Save, most: int, most_of_samples: int, failures: Failures) -> None:
        """Nothing is collected yet.

        Args:
            save: whether values or reductions are taken of parameters and gradients.
            most: so many elements of a parameter are saved as values, if `save` is "auto"; of a larger one reductions.
            most_of_samples: so many elements of an activation are saved.
            failures: where to count.
        """
        self._save = save
        self._most = most
        self._most_of_samples = most_of_samples
        self._failures = failures
        self.values: dict[str, NDArray[Any]] = {}
        self._reduced: dict[str, Tensor] = {}

    def add(self, name: str, tensor: Tensor) -> bool:
        """Take a parameter or gradient; whether there was something to take."""
        with self._failures.guard(f"tensor {name!r} was not saved"):
            there = dense(tensor)
            if there is None:
                return False
            # What was taken under this name before is of an earlier moment of the step.
            self.values.pop(name, None)
            self._reduced.pop(name, None)
            if self._save == "values" or (self._save == "auto" and there.numel() <= self._most):
                self.values[name] = array_of(there)
            else:
                self._reduced[name] = reduced(there)
            return True
        return False

    def add_samples(self, name: str, tensor: Tensor) -> bool:
        """Take the first samples of an activation, input or output: rules judge samples, reductions have none."""
        with self._failures.guard(f"tensor {name!r} was not saved"):
            there = dense(tensor)
            if there is None:
                return False
            self.values[name] = array_of(first_rows(there, self._most_of_samples))
            return True
        return False

    def __contains__(self, name: str) -> bool:
        """Whether something was taken under this name."""
        return name in self.values or name in self._reduced

    def reductions(self) -> dict[str, dict[str, float]]:
        """The reductions, brought to the memory of the machine."""
        with self._failures.guard("reductions were not saved"):
            return fetched(self._reduced)
        return {}

    def names(self) -> list[str]:
        """Everything that was collected."""
        return [*self.values, *self._reduced]

    def update(self, other: Collected) -> None:
        """Take over what another one holds."""
        self.values.update(other.values)
        self._reduced.update(other._reduced)
