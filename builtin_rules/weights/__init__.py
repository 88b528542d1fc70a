"""Rules about weights and how they change."""
