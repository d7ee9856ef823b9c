"""What a column holds: numbers, levels of a category or dates, and where it holds nothing.

Whatever it holds, it reaches the bins as numbers: levels as codes 0, 1, ..., dates and durations
as microseconds, a missing value as nan. A `Scale` says what the numbers stand for.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np

from firmlib._checks import check_number, short

KINDS = ("number", "date", "duration", "ordered", "nominal")
_WHOLE = 2**53  # from here on floats do not tell whole numbers apart
_MICROSECONDS = {"date": "datetime64[us]", "duration": "timedelta64[us]"}
_OBJECTS = {  # what pandas calls them
    "date": ("datetime", "datetime64", "date", "period"),
    "duration": ("timedelta", "timedelta64", "time"),
    "number": ("floating", "integer", "mixed-integer-float", "decimal", "empty"),
    "ordered": ("boolean",),
    "nominal": ("string", "bytes"),
}


class Scale(NamedTuple):
    """What the numbers of a column stand for: themselves, dates, or the `labels` of levels."""

    kind: str = "number"
    labels: np.ndarray | None = None

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Return what the numbers stand for; a missing one is nan, NaT or None."""
        if self.kind in _MICROSECONDS:
            return np.where(np.isnan(values), np.nan, np.round(values)).astype(
                _MICROSECONDS[self.kind]
            )
        if self.labels is None:
            return values
        known, shown = ~np.isnan(values), np.full(len(values), None, object)
        shown[known] = self.labels[values[known].astype(int)]
        return shown

    def number(self, name: str, value: Any) -> float:
        """Return the number of a value that somebody asks for; nan if no level is called so."""
        if self.labels is not None:
            found = np.flatnonzero([bool(label == value) for label in self.labels.tolist()])
            return float(found[0]) if len(found) else np.nan
        if self.kind not in _MICROSECONDS:
            return check_number(name, value)
        try:
            [number] = _objects(name, np.array([_parsed(self.kind, value)], object))[0]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}={value!r} must be a {self.kind}") from error
        return float(number)

    def joined(self, name: str, other: Scale) -> Self:
        """Return a scale for the numbers of both, with the labels of either."""
        if self.kind != other.kind:
            raise ValueError(
                f"{name} holds {self.kind} values in one part of the rows and {other.kind} values "
                "in another; expected one kind"
            )
        if self.labels is None or other.labels is None or self.labels is other.labels:
            return self
        mine = dict.fromkeys(self.labels.tolist())
        new = [label for label in other.labels.tolist() if label not in mine]
        if new and self.kind == "ordered":
            raise ValueError(
                f"{name} has the ordered levels {short(list(mine))} in one part of the rows and "
                f"also {short(new)} in another; expected the same in all"
            )
        return self._replace(labels=as_objects([*mine, *new])) if new else self

    def codes(self, other: Scale) -> np.ndarray | None:
        """Return the number here of each level of another scale; None if all agree."""
        if self.labels is None or other.labels is None or self.labels is other.labels:
            return None
        place = {label: float(i) for i, label in enumerate(self.labels.tolist())}
        return np.array([place.get(label, np.nan) for label in other.labels.tolist()])


NUMBER = Scale()


class Column(NamedTuple):
    """The values of a feature: of every row, or of `rows` alone, and 0 elsewhere; nan: missing.

    `ends` are the least and the largest one, nan if one is missing, where they are known.
    """

    values: np.ndarray
    rows: np.ndarray | None = None
    scale: Scale = NUMBER
    ends: tuple[float, float] | None = None

    def dense(self, n: int) -> np.ndarray:
        """Return the values of all `n` rows."""
        if self.rows is None:
            return self.values
        values = np.zeros(n)
        values[self.rows] = self.values
        return values

    def taken(self, keep: slice | np.ndarray) -> Self:
        """Return the values of some rows: all, or those that a mask keeps."""
        if isinstance(keep, slice):
            return self
        if self.rows is None:
            return self._replace(values=self.values[keep], ends=None)
        stay = keep[self.rows]
        return self._replace(values=self.values[stay], rows=(np.cumsum(keep) - 1)[self.rows[stay]])

    def nominal(self, n: int) -> Self:
        """Return the same with each number as a level without order."""
        if self.scale.kind == "nominal":
            return self
        levels, codes = np.unique(self.dense(n), return_inverse=True)
        levels = levels[~np.isnan(levels)]
        if self.scale == NUMBER and np.any(np.abs(levels) >= _WHOLE):
            raise ValueError(
                f"has levels such as {levels[np.abs(levels).argmax()]:.17g}, which may stand for "
                "several whole numbers, as floats do from 2^53 on; expected words, .astype(str)"
            )
        labels = self.scale.shown(levels)
        if self.scale == NUMBER and np.all(levels % 1 == 0):
            labels = levels.astype(int)
        values = np.where(codes < len(levels), codes, np.nan)
        return type(self)(values, None, Scale("nominal", as_objects(labels.tolist())))

    def on(self, scale: Scale) -> np.ndarray:
        """Return the values as numbers of another scale."""
        codes = scale.codes(self.scale)
        if codes is None:
            return self.values
        return np.append(codes, np.nan)[np.nan_to_num(self.values, nan=len(codes)).astype(int)]


def as_objects(labels: Sequence) -> np.ndarray:
    """Return an array of objects, also of labels that are sequences themselves."""
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


def read(
    name: str, values: Any, n: int, keep: slice | np.ndarray = slice(None), ends: Any = None
) -> Column:
    """Return what an array, a list or a column of a frame holds in the rows that are kept.

    Numbers are not copied if they are float already, and not searched if their `ends` are known.
    """
    if not isinstance(values, np.ndarray):
        series: Any = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            _check_shape(name, series.shape, n)
            return _of_series(
                name, series if isinstance(keep, slice) else series.filter(keep.tolist())
            )
        values = as_array(name, values)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)
    _check_shape(name, values.shape, n)
    values = values[keep]
    kind = values.dtype.kind
    if kind in "iuf":
        return numbers(name, values, ends if isinstance(keep, slice) else None)
    if kind == "b":
        return Column(values.astype(float), None, _TRUTH)
    if kind in "mM":
        scale = Scale("date" if kind == "M" else "duration")
        moments = values.astype(_MICROSECONDS[scale.kind])
        return Column(np.where(np.isnat(moments), np.nan, moments.astype(float)), None, scale)
    return Column(*_objects(name, values.astype(object) if kind in "UST" else values))


_TRUTH = Scale("ordered", as_objects([False, True]))


def numbers(name: str, values: np.ndarray, ends: Any = None) -> Column:
    """Return numbers that are finite or missing as floats, one after another in memory."""
    values = np.ascontiguousarray(values, dtype=float)
    if ends is None or not all(map(isfinite, ends)):
        ends = (float(values.min()), float(values.max())) if len(values) else None
    if ends and not all(map(isfinite, ends)) and np.isinf(values).any():
        bad = np.flatnonzero(np.isinf(values))
        raise ValueError(
            f"{name} must be finite or missing, got {len(bad)} infinite values, the first "
            f"{values[bad[0]]} at ({bad[0]},)"
        )
    return Column(values, ends=ends)


def check_present(name: str, values: np.ndarray) -> None:
    """Raise if there are missing values."""
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{name} must not be missing, got {missing.sum()} missing values, the first at row "
            f"{missing.argmax()}; missing='level' makes them one, missing='drop' leaves them out"
        )


def _check_shape(name: str, shape: tuple[int, ...], n: int) -> None:
    if len(shape) != 1:
        raise ValueError(f"{name} must have 1 axes, got shape {shape}")
    if shape != (n,):
        raise ValueError(f"{name} has shape {shape}, expected {(n,)}")


def as_array(name: str, values: Any) -> np.ndarray:
    """Return one value per row; of a list with words, as objects."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            array = np.array(values, dtype=object)  # [1, "a"] became words
        return array
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold one value per row, got {type(values).__name__}: {error}"
        ) from error


def _of_series(name: str, series: nw.Series) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        return numbers(name, series.cast(nw.Float64).to_numpy())
    if dtype == nw.Boolean:
        return Column(series.cast(nw.Float64).to_numpy(), None, _TRUTH)
    if dtype in (nw.Datetime, nw.Date):
        moments = series.dt.timestamp("us").cast(nw.Float64).to_numpy()
        return Column(moments, None, Scale("date"))
    if dtype == nw.Duration:
        moments = series.dt.total_microseconds().cast(nw.Float64).to_numpy()
        return Column(moments, None, Scale("duration"))
    if dtype in (nw.Categorical, nw.Enum):
        native: Any = series.to_native()
        if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # of pandas
            codes = native.cat.codes.to_numpy().astype(float)
            labels = as_objects(native.cat.categories.tolist())
            kind = "ordered" if native.cat.ordered else "nominal"
            return Column(np.where(codes < 0, np.nan, codes), None, Scale(kind, labels))
        series = series.cast(nw.String)
    return Column(*_objects(name, series.to_numpy().astype(object, copy=False)))


def _objects(name: str, values: np.ndarray) -> tuple[np.ndarray, None, Scale]:
    """Return what Python objects stand for, all of one kind."""
    import pandas as pd

    numbers_of = np.full(len(values), np.nan)
    if values.ndim != 1 or values.dtype.kind != "O":
        raise ValueError(f"{name} must hold numbers, words or dates, got {values.dtype}")
    known = ~pd.isna(values)
    some: Any = values[known]
    called = pd.api.types.infer_dtype(some, skipna=False)
    kind = next((kind for kind, names in _OBJECTS.items() if called in names), None)
    if kind is None:
        raise ValueError(f"{name} {_of_different_kind(some)}")
    scale = Scale(kind)
    if kind == "nominal":
        numbers_of[known], labels = pd.factorize(some, sort=True)
        scale = Scale(kind, as_objects(labels.tolist()))
    elif called == "time":
        day = datetime.date.min
        since = [datetime.datetime.combine(day, t) - datetime.datetime.min for t in some]
        numbers_of[known] = np.array(since, "timedelta64[us]").astype(float)
    elif kind == "duration":
        numbers_of[known] = pd.to_timedelta(some).to_numpy().astype("timedelta64[us]").astype(float)
    elif kind == "date":
        if called == "period":
            some = pd.PeriodIndex(some).to_timestamp()
        moments = pd.to_datetime(some, utc=True).tz_localize(None).to_numpy()
        numbers_of[known] = moments.astype("datetime64[us]").astype(float)
    else:
        numbers_of[known] = some.astype(float)
    if kind == "ordered":
        scale = _TRUTH
    return (numbers(name, numbers_of).values if kind == "number" else numbers_of), None, scale


def _of_different_kind(values: np.ndarray) -> str:
    first = values[0]
    other = next((v for v in values if type(v) is not type(first)), None)
    wanted = "expected numbers, words, dates or truth values, of one kind"
    if other is None:
        return f"holds {type(first).__name__} such as {first!r}; {wanted}"
    return (
        f"holds values of different kind, such as {first!r} ({type(first).__name__}) and "
        f"{other!r} ({type(other).__name__}); {wanted}"
    )


def _parsed(kind: str, value: Any) -> Any:
    import pandas as pd

    if isinstance(value, datetime.time):
        return value
    return pd.Timestamp(value) if kind == "date" else pd.Timedelta(value)
