"""What a column holds, as numbers: codes of levels, microseconds of dates, nan if missing."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
import pandas as pd

from firmlib.tables.checks import as_numpy, check_number, check_shape, refuse, short

_MICROSECONDS = {"date": "datetime64[us]", "duration": "timedelta64[us]"}


class Column(NamedTuple):
    """One value per row, nan if missing; value k of an "ordered" or "nominal" is ``labels[k]``."""

    values: np.ndarray
    kind: str = "number"  # or date, duration, ordered (as integers that floats merge), nominal
    labels: np.ndarray | None = None

    @property
    def codes(self) -> np.ndarray:
        """The codes of all labels; one value if there are no labels, none if nothing is known."""
        some = 1.0 if self.labels is None else len(self.labels)
        return np.arange(0.0 if self.kind == "unknown" else some)

    def take(self, keep: slice | np.ndarray) -> Self:
        """Return the values of some rows."""
        return self._replace(values=self.values[keep])

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Return what some values stand for; a missing one is nan, NaT or None."""
        if self.kind in _MICROSECONDS:
            return np.round(values).astype(_MICROSECONDS[self.kind])
        if self.labels is None:
            return values
        return np.append(self.labels, np.array([None]))[np.nan_to_num(values, nan=-1).astype(int)]

    def number(self, name: str, value: Any) -> float:
        """Return the number that stands for a user's value, or nan for an unknown level."""
        if self.kind in _MICROSECONDS:
            try:
                return float(read(name, _moments(self.kind, [value]), 1).values[0])
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}={value!r} must be a {self.kind}") from error
        if self.labels is None:
            return check_number(name, value)
        found = [k for k, label in enumerate(self.labels.tolist()) if label == value]
        if not found and self.labels.dtype.kind in "iu":  # between two levels
            check_number(name, value)
            return float(np.searchsorted(self.labels, value)) - 0.5
        return float(found[0]) if found else np.nan

    def nominal(self) -> Self:
        """Return the same values as nominal levels."""
        if self.labels is not None:
            return self._replace(kind="nominal")
        codes, levels = pd.factorize(self.values, sort=True)
        whole = self.kind == "number" and np.all((levels % 1 == 0) & (np.abs(levels) < 2**63))
        labels = levels.astype(int) if whole else self.shown(np.asarray(levels))
        values = np.where(codes < 0, np.nan, codes)
        return type(self)(values, "nominal", np.asarray(labels, object))

    def joined(self, name: str, before: Column) -> Self:
        """Return the same values on the scale of the chunk `before`, with new labels at its end."""
        if np.isnan(self.values).all():  # nothing tells the kind
            return self._replace(kind=before.kind, labels=before.labels)
        if self.kind != before.kind:
            kinds = f"{before.kind} values in one chunk and {self.kind} values in another"
            raise ValueError(f"{name} holds {kinds}")
        if self.labels is None or before.labels is None or self.labels is before.labels:
            return self
        labels = pd.Index([*before.labels, *self.labels], dtype=object).unique()
        new = labels[len(before.labels) :].tolist()
        if new and self.kind == "ordered":
            levels = f"the ordered levels {short(before.labels.tolist())} in one chunk"
            raise ValueError(f"{name} has {levels} and also {short(new)} in another")
        codes = self._replace(labels=labels.get_indexer_for(self.labels)).shown(self.values)
        labels = labels.to_numpy() if new else before.labels
        return self._replace(values=codes.astype(float), labels=labels)


def as_array(name: str, values: Any) -> np.ndarray:
    """Return a list as an array, of objects if it holds words: [1, "a"] is not ["1", "a"]."""
    try:
        array = np.asanyarray(values)  # which keeps a mask
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have rows of one length: {error}") from error
    kinds = "USV" if isinstance(values, list | tuple) else "V"
    return np.array(values, dtype=object) if array.dtype.kind in kinds else array


def read(name: str, values: Any, n: int) -> Column:
    """Return what an array, a list, a tensor or a column of any frame holds, one value per row."""
    values = as_numpy(values)
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        check_shape(name, values.shape, (n,))
        given: Any = pd.Categorical(values)
        kind = "ordered" if given.ordered else "nominal"
        codes = np.where(given.codes < 0, np.nan, given.codes)
        return Column(codes, kind, given.categories.astype(object).to_numpy())
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and not isinstance(dtype, np.dtype):
        known = ~series.is_null().to_numpy().astype(bool)
        found = series.drop_nulls().to_numpy()  # integers stay integers
    else:
        array = as_array(name, values)
        known = ~(pd.isna(np.ma.getdata(array)) | np.ma.getmaskarray(array))
        found = np.ma.getdata(array)[known]
    if (shape := known.shape + found.shape[1:]) != (n,):  # a struct has a second axis
        check_shape(name, shape, (n,))
    column = _of_array(name, found)
    if not known.all():
        placed = np.full(n, np.nan)
        placed[known] = column.values
        column = column._replace(values=placed)
    infinite = np.isinf(column.values)
    refuse(f"{name} must be finite or missing", infinite, column.values, "infinite values")
    return column


def check_present(name: str, values: np.ndarray) -> None:
    """Raise if there are missing values."""
    advice = "missing='level' makes them one, missing='drop' leaves them out"
    refuse(f"{name} must not be missing ({advice})", np.isnan(values), values, "missing values")


def _of_array(name: str, values: np.ndarray) -> Column:
    """Return the values of an array, none of them missing."""
    match values.dtype.kind:
        case "f":
            return Column(np.ascontiguousarray(values, dtype=float))
        case "i" | "u":
            return _integers(values)
        case "b":
            return Column(values.astype(float), "ordered", np.array([False, True], object))
        case "M" | "m" as code:
            kind = "date" if code == "M" else "duration"
            return Column(values.astype(_MICROSECONDS[kind]).astype(float), kind)
        case "O" | "U" | "S" | "T":
            return _of_objects(name, values.astype(object, copy=False))
        case _:
            raise ValueError(f"{name} must hold numbers, words or dates, got {values.dtype}")


def _integers(values: np.ndarray) -> Column:
    """Return integers as numbers, or as ordered levels if floats would merge some of them."""
    numbers = np.ascontiguousarray(values, dtype=float)
    if np.abs(numbers).max(initial=0.0) >= 2**53:
        labels, codes = np.unique(values, return_inverse=True)
        if len(np.unique(numbers)) < len(labels):
            return Column(codes.astype(float), "ordered", labels)
    return Column(numbers)


def _moments(kind: str, values: Any) -> np.ndarray:
    """Return the dates, in UTC, or durations that objects or words stand for."""
    if kind == "date":
        return pd.to_datetime(values, utc=True).tz_localize(None).to_numpy()
    some = [str(v) if isinstance(v, datetime.time) else v for v in values]
    return pd.to_timedelta(some).to_numpy()


def _of_objects(name: str, values: np.ndarray) -> Column:
    """Return Python objects, all of one kind and none missing."""
    match pd.api.types.infer_dtype(values, skipna=False):
        case "string" | "bytes":
            codes, labels = pd.factorize(values, sort=True)
            return Column(codes.astype(float), "nominal", np.asarray(labels))
        case "integer":
            try:
                return _integers(values.astype(np.int64))
            except OverflowError:  # beyond 64 bits they stay objects
                return _integers(values)
        case "boolean":
            return _of_array(name, values.astype(bool))
        case "floating" | "mixed-integer-float" | "decimal" | "empty":
            return _of_array(name, values.astype(float))
        case "datetime" | "datetime64" | "date":
            return _of_array(name, _moments("date", values))
        case "period":
            return _of_array(name, pd.PeriodIndex(values).to_timestamp().to_numpy())
        case "timedelta" | "timedelta64" | "time":
            return _of_array(name, _moments("duration", values))
        case _:
            first = values[0]
            other = next((v for v in values if type(v) is not type(first)), first)
            both = " and ".join(f"{v!r} ({type(v).__name__})" for v in (first, other))
            expected = "expected numbers, words, dates or truth values, all of one kind"
            raise ValueError(f"{name} holds values such as {both}; {expected}")
