"""What is done when a finding is made, where somebody asked for it: one module per kind, each with its `ACTION`."""
