"""The served API against smdebug 1.0.34: the same calls on the same trials, `python -m tests.conformance`."""
