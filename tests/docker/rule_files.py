"""Rule files that tests mount into a container."""

from __future__ import annotations

QUIET = """
from smdebug.rules.rule import Rule


class Mine(Rule):
    def invoke_at_step(self, step):
        return False
"""

GREEDY = """
from smdebug.rules.rule import Rule


class Mine(Rule):
    def invoke_at_step(self, step):
        taken = []
        while True:
            taken.append(bytearray(b"x" * (16 << 20)))
"""
