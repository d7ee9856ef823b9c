"""A table with named columns: an array, a sparse matrix, a tensor or a data frame of any kind."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

import numpy as np

from firmlib.tables.checks import as_numpy, check_unmasked, is_integer, short
from firmlib.tables.columns import Column, check_no_inf, read

__all__: list[str] = []  # nothing here is public

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
        The smallest number of rows; 0 for a chunk, in which levels may be absent.

    Examples
    --------
    >>> from firmlib.tables import Table
    >>> table = Table([[1, 2], [3, 4], [5, np.nan]])
    >>> table.names, table.column("x1").values
    (['x0', 'x1'], array([ 2.,  4., nan]))
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
        if not self.is_frame:
            return [f"x{j}" for j in range(self.width)]
        arrow = hasattr(self.data, "column_names")
        return list(map(str, self.data.column_names if arrow else self.data.columns))

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
        other.__dict__.pop("plain", None)
        try:
            other.categorical = frozenset(self.place(j) for j in columns or ())
        except (TypeError, ValueError) as error:
            raise ValueError(f"categorical={columns!r}: {error}") from error
        return other

    def rows(self, start: int, stop: int) -> Table:
        """Return a table of the rows from start to stop."""
        data = self.data.tocsr() if is_sparse(self.data) else self.data
        if hasattr(data, "column_names"):
            part = data.slice(start, stop - start)
        else:
            part = data.iloc[start:stop] if hasattr(data, "iloc") else data[start:stop]
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
        return data

    @cached_property
    def _stored(self) -> tuple[Column, list[int]] | None:
        """All values that a sparse matrix stores, and where each column begins, if 0 means 0."""
        data = self.readable
        if not is_sparse(data):
            return None
        try:
            stored = read(self.name, data.data, len(data.data))
        except ValueError:  # the column with an infinite value says so
            return None
        codes = stored.labels is not None and data.dtype.kind != "b"  # of large integers
        return None if codes else (stored, data.indptr.tolist())

    def column(self, j: Any) -> Column:
        """Return a column; of a sparse one that is mostly 0, the values that are stored."""
        j = self.position(j)
        name, data = f"column {self.names[j]!r} of {self.name}", self.readable
        if self._stored is not None:
            stored, ends = self._stored
            part = slice(ends[j], ends[j + 1])
            column = stored._replace(values=stored.values[part], rows=data.indices[part])
            if 2 * (part.stop - part.start) >= self.n:
                column = column._replace(values=column.dense(self.n), rows=None)
        elif is_sparse(data):
            column = read(name, data[:, [j]].toarray()[:, 0], self.n)
        elif hasattr(data, "column_names"):
            column = read(name, data.column(j), self.n)
        else:
            column = read(name, data.iloc[:, j] if hasattr(data, "iloc") else data[:, j], self.n)
        return column.nominal(self.n) if j in self.categorical else column

    @cached_property
    def plain(self) -> bool:
        """Whether all columns are numbers of one dense array or pandas frame, so for `block`."""
        data = self.readable
        if type(data) in (np.ndarray, np.memmap):  # a masked array holds more
            dtypes = {data.dtype}
        else:
            dtypes = set(data.dtypes) if hasattr(data, "iloc") else set()
        if self.categorical or len(dtypes) != 1:
            return False
        [dtype] = dtypes
        if not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
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
        """Return a value per row, given as an array, or as the name of a column.

        Parameters
        ----------
        name : str
            What messages call it, such as "sample_weight".
        value : array, list or series of length n, or str
        """
        if isinstance(value, str):
            try:
                return self.column(value)
            except ValueError as error:
                raise ValueError(f"{name}={value!r}: {error}") from error
        self.check_rows(name, value)
        check_unmasked(name, value)
        return read(name, value, self.n)

    def check_rows(self, name: str, value: Any) -> None:
        """Raise if a pandas object has another index than this table, so other rows."""
        pandas = sys.modules.get("pandas")
        both: Any = [getattr(each, "index", None) for each in (value, self.data)]
        if pandas is None or not all(isinstance(each, pandas.Index) for each in both):
            return
        index, own = both
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
        array = np.asarray(as_numpy(data))
    except ValueError as error:
        raise ValueError(f"{name} must be a table, but its rows differ in length") from error
    return np.array(data, dtype=object) if array.dtype.kind in "US" else array  # words and numbers


def is_sparse(data: Any) -> bool:
    """Return whether it is a sparse matrix or array of SciPy, which is not imported for this."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(data)
