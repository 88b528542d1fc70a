"""What the rules make of public training logs with known outcome."""
