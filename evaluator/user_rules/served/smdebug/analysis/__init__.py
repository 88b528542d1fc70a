"""Helpers for rules."""

__all__: list[str] = []
