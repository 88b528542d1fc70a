"""Collections."""

from evaluator.user_rules.collection import Collection, CollectionKeys

__all__ = ["Collection", "CollectionKeys"]
