"""Rules that also fire, rightly, on faults of some sorts: lists for `Fault.acceptable`."""

FLAT = (
    "LossNotDecreasing", "MetricFlat", "Overtraining", "Confusion", "ClassImbalance", "UnchangedTensor",
    "WeightUpdateRatio", "NotLearning",
)  # fmt: skip
INITIAL = ("PoorWeightInitialization", "TensorVariance")
NO_GRADIENT = ("VanishingGradient", "AllZero")
SHAKEN = ("LossSpike", "LossDiverging", "WeightUpdateRatio", "TensorVariance", "Overfit")
