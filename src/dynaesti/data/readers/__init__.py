"""Sources of rows to tables."""
