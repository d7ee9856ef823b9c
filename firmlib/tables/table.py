"""A table with named columns: an array, a sparse matrix, a tensor or a data frame of any kind."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from firmlib.tables.checks import as_numpy, check_unmasked, is_integer, short
from firmlib.tables.columns import Column, check_no_inf, read

__all__ = ["Table", "is_sparse"]

_TILE = 1024  # rows whose columns are copied together, so that they stay in the cache


class Table:
    """A table seen once, whose columns are read as numbers when they are asked for.

    Parameters
    ----------
    data : array, sparse matrix, tensor, data frame or list of rows
        Kept as it is, since a model gets just this.
    name : str, default "X"
        What messages call it.
    at_least : int, default 2
        The smallest number of rows; 0 for a chunk of a longer table, in which levels may be absent.

    Examples
    --------
    >>> from firmlib.tables import Table
    >>> table = Table([[1, 2], [3, 4], [5, np.nan]])
    >>> table.names, table.column("x1").values
    (['x0', 'x1'], array([ 2.,  4., nan]))
    """

    def __init__(self, data: Any, name: str = "X", *, at_least: int = 2) -> None:
        self.data = data = _checked(data, name)
        shape = tuple(data.shape)
        if len(shape) != 2:
            raise ValueError(
                f"{name} must be a table with 2 axes (rows, columns), got shape {shape}"
            )
        if shape[0] < at_least or shape[1] < 1:
            raise ValueError(
                f"{name} must have at least {at_least} rows and 1 column, got shape {shape}"
            )
        self.name, self.whole = name, at_least > 0
        self.n, self.width = shape
        self.categorical: frozenset[int] = frozenset()

    @classmethod
    def of(cls, data: Any, name: str = "X") -> Self:
        """See a table, unless it was seen before."""
        return data if isinstance(data, cls) else cls(data, name)

    @property
    def is_frame(self) -> bool:
        """Whether its columns have names of their own."""
        return hasattr(self.data, "columns")

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns; x0, x1, ... if it has none."""
        if hasattr(self.data, "column_names"):  # of pyarrow
            return list(self.data.column_names)
        return list(map(str, self.data.columns if self.is_frame else self._numbered))

    @property
    def _numbered(self) -> Iterable[str]:
        return (f"x{j}" for j in range(self.width))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: j for j, name in reversed(list(enumerate(self.names)))}  # the first counts

    def position(self, j: Any) -> int:
        """Return the position of a column given by name or position."""
        if isinstance(j, str) and j in self._positions:
            return self._positions[j]
        if is_integer(j) and -self.width <= j < self.width:
            return int(j) % self.width
        raise ValueError(
            f"feature {j!r} is not a column of {self.name}; expected one of the {self.width}: "
            f"{short(self.names, 8)}"
        )

    def place(self, j: Any) -> int:
        """Return the position of a column that a user asks for by name or position.

        A number that is the position of one column of a frame and the label of another is refused.
        """
        place = self.position(j)
        labelled = self._positions.get(str(j), place) if self.is_frame else place
        if labelled != place:
            raise ValueError(
                f"feature {j} may be the column at position {j} of {self.name} or the one with the "
                f"label {j}, at position {labelled}; expected a name, such as {str(j)!r} for this"
            )
        return place

    def with_categorical(self, columns: Iterable[Any] | None) -> Self:
        """Return the same table, in which the values of some columns are nominal levels."""
        if isinstance(columns, str):
            raise ValueError(f"categorical={columns!r} must be a list of columns")
        other = copy.copy(self)
        try:
            other.categorical = frozenset(self.place(j) for j in columns or ())
        except (TypeError, ValueError) as error:
            raise ValueError(f"categorical={columns!r}: {error}") from error
        return other

    def rows(self, start: int, stop: int) -> Table:
        """Return a table of some rows, one after another."""
        data = self.data
        if hasattr(data, "iloc"):
            data = data.iloc[start:stop]
        elif hasattr(data, "column_names"):
            data = data.slice(start, stop - start)
        else:
            data = (data.tocsr() if is_sparse(data) else data)[start:stop]
        other = Table(data, self.name, at_least=0)
        other.categorical = self.categorical
        return other

    def column(self, j: Any) -> Column:
        """Return a column; of a sparse one that is mostly 0, the values that are stored."""
        j = self.position(j)
        column = self._column(j)
        return column.nominal(self.n) if j in self.categorical else column

    def _column(self, j: int) -> Column:
        name, data = f"column {self.names[j]!r} of {self.name}", self._readable
        if is_sparse(data):
            start, end = data.indptr[j : j + 2]
            rows = data.indices[start:end]
            column = read(name, data.data[start:end], end - start)._replace(rows=rows)
            return column if 2 * len(rows) < self.n else Column(column.dense(self.n))
        if hasattr(data, "iloc"):
            values = data.iloc[:, j]
        elif hasattr(data, "column_names"):
            values = data.column(j)
        else:
            values = data[:, j]
        return read(name, values, self.n)

    @cached_property
    def _readable(self) -> Any:
        """The data as columns are read from: a sparse matrix by columns, a tensor as an array."""
        if not is_sparse(self.data):
            return as_numpy(self.data)
        data = self.data.tocsc()
        if not data.has_canonical_format:
            data = data.copy()
            data.sum_duplicates()
        return data

    @cached_property
    def plain(self) -> bool:
        """Whether all columns are numbers of one dense array or pandas frame, so for `block`."""
        data = self._readable
        if hasattr(data, "iloc"):
            first = data.dtypes.iloc[0]
            alike = isinstance(first, np.dtype) and bool((data.dtypes == first).all())
        else:
            first = getattr(data, "dtype", None)
            alike = type(data) in (np.ndarray, np.memmap)  # a masked array holds more
        if not alike or self.categorical or first is None or first.kind not in "iuf":
            return False
        wide = first.kind in "iu" and first.itemsize == 8  # floats may merge large integers
        ends = (np.asarray(data).min(initial=0), np.asarray(data).max(initial=0)) if wide else ()
        return all(abs(int(end)) <= 2**53 for end in ends)

    def block(self, columns: slice | Sequence[int], start: int, stop: int) -> np.ndarray:
        """Return some columns of a plain table in some rows, one column after another in memory.

        Parameters
        ----------
        columns : slice or list of int
        start, stop : int
            The rows.

        Returns
        -------
        ndarray of shape (k, stop - start), C-contiguous, float
        """
        data = self._readable
        if hasattr(data, "iloc"):
            part = data.iloc[start:stop, columns].to_numpy()
        else:
            part = data[start:stop, columns]
        block = np.empty(part.shape[::-1])
        for first in range(0, len(part), _TILE):
            block[:, first : first + _TILE] = part[first : first + _TILE].T
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(block.sum(axis=1))  # faster than looking at each value
        for k in np.flatnonzero(~finite):
            j = range(self.width)[columns][k] if isinstance(columns, slice) else columns[k]
            check_no_inf(f"column {self.names[j]!r} of {self.name}", block[k], start)
        return block

    def vector(self, name: str, value: Any) -> Column:
        """Return a value per row, given as an array or as the name of a column.

        Parameters
        ----------
        name : str
            What messages call it, such as "sample_weight".
        value : array, list or series of length n, or name of a column
        """
        if isinstance(value, str):
            try:
                return self.column(self.place(value))
            except ValueError as error:
                raise ValueError(f"{name}={value!r}: {error}") from error
        self.check_rows(name, value)
        check_unmasked(name, value)
        return read(name, value, self.n)

    def check_rows(self, name: str, value: Any) -> None:
        """Raise if a pandas object has another index than this table, so other rows."""
        pandas = sys.modules.get("pandas")
        index: Any = getattr(value, "index", None)
        own: Any = getattr(self.data, "index", None)
        if pandas is None or not all(isinstance(each, pandas.Index) for each in (index, own)):
            return
        if not index.equals(own):
            raise ValueError(
                f"{name} has the index {short(index.tolist())}, but {self.name} has "
                f"{short(own.tolist())}: take .loc[{self.name}.index] of it to match rows by "
                "label, or .to_numpy() if its rows are in this order already"
            )


def _checked(data: Any, name: str) -> Any:
    """Return what has a shape and columns; a list of rows as an array."""
    kind = type(data).__name__
    if any(hasattr(data, method) for method in ("predict", "fit")) or callable(data):
        raise ValueError(
            f"{name}={kind} is a model or a function; expected a table of rows (the score comes "
            "first: firm(model, X))"
        )
    if hasattr(data, "columns") or hasattr(data, "dtype"):
        return np.asarray(data) if isinstance(data, np.matrix) else data
    if not isinstance(data, list | tuple) and not hasattr(data, "__array__"):
        raise ValueError(
            f"{name} must be a table with 2 axes (rows, columns) whose columns can be read: an "
            f"array, a sparse matrix or a data frame, got {kind}"
        )
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"{name} must be a table, but its rows differ in length") from error
    return np.array(data, dtype=object) if array.dtype.kind in "US" else array  # words and numbers


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy, which is not imported to find out."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(data)
