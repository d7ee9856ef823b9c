"""Rows with a positive weight: their scores, weights, units and folds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from pandas.util import hash_array  # type: ignore[attr-defined]

from firmlib.tables.checks import check_weights, refuse
from firmlib.tables.columns import Column
from firmlib.tables.table import Table

FOLDS = 32
"""Parts of the rows that the jackknife leaves out in turn."""

_RUN = 2**16
_LARGEST, _DIFFERENCE = 1e150, 1e30  # errors are made of eighth powers of what scores differ by
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores s, weights w (mean 1), folds and units of the rows `keep` of a table.

    `unit` is None if every row is its own unit.
    """

    s: np.ndarray
    w: np.ndarray
    fold: np.ndarray
    unit: np.ndarray | None = None
    keep: slice | np.ndarray = field(default_factory=lambda: slice(None))
    population: bool = False

    n = cached_property(lambda self: len(self.s))

    @cached_property
    def r(self) -> np.ndarray:
        """Centred scores."""
        return self.s - self.w @ self.s / self.w.sum()

    @cached_property
    def centre(self) -> float:
        """About the median of the scores; to subtract it limits rounding errors.

        It is rounded, so that most chunks of rows have the same.
        """
        if not self.n:
            return 0.0
        low, median, high = np.quantile(self.s[:: self.n // 1000 + 1], [0.25, 0.5, 0.75])
        unit = 2.0 ** np.ceil(np.log2(8 * (high - low))) if high > low else 0.0
        return float(unit * np.round(median / unit) if unit else median)

    @cached_property
    def runs(self) -> list[slice]:
        """Runs of rows whose values stay in the cache; at least one."""
        return [slice(a, a + _RUN) for a in range(0, max(self.n, 1), _RUN)]

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """What each row adds to its bin: w, x = wr, x^2 and, if weights differ from 1, wx, w^2."""
        w, x = self.w, self.w * (self.s - self.centre)
        return [w, x, x * x, w * x, w * w] if (w != 1).any() else [w, x, x * x]

    def taken(self, some: slice | np.ndarray) -> Rows:
        """Return some of the rows."""
        unit = None if self.unit is None else self.unit[some]
        s, w, fold = self.s[some], self.w[some], self.fold[some]
        return Rows(s, w, fold, unit, population=self.population)


def folds_of_positions(start: int, n: int) -> np.ndarray:
    """Return the folds of n rows from `start`: each run of FOLDS rows has every fold once.

    Runs begin at different folds, so that periodic rows do not share folds.
    """
    first, last = start // FOLDS, -(-(start + n) // FOLDS)
    shift = (np.arange(first, last, dtype=np.uint64) * _GOLDEN) >> np.uint64(40)
    folds = (shift[:, None] % FOLDS + np.arange(FOLDS, dtype=np.uint64)).astype(np.intp) % FOLDS
    return folds.ravel()[start - first * FOLDS :][:n]


def rows_of(
    s: np.ndarray,
    table: Table,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    population: bool = False,
    start: int = 0,
) -> Rows:
    """Return the rows of a table with a positive weight; `start` rows came before."""
    w, keep = np.ones(table.n), slice(None)
    if sample_weight is not None:
        column = table.vector("sample_weight", sample_weight)
        truth = column.labels is not None and isinstance(column.labels[0], bool)
        if column.kind != "number" and not truth:
            raise ValueError(f"sample_weight must hold numbers, got {column.kind} values")
        w = check_weights("sample_weight", column.values, table.n, zeros=not table.whole)
        keep = slice(None) if w.all() else w > 0
        w, s = w[keep], s[keep]
        if table.whole:  # otherwise chunks have one scale
            w = w / w.mean() if w.min() < w.max() else np.ones(len(w))
    most = _LARGEST if population else _DIFFERENCE
    largest, apart = np.abs(s).max(initial=0.0), float(np.ptp(s)) if len(s) else 0.0
    if largest > _LARGEST or (apart > 0 and not 1 / most <= apart <= most):
        raise ValueError(
            f"score has values up to {largest:.3g} that differ by {apart:.3g}; expected "
            f"differences from {1 / most:g} to {most:g}, or none: rescale the scores"
        )
    if groups is None or population:
        return Rows(s, w, folds_of_positions(start, len(s)), None, keep, population)
    key = unit_keys(table.vector("groups", groups).take(keep))
    unit = np.unique(key, return_inverse=True)[1]
    if table.whole and unit.max() < 1:
        raise ValueError("groups has one label; expected at least 2 units")
    few = table.whole and unit.max() < FOLDS  # by hash, some would share a fold
    fold = 7 * unit % FOLDS if few else ((key * _GOLDEN) >> np.uint64(40)).astype(np.int64) % FOLDS
    return Rows(s, w, fold, unit, keep)


def unit_keys(column: Column) -> np.ndarray:
    """Return a hash of the unit of each row, the same in every chunk."""
    missing = np.isnan(column.values)
    refuse("groups must not be missing", missing, column.values, "missing labels")
    if column.labels is None:
        return hash_array(column.values)  # type: ignore[operator]
    labels = np.array([f"{type(label).__name__} {label}" for label in column.labels], dtype=object)
    return hash_array(labels, categorize=False)[column.values.astype(np.intp)]  # type: ignore[operator]
