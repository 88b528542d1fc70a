"""Small rules that the tests of this folder configure."""

from pydantic import Field, PositiveFloat

from evaluator.modes import Mode
from evaluator.rule import TRAINING, Recommended, Rule, RuleParameters, Summary


class LayerParameters(RuleParameters):
    """One parameter of every type that rules declare."""

    threshold: PositiveFloat = Field(default=1e-7, description="A number.")
    num_steps: int | None = Field(default=None, description="A whole number.")
    steps: int = Field(default=10, ge=1, description="A whole number with a bound.")
    only_nan: bool = Field(default=False, description="Yes or no.")
    collection_names: tuple[str, ...] = Field(default=(), description="A list.")
    tensor_regex: tuple[str, ...] | None = Field(default=None, description="Patterns.")
    token_thresholds: tuple[float, ...] = Field(default=(50.0,), description="A list of numbers.")
    modes: frozenset[Mode] = Field(default=TRAINING, description="A set of modes.")
    mode: str = Field(default="GLOBAL", description="Text.")


class OverfitParameters(RuleParameters):
    """Shares `start_step` with the loop."""

    start_step: int = Field(default=0, ge=0, description="First step compared.")
    patience: int = Field(default=1, ge=1, description="Steps.")
    ratio_threshold: float = Field(default=0.1, description="Ratio.")


LAYER = Rule(
    "DeadLayer",
    "error",
    LayerParameters,
    requires=lambda _: [Summary("gradients")],
    condition=lambda *_: None,
    recommended={"steps": Recommended(20, "ten are too few"), "consecutive": Recommended(3, "one is noise")},
)
OVERFIT = Rule(
    "Overfit", "warning", OverfitParameters, requires=lambda _: [Summary("losses")], condition=lambda *_: None
)
SIMILAR = Rule(
    "SimilarRuns",
    "info",
    RuleParameters,
    requires=lambda _: [Summary("losses")],
    condition=lambda *_: None,
    other_trials=True,
)
RULES = {rule.name: rule for rule in (LAYER, OVERFIT, SIMILAR)}
