"""Any table of rows, seen once: an array, a sparse matrix or a data frame."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from firmlib._checks import check_array, check_finite, short

_WIDE = 256  # columns


class Column(NamedTuple):
    """The values of a feature: of every row, or of `rows` alone, and 0 elsewhere."""

    values: np.ndarray
    rows: np.ndarray | None = None

    def taken(self, keep: slice | np.ndarray) -> Self:
        """Return the values of some rows: all, or those that a mask keeps."""
        if isinstance(keep, slice):
            return self
        if self.rows is None:
            return self._replace(values=self.values[keep])
        stay = keep[self.rows]
        return self._replace(values=self.values[stay], rows=(np.cumsum(keep) - 1)[self.rows[stay]])

    def dense(self, n: int) -> np.ndarray:
        """Return the values of all `n` rows."""
        if self.rows is None:
            return self.values
        values = np.zeros(n)
        values[self.rows] = self.values
        return values


class Table:
    """A table with names, whose columns are read as numbers.

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
                data = np.asarray(data)
            except ValueError as error:
                raise ValueError(
                    f"{name} must be a table, but its rows differ in length"
                ) from error
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

    @classmethod
    def of(cls, data: Any, name: str = "X") -> Self:
        """See a table, unless it was seen before."""
        return data if isinstance(data, cls) else cls(data, name)

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns; x0, x1, ... if it has none."""
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
        """A column as finite numbers; of a sparse one that is mostly 0, those that are stored."""
        j = self.place(j)
        if self._sparse is not None:
            start, end = self._sparse.indptr[j : j + 2]
            values, rows = self._sparse.data[start:end], self._sparse.indices[start:end]
            if 2 * len(rows) < self.n:
                return Column(self._numbers(j, values), rows)
            return Column(Column(self._numbers(j, values), rows).dense(self.n))
        if self._block is not None:
            values = self._block[:, j]
        elif hasattr(self.data, "iloc"):
            values = self.data.iloc[:, j].to_numpy()
        elif self.is_frame:
            values = self.data[:, j].to_numpy()
        else:
            values = self.data[:, j]
        return Column(self._numbers(j, values))

    def values(self, j: Any) -> np.ndarray:
        """A column as finite numbers, one per row."""
        return self.column(j).dense(self.n)

    def copied(self) -> Any:
        """A copy as finite numbers, sparse if it is."""
        if self._sparse is not None:
            if not np.isfinite(self._sparse.data).all():
                for j in range(self.width):
                    self.column(j)  # one of them says which
            return self._sparse.copy()
        return np.column_stack([self.values(j) for j in range(self.width)])

    def _numbers(self, j: int, values: np.ndarray) -> np.ndarray:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(float), np.nan)
        if values.dtype.kind not in "biuf":
            return check_array(f"column {self.names[j]!r} of {self.name}", values, 1)
        values = np.ascontiguousarray(values, dtype=float)
        if not np.isfinite(values).all():
            check_finite(f"column {self.names[j]!r} of {self.name}", values)
        return values

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


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy, which is not imported to find out."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(data)
