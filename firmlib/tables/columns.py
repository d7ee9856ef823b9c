"""What a column holds: numbers, levels, dates or durations, and where it holds nothing.

Whatever it holds becomes numbers: levels the codes 0, 1, ..., dates and durations microseconds, a
missing value nan.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np

from firmlib.tables.checks import as_numpy, check_number, short

__all__ = ["Column", "read"]

_MICROSECONDS = {"date": "datetime64[us]", "duration": "timedelta64[us]"}
_KINDS = {  # what pandas calls the values of an array of objects
    "date": ("datetime", "datetime64", "date", "period"),
    "duration": ("timedelta", "timedelta64", "time"),
    "integer": ("integer",),
    "number": ("floating", "mixed-integer-float", "decimal", "empty"),
    "ordered": ("boolean",),
    "nominal": ("string", "bytes"),
}


class Column(NamedTuple):
    """The values of a feature as floats, nan where missing, and what they stand for.

    `values` are those of all rows or, if `rows` is given, of these rows; all others are then 0.
    `kind` is "number", "date", "duration", "ordered" or "nominal". For the last two, value k stands
    for ``labels[k]``; integers that floats cannot hold exactly are "ordered", too.
    """

    values: np.ndarray
    rows: np.ndarray | None = None
    kind: str = "number"
    labels: np.ndarray | None = None

    def dense(self, n: int) -> np.ndarray:
        """Return the values of all `n` rows."""
        if self.rows is None:
            return self.values
        values = np.zeros(n)
        values[self.rows] = self.values
        return values

    def take(self, keep: slice | np.ndarray) -> Self:
        """Return the values of some rows: all, or those that a mask keeps."""
        if self.rows is None:
            return self._replace(values=self.values[keep])
        if isinstance(keep, slice):
            if keep == slice(None):
                return self
            raise ValueError("a sparse column is taken by a mask")
        stay = keep[self.rows]
        return self._replace(values=self.values[stay], rows=(np.cumsum(keep) - 1)[self.rows[stay]])

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Return what some values stand for; a missing one is nan, NaT or None."""
        if self.kind in _MICROSECONDS:
            whole = np.where(np.isnan(values), np.nan, np.round(values))
            return whole.astype(_MICROSECONDS[self.kind])
        if self.labels is None:
            return values
        known, shown = ~np.isnan(values), np.full(len(values), None, object)
        shown[known] = self.labels[values[known].astype(int)]
        return shown

    def number(self, name: str, value: Any) -> float:
        """Return the number of a user's `value`; nan if it is no level, for messages `name` it."""
        if self.labels is not None:
            if self.labels.dtype.kind in "iu":  # an order with room between the levels
                place = int(np.searchsorted(self.labels, value, side="right")) - 1
                return place + 0.5 * (place < 0 or self.labels[place] != value)
            found = np.flatnonzero([bool(label == value) for label in self.labels.tolist()])
            return float(found[0]) if len(found) else np.nan
        if self.kind not in _MICROSECONDS:
            return check_number(name, value)
        import pandas as pd

        try:
            if not isinstance(value, datetime.time):
                value = pd.Timestamp(value) if self.kind == "date" else pd.Timedelta(value)
            return float(_of_objects(name, np.array([value], object)).values[0])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}={value!r} must be a {self.kind}") from error

    def nominal(self, n: int) -> Self:
        """Return the same values as levels without order."""
        if self.labels is not None:
            return self._replace(kind="nominal")
        levels, codes = np.unique(self.dense(n), return_inverse=True)
        levels = levels[~np.isnan(levels)]
        whole = self.kind == "number" and np.all((levels % 1 == 0) & (np.abs(levels) < 2**63))
        labels = as_objects((levels.astype(int) if whole else self.shown(levels)).tolist())
        values = np.where(codes < len(levels), codes, np.nan)
        return type(self)(values, None, "nominal", labels)

    def joined(self, name: str, before: Column) -> Self:
        """Return the same values on the scale of the rows `before` these, for chunks.

        Nominal labels that are new come after those before; new ordered labels are refused.
        """
        if self.rows is None and np.isnan(self.values).all():  # nothing tells the kind
            return self._replace(kind=before.kind, labels=before.labels)
        if self.kind != before.kind:
            raise ValueError(
                f"{name} holds {before.kind} values in one chunk and {self.kind} values in "
                "another; expected one kind"
            )
        if self.labels is None or before.labels is None or self.labels is before.labels:
            return self
        place = {label: k for k, label in enumerate(before.labels.tolist())}
        new = [label for label in self.labels.tolist() if label not in place]
        if new and self.kind == "ordered":
            raise ValueError(
                f"{name} has the ordered levels {short(list(place))} in one chunk and also "
                f"{short(new)} in another; expected the same levels in all chunks"
            )
        place |= {label: len(place) + k for k, label in enumerate(new)}
        codes = np.array([*(place[label] for label in self.labels.tolist()), np.nan])
        values = codes[np.where(np.isnan(self.values), -1, self.values).astype(int)]
        labels = as_objects(list(place)) if new else before.labels
        return self._replace(values=values, labels=labels)


def as_objects(labels: Sequence) -> np.ndarray:
    """Return labels as an array of objects, also if they are sequences themselves."""
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


_TRUTH = as_objects([False, True])


def read(name: str, values: Any, n: int) -> Column:
    """Return what an array, a list, a tensor or a column of any frame holds, one value per row.

    Parameters
    ----------
    name : str
        What messages call it.
    values : array, list, tensor or series of length n
    n : int

    Examples
    --------
    >>> from firmlib.tables import read
    >>> column = read("size", ["S", None, "L"], 3)
    >>> column.values, column.kind, column.labels.tolist()
    (array([ 1., nan,  0.]), 'nominal', ['L', 'S'])
    """
    values = as_numpy(values)
    if not isinstance(values, np.ndarray):
        series: Any = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series) and not hasattr(getattr(values, "dtype", None), "char"):
            _check_shape(name, series.shape, n)
            return _of_series(name, series)
        values = _as_array(name, values)
    _check_shape(name, values.shape, n)
    if np.ma.is_masked(values):
        known = ~np.ma.getmaskarray(values)
        return _placed(known, read(name, np.ma.getdata(values)[known], int(known.sum())))
    return _of_array(name, np.ma.getdata(values))


def check_present(name: str, values: np.ndarray) -> None:
    """Raise if there are missing values."""
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{name} must not be missing, got {missing.sum()} missing values, the first at row "
            f"{missing.argmax()}; missing='level' makes them one, missing='drop' leaves them out"
        )


def check_no_inf(name: str, values: np.ndarray, start: int = 0) -> None:
    """Raise if there are infinite values, in rows that begin at `start`."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(infinite.argmax())
        raise ValueError(
            f"{name} must be finite or missing, got {infinite.sum()} infinite values, the first "
            f"{values[row]} at row {start + row}"
        )


def _check_shape(name: str, shape: tuple[int, ...], n: int) -> None:
    if len(shape) != 1:
        raise ValueError(f"{name} must have 1 axes, got shape {shape}")
    if shape != (n,):
        raise ValueError(f"{name} has shape {shape}, expected {(n,)}")


def _as_array(name: str, values: Any) -> np.ndarray:
    """Return one value per row; a list with words as objects, since [1, "a"] becomes words."""
    try:
        array = np.asarray(values)
        words = array.dtype.kind in "US" and isinstance(values, list | tuple)
        return np.array(values, dtype=object) if words else array
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold one value per row, got {type(values).__name__}: {error}"
        ) from error


def _placed(known: np.ndarray, column: Column) -> Column:
    """Return a column of the known rows as one of all rows."""
    if known.all():
        return column
    values = np.full(len(known), np.nan)
    values[known] = column.values
    return column._replace(values=values)


def _of_array(name: str, values: np.ndarray) -> Column:
    kind = values.dtype.kind
    if kind in "iu":
        return _integers(values)
    if kind == "f":
        values = np.ascontiguousarray(values, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(values.sum())  # faster than looking at each
        if not finite:
            check_no_inf(name, values)
        return Column(values)
    if kind == "b":
        return Column(values.astype(float), None, "ordered", _TRUTH)
    if kind in "mM":
        kind = "date" if kind == "M" else "duration"
        moments = values.astype(_MICROSECONDS[kind])
        return Column(np.where(np.isnat(moments), np.nan, moments.astype(float)), None, kind)
    if kind not in "OUST":
        raise ValueError(f"{name} must hold numbers, words or dates, got {values.dtype}")
    import pandas as pd

    values = values.astype(object, copy=False)
    known = ~pd.isna(values)
    return _placed(known, _of_objects(name, values[known]))


def _integers(values: np.ndarray) -> Column:
    """Return integers as numbers, or as ordered levels if floats would merge some of them."""
    numbers = np.ascontiguousarray(values, dtype=float)
    if values.dtype.itemsize < 8 or np.abs(numbers).max(initial=0.0) < 2**53:
        return Column(numbers)
    labels, codes = np.unique(values, return_inverse=True)
    if len(np.unique(labels.astype(float))) == len(labels):
        return Column(numbers)
    return Column(codes.astype(float), None, "ordered", labels)


def _of_series(name: str, series: nw.Series) -> Column:
    dtype = series.dtype
    if dtype.is_integer():
        known = ~series.is_null().to_numpy().astype(bool)
        return _placed(known, _of_array(name, series.drop_nulls().to_numpy()))
    if dtype.is_numeric():
        return _of_array(name, series.cast(nw.Float64).to_numpy().astype(float))
    if dtype == nw.Boolean:
        return Column(series.cast(nw.Float64).to_numpy().astype(float), None, "ordered", _TRUTH)
    if dtype in (nw.Datetime, nw.Date):
        return Column(series.dt.timestamp("us").cast(nw.Float64).to_numpy(), None, "date")
    if dtype == nw.Duration:
        moments = series.dt.total_microseconds().cast(nw.Float64).to_numpy()
        return Column(moments, None, "duration")
    if dtype in (nw.Categorical, nw.Enum):
        native: Any = series.to_native()
        if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # of pandas
            codes = native.cat.codes.to_numpy().astype(float)
            labels = as_objects(native.cat.categories.tolist())
            kind = "ordered" if native.cat.ordered else "nominal"
            return Column(np.where(codes < 0, np.nan, codes), None, kind, labels)
        series = series.cast(nw.String)
    return _of_array(name, series.to_numpy().astype(object, copy=False))


def _of_objects(name: str, values: np.ndarray) -> Column:
    """Return Python objects, all of one kind and none missing."""
    import pandas as pd

    called = pd.api.types.infer_dtype(values, skipna=False)
    kind = next((kind for kind, names in _KINDS.items() if called in names), None)
    if kind is None:
        raise ValueError(f"{name} {_of_different_kind(values)}")
    some: Any = values
    if kind == "integer":
        small = all(-(2**63) <= v < 2**63 for v in values)
        return _integers(values.astype(np.int64) if small else values)
    if kind == "number":
        return _of_array(name, values.astype(float))
    if kind == "ordered":
        return _of_array(name, values.astype(bool))
    if kind == "nominal":
        codes, labels = pd.factorize(some, sort=True)
        return Column(codes.astype(float), None, kind, as_objects(labels.tolist()))
    if called == "time":
        start = datetime.datetime.min
        since = [datetime.datetime.combine(start.date(), t) - start for t in values]
        return _of_array(name, np.array(since, "timedelta64[us]"))
    if kind == "duration":
        return _of_array(name, pd.to_timedelta(some).to_numpy())
    some = pd.PeriodIndex(some).to_timestamp() if called == "period" else some
    return _of_array(name, pd.to_datetime(some, utc=True).tz_localize(None).to_numpy())


def _of_different_kind(values: np.ndarray) -> str:
    first = values[0]
    other = next((v for v in values if type(v) is not type(first)), None)
    expected = "expected numbers, words, dates or truth values, of one kind"
    if other is None:
        return f"holds {type(first).__name__} such as {first!r}; {expected}"
    return (
        f"holds values of different kind, such as {first!r} ({type(first).__name__}) and "
        f"{other!r} ({type(other).__name__}); {expected}"
    )
