"""What a job shall do: from command line, environment and files, or every mistake in them at once."""
