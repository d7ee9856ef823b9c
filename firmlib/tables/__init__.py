"""Any table of rows, seen once: its columns as numbers with their kind, in memory or in chunks."""

from firmlib.tables.columns import Column, read
from firmlib.tables.table import Table, is_sparse

__all__ = ["Column", "Table", "is_sparse", "read"]
