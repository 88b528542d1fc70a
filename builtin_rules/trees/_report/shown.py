"""How names and numbers from a trial are shown; both can be anything."""

from __future__ import annotations

import math

from evaluator.logs import printable

LONGEST = 60
LONGEST_IN_CHART = 26


def shown(name: str, longest: int = LONGEST) -> str:
    """A name on one line, nothing in it acting, shortened in its middle; escaping is left to the page."""
    text = printable(name[: 4 * longest] + name[-longest:] if len(name) > 5 * longest else name)
    if len(text) <= longest:
        return text
    front = longest // 2
    return f"{text[:front]}…{text[front + 1 - longest :]}"


def number(value: float) -> str:
    """A measured number, to four digits."""
    if math.isnan(value):
        return "NaN"
    return f"{int(value):,}" if value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"


def fraction(value: float) -> str:
    """A share between 0 and 1. Source: the hosted report, three decimals."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """A share of 100."""
    return f"{value:.2f} %"


def count(value: float) -> str:
    """How many."""
    return f"{int(value):,}"
