"""Reads one event file."""

from evaluator.user_rules.event_files import FileReader

__all__ = ["FileReader"]
