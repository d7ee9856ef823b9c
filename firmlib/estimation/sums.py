"""Sums over (fold, bin), the only statistics of a feature; they add over chunks and computers.

Unweighted rows add 1, r, r^2 to their bin; weighted ones w, wr, (wr)^2, w^2, w^2 r.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from firmlib.estimation.bins import FEW, SAMPLE, Axes, scales, spaced
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.variance import TINY, Bins, Spread, merged, moments, recentred, spread
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column

ROWS = 2**16
"""Rows that are read together."""

_VALUES, _CELLS = 2**16, 2**17  # values and sums that stay in the cache
_ALONE = 0.9  # share of rows alone in their bins at which V cannot be estimated

Read = Callable[[slice | np.ndarray, int | None], np.ndarray]
"""Maps rows and a number d of columns (None: all) to values (d, rows)."""


def summed(cell: np.ndarray, each: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (3 or 5, size) of what rows add to cells (n,), or to several cells (k, n).

    The product with a sparse matrix reads each row once for all its sums.
    """
    cell = np.atleast_2d(cell)
    index = np.ascontiguousarray(cell.T, dtype=np.int32).ravel()
    start = np.arange(0, cell.size + 1, len(cell), dtype=np.int32)
    where = sparse.csc_array((np.ones(cell.size), index, start), shape=(size, cell.shape[1]))
    return (where @ each.T).T


def tally(sums: np.ndarray, slot: np.ndarray, each: np.ndarray, fold: np.ndarray) -> None:
    """Add rows, in these slots of d columns (d, n), to the sums (3 or 5, G, d, size)."""
    d, size = sums.shape[2:]
    cell = slot + (fold * (d * size)).astype(np.int32)
    cell += np.arange(0, d * size, size, dtype=np.int32)[:, None]
    found = summed(cell, each, sums[0].size).reshape(-1, *sums.shape[1:])
    sums += found if len(found) == len(sums) else _five(found)


def fold_totals(rows: Rows) -> np.ndarray:
    """Return the sums (6, G) of w, wr, (wr)^2, w^2, w^2 r and wr^2 over all rows."""
    five = _five(summed(rows.fold, rows.parts, FOLDS))
    square = np.bincount(rows.fold, rows.w * (rows.s - rows.centre) ** 2, FOLDS)
    return np.append(five, square[None], axis=0)


def moved_totals(sums: np.ndarray, move: float) -> np.ndarray:
    """Return the totals for scores shifted by `move`."""
    square = sums[5] + 2 * move * sums[1] + move**2 * sums[0]
    return np.append(recentred(sums[:5], -move), square[None], axis=0)


def total_variance(sums: np.ndarray, population: bool, units: bool) -> Estimate:
    """Return Var(s) = E s^2 - (E s)^2 from the totals of folds, the square over pairs of rows."""
    sums = moved_totals(sums, -sums[1].sum() / max(sums[0].sum(), TINY))
    W, S, SS, WW = moments(sums[:5], units)
    each = np.array([W, S, SS, WW, sums[5]])

    def variance(W: Any, S: Any, SS: Any, WW: Any, wrr: Any) -> np.ndarray:
        W = np.maximum(W, TINY)
        square = (S / W) ** 2 if population else (S * S - SS) / np.maximum(W * W - WW, TINY)
        return np.maximum(wrr / W - square, 0)

    total = each.sum(axis=1)[:, None]
    V, without = variance(*total), variance(*(total - each))[:, None]
    share = W / np.maximum(total[0], TINY)
    return Estimate.of_folds(V, without, share, np.zeros((3, 1)), np.zeros(1))


def _five(sums: np.ndarray) -> np.ndarray:
    """Return sums as of weighted rows."""
    return sums if len(sums) == 5 else sums[[0, 1, 2, 0, 1]]


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _five(a) + _five(b) if len(a) != len(b) else a + b


@dataclass(frozen=True, eq=False)
class Source:
    """Kind of a feature, and pooled sums (3 or 5, bins + 1) for its curve, kept in a result.

    `mark` identifies the values of the feature. Joint features have no sums.
    """

    kind: str = "number"
    mark: float = 0.0
    missing: float = np.nan
    centre: float = 0.0  # of the scores in these sums
    sums: np.ndarray | None = None
    t: np.ndarray | None = None  # a value of each bin
    ordered: bool = False
    merges: int = 0  # how often neighbouring bins are merged for the curve
    shown: Callable[[np.ndarray], np.ndarray] | None = None  # the user's dates and labels

    @classmethod
    def of(cls, column: Column | None, *told: Any) -> Source:
        """Return the source of a column, without its values."""
        if column is None or column.kind == "number":
            return cls("number", *told)
        labels = column._replace(values=np.empty(0), rows=None)
        return replace(cls(column.kind, *told), shown=labels.shown)

    def direction(self) -> float:
        """Return 1 or -1: how the score moves with the rank of the feature; nan if it has none."""
        if self.sums is None or not self.ordered:
            return np.nan
        W, S = self.sums[0, :-1], self.sums[1, :-1]
        rank = np.cumsum(W) - W / 2
        return float(np.sign(S @ (rank - W @ rank / max(W.sum(), TINY)))) or np.nan

    def curve(self) -> tuple[np.ndarray, Bins]:
        """Return a value of each bin of q_f that has rows (missing: nan or None), and the bins."""
        assert self.sums is not None
        assert self.t is not None
        sums, t = self.sums, self.t
        if self.merges:  # the slot with the median of the bin
            W, blocks = (a.reshape(-1, 2**self.merges) for a in (sums[0, :-1], t))
            middle = (np.cumsum(W, axis=1) >= W.sum(axis=1, keepdims=True) / 2).argmax(axis=1)
            t = np.take_along_axis(blocks, middle[:, None], 1)[:, 0]
            sums = merged(sums, len(t))
        here = sums[0] > 0
        here[-1] |= not here.any()
        t = np.append(t, np.array([np.nan if t.dtype.kind == "f" else None], dtype=t.dtype))[here]
        bins = Bins.of(moments(sums[:, here]))
        return (t if self.shown is None else self.shown(t)), bins._replace(m=bins.m + self.centre)

    @property
    def explained(self) -> float:
        """Var q_f if the rows are the population: sum p m^2 - (sum p m)^2."""
        assert self.sums is not None
        W, S = self.sums[:2]
        total = max(W.sum(), TINY)
        m = S / np.maximum(W, TINY) - S.sum() / total
        return float(W @ m**2 / total)


def _sources(
    sums: np.ndarray,
    t: np.ndarray,
    drop: bool,
    centre: np.ndarray,
    columns: Sequence[Column | None],
    merges: list[int],
    ordered: bool,
) -> list[Source]:
    """Return the sources of sums (3 or 5, G, d, bins + 1); `columns` give their kinds."""
    G, _, B = sums[0].shape
    marks = np.sin(1.0 + np.arange(G)) @ (sums[0] @ np.cos(1.0 + np.arange(B)))
    pooled = sums.sum(axis=1)
    missing = pooled[0, :, -1] / np.maximum(pooled[0].sum(axis=-1), TINY)
    pooled = _kept(pooled, drop)
    told = zip(marks, missing, centre, pooled.swapaxes(0, 1), t, strict=True)
    return [
        Source.of(column, *each, ordered, m)
        for column, each, m in zip(columns, told, merges, strict=True)
    ]


class Numbers:
    """Sums of d columns of numbers in the slots of their axes."""

    def __init__(self, axes: Axes, drop: bool) -> None:
        self.axes, self.drop = axes, drop
        check_memory("the sums of all features", (5, FOLDS, len(axes.start), axes.slots + 1))
        self.sums = np.zeros((3, FOLDS, len(axes.start), axes.slots + 1))
        self.centre = np.full(len(axes.start), np.nan)

    @classmethod
    def of(cls, read: Read, rows: Rows, n_bins: int | None, drop: bool, roomy: bool) -> Numbers:
        """Return empty sums for the columns of `read`, whose rows determine the bins."""
        n, some = rows.n, slice(0, rows.n)
        if n > FEW and n_bins is None:
            roomy, some = True, _sample(read, n, SAMPLE * 2 ** int(scales(n)[1]))
        unit = None if rows.unit is None else rows.unit[some]
        F = read(some, None)
        found = cls(Axes.of(F, n, n_bins, roomy=roomy, unit=unit), drop)
        found.centre = rows.centres(F, drop, some)
        return found

    def add(self, read: Read, rows: Rows) -> None:
        """Add rows; new levels get their own slots."""
        if rows.weighted and len(self.sums) == 3:
            self.sums = _five(self.sums)
        for a in range(0, rows.n, ROWS):
            here = slice(a, min(a + ROWS, rows.n))
            F = read(here, None)
            if np.isnan(self.centre).any():
                later = rows.centres(F, self.drop, here)
                self.centre = np.where(np.isnan(self.centre), later, self.centre)
            step = 1
            if (self.centre == rows.centre).all():
                step = max(1, min(_VALUES // F.shape[1], _CELLS // self.sums[0, :, 0].size))
            for j in range(0, len(F), step):
                some = F[j : j + step]
                slot, each = self._slots(j, some), rows.parts_of(some[0], self.centre[j], here)
                tally(self.sums[:, :, j : j + step], slot, each, rows.fold[here])

    def _slots(self, j: int, F: np.ndarray) -> np.ndarray:
        """Return the slots of columns from j, after new levels got theirs."""
        slot = self.axes.find(F, j)
        for k in np.flatnonzero(self.axes.exact[j : j + len(F)]).tolist():
            new = np.append(self.axes.start[j + k], np.nan).take(slot[k]) != F[k]
            if new.any() and not np.isnan(F[k][new]).all():
                self._grow(j + k, np.unique(F[k][new & ~np.isnan(F[k])]))
                slot[k] = self.axes.find(F[k : k + 1], j + k)[0]
        return slot

    def _grow(self, j: int, values: np.ndarray) -> None:
        """Give new levels of a column their own slots until none is free."""
        start, exact, Q = self.axes.start.copy(), self.axes.exact.copy(), self.axes.slots
        old = np.unique(start[j][np.isfinite(start[j])])
        levels = np.union1d(old, values[: Q - len(old)])
        at = start[j].searchsorted(old, "right") - 1
        exact[j] = len(old) + len(values) <= Q
        start[j] = spaced(levels[None], np.ones((1, len(levels)), bool), Q, self.axes.nested)[0]
        moved = np.zeros_like(self.sums[:, :, j])
        moved[..., start[j].searchsorted(old, "right") - 1] = self.sums[:, :, j, at]
        moved[..., -1] = self.sums[:, :, j, -1]
        self.sums[:, :, j] = moved
        self.axes = replace(self.axes, start=start, exact=exact)

    def merge(self, other: Numbers) -> None:
        """Add the sums of others."""
        theirs = copy.deepcopy(other)
        for j, (own, new) in enumerate(zip(self.axes.start, other.axes.start, strict=True)):
            if not np.array_equal(own, new):
                self._grow(j, np.setdiff1d(new[np.isfinite(new)], own))
                theirs._grow(j, np.setdiff1d(own[np.isfinite(own)], new))
        if not np.array_equal(self.axes.start, theirs.axes.start):
            raise ValueError("other has other bins; expected streams with the same bins")
        self.centre = np.where(np.isnan(self.centre), other.centre, self.centre)
        self.sums = _added(self.sums, _moved(theirs.sums, other.centre, self.centre))

    def spread(self, n: float, units: bool) -> Spread:
        """Return V of each column, if there are n rows."""
        return spread(_kept(self.sums, self.drop), self.axes.scales(n), self.axes.nested, units)

    def sources(self, n: float, columns: Sequence[Column | None]) -> list[Source]:
        """Return what a result keeps of each column."""
        K = int(np.log2(self.axes.slots))
        merges = np.where(self.axes.exact | (not self.axes.nested), 0, K - self.axes.scales(n)[0])
        told = (self.sums, self.axes.start, self.drop, self.centre, columns)
        return _sources(*told, merges.tolist(), True)


class Levels:
    """Sums of one column in each of its levels: categories, or the values of a population."""

    def __init__(self, ordered: bool, drop: bool) -> None:
        self.labels, self.ordered, self.drop = pd.Index([]), ordered, drop
        self.sums, self.centre = np.zeros((3, FOLDS, 1, 1)), np.full(1, np.nan)

    def add(self, column: Column, rows: Rows) -> None:
        """Add rows."""
        f = column.values
        known = ~np.isnan(f)
        if column.labels is None:
            labels, code = np.unique(f[known], return_inverse=True)
        else:
            labels, code = column.labels, f[known].astype(np.intp)
        where = self._union(pd.Index(labels))
        slot = np.full(len(known), len(self.labels), np.int32)
        slot[known] = where[code]
        every = slice(0, rows.n)
        if np.isnan(self.centre[0]):
            self.centre = rows.centres(f[None], self.drop, every)
        if rows.weighted and len(self.sums) == 3:
            self.sums = _five(self.sums)
        each = rows.parts_of(f, self.centre[0], every)
        tally(self.sums, slot[None], each, rows.fold)

    def _union(self, new: pd.Index) -> np.ndarray:
        """Make room for new labels, and return the places of all of them."""
        both = self.labels.append(new[~new.isin(self.labels)]) if len(self.labels) else new
        grown = np.zeros((*self.sums.shape[:-1], len(both) + 1))
        grown[..., : len(self.labels)], grown[..., -1] = self.sums[..., :-1], self.sums[..., -1]
        self.labels, self.sums = both, grown
        return both.get_indexer(new)

    def merge(self, other: Levels) -> None:
        """Add the sums of others."""
        self.centre = np.where(np.isnan(self.centre), other.centre, self.centre)
        where, theirs = self._union(other.labels), _moved(other.sums, other.centre, self.centre)
        mine = np.zeros((*theirs.shape[:-1], len(self.labels) + 1))
        mine[..., where], mine[..., -1] = theirs[..., :-1], theirs[..., -1]
        self.sums = _added(self.sums, mine)

    def spread(self, n: float, units: bool) -> Spread:
        """Return V for one partition; nan if nearly all rows are alone in their bins."""
        sums = _kept(self.sums, self.drop)
        found = spread(sums, (np.ones(1, int), np.ones(1, int)), False, units)
        W, _, _, WW = (a.sum(axis=0)[0] for a in moments(sums))
        alone = W[W * W < 1.5 * WW].sum() / max(W.sum(), TINY)
        return found if alone < _ALONE else found._replace(V=np.array([np.nan]))

    def sources(self, n: float, columns: Sequence[Column | None]) -> list[Source]:
        """Return what a result keeps, levels in order."""
        labels = self.labels.to_numpy()
        order = np.argsort(labels, kind="stable") if self.ordered else np.arange(len(labels))
        sums, t = self.sums[..., np.append(order, -1)], labels[order][None]
        [found] = _sources(sums, t, self.drop, self.centre, columns, [0], self.ordered)
        by_label = columns[0] is not None and columns[0].labels is not None
        return [replace(found, shown=None)] if by_label else [found]


def _moved(sums: np.ndarray, centre: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Return sums for scores centred at `to`."""
    return recentred(sums, np.nan_to_num(to - centre)[:, None])


def _kept(sums: np.ndarray, drop: bool) -> np.ndarray:
    """Return sums, without those of missing values if they are dropped."""
    if drop:
        sums = sums.copy()
        sums[..., -1] = 0
    return sums


def _sample(read: Read, n: int, m: int) -> slice | np.ndarray:
    """Return about m rows, chosen by a hash of their values and so independent of their order."""
    for columns in (2, None):
        key = np.full(n, 0x2545F4914F6CDD1D, np.uint64)  # rows of zeros must not have the key 0
        for a in range(0, n, ROWS):
            here = slice(a, min(a + ROWS, n))
            for f in read(here, columns):
                key[here] ^= (f + 0.0).view(np.uint64)  # -0.0 is 0.0
                key[here] *= np.uint64(0x9E3779B97F4A7C15)
                key[here] ^= key[here] >> np.uint64(29)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
        rows = np.flatnonzero(key < np.uint64(2.0**64 / n * m))
        if m / 2 < len(rows) < 2 * m and len(np.unique(key[rows])) > m / 3:
            return rows
    return slice(0, n)
