"""What is known of the hosted service's rules beside what ours declare: which there are, what for, what is saved.

Source:
    smdebug-rulesconfig 1.0.1 (the names, and the collections that each rule's configuration brings);
    Amazon SageMaker Developer Guide, "List of Debugger built-in rules" (the frameworks);
    sagemaker-debugger 1.0, the hooks of the frameworks (what is saved where nothing is asked for, and how often).
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.rule import Rule

XGBOOST_ONLY = frozenset({"TreeDepth", "FeatureImportanceOverweight", "CreateXgboostReport"})
DEEP_LEARNING_ONLY = frozenset(
    {
        "DeadRelu",
        "ExplodingTensor",
        "PoorWeightInitialization",
        "SaturatedActivation",
        "VanishingGradient",
        "WeightUpdateRatio",
        "CheckInputImages",
        "NLPSequenceRatio",
    }
)
"""TensorVariance is not among them: the sources contradict each other about it."""

EVERYWHERE = frozenset(
    {
        "AllZero",
        "ClassImbalance",
        "Confusion",
        "LossNotDecreasing",
        "Overfit",
        "Overtraining",
        "SimilarAcrossRuns",
        "StalledTrainingRule",
        "TensorVariance",
        "UnchangedTensor",
    }
)
RULES = XGBOOST_ONLY | DEEP_LEARNING_ONLY | EVERYWHERE

PROFILER_RULES = (
    "BatchSize",
    "CPUBottleneck",
    "Dataloader",
    "DetailedProfilerProcessingJobConfig",
    "GPUMemoryIncrease",
    "IOBottleneck",
    "LoadBalancing",
    "LowGPUUtilization",
    "MaxInitializationTime",
    "OverallFrameworkMetrics",
    "OverallSystemUsage",
    "ProfilerReport",
    "StepOutlier",
)

COLLECTIONS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "VanishingGradient": {"gradients": {"save_interval": "500"}},
    "LossNotDecreasing": {"losses": {"save_interval": "500"}},
    "WeightUpdateRatio": {"weights": {"save_interval": "500"}},
    "CheckInputImages": {"input_image": {"include_regex": ".*hybridsequential0_input_0", "save_interval": "500"}},
    "DeadRelu": {"relu_output": {"include_regex": ".*relu_output", "save_interval": "500"}},
    "PoorWeightInitialization": {"relu_input": {"include_regex": ".*relu_input", "save_interval": "500"}},
    "NLPSequenceRatio": {"input_sequence": {"include_regex": ".*embedding0_input_0", "save_interval": "500"}},
    "FeatureImportanceOverweight": {"feature_importance": {"save_interval": "500"}},
    "CreateXgboostReport": {
        "metrics": {"save_interval": "5"},
        "feature_importance": {"save_interval": "5"},
        "hyperparameters": {"save_steps": "0"},
        "predictions": {"save_interval": "5"},
        "labels": {"save_interval": "5"},
    },
}
"""Rule -> collections that its configuration in the SDK brings, where the user names none."""

SAVED_ANYWAY: Mapping[str, frozenset[str]] = {
    "tensorflow": frozenset({"metrics", "losses", "sm_metrics"}),
    "pytorch": frozenset({"losses"}),
    "mxnet": frozenset({"losses"}),
    "xgboost": frozenset({"metrics"}),
}
"""Framework -> collections that its hook saves whatever is asked for."""

# the losses of XGBoost are some of its metrics, so that they are saved with these
ANY_FRAMEWORK = frozenset({"metrics", "losses", "sm_metrics"})

FRAMEWORK_COLLECTIONS = frozenset(
    {
        *("all", "default", "weights", "biases", "gradients", "losses", "metrics", "inputs", "outputs", "layers"),
        *("sm_metrics", "optimizer_variables", "hyperparameters", "predictions", "labels", "feature_importance"),
        *("average_shap", "full_shap", "trees"),
    }
)
"""Collections whose tensors the hooks know; any other one is filled by a pattern or by the training script."""

SAVE_INTERVAL, XGBOOST_SAVE_INTERVAL = 500, 10
"""Steps between two saved ones where nothing else is said."""


def saved_anyway(framework: str | None) -> frozenset[str]:
    """The collections that are saved whatever is asked for; all of any framework where it is not known."""
    if framework == "xgboost":
        return SAVED_ANYWAY["xgboost"] | {"losses"}
    return SAVED_ANYWAY.get(framework or "", ANY_FRAMEWORK)


OURS = "Ours, not SageMaker's."
"""How the description of a parameter says that SageMaker's rule does not have it."""


def parameters_of(rule: Rule) -> list[str]:
    """The parameters that the hosted service's rule has; those of the loop are ours, except for the range of steps."""
    own = [name for name, field in rule.parameters.model_fields.items() if OURS not in (field.description or "")]
    trials = ["other_trials"] if rule.other_trials else []
    return list(dict.fromkeys([*own, *trials, "start_step", "end_step"]))
