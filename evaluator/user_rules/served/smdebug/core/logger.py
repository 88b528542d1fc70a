"""The logger of rules."""

from evaluator.user_rules.logger import DuplicateLogFilter, get_logger

__all__ = ["DuplicateLogFilter", "get_logger"]
