"""Sums over (fold, bin), the only statistics of a feature; they add over chunks and computers.

Unweighted rows add 1, r, r^2 to their bin; weighted ones w, wr, (wr)^2, w^2, w^2 r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from firmlib.estimation.bins import Axis, scales
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.variance import Bins, recentred
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column

_ROWS = 2**16  # at a time: what is calculated of them stays in the cache


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
    point: np.ndarray | None = None  # of the curve, for each bin; None: each bin is one
    shown: Callable[[np.ndarray], np.ndarray] | None = None  # the user's dates and labels

    def direction(self) -> float:
        """Return 1 or -1: how the score moves with the rank of the feature; nan if it has none."""
        if self.sums is None or self.kind == "nominal":
            return np.nan
        W, S = self.sums[0, :-1], self.sums[1, :-1]
        rank = np.cumsum(W) - W / 2
        return float(np.sign(S @ (rank - W @ rank / (W.sum() or 1)))) or np.nan

    def curve(self) -> tuple[np.ndarray, Bins]:
        """Return a value of each point of q_f that has rows (missing: nan, None), and the bins."""
        assert self.sums is not None
        assert self.t is not None
        sums, t = self.sums, self.t
        if self.point is not None:  # bins are merged; the one with the median row gives the value
            first = np.flatnonzero(np.diff(self.point, prepend=-1))
            up_to = np.cumsum(sums[0, :-1])
            points = np.add.reduceat(sums[:, :-1], first, axis=1)
            t = t[up_to.searchsorted(up_to[first] - sums[0, first] + points[0] / 2)]
            sums = np.append(points, sums[:, -1:], axis=1)
        here = sums[0] > 0
        here[-1] |= not here.any()
        t = np.append(t, np.nan)[here]
        w, r, rr, *rest = sums[:, here]
        bins = Bins.of((w, r, rr, rest[0] if rest else w))
        return (t if self.shown is None else self.shown(t)), bins._replace(m=bins.m + self.centre)


def shown_as(column: Column) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return what turns numbers into the values of a column; None if they are the same."""
    return None if column.kind == "number" else column._replace(values=np.empty(0)).shown


def five(sums: np.ndarray) -> np.ndarray:
    """Return sums as those of weighted rows."""
    return sums if len(sums) == 5 else sums[[0, 1, 2, 0, 1]]


class Sums:
    """Sums (3 or 5, FOLDS, bins + 1) of one feature, of scores minus a centre.

    Arrays are replaced, never changed, so a shallow copy keeps what it has.
    """

    def __init__(self, axis: Axis, dropping: bool = False) -> None:
        self.axis, self.centre = axis, np.nan  # until there are rows
        self.dropping, self.dropped = dropping, 0.0  # weight of rows without a value
        self.sums = self._zeros(3)

    def _zeros(self, k: int) -> np.ndarray:
        shape = k, FOLDS, len(self.axis.start) + 1
        check_memory("the sums of a feature", shape)
        return np.zeros(shape)

    def add(self, f: np.ndarray, rows: Rows) -> None:
        """Add rows with values f; new levels get their own bins."""
        if self.dropping and (missing := np.isnan(f)).any():
            self.dropped += rows.w[missing].sum()
            f, rows = f[~missing], rows.taken(~missing)
        if not rows.n:
            return
        self.centre = rows.centre if np.isnan(self.centre) else self.centre
        self.sums = five(self.sums) if rows.weighted else self.sums
        parts = rows.parts(self.centre, len(self.sums) == 5)
        step = max(_ROWS, self.sums[0].size)
        for here in (slice(a, a + step) for a in range(0, rows.n, step)):
            found = self._found(f[here])
            cell = rows.fold[here] * self.sums.shape[-1] + found
            each = (part if part is None else part[here] for part in parts)
            sums = [np.bincount(cell, part, self.sums[0].size) for part in each]
            self.sums = self.sums + np.reshape(sums, self.sums.shape)

    def _found(self, f: np.ndarray) -> np.ndarray:
        """Return the bin of each value, after making bins for new levels."""
        found = self.axis.find(f)
        if self.axis.most:
            new = np.append(self.axis.start, np.nan).take(found) != f
            if new.any() and (new := new & ~np.isnan(f)).any():
                self._grow(f[new])
                return self.axis.find(f)
        return found

    def _grow(self, levels: np.ndarray, further: bool = True) -> None:
        """Make bins for new levels, and for others `further` on."""
        before, sums = self.axis.start, self.sums
        self.axis = self.axis.grown(levels)
        self.sums = self._placed(before, sums)
        if not (self.axis.most and further):
            self.axis = replace(self.axis, most=0, ends=self._ends())

    def _placed(self, start: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return sums in bins with these starts as sums in the own bins."""
        if np.array_equal(start, self.axis.start):
            return sums
        out = self._zeros(len(sums))
        np.add.at(out, (..., np.append(self.axis.find(start), -1)), sums)
        return out

    def fill(self, f: float, total: np.ndarray) -> None:
        """Give the value f to all rows but those that were added; `total` has the sums of all."""
        own = self.sums.copy()
        own[:, :, self.axis.find(np.array([f]))[0]] += total - own.sum(axis=2)
        self.sums = own

    def merge(self, other: Sums, codes: Column) -> None:
        """Add the sums of another one, in which label k has another code here."""
        self.dropped += other.dropped
        if np.isnan(other.centre):
            return
        before, start = self.centre, other.axis.start
        if np.isnan(before) or other.sums[0].sum() > self.sums[0].sum():
            self.centre = other.centre  # of more rows, so hardly one of outliers
        sums = recentred(other.sums, self.centre - other.centre)
        self.sums = recentred(self.sums, self.centre - np.nan_to_num(before, nan=self.centre))
        if codes.labels is not None:
            start = codes.values[start.astype(int)]
        if len(sums) != len(self.sums):
            self.sums, sums = five(self.sums), five(sums)
        if self.axis.most:
            self._grow(start, other.axis.most > 0)
        if not other.axis.most and not np.array_equal(start, self.axis.start):
            raise ValueError("other has other bins; expected streams with the same bins")
        self.sums = self.sums + self._placed(start, sums)

    def nested(self) -> np.ndarray:
        """Return the sums in nested slots."""
        slots = 2**self.axis.K
        if len(self.axis.start) == slots:
            return self.sums
        out = np.zeros((len(self.sums), FOLDS, slots + 1))
        out[..., np.append(self.axis.slot, -1)] = self.sums
        return out

    def _ends(self) -> float:
        """Return the larger share of the first and the last bin."""
        W = self.sums[0].sum(axis=0)
        return max(W[0], W[-2]) / max(W[:-1].sum(), 1e-300)

    def coarse(self, n: int) -> bool:
        """Return whether bins are too few for n rows, or hold far more values at the ends now."""
        few = self.axis.ordered and scales(n * self.axis.share)[0] > self.axis.K
        return not self.axis.most and (few or self._ends() > 0.05 + 2 * self.axis.ends)

    def source(self, column: Column, n: int) -> Source:
        """Return what a result keeps, if there are n rows."""
        W, pooled, point = self.sums[0], self.sums.sum(axis=1), None
        mark = np.sin(1.0 + np.arange(FOLDS)) @ W @ np.cos(1.0 + np.arange(W.shape[1]))
        total = max(pooled[0].sum() + self.dropped, 1e-300)
        missing = (pooled[0, -1] + self.dropped) / total
        if self.axis.ordered and self.axis.scales(n)[0] < self.axis.K:
            point = self.axis.slot >> (self.axis.K - self.axis.scales(n)[0])
        centre = float(np.nan_to_num(self.centre))
        start, shown = self.axis.start, shown_as(column)
        return Source(column.kind, float(mark), missing, centre, pooled, start, point, shown)
