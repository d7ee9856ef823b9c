"""Any table of rows, seen once: an array, a sparse matrix or a data frame."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

import numpy as np

from firmlib._checks import short
from firmlib._columns import Column, numbers, read
from firmlib._fast import loops

_WIDE = 256  # columns
_RUN = 256  # bytes of a row that are read at a time
_NEAR = 2**29  # bytes of columns that are copied at a time, at most
_TILE = 1024  # rows whose columns are copied together


class Table:
    """A table with names, whose columns are read as numbers; of some of its rows, if wanted.

    Parameters
    ----------
    data : array, sparse matrix, data frame or list of rows
        Kept as it is: a model gets just this.
    name : str, default "X"
        What messages call it.
    at_least : int, default 2
        The smallest number of rows.
    """

    def __init__(self, data: Any, name: str = "X", *, at_least: int = 2) -> None:
        kind = type(data).__name__
        if any(hasattr(data, method) for method in ("predict", "fit")) or callable(data):
            raise ValueError(
                f"{name}={kind} is a model or a function; expected a table of rows "
                "(the score comes first: firm(model, X))"
            )
        if not (hasattr(data, "columns") or hasattr(data, "dtype")):
            if not isinstance(data, list | tuple) and not hasattr(data, "__array__"):
                raise ValueError(
                    f"{name} must be a table with 2 axes (rows, columns) whose columns can be "
                    f"read: an array, a sparse matrix or a data frame, got {kind}"
                )
            try:
                given, data = data, np.asarray(data)
            except ValueError as error:
                raise ValueError(
                    f"{name} must be a table, but its rows differ in length"
                ) from error
            if data.dtype.kind in "US":
                data = np.array(given, dtype=object)  # numbers beside words became words
        data = np.asarray(data) if isinstance(data, np.matrix) else data
        shape = data.shape
        if len(shape) != 2:
            raise ValueError(
                f"{name} must be a table with 2 axes (rows, columns), got shape {shape}"
            )
        if shape[0] < at_least or shape[1] < 1:
            raise ValueError(
                f"{name} must have at least {at_least} rows and 1 column, got shape {shape}"
            )
        self.data, self.name = data, name
        self.n, self.width = shape
        self.keep: slice | np.ndarray = slice(None)
        self.categorical: frozenset[int] = frozenset()
        self.whole = at_least > 0  # or a chunk, in which some level may be absent
        self.near: tuple[int, np.ndarray, list] | None = None  # columns at hand from one on, ends
        self.loops: Any = None

    @classmethod
    def of(cls, data: Any, name: str = "X") -> Self:
        """See a table, unless it was seen before."""
        return data if isinstance(data, cls) else cls(data, name)

    def of_rows(self, keep: slice | np.ndarray) -> Self:
        """The same table, whose columns hold some of the rows alone."""
        other = copy.copy(self)
        other.keep = keep
        return other

    def in_order(self) -> Self:
        """The same table, whose columns are read one after another."""
        if type(self.data) not in (np.ndarray, np.memmap):  # others, such as masked ones, hold more
            return self
        other = copy.copy(self)
        other.near, other.loops = (0, np.empty((0, self.n)), []), loops()
        return other

    def with_categorical(self, columns: Iterable[Any] | None) -> Self:
        """The same table, in which the numbers of some columns are levels without order."""
        if isinstance(columns, str):
            raise ValueError(f"categorical={columns!r} must be a list of columns")
        other = copy.copy(self)
        try:
            other.categorical = frozenset(self.place(j) for j in columns or ())
        except (TypeError, ValueError) as error:
            raise ValueError(f"categorical={columns!r}: {error}") from error
        return other

    @property
    def count(self) -> int:
        """The number of rows that its columns hold."""
        return self.n if isinstance(self.keep, slice) else int(np.count_nonzero(self.keep))

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns; x0, x1, ... if it has none."""
        if hasattr(self.data, "column_names"):  # of pyarrow
            return list(self.data.column_names)
        if self.is_frame:
            return [str(name) for name in self.data.columns]
        return [f"x{j}" for j in range(self.width)]

    @property
    def is_frame(self) -> bool:
        """Whether its columns have names of their own."""
        return hasattr(self.data, "columns")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in reversed(list(enumerate(self.names)))}  # the first counts

    def place(self, j: Any) -> int:
        """The position of a column that somebody asks for by name or position.

        A number that is the position of one column of a frame and the label of another is refused.
        """
        place = self.position(j)
        labelled = self._places.get(str(j), place) if self.is_frame else place
        if labelled != place:
            raise ValueError(
                f"feature {j} may be the column at position {j} of {self.name} or the one with the "
                f"label {j}, at position {labelled}; expected a name, such as {str(j)!r} for this"
            )
        return place

    def position(self, j: Any) -> int:
        """The position of a column that is given by name or position."""
        if isinstance(j, str) and j in self._places:
            return self._places[j]
        whole = isinstance(j, int | np.integer) and not isinstance(j, bool)
        if whole and -self.width <= j < self.width:
            return int(j) % self.width
        some = f"{self.names[:8]}{' …' * (self.width > 8)}"
        raise ValueError(
            f"feature {j!r} is no column of {self.name}; expected one of the {self.width}: {some}"
        )

    @cached_property
    def _sparse(self) -> Any:
        """By columns, if it is sparse."""
        if not is_sparse(self.data):
            return None
        data = self.data.tocsc()
        if not data.has_canonical_format:
            data = data.copy()
            data.sum_duplicates()
        return data

    @cached_property
    def _block(self) -> np.ndarray | None:
        """A wide pandas frame of one type as an array: thousands of columns come slowly one by one.

        If the frame holds them as one block, as it does if it was made from one array or file,
        nothing is copied.
        """
        if self.width < _WIDE or not hasattr(self.data, "iloc"):
            return None
        first = self.data.dtypes.iloc[0]
        alike = isinstance(first, np.dtype) and bool((self.data.dtypes == first).all())
        return self.data.to_numpy() if alike else None

    def column(self, j: Any) -> Column:
        """A column as numbers; of a sparse one that is mostly 0, those that are stored."""
        j = self.position(j)
        column = self._column(j)
        if j not in self.categorical:
            return column
        try:
            return column.nominal(self.count)
        except ValueError as error:
            raise ValueError(f"categorical: column {self.names[j]!r} {error}") from error

    def _column(self, j: int) -> Column:
        name, ends = f"column {self.names[j]!r} of {self.name}", None
        if self._sparse is not None:
            start, end = self._sparse.indptr[j : j + 2]
            values, rows = self._sparse.data[start:end], self._sparse.indices[start:end]
            column = Column(values, rows).taken(self.keep)
            column = column._replace(values=numbers(name, column.values).values)
            return column if 2 * len(rows) < self.n else Column(column.dense(self.count))
        if self._block is not None:
            values = self._block[:, j]
        elif hasattr(self.data, "iloc"):
            values = self.data.iloc[:, j]
            values = values.to_numpy() if isinstance(values.dtype, np.dtype) else values
        elif hasattr(self.data, "column_names"):
            values = self.data.column(j)
        elif self.is_frame:
            values = _plain(self.data[:, j])
        else:
            values, ends = self._of_array(j)
        return read(name, values, self.n, self.keep, ends)

    def _of_array(self, j: int) -> tuple[np.ndarray, Any]:
        """A column of an array; of one that lies in memory by rows, copied with its neighbours.

        Then its ends are known, too.
        """
        X = self.data
        plain = X.dtype.kind in "iuf" and X.dtype.char not in "eg" and X.dtype.isnative
        if self.near is None or not plain or X.strides[0] <= X.strides[1]:
            return X[:, j], None
        first, columns, ends = self.near
        if not first <= j < first + len(columns):
            several = max(1, min(_RUN // X.itemsize, _NEAR // max(8 * self.n, 1)))
            columns, ends = _transposed(X[:, j : j + several], self.loops)
            first, self.near = j, (j, columns, ends)
        return columns[j - first], ends[j - first]

    def values(self, j: Any) -> np.ndarray:
        """A column as numbers, one per row; nan where it is missing."""
        return self.column(j).dense(self.count)

    def check_rows(self, name: str, value: Any) -> None:
        """Raise if a pandas object goes by another index than this table, so by other rows."""
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


def _transposed(X: np.ndarray, compiled: Any) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """A few columns as floats, each of which lies together in memory, and their ends."""
    columns = np.empty(X.shape[::-1])
    if compiled is not None:
        ends = compiled.transposed(X, columns)
    else:
        for start in range(0, len(X), _TILE):
            columns[:, start : start + _TILE] = X[start : start + _TILE].T
        ends = np.column_stack([columns.min(axis=1), columns.max(axis=1)])
    return columns, [(low, high) for low, high in ends.tolist()]


def _plain(series: Any) -> Any:
    """Numbers of a polars column as an array, which is faster than by any way around."""
    dtype = series.dtype
    return series.to_numpy() if dtype.is_float() or dtype.is_integer() else series


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy, which is not imported to find out."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(data)
