"""Where statuses and findings go."""
