"""Rules about activations."""
