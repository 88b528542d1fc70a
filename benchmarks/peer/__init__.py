"""What runs in the venv of the reference; it imports nothing else of this project."""
