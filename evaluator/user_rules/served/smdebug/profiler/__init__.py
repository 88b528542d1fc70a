"""Profiles, of which this version reads none."""

__all__: list[str] = []
