"""Which collection a logged name belongs to, told from the name alone."""

from __future__ import annotations

from evaluator.scalar_names import LIKE_A_LOSS, METRICS, collections_of

__all__ = ["LIKE_A_LOSS", "METRICS", "collections_of"]
