"""One module per family of training programs; every `Kind` in their `KINDS` belongs to the zoo."""
