"""When something is saved."""

from evaluator.user_rules.configs import SaveConfig, SaveConfigMode

__all__ = ["SaveConfig", "SaveConfigMode"]
