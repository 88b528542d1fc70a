# mypy: ignore-errors
"""A module of the user's that happens to be called as our package."""

LIMIT = 0.5
