"""What a column holds, as numbers: codes of levels, microseconds of dates, nan if missing."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
import pandas as pd

from firmlib.tables.checks import as_numpy, check_number, check_shape, refuse, short

_MICROSECONDS = {"date": "datetime64[us]", "duration": "timedelta64[us]"}


class Column(NamedTuple):
    """One value per row, nan if missing; value k of an "ordered" or "nominal" is ``labels[k]``."""

    values: np.ndarray
    kind: str = "number"  # or date, duration, ordered, nominal
    labels: np.ndarray | None = None

    @property
    def scale(self) -> Self:
        """The same kind with the codes of all labels, or one value if there are no labels."""
        return self._replace(values=np.arange(1.0 if self.labels is None else len(self.labels)))

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

    def number(self, name: str, value: Any, *, known: bool = True) -> float:
        """Return the number that stands for a user's value; nan if it need not be `known`."""
        if self.kind in _MICROSECONDS:
            try:
                return _moments(self.kind, [value]).values.item()  # an error if it is missing
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name} must be a {self.kind}, got {value!r}") from error
        if self.labels is None:
            return check_number(name, value)
        found = [k for k, label in enumerate(self.labels.tolist()) if label == value]
        if not found and known:
            raise ValueError(f"{name} must be one of {short(self.labels.tolist())}, got {value!r}")
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

    def joined(self, name: str, before: Column) -> Column:
        """Return the same values on the scale of the chunk `before`, with new labels at its end."""
        if np.isnan(self.values).all():  # nothing tells the kind
            return before._replace(values=self.values)
        if before.kind not in ("unknown", self.kind):
            raise ValueError(f"{name} holds {before.kind} values in one chunk, {self.kind} later")
        if self.labels is None or before.labels is None:
            return self
        count = len(before.labels)
        codes, labels = pd.factorize(np.append(before.labels, self.labels))
        if self.kind == "ordered" and 0 < count < len(labels):
            old, new = short(before.labels.tolist()), short(labels[count:].tolist())
            raise ValueError(f"{name} has the ordered levels {old} and later {new}")
        values = self._replace(labels=codes[count:]).shown(self.values).astype(float)
        return self._replace(values=values, labels=labels)


UNKNOWN = Column(np.empty(0), "unknown", np.empty(0))  # all values are missing so far


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
        given: Any = pd.Categorical(values)
        column = read(name, np.ma.masked_less(given.codes, 0), n)
        labels = given.categories.astype(object).to_numpy()
        return column._replace(kind="ordered" if given.ordered else "nominal", labels=labels)
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and not isinstance(dtype, np.dtype):
        known = ~series.is_null().to_numpy().astype(bool)
        found = series.drop_nulls().to_numpy()  # integers stay integers
    else:
        array = as_array(name, values)
        array = array[:, 0] if array.shape[1:] == (1,) else array
        known = ~(pd.isna(np.ma.getdata(array)) | np.ma.getmaskarray(array))
        found = np.ma.getdata(array)[known]
    check_shape(name, known.shape + found.shape[1:], (n,))  # a struct has a second axis
    try:
        column = _of_known(name, found)
    except OverflowError as error:
        raise ValueError(f"{name} must hold numbers up to 1.8e308: {error}") from error
    placed = np.full(n, np.nan)
    placed[known] = column.values
    refuse(f"{name} must be finite or missing", np.isinf(placed), placed, "infinite values")
    return column._replace(values=placed)


def check_present(name: str, values: np.ndarray) -> None:
    """Raise if there are missing values."""
    refuse(f"{name} must not be missing", np.isnan(values), values, "missing values")


def _of_known(name: str, values: np.ndarray) -> Column:
    """Return an array of one kind of values, none of them missing."""
    match pd.api.types.infer_dtype(values, skipna=False):
        case "floating" | "mixed-integer-float" | "decimal" | "empty":
            return Column(np.ascontiguousarray(values, dtype=float))
        case "integer":
            numbers = np.ascontiguousarray(values, dtype=float)
            large = np.abs(numbers).max(initial=0.0) >= 2**53
            if not large or len(np.unique(numbers)) == len(pd.unique(values)):
                return Column(numbers)
        case "boolean":
            return Column(values.astype(float), "ordered", np.array([False, True], object))
        case "datetime" | "datetime64" | "date":
            return _moments("date", values)
        case "period":
            return _moments("date", pd.PeriodIndex(values).to_timestamp())
        case "timedelta" | "timedelta64":
            return _moments("duration", values)
        case kind if kind not in ("string", "bytes"):
            some = {type(v): f"{v!r} ({type(v).__name__})" for v in values.tolist()}
            both = " and ".join([*some.values()][:2])
            expected = "expected numbers, words, dates or truth values, all of one kind"
            raise ValueError(f"{name} holds values such as {both}; {expected}")
    return Column(values.astype(object), "word").nominal()  # or integers that floats would merge


def _moments(kind: str, values: Any) -> Column:
    """Return the known dates, in UTC, or durations among values, objects or words."""
    found: Any = pd.to_datetime(values, utc=True) if kind == "date" else pd.to_timedelta(values)
    return Column(found.dropna().as_unit("us").asi8.astype(float), kind)
