# mypy: ignore-errors
ENOUGH = 3
