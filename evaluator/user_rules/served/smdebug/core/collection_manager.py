"""The collections of a run."""

from evaluator.user_rules.collection import CollectionManager

__all__ = ["CollectionManager"]
