"""What scripts with TensorFlow import for reading; no framework is imported."""

from evaluator.user_rules.collection import Collection, CollectionKeys
from evaluator.user_rules.configs import ReductionConfig, SaveConfig, SaveConfigMode
from evaluator.user_rules.modes import ModeKeys, modes
from evaluator.user_rules.opening import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "ModeKeys",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "modes",
]
