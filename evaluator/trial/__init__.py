"""What a run has saved so far."""
