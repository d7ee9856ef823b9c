"""Sums over (fold, bin), the only statistics of a feature; they add over chunks and computers.

There are 2^K bins, which are nested: bin q of 2^K lies in bin q // 2 of 2^(K-1). They hold levels,
or runs of equal rank, which are narrower near the ends, where curves are often steep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import special

from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.variance import recentred
from firmlib.tables.checks import check_integer, check_memory
from firmlib.tables.columns import Column


class How(NamedTuple):
    """How features are measured."""

    n_bins: int | None = None
    missing: str = "level"
    slope: bool = False


FINEST = 9
_SEARCHED = 2**12  # up to this many rows, values are searched for among the starts of the bins
_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
_BELOW, _ABOVE = slice(0xFC00, 0x7FFF, -1), slice(0x7C01)  # -inf to -0 and 0 to inf among them
_ASCENDING = np.append(_HALVES[_BELOW], _HALVES[_ABOVE])
_ALIKE = 4  # starts that may be the same half-precision number
_LAG = 8  # bins whose width shows where halves must be finest
_RANKS = {K: special.betainc(1.5, 1.5, np.arange(2**K) / 2**K) for K in range(1, FINEST + 1)}


@lru_cache
def scales(n: float) -> tuple[int, int]:
    """Return base and K: about sqrt(n) bins are always used; 2^K slots have four rows or more."""
    n = max(n, 2)
    K = min(max(int(np.ceil(np.log2(n / 4))), 1), FINEST)
    return min(max(round(np.log2(n) / 2), 1), K), K


@dataclass(frozen=True, eq=False)
class Axis:
    """The bins of one feature; the last one, for missing values, is not listed.

    start (2^K,): the least value of each; a bin is empty if the next one starts there, or at
    infinity. most: how many levels may have bins of their own; 0 if values share bins. ordered:
    whether neighbours can be merged. p (2^K,): share of rows in each, when values came to share
    bins. quick: whether values are looked up rather than searched for.
    """

    start: np.ndarray
    most: float = np.inf
    ordered: bool = False
    p: np.ndarray | None = None
    quick: bool = False

    @classmethod
    def of_levels(cls, levels: np.ndarray, **options: Any) -> Self:
        """Return a bin for each of some sorted levels, or starts."""
        start = np.full(2 ** max(len(levels) - 1, 1).bit_length(), np.inf)
        start[: len(levels)] = levels
        return cls(start, **options)

    @classmethod
    def of(cls, f: np.ndarray, n: int, known: float, n_bins: int | None) -> Self:
        """Find the bins of numbers, a sample of n rows of which `known` have independent values.

        Up to 1.5 2^base levels have a bin each; more levels share bins by rank. `n_bins` fixes
        the number of bins.
        """
        if n_bins:
            check_integer("n_bins", n_bins, 2, n)
        base, K = scales(known)
        f = np.sort(f)[: len(f) - np.count_nonzero(np.isnan(f))]
        new = np.ones(len(f) + 1, bool)  # where a level begins
        np.greater(f[1:], f[:-1], out=new[1:-1])
        edges = np.flatnonzero(new)
        options: Any = {"ordered": not n_bins, "quick": not n_bins and n > _SEARCHED}
        if len(edges) - 1 <= (n_bins or 1.5 * 2**base):
            return cls.of_levels(f[edges[:-1]], most=n_bins or 2**FINEST, **options)
        start = by_rank(f, edges, np.arange(n_bins) / n_bins if n_bins else _RANKS[K])
        return cls.of_levels(start, most=0, **options)

    K = property(lambda self: len(self.start).bit_length() - 1)  # the finest scale
    levels = property(lambda self: np.unique(self.start[np.isfinite(self.start)]))

    def scales(self, known: float) -> tuple[int, int]:
        """Return the base scale and the finest scale for rows with independent values."""
        base, _ = scales(known)
        if not self.ordered:
            return 1, 1
        if self.most and np.isfinite(self.start).sum() <= 1.5 * 2**base:
            return self.K, self.K
        return min(base, self.K), self.K

    def grown(self, levels: np.ndarray) -> Self:
        """Return bins in which new levels have bins of their own, if there is room."""
        own = self.levels
        new = np.setdiff1d(levels[np.isfinite(levels)], own)
        room = int(min(self.most - len(own), len(new)))
        some = new[np.arange(room) * len(new) // max(room, 1)]
        grown = self.of_levels(np.union1d(own, some))
        return replace(self, start=grown.start, most=self.most if room == len(new) else 0)

    def holding(self, f: np.ndarray, runs: Sequence[slice]) -> tuple[Self, np.ndarray]:
        """Return bins with new levels, and the bin of each value, in `runs` of rows."""
        each = [self.find(f[here]) for here in runs]
        found = np.concatenate(each) if len(each) > 1 else each[0]
        if self.most:
            new = f[np.append(self.start, np.nan).take(found) != f]
            if not np.isnan(new).all():
                grown = self.grown(new)
                return grown, grown.find(f)
        return self, found

    @cached_property
    def _edges(self) -> np.ndarray:
        """The starts, with -inf instead of the first one and inf at the end, below nan only."""
        return np.concatenate([[-np.inf], self.start[1:], [np.inf]])

    def find(self, f: np.ndarray) -> np.ndarray:
        """Return the bin of each value."""
        if self._table is None:
            return self._edges.searchsorted(f, side="right") - 1
        centre, scale, bins = self._table
        with np.errstate(over="ignore"):
            half = ((f - centre) * scale).astype(np.float16)
        return bins.take(half.view(np.uint16))

    @cached_property
    def _table(self) -> tuple[float, float, np.ndarray] | None:
        """A centre, a scale, and the bin of each half-precision number (f - centre) scale.

        Half precision is finest at the centre, where bins are narrowest. None if too many starts
        are the same in it.
        """
        start = self.levels if self.quick else self.start[:0]
        if not len(start):
            return None
        lag = min(_LAG, len(start) - 1)
        with np.errstate(all="ignore"):
            width = start[lag:] - start[: len(start) - lag]
            centre = start[np.where(width > 0, width, np.inf).argmin()]
            away = np.abs(start - centre)
            scale = 512 / (np.quantile(away, 0.95) or away.max())
            scale = scale if np.isfinite(scale) else 1.0
            half = ((start - centre) * scale).astype(np.float16).astype(np.float32)
            alike = 1 if self.most else _ALIKE
            if not (half[alike:] > half[:-alike]).all():
                return None
        runs = np.diff(_ASCENDING.searchsorted(half), prepend=0, append=len(_ASCENDING))
        each = self.start.searchsorted(start, side="right") - 1
        found = np.repeat(np.append(each[0], each), runs)
        bins = np.full(len(_HALVES), len(self.start), np.int16)  # not a number is missing
        bins[_BELOW], bins[_ABOVE] = np.split(found, [0x7C01])
        return centre, scale, bins

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name[0] != "_"}


def independent(f: np.ndarray, unit: np.ndarray | None) -> int:
    """Return the number of known values that differ in value or unit."""
    known = ~np.isnan(f)
    if unit is None:
        return int(np.count_nonzero(known))
    return len(pd.DataFrame({"f": f[known], "unit": unit[known]}).drop_duplicates())


def by_rank(f: np.ndarray, edges: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the least level of each slot: the first one whose mid-rank reaches a share `at`.

    The levels of the sorted values f lie between `edges`. Skewness decides on which side a level on
    the edge of two slots belongs, so that a column and its negative have the same bins.
    """
    n = len(f)
    skew = (f / n).sum() - (f[(n - 1) // 2] / 2 + f[n // 2] / 2)
    up = -1 if skew < -1e-9 * (f[-1] / 2 - f[0] / 2) else 1
    level = ((edges[:-1] + edges[1:]) / 2).searchsorted((at - 1e-9 * up) * n)
    out = f.take(edges.take(level), mode="clip")
    out[level == len(edges) - 1] = np.inf
    return out


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums (3 or 5, FOLDS, bins + 1) of one feature, of scores r minus a centre.

    They are of w, x = wr, x^2 and, if rows have weights, wx, w^2. `known` rows have independent
    values.
    """

    axis: Axis
    centre: float
    sums: np.ndarray
    known: float

    @classmethod
    def of(cls, f: np.ndarray, rows: Rows, axis: Axis, known: float) -> Self:
        """Return the sums of rows with values f; new levels get their own bins."""
        axis, found = axis.holding(f, rows.runs)
        shape = len(rows.parts), FOLDS, len(axis.start) + 1
        if shape[2] > 2**12:
            check_memory("the sums of a feature", shape)
        sums = np.zeros((shape[0], FOLDS * shape[2]))
        few = shape[2] <= 2 * 2**FINEST  # so that sums are in the cache, too
        for here in rows.runs if few else [slice(None)]:
            cell = rows.fold[here] * shape[2] + found[here]
            for own, part in zip(sums, rows.parts, strict=True):
                own += np.bincount(cell, part[here], len(own))
        return cls(axis, rows.centre, sums.reshape(shape), known)

    def noted(self) -> Self:
        """Return the sums with the share of rows in each bin, if values share bins."""
        p = None if self.axis.most else shares(self.sums)
        return replace(self, axis=replace(self.axis, p=p))

    def merged(self, other: Any, codes: Column) -> Self:
        """Return the sums of both, where label k of the other one has another code here."""
        start, axis, both = other.axis.start, self.axis, (self, other)
        if codes.labels is not None:
            label = np.minimum(start, len(codes.values)).astype(int)
            start = np.append(codes.values, np.inf)[label]
        centre = max(both, key=lambda one: one.sums[0].sum()).centre
        mine, theirs = (recentred(one.sums, centre - one.centre) for one in both)
        if len(mine) != len(theirs):
            mine, theirs = (a if len(a) == 5 else a[[0, 1, 2, 1, 0]] for a in (mine, theirs))
        if axis.most:
            axis = axis.grown(start)
        if not other.axis.most and not np.array_equal(start, axis.start):
            raise ValueError("other has other bins; expected streams with the same bins")
        mine = placed(mine, self.axis.start, axis)
        if self.axis.most and not (axis.most and other.axis.most):  # no room for more
            axis = replace(axis, most=0, p=shares(mine))
        sums = mine + placed(theirs, start, axis)
        return type(self)(axis, centre, sums, self.known + other.known)

    def coarse(self) -> bool:
        """Return whether bins are too few, or far more rows than at first are in one."""
        axis, p = self.axis, self.axis.p
        few = axis.ordered and not axis.most and scales(self.known)[0] > axis.K
        return few or (p is not None and bool((shares(self.sums) > 0.05 + 2 * p).any()))


def shares(sums: np.ndarray) -> np.ndarray:
    """Return the share of rows in each bin."""
    W = sums[0, :, :-1].sum(axis=0)
    return W / max(W.sum(), 1e-300)


def placed(sums: np.ndarray, start: np.ndarray, axis: Axis) -> np.ndarray:
    """Return sums in bins with these starts as sums in the bins of an axis."""
    if np.array_equal(start, axis.start):
        return sums
    out = np.zeros((*sums.shape[:2], len(axis.start) + 1))
    at: Any = (..., np.append(axis.find(start), -1))
    np.add.at(out, at, sums)
    return out


def summed(
    column: Column,
    rows: Rows,
    how: How,
    some: slice | np.ndarray = slice(None),
    axis: Axis | None = None,
) -> Sums | Line:
    """Return the sums of a column; if there is no axis, `some` of the rows determine the bins."""
    f, unit, known = column.values, rows.unit, 0.0
    if not how.slope:
        sample = slice(None) if axis else some
        values = f[sample]
        share = independent(values, None if unit is None else unit[sample]) / max(len(values), 1)
        known = rows.n * share
        if axis is None and (column.kind == "nominal" or (rows.population and not how.n_bins)):
            axis = Axis.of_levels(np.unique(f[~np.isnan(f)]))
        axis = axis or Axis.of(values, rows.n, known, how.n_bins)
    if (how.slope or how.missing == "drop") and (there := ~np.isnan(f)).sum() < len(f):
        f, rows = f[there], rows.taken(there)
    if axis is None:
        return Line.of(f, rows, column.kind == "nominal")
    return Sums.of(f, rows, axis, known)
