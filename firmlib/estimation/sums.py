"""Sums over (fold, bin), the only statistics of a feature; they add over chunks and computers.

Unweighted rows add 1, r, r^2 to their bin; weighted ones w, wr, (wr)^2, w^2, w^2 r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from firmlib.estimation.bins import Axes
from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.variance import Bins, merged, moments, recentred, spread
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column

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
    merges: int = 0  # how often neighbouring bins are merged for the curve
    shown: Callable[[np.ndarray], np.ndarray] | None = None  # the user's dates and labels

    def direction(self) -> float:
        """Return 1 or -1: how the score moves with the rank of the feature; nan if it has none."""
        if self.sums is None or self.kind == "nominal":
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


Found = tuple[Estimate, list[Source]]


def shown_as(column: Column) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return what turns numbers into the values of a column; None if they are the same."""
    return None if column.kind == "number" else column._replace(values=np.empty(0)).shown


class Sums:
    """Sums of d columns in the bins of their axes, of scores minus a centre."""

    def __init__(self, axes: Axes) -> None:
        self.axes, self.centre = axes, np.nan  # until there are rows
        self.dropped = 0.0  # weight of rows whose missing values are dropped
        shape = FOLDS, len(axes.start), axes.slots + 1
        check_memory("the sums of all features", (5, *shape))
        self.sums = np.zeros((3, *shape))

    def add(self, F: np.ndarray, rows: Rows) -> None:
        """Add rows with values (d, n); new levels get their own slots."""
        self.centre = rows.centre if np.isnan(self.centre) else self.centre
        each = rows.parts(self.centre, weighted=len(self.sums) == 5)
        self.sums = self.sums if len(each) == 3 else five(self.sums)
        slots = self.axes.find(F)
        for j in np.flatnonzero(self.axes.exact).tolist():
            new = F[j][np.append(self.axes.start[j], np.nan).take(slots[j]) != F[j]]
            if not np.isnan(new).all():
                self._grow(j, np.unique(new[~np.isnan(new)]))
                slots[j] = self.axes.find(F[j : j + 1], j)[0]
        size, fold = self.sums.shape[-1], rows.fold.astype(np.int32)
        if self.axes.kind == "levels":  # perhaps many more than these rows have
            for sums, a in zip(self.sums, each, strict=True):
                np.add.at(sums[:, 0], (fold, slots[0]), a)
            return
        step = max(1, min(_VALUES // rows.n, _CELLS // (FOLDS * size)))
        for j in range(0, len(F), step):
            slot, part = slots[j : j + step], self.sums[:, :, j : j + step]
            cell = slot + fold * np.int32(len(slot) * size)
            cell += np.arange(0, len(slot) * size, size, dtype=np.int32)[:, None]
            part += summed(cell, each, part[0].size).reshape(part.shape)

    def _grow(self, j: int, values: np.ndarray) -> None:
        """Give new levels of a column their own slots, if there is room."""
        before, column = self.axes.start[j], self.sums[:, :, j].copy()
        self.axes = self.axes.grown(j, values)
        if self.axes.slots > len(before):  # of levels, which have one column
            self.sums = np.zeros((*self.sums.shape[:3], self.axes.slots + 1))
        self.sums[:, :, j] = 0
        self._place(j, before, column)

    def _place(self, j: int, start: np.ndarray, column: np.ndarray) -> None:
        """Add the sums of a column in slots with these starts."""
        at: Any = (..., np.append(self.axes.find(start[None], j)[0], -1))
        np.add.at(self.sums[:, :, j], at, column)

    def merge(self, other: Sums, codes: Column) -> None:
        """Add the sums of others, in which label k has another code here."""
        self.dropped += other.dropped
        if np.isnan(other.centre):
            return
        self.centre = other.centre if np.isnan(self.centre) else self.centre
        start, sums = other.axes.start, recentred(other.sums, self.centre - other.centre)
        if codes.labels is not None and other.axes.kind == "levels":
            start = codes.values[start.astype(int)]
        if len(sums) != len(self.sums):
            self.sums, sums = five(self.sums), five(sums)
        for j, own in enumerate(start):
            if not np.array_equal(own, self.axes.start[j]):
                if self.axes.exact[j]:
                    self._grow(j, own[np.isfinite(own)])
                if not (other.axes.exact[j] or np.isin(own, [*self.axes.start[j], np.inf]).all()):
                    raise ValueError("other has other bins; expected streams with the same bins")
            self._place(j, own, sums[:, :, j])

    def found(self, n: int, columns: Sequence[Column], population: bool, units: bool) -> Found:
        """Return V of each column, if there are n rows, and what a result keeps of it."""
        pooled, scales = self.sums.sum(axis=1), self.axes.scales(n)
        G, _, B = self.sums[0].shape
        marks = np.sin(1.0 + np.arange(G)) @ (self.sums[0] @ np.cos(1.0 + np.arange(B)))
        W = pooled[0].sum(axis=-1) + self.dropped
        missing = (pooled[0, :, -1] + self.dropped) / np.maximum(W, TINY)
        by_rank = ~self.axes.exact & (self.axes.kind == "nested")
        merges = np.where(by_rank, int(np.log2(max(B - 1, 1))) - scales[0], 0).tolist()
        told = marks, missing, pooled.swapaxes(0, 1), self.axes.start, merges
        centre = float(np.nan_to_num(self.centre))
        return self._estimate(pooled, scales, population, units), [
            Source(column.kind, mark, share, centre, sums, t, merged, shown_as(column))
            for column, mark, share, sums, t, merged in zip(columns, *told, strict=True)
        ]

    def _estimate(
        self, pooled: np.ndarray, scales: tuple, population: bool, units: bool
    ) -> Estimate:
        """Return V; nan if it cannot be estimated."""
        W, S = pooled[:2]
        if population:  # V = sum p m^2 - (sum p m)^2
            total = np.maximum(W.sum(axis=-1, keepdims=True), TINY)
            m = S / np.maximum(W, TINY) - S.sum(axis=-1, keepdims=True) / total
            return Estimate.exact((W * m**2).sum(axis=-1) / total[:, 0])
        found = spread(self.sums, pooled, scales, self.axes.kind == "nested", units)
        silent = np.count_nonzero(W, axis=-1) < 2
        if self.axes.kind == "levels":
            alone = 1.5 * moments(pooled)[3] > W * W
            silent |= (W * alone).sum(axis=-1) >= _ALONE * np.maximum(W.sum(axis=-1), TINY)
        return replace(found, V=np.where(silent, np.nan, found.V))


class Total:
    """Sums over folds of w, wr, (wr)^2, w^2, w^2 r and wr^2, from which Var(s) follows."""

    def __init__(self) -> None:
        self.sums, self.centre = np.zeros((6, FOLDS)), np.nan  # until there are rows

    def add(self, rows: Rows) -> Self:
        """Add rows."""
        self.centre = rows.centre if np.isnan(self.centre) else self.centre
        sums = summed(rows.fold, rows.parts(self.centre), FOLDS)
        square = sums[2]
        if len(sums) == 5:
            square = np.bincount(rows.fold, rows.w * (rows.s - self.centre) ** 2, FOLDS)
        self.sums += np.append(five(sums), square[None], axis=0)
        return self

    def merge(self, other: Total) -> None:
        """Add the sums of others."""
        self.centre = other.centre if np.isnan(self.centre) else self.centre
        self.sums = self.sums + other.centred(self.centre)

    def centred(self, centre: float) -> np.ndarray:
        """Return the sums for scores minus another centre."""
        move = centre - self.centre if self.sums[0].any() else 0.0
        square = self.sums[5] - 2 * move * self.sums[1] + move**2 * self.sums[0]
        return np.append(recentred(self.sums[:5], move), square[None], axis=0)

    def variance(self, population: bool, units: bool) -> Estimate:
        """Return Var(s) = E s^2 - (E s)^2, the square over pairs of rows."""
        sums = self.centred(self.centre + self.sums[1].sum() / max(self.sums[0].sum(), TINY))
        each = np.array([*moments(sums[:5], units), sums[5]])

        def variance(sums: np.ndarray) -> np.ndarray:
            W, S, SS, WW, wrr = np.maximum(sums, [[TINY], [-np.inf], [0], [0], [0]])
            square = (S / W) ** 2 if population else (S * S - SS) / np.maximum(W * W - WW, TINY)
            return np.maximum(wrr / W - square, 0)

        total = each.sum(axis=1)[:, None]
        V, without = variance(total), variance(total - each)[:, None]
        return Estimate.of_folds(V, without, each[0], np.zeros((3, 1)), np.zeros(1))
