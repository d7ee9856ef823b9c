"""Several columns at once."""
