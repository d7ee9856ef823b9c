"""Sums over (fold, bin), the only statistics of a feature; they add over chunks and computers.

Unweighted rows add 1, r, r^2 to their bin; weighted ones w, wr, (wr)^2, w^2, w^2 r.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from firmlib.estimation.bins import FEW, SAMPLE, Axes, scales, spaced
from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.variance import Bins, merged, moments, recentred, spread
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column

Read = Callable[[slice, slice | np.ndarray], np.ndarray]
"""Return the values (d, m) of some columns in some rows."""

_ROWS = 2**16  # that are read together
_VALUES, _CELLS = 2**16, 2**17  # values and sums that stay in the cache
_ALONE = 0.9  # share of rows alone in their level at which nothing can be estimated


def summed(cell: np.ndarray, each: np.ndarray, size: int) -> np.ndarray:
    """Return sums (3 or 5, size) of what rows add to cells (n,), or to several cells (k, n).

    The product with a sparse matrix reads each row once for all its sums.
    """
    cell = np.atleast_2d(cell)
    index = np.ascontiguousarray(cell.T, dtype=np.int32).ravel()
    start = np.arange(0, cell.size + 1, len(cell), dtype=np.int32)
    where = sparse.csc_array((np.ones(cell.size), index, start), shape=(size, cell.shape[1]))
    return (where @ each.T).T


def five(sums: np.ndarray) -> np.ndarray:
    """Return sums as those of weighted rows."""
    return sums if len(sums) == 5 else sums[[0, 1, 2, 0, 1]]


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

    def of(self, column: Column | None) -> Source:
        """Return the source of a column, without its values."""
        if column is None or column.kind == "number":
            return self
        labels = column._replace(values=np.empty(0))
        return replace(self, kind=column.kind, shown=labels.shown)

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
        t = np.append(t, np.nan)[here]
        bins = Bins.of(moments(sums[:, here]))
        return (t if self.shown is None else self.shown(t)), bins._replace(m=bins.m + self.centre)


class Sums:
    """Sums of d columns in the bins of their axes."""

    def __init__(self, axes: Axes, *, drop: bool = False) -> None:
        self.axes, self.drop = axes, drop
        shape = FOLDS, len(axes.start), axes.start.shape[1] + 1
        check_memory("the sums of all features", (5, *shape))
        self.sums = np.zeros((3, *shape))
        self.centre: np.ndarray | None = None  # of the scores for each column

    @classmethod
    def of(
        cls, read: Read, rows: Rows, n_bins: int | None, *, drop: bool = False, roomy: bool = False
    ) -> Sums:
        """Return empty sums for columns of numbers, whose rows determine the bins."""
        n = len(rows.s)
        some: Any = slice(0, n)
        if n > FEW and n_bins is None:
            roomy, some = True, _sample(read, n, SAMPLE * 2 ** int(scales(n)[1]))
        unit = None if rows.unit is None else rows.unit[some]
        F = read(slice(None), some)
        return cls(Axes.of(F, n, n_bins, roomy=roomy, unit=unit), drop=drop)

    def add(self, read: Read, rows: Rows) -> None:
        """Add rows; new levels get their own slots."""
        n = len(rows.s)
        for a in range(0, n, _ROWS):
            here = slice(a, min(a + _ROWS, n))
            F = read(slice(None), here)
            if self.centre is None or np.isnan(self.centre).any():
                new = self._centres(F, rows.s[here])
                old = new if self.centre is None else self.centre
                self.centre = np.where(np.isnan(old), new, old)
            step = max(1, min(_VALUES // F.shape[1], _CELLS // self.sums[0, :, 0].size))
            step, centre, each = 1 if np.ptp(self.centre) else step, np.nan, np.empty(0)
            for j in range(0, len(F), step):
                if self.centre[j] != centre:
                    centre = self.centre[j]
                    each = rows.parts(np.nan_to_num(centre), here)
                self._tally(j, self._slots(j, F[j : j + step]), each, rows.fold[here])

    def _centres(self, F: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the median of the scores that count for each column; nan if all are dropped."""
        found = np.full(len(F), np.median(s))
        for j in np.flatnonzero(np.isnan(F).any(axis=1)) if self.drop else ():
            known = s[~np.isnan(F[j])]
            found[j] = np.median(known) if len(known) else np.nan
        return found

    def _tally(self, j: int, slot: np.ndarray, each: np.ndarray, fold: np.ndarray) -> None:
        """Add rows in these slots of columns from j."""
        sums, d, size = self.sums[:, :, j : j + len(slot)], len(slot), self.sums.shape[-1]
        cell = slot + (fold * (d * size)).astype(np.int32)
        cell += np.arange(0, d * size, size, dtype=np.int32)[:, None]
        found = summed(cell, each, sums[0].size).reshape(-1, *sums.shape[1:])
        if len(found) > len(sums):  # the first rows with weights
            self.sums = five(self.sums)
            sums = self.sums[:, :, j : j + len(slot)]
        sums += found if len(found) == len(sums) else five(found)

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
        """Give new levels of a column their own slots, if it has `levels` or slots are free."""
        start, exact, Q = self.axes.start.copy(), self.axes.exact.copy(), self.axes.slots
        old = np.unique(start[j][np.isfinite(start[j])])
        at = start[j].searchsorted(old, "right") - 1
        if self.axes.kind == "levels":
            start = np.union1d(old, values)[None]
            self.sums, before = np.zeros((*self.sums.shape[:3], start.size + 1)), self.sums
        else:
            levels = np.union1d(old, values[: Q - len(old)])
            new, nested = np.ones((1, len(levels)), bool), self.axes.kind == "nested"
            exact[j] = len(old) + len(values) <= Q
            start[j] = spaced(levels[None], new, Q, nested)[0]
            before = self.sums.copy()
            self.sums[:, :, j] = 0
        self.sums[:, :, j, start[j].searchsorted(old, "right") - 1] = before[:, :, j, at]
        self.sums[:, :, j, -1] = before[:, :, j, -1]
        tables = {k: table for k, table in self.axes.tables.items() if k != j}
        self.axes = replace(self.axes, start=start, exact=exact, tables=tables)

    def merge(self, other: Sums, codes: np.ndarray) -> None:
        """Add the sums of others, in which code k stands for the label with codes[k] here."""
        if other.centre is None:
            return
        theirs = copy.deepcopy(other)
        own = other.centre if self.centre is None else self.centre
        self.centre = np.where(np.isnan(own), other.centre, own)
        if len(codes) and self.axes.kind == "levels":
            start = codes[theirs.axes.start.astype(int)]
            order = np.argsort(start[0])
            theirs.axes = replace(theirs.axes, start=start[:, order])
            theirs.sums[..., :-1] = theirs.sums[..., :-1][..., order]
        for j, (own, new) in enumerate(zip(self.axes.start, theirs.axes.start, strict=True)):
            if not np.array_equal(own, new):
                self._grow(j, np.setdiff1d(new[np.isfinite(new)], own))
                theirs._grow(j, np.setdiff1d(own[np.isfinite(own)], new))
        if not np.array_equal(self.axes.start, theirs.axes.start):
            raise ValueError("other has other bins; expected streams with the same bins")
        moved = recentred(theirs.sums, np.nan_to_num(self.centre - other.centre)[:, None])
        alike = len(moved) == len(self.sums)
        self.sums = self.sums + moved if alike else five(self.sums) + five(moved)

    def estimate(self, n: float, *, population: bool, units: bool) -> Estimate:
        """Return V of each column, if there are n rows; nan if it cannot be estimated."""
        sums = self._kept(self.sums)
        W, S = sums[:2].sum(axis=1)
        if population:  # V = sum p m^2 - (sum p m)^2
            total = np.maximum(W.sum(axis=-1, keepdims=True), TINY)
            m = S / np.maximum(W, TINY) - S.sum(axis=-1, keepdims=True) / total
            return Estimate.exact((W * m**2).sum(axis=-1) / total[:, 0])
        found = spread(sums, self.axes.scales(n), self.axes.kind == "nested", units)
        silent = np.count_nonzero(W, axis=-1) < 2
        if self.axes.kind == "levels":
            alone = 1.5 * moments(sums)[3].sum(axis=0) > W * W
            silent |= (W * alone).sum(axis=-1) >= _ALONE * np.maximum(W.sum(axis=-1), TINY)
        return replace(found, V=np.where(silent, np.nan, found.V))

    def sources(self, n: float, columns: Sequence[Column | None]) -> list[Source]:
        """Return what a result keeps of each column."""
        G, _, B = self.sums[0].shape
        marks = np.sin(1.0 + np.arange(G)) @ (self.sums[0] @ np.cos(1.0 + np.arange(B)))
        pooled = self.sums.sum(axis=1)
        missing = pooled[0, :, -1] / np.maximum(pooled[0].sum(axis=-1), TINY)
        K, by_rank = int(np.log2(max(B - 1, 1))), ~self.axes.exact & (self.axes.kind == "nested")
        merges = np.where(by_rank, K - self.axes.scales(n)[0], 0).tolist()
        kept, found = self._kept(pooled).swapaxes(0, 1), []
        centre = np.zeros(len(columns)) if self.centre is None else np.nan_to_num(self.centre)
        for j, column in enumerate(columns):
            ordered = column is None or column.kind != "nominal"
            told = marks[j], missing[j], centre[j], kept[j], self.axes.start[j], ordered
            found.append(Source("number", *told, merges[j]).of(column))
        return found

    def _kept(self, sums: np.ndarray) -> np.ndarray:
        """Return sums, without those of missing values if they are dropped."""
        if self.drop:
            sums = sums.copy()
            sums[..., -1] = 0
        return sums


def fold_totals(rows: Rows, centre: float | None = None) -> np.ndarray:
    """Return the sums (6, G) of w, wr, (wr)^2, w^2, w^2 r and wr^2 over all rows."""
    centre = rows.centre if centre is None else centre
    square = np.bincount(rows.fold, rows.w * (rows.s - centre) ** 2, FOLDS)
    return np.append(five(summed(rows.fold, rows.parts(centre), FOLDS)), square[None], axis=0)


def moved_totals(sums: np.ndarray, move: float) -> np.ndarray:
    """Return the totals for scores shifted by `move`."""
    square = sums[5] + 2 * move * sums[1] + move**2 * sums[0]
    return np.append(recentred(sums[:5], -move), square[None], axis=0)


def total_variance(sums: np.ndarray, population: bool, units: bool) -> Estimate:
    """Return Var(s) = E s^2 - (E s)^2 from the totals of folds, the square over pairs of rows."""
    sums = moved_totals(sums, -sums[1].sum() / max(sums[0].sum(), TINY))
    each = np.array([*moments(sums[:5], units), sums[5]])

    def variance(sums: np.ndarray) -> np.ndarray:
        W, S, SS, WW, wrr = np.maximum(sums, [[TINY], [-np.inf], [0], [0], [0]])
        square = (S / W) ** 2 if population else (S * S - SS) / np.maximum(W * W - WW, TINY)
        return np.maximum(wrr / W - square, 0)

    total = each.sum(axis=1)[:, None]
    V, without = variance(total), variance(total - each)[:, None]
    return Estimate.of_folds(V, without, each[0], np.zeros((3, 1)), np.zeros(1))


def _sample(read: Read, n: int, m: int) -> slice | np.ndarray:
    """Return about m rows, chosen by a hash of their values and so independent of their order."""
    for columns in (slice(0, 2), slice(None)):
        key = np.full(n, 0x2545F4914F6CDD1D, np.uint64)  # rows of zeros must not have the key 0
        for a in range(0, n, _ROWS):
            here = slice(a, min(a + _ROWS, n))
            for f in read(columns, here):
                key[here] ^= (f + 0.0).view(np.uint64)  # -0.0 is 0.0
                key[here] *= np.uint64(0x9E3779B97F4A7C15)
                key[here] ^= key[here] >> np.uint64(29)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
        rows = np.flatnonzero(key < np.uint64(2.0**64 / n * m))
        if m / 2 < len(rows) < 2 * m and len(np.unique(key[rows])) > m / 3:
            return rows
    return slice(0, n)
