"""Rules about any tensor."""
