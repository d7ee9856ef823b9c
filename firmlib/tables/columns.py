"""What a column holds, as numbers: codes of levels, microseconds of dates, nan if missing."""

from __future__ import annotations

import datetime
import sys
from contextlib import suppress
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
import pandas as pd

from firmlib.tables.checks import as_numpy, check_ndim, check_number, short

__all__: list[str] = []  # nothing here is public

_MICROSECONDS = {"date": "datetime64[us]", "duration": "timedelta64[us]"}
_TRUTH = np.array([False, True], object)


class Column(NamedTuple):
    """The values of all rows or, if `rows` is given, of these rows; all others are then 0.

    `kind` is "number", "date", "duration", "ordered" or "nominal". For the last two, value k stands
    for ``labels[k]``. Integers that floats would merge are "ordered".
    """

    values: np.ndarray
    rows: np.ndarray | None = None
    kind: str = "number"
    labels: np.ndarray | None = None

    @property
    def codes(self) -> np.ndarray:
        """The codes of all labels; none if there are no labels."""
        return np.arange(0.0 if self.labels is None else len(self.labels))

    def dense(self, n: int) -> np.ndarray:
        """Return the values of all `n` rows."""
        if self.rows is None:
            return self.values
        values = np.zeros(n)
        values[self.rows] = self.values
        return values

    def take(self, keep: slice | np.ndarray) -> Self:
        """Return the values of some rows: those that a mask keeps, or a slice."""
        if self.rows is None:
            return self._replace(values=self.values[keep])
        if isinstance(keep, slice):
            start, stop, _ = keep.indices(sys.maxsize)
            stay = (self.rows >= start) & (self.rows < stop)
            return self._replace(values=self.values[stay], rows=self.rows[stay] - start)
        stay = keep[self.rows]
        return self._replace(values=self.values[stay], rows=(np.cumsum(keep) - 1)[self.rows[stay]])

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Return what some values stand for; a missing one is nan, NaT or None."""
        if self.kind in _MICROSECONDS:
            return np.round(values).astype(_MICROSECONDS[self.kind])
        if self.labels is None:
            return values
        return np.append(self.labels, np.array([None]))[np.nan_to_num(values, nan=-1).astype(int)]

    def number(self, name: str, value: Any) -> float:
        """Return the number that stands for a user's value, or nan for an unknown level."""
        if self.labels is not None and self.labels.dtype.kind in "iu":
            place = int(np.searchsorted(self.labels, value, side="right")) - 1
            return place + 0.5 * (place < 0 or self.labels[place] != value)  # between two levels
        if self.labels is not None:
            found = [k for k, label in enumerate(self.labels.tolist()) if label == value]
            return float(found[0]) if found else np.nan
        if self.kind not in _MICROSECONDS:
            return check_number(name, value)
        try:
            if self.kind == "date":
                moment = pd.Timestamp(value)
            else:
                moment = pd.Timedelta(str(value) if isinstance(value, datetime.time) else value)
            return float(read(name, [moment], 1).values[0])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}={value!r} must be a {self.kind}") from error

    def nominal(self, n: int) -> Self:
        """Return the same values as nominal levels."""
        if self.labels is not None:
            return self._replace(kind="nominal")
        codes, levels = pd.factorize(self.dense(n), sort=True)
        whole = self.kind == "number" and np.all((levels % 1 == 0) & (np.abs(levels) < 2**63))
        labels = levels.astype(int) if whole else self.shown(np.asarray(levels))
        values = np.where(codes < 0, np.nan, codes)
        return type(self)(values, None, "nominal", np.asarray(labels, object))

    def joined(self, name: str, before: Column) -> Self:
        """Return the same values on the scale of the chunk `before`, with new labels at its end."""
        if self.rows is None and np.isnan(self.values).all():  # nothing tells the kind
            return self._replace(kind=before.kind, labels=before.labels)
        if self.kind != before.kind:
            raise ValueError(
                f"{name} holds {before.kind} values in one chunk and {self.kind} values in another"
            )
        if self.labels is None or before.labels is None or self.labels is before.labels:
            return self
        both = np.concatenate([before.labels, self.labels], dtype=object)
        labels = pd.Index(both, dtype=object).unique()
        new = labels[len(before.labels) :].tolist()
        if new and self.kind == "ordered":
            raise ValueError(
                f"{name} has the ordered levels {short(before.labels.tolist())} in one chunk and "
                f"also {short(new)} in another; expected the same levels in all chunks"
            )
        codes = np.append(labels.get_indexer_for(self.labels), np.nan)
        values = codes[np.nan_to_num(self.values, nan=-1).astype(int)]
        labels = labels.to_numpy() if new else before.labels
        return self._replace(values=values, labels=labels)


def as_array(name: str, values: Any, expected: str = "one value per row") -> np.ndarray:
    """Return a list as an array, of objects if it holds words: [1, "a"] is not ["1", "a"]."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be {expected}, but its rows differ in length") from error
    words = array.dtype.kind in "US" and isinstance(values, list | tuple)
    return np.array(values, dtype=object) if words else array


def read(name: str, values: Any, n: int) -> Column:
    """Return what an array, a list, a tensor or a column of any frame holds, one value per row.

    >>> read("size", ["S", None, "L"], 3).values
    array([ 1., nan,  0.])
    """
    if hasattr(values, "detach"):
        values = as_numpy(values)
    if not isinstance(values, np.ndarray):
        series: Any = nw.from_native(values, series_only=True, pass_through=True)
        if not isinstance(series, nw.Series):
            values = as_array(name, values)
        elif isinstance(getattr(values, "dtype", None), np.dtype):
            values = values.to_numpy()
        else:
            values = series
    if values.shape != (n,):
        check_ndim(name, values.shape, 1)
        raise ValueError(f"{name} has shape {values.shape}, expected {(n,)}")
    known: Any = slice(None)
    if isinstance(values, nw.Series):
        known = ~values.is_null().to_numpy().astype(bool)
        column = _of_series(name, values.drop_nulls())
    elif np.ma.is_masked(values) or values.dtype.kind == "O":
        known = ~(pd.isna(np.ma.getdata(values)) | np.ma.getmaskarray(values))
        column = _of_array(name, np.ma.getdata(values)[known])
    else:
        column = _of_array(name, np.ma.getdata(values))
    if len(column.values) < n:
        placed = np.full(n, np.nan)
        placed[known] = column.values
        column = column._replace(values=placed)
    check_no_inf(name, column.values)
    return column


def check_present(name: str, values: np.ndarray) -> None:
    """Raise if there are missing values."""
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{name} must not be missing, got {missing.sum()} missing values, the first at row "
            f"{missing.argmax()}; missing='level' makes them one, missing='drop' leaves them out"
        )


def check_no_inf(name: str, values: np.ndarray, rows: slice | np.ndarray = slice(0, None)) -> None:
    """Raise if there are infinite values, in these `rows` of a table."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(infinite.argmax())
        raise ValueError(
            f"{name} must be finite or missing, got {infinite.sum()} infinite values, the first "
            f"{values[row]} at row {rows.start + row if isinstance(rows, slice) else rows[row]}"
        )


def _of_array(name: str, values: np.ndarray) -> Column:
    """Return the values of an array, in which no objects are missing."""
    kind = values.dtype.kind
    if kind in "iu":
        return _integers(values)
    if kind == "f":
        return Column(np.ascontiguousarray(values, dtype=float))
    if kind == "b":
        return Column(values.astype(float), None, "ordered", _TRUTH)
    if kind in "mM":
        kind = "date" if kind == "M" else "duration"
        moments = values.astype(_MICROSECONDS[kind])
        return Column(np.where(np.isnat(moments), np.nan, moments.astype(float)), None, kind)
    if kind in "OUST":
        return _of_objects(name, values.astype(object, copy=False))
    raise ValueError(f"{name} must hold numbers, words or dates, got {values.dtype}")


def _integers(values: np.ndarray) -> Column:
    """Return integers as numbers, or as ordered levels if floats would merge some of them."""
    numbers = np.ascontiguousarray(values, dtype=float)
    if np.abs(numbers).max(initial=0.0) < 2**53:
        return Column(numbers)
    labels, codes = np.unique(values, return_inverse=True)
    if len(np.unique(numbers)) == len(labels):
        return Column(numbers)
    return Column(codes.astype(float), None, "ordered", labels)


def _of_series(name: str, series: nw.Series) -> Column:
    """Return the values of a column of a frame, none of them missing."""
    dtype, native = series.dtype, series.to_native()
    if dtype.is_integer():
        return _of_array(name, series.to_numpy())
    if dtype.is_numeric() or dtype == nw.Boolean:
        numbers = series.cast(nw.Float64).to_numpy().astype(float)
        return _of_array(name, numbers.astype(bool) if dtype == nw.Boolean else numbers)
    if dtype in (nw.Datetime, nw.Date, nw.Duration):
        spell = dtype == nw.Duration
        moments = series.dt.total_microseconds() if spell else series.dt.timestamp("us")
        return Column(moments.to_numpy().astype(float), None, "duration" if spell else "date")
    if dtype in (nw.Categorical, nw.Enum):
        categories: Any = getattr(native, "cat", None)
        if hasattr(categories, "codes"):  # of pandas
            codes, labels = categories.codes.to_numpy(), categories.categories.astype(object)
            kind = "ordered" if categories.ordered else "nominal"
            return Column(codes.astype(float), None, kind, labels.to_numpy())
        series = series.cast(nw.String)
    values = series.to_numpy().astype(object, copy=False)
    check_ndim(name, values.shape, 1)  # a struct has more
    return _of_array(name, values)


def _of_objects(name: str, values: np.ndarray) -> Column:
    """Return Python objects, all of one kind and none missing."""
    some: Any
    match called := pd.api.types.infer_dtype(values, skipna=False):
        case "string" | "bytes":
            codes, labels = pd.factorize(values, sort=True)
            return Column(codes.astype(float), None, "nominal", np.asarray(labels))
        case "integer":
            with suppress(OverflowError):  # beyond 64 bits they stay objects
                values = values.astype(np.int64)
            return _integers(values)
        case "boolean":
            some = values.astype(bool)
        case "floating" | "mixed-integer-float" | "decimal" | "empty":
            some = values.astype(float)
        case "datetime" | "datetime64" | "date":
            some = pd.to_datetime(values, utc=True).tz_localize(None).to_numpy()
        case "period":
            some = pd.PeriodIndex(values).to_timestamp().to_numpy()
        case "timedelta" | "timedelta64" | "time":
            some = pd.to_timedelta(values.astype(str) if called == "time" else values).to_numpy()
        case _:
            first = values[0]
            other = next((v for v in values if type(v) is not type(first)), first)
            raise ValueError(
                f"{name} holds values such as {first!r} ({type(first).__name__}) and {other!r} "
                f"({type(other).__name__}); expected numbers, words, dates or truth values, all "
                "of one kind"
            )
    return _of_array(name, some)
