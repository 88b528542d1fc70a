"""The parts that trials are made of."""

__all__: list[str] = []
