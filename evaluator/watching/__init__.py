"""Following many runs in one process, and telling of many outputs at once."""
