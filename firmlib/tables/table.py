"""A table with named columns: an array, a sparse matrix, a tensor or a data frame of any kind."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from firmlib.tables.checks import as_numpy, check_unmasked, is_integer, is_model, short
from firmlib.tables.columns import Column, as_array, check_no_inf, read

__all__: list[str] = []  # nothing here is public

_TILE = 1024  # rows whose columns are copied together, so that they stay in the cache


class Table:
    """A table whose columns are read as numbers when they are asked for.

    The data stay as they are, for the model. A chunk (`at_least` is 0) may lack rows and levels.

    >>> Table([[1, 2], [3, 4], [5, np.nan]]).column("x1").values
    array([ 2.,  4., nan])
    """

    def __init__(self, data: Any, name: str = "X", *, at_least: int = 2) -> None:
        self.data = _checked(data, name)
        shape = tuple(self.data.shape)
        if len(shape) != 2:
            raise ValueError(
                f"{name} must be a table with 2 axes (rows, columns), got shape {shape}"
            )
        if shape[0] < at_least or shape[1] < 1:
            raise ValueError(
                f"{name} must have at least {at_least} rows and 1 column, got shape {shape}"
            )
        self.n, self.width = shape
        self.name, self.whole = name, at_least > 0
        self.categorical: frozenset[int] = frozenset()

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return `data` as a table, which it may be already."""
        return data if isinstance(data, cls) else cls(data)

    @property
    def is_frame(self) -> bool:
        """Whether its columns have names of their own."""
        return hasattr(self.data, "columns")

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns; x0, x1, ... if it has none."""
        if not self.is_frame:
            return [f"x{j}" for j in range(self.width)]
        return list(map(str, self.data.column_names if self._is_arrow else self.data.columns))

    @property
    def _is_arrow(self) -> bool:
        return type(self.data).__module__.startswith("pyarrow")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: j for j, name in reversed(list(enumerate(self.names)))}  # the first counts

    def place(self, j: Any) -> int:
        """Return the position of a column that a user gives by name or position."""
        if isinstance(j, str) and j in self._positions:
            return self._positions[j]
        if not is_integer(j) or not -self.width <= j < self.width:
            raise ValueError(
                f"feature {j!r} is not a column of {self.name}, whose {self.width} columns are "
                f"{short(self.names, 8)}"
            )
        place = int(j) % self.width
        labelled = self._positions.get(str(j), place) if self.is_frame else place
        if labelled != place:
            raise ValueError(
                f"feature {j} may be the column at position {j} of {self.name} or the column with "
                f"the label {j}, at position {labelled}; pass {str(j)!r} for the label"
            )
        return place

    def with_categorical(self, columns: Iterable[Any] | None) -> Self:
        """Return the same table, in which the values of some columns are nominal levels."""
        if isinstance(columns, str):
            raise ValueError(f"categorical={columns!r} must be a list of columns")
        other = copy.copy(self)
        other.__dict__.pop("plain", None)
        try:
            other.categorical = frozenset(self.place(j) for j in columns or ())
        except (TypeError, ValueError) as error:
            raise ValueError(f"categorical={columns!r}: {error}") from error
        return other

    def rows(self, start: int, stop: int) -> Table:
        """Return a table of the rows from start to stop."""
        data = self.data.tocsr() if is_sparse(self.data) else self.data
        part = (data.iloc if hasattr(data, "iloc") else data)[start:stop]
        other = Table(part, self.name, at_least=0)
        other.categorical = self.categorical
        return other

    @cached_property
    def readable(self) -> Any:
        """The data as columns are read from: a sparse matrix by columns, a tensor as an array."""
        if not is_sparse(self.data):
            return as_numpy(self.data)
        data = self.data.tocsc()
        if not data.has_canonical_format:
            data = data.copy()
            data.sum_duplicates()
        infinite = np.flatnonzero(np.isinf(data.data))
        if len(infinite):
            j = int(np.searchsorted(data.indptr, infinite[0], side="right")) - 1
            here = slice(data.indptr[j], data.indptr[j + 1])
            name = f"column {self.names[j]!r} of {self.name}"
            check_no_inf(name, data.data[here], data.indices[here])
        return data

    def column(self, j: Any) -> Column:
        """Return a column; if it is sparse and mostly 0, only its stored values."""
        j = self.place(j) if isinstance(j, str) else range(self.width)[j]
        name, data = f"column {self.names[j]!r} of {self.name}", self.readable
        if is_sparse(data):
            column = self._sparse_column(name, j)
        elif self._is_arrow:
            column = read(name, data.column(j), self.n)
        else:
            column = read(name, (data.iloc if hasattr(data, "iloc") else data)[:, j], self.n)
        return column.nominal(self.n) if j in self.categorical else column

    def _sparse_column(self, name: str, j: int) -> Column:
        data = self.readable
        stored = slice(data.indptr[j], data.indptr[j + 1])
        values = data.data[stored]
        if 2 * len(values) < self.n:
            if values.dtype == float:
                return Column(values, data.indices[stored])
            column = read(name, values, len(values))
            if column.labels is None or data.dtype.kind == "b":  # otherwise 0 is a code
                return column._replace(rows=data.indices[stored])
        return read(name, data[:, [j]].toarray()[:, 0], self.n)

    @cached_property
    def plain(self) -> bool:
        """Whether all columns are numbers of one dense array or pandas frame, as `block` needs."""
        data = self.readable
        array = type(data) in (np.ndarray, np.memmap)  # a masked array holds more
        dtypes = {data.dtype} if array else set(data.dtypes) if hasattr(data, "iloc") else set()
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        if self.categorical or not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
            return False
        if dtype.kind == "f" or dtype.itemsize < 8:
            return True
        values = np.asarray(data)  # floats may merge large integers
        return values.min(initial=0) >= -(2**53) and values.max(initial=0) <= 2**53

    def block(self, columns: slice, rows: slice | np.ndarray) -> np.ndarray:
        """Return some columns and rows of a plain table as floats (k, m), column by column."""
        data = self.readable
        part = data.iloc[rows, columns].to_numpy() if hasattr(data, "iloc") else data[rows, columns]
        block = np.empty(part.shape[::-1])
        for first in range(0, len(part), _TILE):
            block[:, first : first + _TILE] = part[first : first + _TILE].T
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(block.sum(axis=1))  # faster than looking at each value
        for k in np.flatnonzero(~finite):
            name = self.names[range(self.width)[columns][k]]
            check_no_inf(f"column {name!r} of {self.name}", block[k], rows)
        return block

    def vector(self, name: str, value: Any) -> Column:
        """Return one value per row, given as an array or the name of a column."""
        if isinstance(value, str):
            try:
                return self.column(value)
            except ValueError as error:
                raise ValueError(f"{name}={value!r}: {error}") from error
        self.check_rows(name, value)
        check_unmasked(name, value)
        return read(name, value, self.n)

    def check_rows(self, name: str, value: Any) -> None:
        """Raise if a pandas object has another index than this table."""
        index, own = (getattr(each, "index", ()) for each in (value, self.data))
        if isinstance(index, pd.Index) and isinstance(own, pd.Index) and not index.equals(own):
            raise ValueError(
                f"{name} has the index {short(index.tolist())}, but {self.name} has "
                f"{short(own.tolist())}; use .loc[{self.name}.index] to match rows by label, or "
                ".to_numpy() if the rows are in the same order already"
            )


def _checked(data: Any, name: str) -> Any:
    """Return an array, a sparse matrix or a frame as it is, and a list of rows as an array."""
    if hasattr(data, "columns") or hasattr(data, "dtype"):
        return np.asarray(data) if isinstance(data, np.matrix) else data
    kind = type(data).__name__
    if is_model(data):
        raise ValueError(f"{name}={kind} is a model or a function; expected firm(model, X)")
    if not isinstance(data, list | tuple) and not hasattr(data, "__array__"):
        raise ValueError(
            f"{name} must be a table with 2 axes (an array, sparse matrix or frame), got {kind}"
        )
    return as_array(name, as_numpy(data), "a table")


def is_sparse(data: Any) -> bool:
    """Return whether `data` is a sparse matrix or array of SciPy, without importing SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(data)
