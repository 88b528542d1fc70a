"""A rule as users write it for smdebug: some gradient's mean magnitude is below a threshold.

It runs in smdebug itself and in what this program serves under its names.
"""

from __future__ import annotations

from smdebug.rules.rule import Rule  # type: ignore[import-not-found] # served, or installed in the other venv


class MeanGradient(Rule):  # type: ignore[misc] # the base class is not known here
    """Fires below the threshold, as VanishingGradient of SageMaker does."""

    def __init__(self, base_trial: object, threshold: str = "1e-7") -> None:
        """Parameters arrive as texts."""
        super().__init__(base_trial, action_str="")
        self.threshold = float(threshold)
        self.judged = 0
        self.met: list[tuple[int, str, float]] = []

    def invoke_at_step(self, step: int) -> bool:
        """Look at every gradient of the step; the first that is too small is kept."""
        low = []
        for name in self.base_trial.tensor_names(collection="gradients"):
            mean = self.base_trial.tensor(name).reduction_value(step, "mean", abs=True)
            if mean < self.threshold:
                low.append((step, name, float(mean)))
        self.judged += 1
        self.met += low[:1]
        return bool(low)
