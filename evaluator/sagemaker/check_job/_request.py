"""A training job as somebody asks for it, in one form for all checks, and what a check says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.config.wire import is_unset
from evaluator.rule import Severity
from evaluator.sagemaker.images import Image, parse_image
from evaluator.sagemaker.regions import Partition


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong with a request.

    Args:
        where: the place in the request.
        severity: "error" where the job would fail or a rule never be evaluated, "warning" where that may be meant.
    """

    where: str
    what: str
    would_be_right: str
    severity: Severity = "error"


@dataclass(frozen=True)
class RuleEntry:
    """One rule configuration of a request.

    Args:
        image: the URI; None where the SDK fills it in.
        fields: all that the entry says, for checks of its form.
        profiler: whether it is a profiler rule.
    """

    where: str
    name: str | None
    image: str | None
    parameters: Mapping[str, object]
    fields: Mapping[str, object] = field(default_factory=dict)
    profiler: bool = False

    @property
    def rule(self) -> str | None:
        """The rule that it names."""
        value = self.parameters.get("rule_to_invoke")
        return value.strip() if isinstance(value, str) and not is_unset(value) else None

    @property
    def source(self) -> bool:
        """Whether the rule is in a file of the user's own."""
        return not is_unset(self.parameters.get("source_s3_uri"))

    @property
    def ecr_image(self) -> Image | None:
        """The image by its parts, where it is one in Amazon ECR."""
        return None if self.image is None else parse_image(self.image)

    @property
    def hosted_built_in(self) -> bool:
        """Whether the hosted service's image for built-in rules evaluates it."""
        if self.image is None:
            return not self.source
        image = self.ecr_image
        return image is not None and image.registry is not None and image.registry.kind == "built-in"


@dataclass(frozen=True)
class Collection:
    """One collection that a request has saved."""

    where: str
    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Hook:
    """What is said of the saving of tensors.

    Args:
        parameters: of the hook as a whole.
        fields: all that it says, for checks of its form.
    """

    where: str
    collections: tuple[Collection, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass
class TrainingRequest:
    """A training job as far as Debugger is concerned.

    Args:
        where: the file.
        estimator: whether it is in the shape of the SDK's estimators rather than of CreateTrainingJob.
        flaws: what was found while it was read.
        region: where the job is to run, as far as that is known.
        partition: the same of the partition.
        framework: mxnet, tensorflow, pytorch or xgboost, as far as that is known.
        version: of the framework.
        strategies: strategy of distributed training -> where it is switched on; words of the support matrix, and
            others for what the matrix does not have.
        instances: how many.
        checkpoints: where SageMaker's checkpoints are switched on; None where they are off.
        hook: None where nothing is saved.
        steps: how many steps the training has, and where that stands, as far as it is known.
        notes: what was not checked, and why.
    """

    where: str
    estimator: bool = False
    flaws: list[Flaw] = field(default_factory=list)
    region: str | None = None
    partition: Partition | None = None
    framework: str | None = None
    version: str | None = None
    strategies: dict[str, str] = field(default_factory=dict)
    instances: int | None = None
    checkpoints: str | None = None
    hook: Hook | None = None
    rules: list[RuleEntry] = field(default_factory=list)
    profiler_rules: list[RuleEntry] = field(default_factory=list)
    steps: tuple[int, str] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def uses_debugger(self) -> bool:
        """Whether the request asks for anything of Debugger at all."""
        return bool(self.hook or self.rules or self.profiler_rules)
