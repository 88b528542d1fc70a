"""The modes of training."""

from evaluator.user_rules.modes import ALLOWED_MODE_NAMES, ALLOWED_MODES, ModeKeys, str_to_mode_keys

__all__ = ["ALLOWED_MODES", "ALLOWED_MODE_NAMES", "ModeKeys", "str_to_mode_keys"]
