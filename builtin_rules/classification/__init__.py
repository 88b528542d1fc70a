"""Rules about labels and predictions of a classification."""
