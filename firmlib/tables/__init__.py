"""Any table of rows, seen once: its columns as numbers with their kind, in memory or in chunks."""
