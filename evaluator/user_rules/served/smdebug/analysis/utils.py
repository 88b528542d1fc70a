"""Helpers for rules."""

from evaluator.user_rules.helpers import no_refresh, parse_bool, parse_list_from_str, refresh

__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]
