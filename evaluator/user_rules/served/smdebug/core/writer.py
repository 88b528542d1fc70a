"""Writes one event file."""

from evaluator.user_rules.event_files import FileWriter

__all__ = ["FileWriter"]
