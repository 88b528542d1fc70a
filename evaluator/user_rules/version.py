"""The version that rule files see: the API it stands for, and that it is ours."""

from __future__ import annotations

from evaluator import __version__ as ours

__version__ = f"1.0.34+rule.evaluator.{ours}"
"""Compares as smdebug 1.0.34 does. Source: PEP 440, local version identifiers."""
