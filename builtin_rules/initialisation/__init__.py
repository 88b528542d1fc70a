"""Rules about how a model starts."""
