"""Rules about the workers of a run: whether they agree, and whether they go on."""
