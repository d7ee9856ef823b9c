"""A table with named columns: an array, a sparse matrix, a tensor or a data frame of any kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from firmlib.tables.checks import as_numpy, is_integer, short
from firmlib.tables.columns import Column, as_array, read

_BLOCK, _ROWS = 2**19, 2**13  # values that are read together, and rows that are copied at a time


class Table:
    """A table, whose columns are read when they are asked for; a chunk needs no rows or levels."""

    def __init__(self, data: Any, name: str = "X", *, at_least: int = 2) -> None:
        kind = type(data).__name__
        if not hasattr(data, "columns") and not hasattr(data, "dtype"):
            data = as_array(name, data)
        self.data: Any = np.asarray(data) if isinstance(data, np.matrix) else data
        shape = tuple(self.data.shape)
        if len(shape) != 2 or shape[0] < at_least or shape[1] < 1:
            wanted = f"a table with 2 axes, at least {at_least} rows and 1 column"
            raise ValueError(f"{name} must be {wanted}, got {kind} of shape {shape}")
        self.n, self.width = shape
        self.name, self.whole = name, at_least > 0
        self.categorical: frozenset[int] = frozenset()
        self._block: Any = None, None  # the first of columns that were read together, and these

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return `data` as a table, which it may be already."""
        return data if isinstance(data, cls) else cls(data)

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns; without any x0, x1, ... of X, and f0, f1, ... of features."""
        if hasattr(self.data, "columns"):
            return [*map(str, getattr(self.data, "column_names", self.data.columns))]
        return [f"{self.name[0].lower()}{j}" for j in range(self.width)]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: j for j, name in reversed(list(enumerate(self.names)))}  # the first counts

    def place(self, j: Any, what: str = "feature") -> int:
        """Return the position of a column that a user gives by name or position."""
        if isinstance(j, str) and j in self._positions:
            return self._positions[j]
        if not is_integer(j) or not -self.width <= j < self.width:
            known = f"whose {self.width} columns are {short(self.names, 8)}"
            raise ValueError(f"{what} {j!r} is not a column of {self.name}, {known}")
        place = int(j) % self.width
        labelled = self._positions.get(str(j), place)
        if labelled != place:
            either = f"the column at position {j} of {self.name} or the one labelled {j}"
            raise ValueError(f"{what} {j} may be {either}; pass {str(j)!r} for the label")
        return place

    def with_categorical(self, columns: Iterable[Any] | None) -> Self:
        """Take the values of some columns, and of no others, as nominal levels."""
        if isinstance(columns, str | int):
            raise ValueError(f"categorical={columns!r} must be a list of columns")
        some = () if columns is None else columns
        self.categorical = frozenset(self.place(j, "categorical column") for j in some)
        return self

    @cached_property
    def readable(self) -> Any:
        """The data as columns are read from: an array, a frame or a sparse matrix by columns."""
        data = as_numpy(self.data)
        if hasattr(type(data), "column_names"):  # of pyarrow; nothing is copied
            data = data.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
        if isinstance(data, pd.DataFrame) and data.dtypes.nunique() == 1:
            return array if _is_numeric(array := data.to_numpy()) else data
        if is_sparse(data):
            data = data.tocsc(copy=True)
            data.sum_duplicates()
        return data

    def column(self, j: int) -> Column:
        """Return the column at a position from `place`."""
        data = self.readable
        if _is_numeric(data) and j not in self.categorical:
            values = self._read_together(data, j)
            most = np.inf if data.dtype.kind == "f" else 2**53  # floats merge larger integers
            if np.fmax.reduce(values) < most and np.fmin.reduce(values) > -most:
                return Column(values)
        if is_sparse(data):
            values = data[:, [j]].toarray()
        else:
            values = (data.iloc if hasattr(data, "iloc") else data)[:, j]
        column = read(f"column {self.names[j]!r} of {self.name}", values, self.n)
        return column.nominal() if j in self.categorical else column

    def _read_together(self, array: np.ndarray, j: int) -> np.ndarray:
        """Return a column, read with its neighbours: most arrays hold a row after the other."""
        width = max(_BLOCK // self.n, 4)
        first = j - j % width
        if self._block[0] != first:
            part = array[:, first : first + width]
            self._block = None, None  # free its memory
            block = np.empty(part.shape[::-1])
            for a in range(0, self.n, _ROWS):  # in the cache
                block[:, a : a + _ROWS] = part[a : a + _ROWS].T
            self._block = first, block
        return self._block[1][j - first]

    def vector(self, name: str, value: Any) -> Column:
        """Return one value per row, given as an array or the name of a column."""
        if isinstance(value, str):
            return self.column(self.place(value, f"{name} column"))
        self.check_rows(name, value)
        return read(name, value, self.n)

    def check_rows(self, name: str, value: Any) -> None:
        """Raise if a pandas object has another index than this table."""
        index, own = (getattr(each, "index", ()) for each in (value, self.data))
        if isinstance(index, pd.Index) and isinstance(own, pd.Index) and not index.equals(own):
            both = f"index {short(index.tolist())}, but {self.name} has {short(own.tolist())}"
            raise ValueError(f"{name} has the {both}; use .loc[{self.name}.index] or .to_numpy()")


def is_sparse(data: Any) -> bool:
    """Return whether `data` is a sparse matrix or array, without importing SciPy."""
    return hasattr(type(data), "tocsc")


def _is_numeric(data: Any) -> bool:
    """Return whether `data` is an array of numbers, without a mask."""
    return type(data) in (np.ndarray, np.memmap) and data.dtype.kind in "iuf"
