"""Sums over (fold, bin): the only statistic of a feature. Sums add up, over chunks and machines.

Unweighted rows add 1, r, r^2 to their bin; weighted ones w, wr, (wr)^2, w^2, w^2 r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from firmlib.estimation.bins import SAMPLE, Axes, scales, spaced, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS
from firmlib.estimation.variance import TINY, Bins, Spread, merged, recentred, spread

ROWS = 2**14
"""Rows that are looked at together."""

_ALL = 2**14  # rows up to which bins are found from all of them
_ALONE = 0.9  # share of rows alone in their bins at which nothing can be said

Parts = list[np.ndarray | None]


def parts(r: np.ndarray, w: np.ndarray | None) -> Parts:
    """Return what each row adds to the sums of its bin; None stands for 1."""
    return [None, r, r * r] if w is None else [w, w * r, (w * r) ** 2, w * w, w * w * r]


def tally(slot: np.ndarray, each: Parts, fold: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (3 or 5, G, size) of one column."""
    at = fold * size + slot
    found = [np.bincount(at, a, FOLDS * size) for a in each]
    return np.array(found, dtype=float).reshape(len(each), FOLDS, size)


def fold_totals(r: np.ndarray, w: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the sums (4, G) of w, wr, wr^2 and w^2 over all rows."""
    return np.array([np.bincount(fold, a, FOLDS) for a in (w, w * r, w * r * r, w * w)])


def moved_totals(sums: np.ndarray, move: float) -> np.ndarray:
    """Return totals of scores that are centred at `move` less."""
    w, r, rr, ww = sums
    return np.array([w, r + move * w, rr + 2 * move * r + move**2 * w, ww])


def total_variance(sums: np.ndarray, population: bool) -> Estimate:
    """Return Var(s) from the totals of folds."""

    def variance(total: np.ndarray) -> np.ndarray:
        w, r, rr, ww = total
        w = np.maximum(w, TINY)
        found = np.maximum(rr / w - (r / w) ** 2, 0)
        return found if population else found * w * w / np.maximum(w * w - ww, TINY)

    total = sums.sum(axis=1)
    V, without = variance(total[:, None]), variance(total[:, None] - sums)[:, None]
    share = sums[0] / max(total[0], TINY)
    return Estimate.of_folds(V, without, share, np.zeros((3, 1)), np.zeros(1))


def added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return sums of both, weighted ones if either is."""
    return _five(a) + _five(b) if len(a) != len(b) else a + b


def _five(sums: np.ndarray) -> np.ndarray:
    return sums if len(sums) == 5 else sums[[0, 1, 2, 0, 1]]


@dataclass(frozen=True, eq=False)
class Source:
    """What a result keeps of a feature: its kind, and pooled sums (5, bins + 1) for its curve.

    `mark` is the same for the same feature of the same rows. Joint features have no sums.
    """

    kind: str = "number"
    mark: float = 0.0
    missing: float = np.nan
    sums: np.ndarray | None = None
    t: np.ndarray | None = None  # a value of each bin
    ordered: bool = False
    merges: int = 0  # how often neighbouring bins are merged for the curve
    shown: Callable[[np.ndarray], np.ndarray] | None = None  # the user's dates and labels

    @classmethod
    def of(cls, sums: np.ndarray, t: np.ndarray, drop: bool, **fields: Any) -> Source:
        """Return it from sums (5, G, bins + 1)."""
        weight = sums[0]
        G, B = weight.shape
        mark = float(np.sin(1.0 + np.arange(G)) @ weight @ np.cos(1.0 + np.arange(B)))
        missing = float(weight[:, -1].sum() / max(weight.sum(), TINY))
        return cls(mark=mark, missing=missing, sums=_kept(sums, drop).sum(axis=1), t=t, **fields)

    def direction(self) -> float:
        """Return 1 or -1: how the score moves with the rank of the feature; nan if it has none."""
        if self.sums is None or not self.ordered:
            return np.nan
        W, S = self.sums[0, :-1], self.sums[1, :-1]
        rank = np.cumsum(W) - W / 2
        return float(np.sign(S @ (rank - W @ rank / max(W.sum(), TINY)))) or np.nan

    def curve(self) -> tuple[np.ndarray, Bins]:
        """Return a value of each bin of q_f that has rows, nan or None for missing ones, and bins."""
        assert self.sums is not None and self.t is not None
        sums, t = self.sums, self.t
        if self.merges:
            blocks = t.reshape(-1, 2**self.merges)
            middle = blocks[:, 2 ** (self.merges - 1)]
            t = np.where(np.isfinite(middle), middle, blocks.min(axis=1))
        for _ in range(self.merges):
            sums = merged(sums)
        here = sums[0] > 0
        if not here.any():
            here[-1] = True
        t = np.append(t, np.array([np.nan if t.dtype.kind == "f" else None], dtype=t.dtype))[here]
        return (t if self.shown is None else self.shown(t)), Bins.of(sums[:4, here])

    @property
    def explained(self) -> float:
        """Var q_f if the rows are the population: sum p m^2 - (sum p m)^2."""
        assert self.sums is not None
        W, S = self.sums[:2]
        total = max(W.sum(), TINY)
        m = S / np.maximum(W, TINY) - S.sum() / total
        return float(W @ m**2 / total)


class Numbers:
    """Sums of d columns of numbers in the slots of their axes."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.sums = np.zeros((3, FOLDS, len(axes.start), axes.slots + 1))

    def add(self, F: np.ndarray, each: Parts, fold: np.ndarray) -> None:
        """Add rows of columns (d, m). A level that was not seen before gets a slot of its own."""
        slot = self.axes.find(F)
        for j in np.flatnonzero(self.axes.exact):
            known = ~np.isnan(F[j])
            seen = np.append(self.axes.start[j], np.nan)[slot[j]] == F[j]
            if not seen[known].all():
                self._grow(j, np.unique(F[j][known & ~seen]))
                slot[j] = self.axes[j : j + 1].find(F[j : j + 1])[0]
        if len(each) > len(self.sums):
            self.sums = _five(self.sums)
        size = self.sums.shape[-1]
        for j in range(len(F)):
            self.sums[:, :, j] += _as_many(tally(slot[j], each, fold, size), len(self.sums))

    def _grow(self, j: int, values: np.ndarray) -> None:
        """Give new levels of a column slots while there are any; then slots are shared."""
        start, exact, Q = self.axes.start.copy(), self.axes.exact.copy(), self.axes.slots
        old = np.unique(start[j][np.isfinite(start[j])])
        levels, at = np.union1d(old, values[: Q - len(old)]), start[j].searchsorted(old, "right") - 1
        exact[j] = len(old) + len(values) <= Q
        start[j] = spaced(levels[None], np.ones((1, len(levels)), bool), Q, self.axes.nested)[0]
        moved = np.zeros_like(self.sums[:, :, j])
        moved[..., start[j].searchsorted(old, "right") - 1] = self.sums[:, :, j, at]
        moved[..., -1] = self.sums[:, :, j, -1]
        self.sums[:, :, j] = moved
        self.axes = Axes.made(start, exact, self.axes.nested)

    def merge(self, other: Numbers, move: float) -> None:
        """Add the sums of others, whose scores are centred at `move` less."""
        for j in range(len(self.axes.start)):
            new = other.axes.start[j]
            if not np.array_equal(self.axes.start[j], new):
                self._grow(j, np.setdiff1d(new[np.isfinite(new)], self.axes.start[j]))
                other = other.copy()
                own = self.axes.start[j]
                other._grow(j, np.setdiff1d(own[np.isfinite(own)], new))
                if not np.array_equal(self.axes.start[j], other.axes.start[j]):
                    raise ValueError("other has other bins; expected streams with the same bins")
        self.sums = added(self.sums, _moved(other.sums, move))

    def copy(self) -> Numbers:
        """Return one that can be changed."""
        new = Numbers.__new__(Numbers)
        new.axes, new.sums = self.axes, self.sums.copy()
        return new

    def spread(self, n: float, units: bool, drop: bool) -> Spread:
        """Return V of each column, if there are n rows or units."""
        return spread(_kept(self.sums, drop), self.axes.base(n), self.axes.nested, units)

    def sources(self, n: float, drop: bool) -> list[Source]:
        """Return what the result keeps of each column."""
        K, start = int(np.log2(self.axes.slots)), self.axes.start
        merges = np.where(self.axes.exact | (not self.axes.nested), 0, K - self.axes.base(n))
        sums = _five(self.sums)
        return [
            Source.of(sums[:, :, j], start[j], drop, ordered=True, merges=int(m))
            for j, m in enumerate(merges)
        ]

    def weights(self, drop: bool) -> np.ndarray:
        """Return the weight of each fold (G, d)."""
        return self.sums[0, :, :, : -1 if drop else None].sum(axis=-1)


class Levels:
    """Sums of one column in each of its levels: categories, or the values of a population."""

    def __init__(self, ordered: bool) -> None:
        self.labels, self.ordered = pd.Index([]), ordered
        self.sums = np.zeros((3, FOLDS, 1))

    def add(self, column: Any, each: Parts, fold: np.ndarray) -> None:
        """Add rows of a `Column`."""
        known = ~np.isnan(column.values)
        if column.labels is None:
            labels, code = np.unique(column.values[known], return_inverse=True)
        else:
            labels, code = column.labels, column.values[known].astype(np.intp)
        new = pd.Index(labels)
        where = self._union(new)
        slot = np.full(len(known), len(self.labels))
        slot[known] = where[code]
        self.sums = added(self.sums, tally(slot, each, fold, len(self.labels) + 1))

    def _union(self, new: pd.Index) -> np.ndarray:
        """Make room for new labels, and return the places of all of them."""
        if not len(self.labels):
            both = new
        else:
            both = self.labels.append(new[~new.isin(self.labels)])
        grown = np.zeros((*self.sums.shape[:-1], len(both) + 1))
        grown[..., : len(self.labels)], grown[..., -1] = self.sums[..., :-1], self.sums[..., -1]
        self.labels, self.sums = both, grown
        return both.get_indexer(new)

    def merge(self, other: Levels, move: float) -> None:
        """Add the sums of others, whose scores are centred at `move` less."""
        where, theirs = self._union(other.labels), _moved(other.sums, move)
        mine = np.zeros((*theirs.shape[:-1], len(self.labels) + 1))
        mine[..., where], mine[..., -1] = theirs[..., :-1], theirs[..., -1]
        self.sums = added(self.sums, mine)

    def spread(self, n: float, units: bool, drop: bool) -> Spread:
        """Return V: one partition. Where nearly all rows are alone, it is nan."""
        sums = _kept(self.sums, drop)
        found = spread(sums[:, :, None], np.ones(1, int), False, units)
        W, WW = sums[0].sum(axis=0), sums[3].sum(axis=0)
        alone = W[W * W < 1.5 * WW].sum() / max(W.sum(), TINY)
        return found if alone < _ALONE else found._replace(V=np.array([np.nan]))

    def sources(self, n: float, drop: bool) -> list[Source]:
        """Return what the result keeps, levels in order."""
        labels = self.labels.to_numpy()
        order = np.argsort(labels, kind="stable") if self.ordered else np.arange(len(labels))
        sums = _five(self.sums)[..., np.append(order, -1)]
        return [Source.of(sums, labels[order], drop, ordered=self.ordered)]

    def weights(self, drop: bool) -> np.ndarray:
        """Return the weight of each fold (G, 1)."""
        return self.sums[0, :, : -1 if drop else None].sum(axis=-1, keepdims=True)


def _as_many(sums: np.ndarray, count: int) -> np.ndarray:
    return sums if len(sums) == count else _five(sums)


def _moved(sums: np.ndarray, move: float) -> np.ndarray:
    return recentred(_five(sums), -move)[: len(sums)] if move else sums


def _kept(sums: np.ndarray, drop: bool) -> np.ndarray:
    """Return all five sums, without those of missing values if they are dropped."""
    sums = _five(sums)
    if drop:
        sums = sums.copy()
        sums[..., -1] = 0
    return sums


def numbers_of(
    read: Callable[[int, int], np.ndarray],
    n: int,
    each: Parts,
    fold: np.ndarray,
    size: float,
    n_bins: int | None = None,
) -> Numbers:
    """Return the sums of columns that `read(start, stop)` gives as (d, rows), in bins for `size`."""
    if n <= _ALL:
        F = read(0, n)
        found = Numbers(Axes.of(F, size, n_bins))
        found.add(F, each, fold)
        return found
    rows = _sample(read, n, SAMPLE * (n_bins or 2 ** scales(size)[1]))
    found = Numbers(Axes.of(rows, size, n_bins, roomy=True))
    for a in range(0, n, ROWS):
        b = min(a + ROWS, n)
        found.add(read(a, b), [e if e is None else e[a:b] for e in each], fold[a:b])
    return found


def _sample(read: Callable[[int, int], np.ndarray], n: int, m: int) -> np.ndarray:
    """Return about m rows (d, m), chosen by a hash of what is in them: their order is no matter."""
    for columns in (2, None):
        chosen, least = [], np.uint64(2.0**64 / n * m)
        for a in range(0, n, ROWS):
            F = read(a, min(a + ROWS, n))
            key = np.zeros(F.shape[1], np.uint64)
            for f in F[:columns]:
                key ^= (f + 0.0).view(np.uint64)  # -0.0 is 0.0
                key *= np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(29)
            key *= np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(32)
            here = key < least
            chosen.append(np.concatenate([key[here][None].view(float), F[:, here]]))
        found = np.concatenate(chosen, axis=1)
        if m / 2 < found.shape[1] < 2 * m and len(np.unique(found[0].view(np.uint64))) > m / 3:
            return found[1:]
    return read(0, n)


def sparse_numbers(
    part: Any, each: Parts, fold: np.ndarray, size: float
) -> tuple[np.ndarray, Numbers]:
    """Return which columns of a CSC matrix have few levels, and their sums.

    Only stored values are looked at; zeros get what these leave of the sums of all rows.
    """
    d = part.shape[1]
    col = np.append(np.repeat(np.arange(d), np.diff(part.indptr)), np.arange(d))
    value, row = np.append(part.data, np.zeros(d)), np.append(part.indices, np.full(d, -1))
    order = np.lexsort((value, col))  # missing values last
    col, value, row = col[order], value[order], row[order]
    known = ~np.isnan(value)
    new = np.append(True, (np.diff(col) > 0) | (np.diff(value) > 0)) & known
    levels = np.bincount(col[new], minlength=d)
    few = levels <= 1.5 * 2 ** scales(size)[0]
    slot = np.cumsum(new) - 1 - (np.cumsum(levels) - levels)[col]
    here = few[col]
    col = (np.cumsum(few) - 1)[col]
    col, value, row, known, new, slot = (a[here] for a in (col, value, row, known, new, slot))
    d, Q = int(few.sum()), int(spacing(levels[few].max(initial=2)))
    each_level = np.full((d, Q), np.inf)
    each_level[col[new], slot[new]] = value[new]
    start = spaced(each_level, np.isfinite(each_level), Q, True)
    slot = np.where(known, slot * (Q // spacing(levels[few]))[col], Q)
    found = Numbers(Axes.made(start, np.ones(d, bool), True))
    stored, zero, shape = row >= 0, slot[row < 0], (FOLDS, d, Q + 1)
    at = (fold[row[stored]] * d + col[stored]) * (Q + 1) + slot[stored]
    sums = [np.bincount(at, a if a is None else a[row[stored]], int(np.prod(shape))) for a in each]
    found.sums = np.array(sums, dtype=float).reshape(len(each), *shape)
    total = np.array([np.bincount(fold, a, FOLDS) for a in each])
    left = total[:, :, None] - found.sums.sum(axis=-1)
    found.sums[:, :, np.arange(d), zero] += left
    return few, found
