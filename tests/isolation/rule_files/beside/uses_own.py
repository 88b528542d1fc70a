# mypy: ignore-errors
"""Imports modules that lie beside it, one of them called `evaluator`."""

import evaluator
import helper_beside

from smdebug.rules.rule import Rule


class UsesOwn(Rule):
    def invoke_at_step(self, step):
        return step * evaluator.LIMIT >= helper_beside.ENOUGH
