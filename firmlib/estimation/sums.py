"""Sums over (fold, bin): the only statistic of a feature. Sums add up, over chunks and machines.

Unweighted rows add 1, r, r^2 to their bin; weighted ones w, wr, (wr)^2, w^2, w^2 r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from firmlib.estimation.bins import SAMPLE, Axes, scales, spaced, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.variance import TINY, Bins, Spread, merged, moments, recentred, spread

ROWS = 2**16
"""Rows that are read together."""

_TOGETHER = 2**16  # values whose slots are found together
_ALL = 2**14  # rows up to which bins are found from all of them
_ALONE = 0.9  # share of rows alone in their bins at which nothing can be said

Parts = list[np.ndarray | None]
Read = Callable[[slice | np.ndarray, int | None], np.ndarray]
"""Of rows the first so many columns, or all, as (d, rows)."""


def parts(r: np.ndarray, w: np.ndarray | None) -> Parts:
    """Return what each row adds to the sums of its bin; None stands for 1."""
    return [None, r, r * r] if w is None else [w, w * r, (w * r) ** 2, w * w, w * w * r]


def tally(sums: np.ndarray, slot: np.ndarray, each: Parts, shift: np.ndarray) -> None:
    """Add rows of a column, in these slots, to its sums (3 or 5, G, size); shift = fold size."""
    _, G, size = sums.shape
    at = slot + shift
    found = [np.bincount(at, a, G * size).reshape(G, size) for a in each]
    for k in range(len(sums)):
        sums[k] += found[k if k < len(found) else k - 3]  # unweighted rows: w^2 = w, w^2 r = wr


def fold_totals(r: np.ndarray, w: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the sums (6, G) of w, wr, (wr)^2, w^2, w^2 r and wr^2 over all rows."""
    each = (w, w * r, (w * r) ** 2, w * w, w * w * r, w * r * r)
    return np.array([np.bincount(fold, a, FOLDS) for a in each])


def moved_totals(sums: np.ndarray, move: float) -> np.ndarray:
    """Return the totals after scores were centred at `move` less."""
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
    """What a result keeps of a feature: its kind, and pooled sums (3 or 5, bins + 1) for its curve.

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
        return (t if self.shown is None else self.shown(t)), Bins.of(moments(sums[:, here]))

    @property
    def explained(self) -> float:
        """Var q_f if the rows are the population: sum p m^2 - (sum p m)^2."""
        assert self.sums is not None
        W, S = self.sums[:2]
        total = max(W.sum(), TINY)
        m = S / np.maximum(W, TINY) - S.sum() / total
        return float(W @ m**2 / total)


def _sources(sums: np.ndarray, t: np.ndarray, drop: bool, **fields: Any) -> list[Source]:
    """Return what a result keeps of sums (3 or 5, G, d, bins + 1)."""
    W = sums[0]
    G, d, B = W.shape
    marks = np.einsum("gjb,g,b->j", W, np.sin(1.0 + np.arange(G)), np.cos(1.0 + np.arange(B)))
    pooled = sums.sum(axis=1)
    missing = pooled[0, :, -1] / np.maximum(pooled[0].sum(axis=-1), TINY)
    pooled = _kept(pooled, drop)
    return [Source("number", marks[j], missing[j], pooled[:, j], t[j], **fields) for j in range(d)]


class Numbers:
    """Sums of d columns of numbers in the slots of their axes."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.sums = np.zeros((3, FOLDS, len(axes.start), axes.slots + 1))

    def add(self, F: np.ndarray, each: Parts, fold: np.ndarray) -> None:
        """Add rows of columns (d, m). A level that was not seen before gets a slot of its own."""
        if len(each) > len(self.sums):
            self.sums = _five(self.sums)
        shift, step = fold * self.sums.shape[-1], max(1, _TOGETHER // F.shape[1])
        for first in range(0, len(F), step):
            for j, slot in enumerate(self.axes.find(F[first : first + step], first), first):
                if self.axes.exact[j]:
                    seen = (np.append(self.axes.start[j], np.nan)[slot] == F[j]) | np.isnan(F[j])
                    if not seen.all():
                        self._grow(j, np.unique(F[j][~seen]))
                        slot = self.axes.find(F[j : j + 1], j)[0]
                tally(self.sums[:, :, j], slot, each, shift)

    def _grow(self, j: int, values: np.ndarray) -> None:
        """Give new levels of a column slots while there are any; then slots are shared."""
        start, exact, Q = self.axes.start.copy(), self.axes.exact.copy(), self.axes.slots
        old = np.unique(start[j][np.isfinite(start[j])])
        levels, at = (
            np.union1d(old, values[: Q - len(old)]),
            start[j].searchsorted(old, "right") - 1,
        )
        exact[j] = len(old) + len(values) <= Q
        start[j] = spaced(levels[None], np.ones((1, len(levels)), bool), Q, self.axes.nested)[0]
        moved = np.zeros_like(self.sums[:, :, j])
        moved[..., start[j].searchsorted(old, "right") - 1] = self.sums[:, :, j, at]
        moved[..., -1] = self.sums[:, :, j, -1]
        self.sums[:, :, j] = moved
        self.axes = replace(self.axes, start=start, exact=exact)

    def merge(self, other: Numbers, move: float) -> None:
        """Add the sums of others, whose scores are centred at `move` more."""
        theirs = Numbers(other.axes)
        theirs.sums = other.sums.copy()
        for j, (own, new) in enumerate(zip(self.axes.start, other.axes.start, strict=True)):
            if not np.array_equal(own, new):
                self._grow(j, np.setdiff1d(new[np.isfinite(new)], own))
                theirs._grow(j, np.setdiff1d(own[np.isfinite(own)], new))
        if not np.array_equal(self.axes.start, theirs.axes.start):
            raise ValueError("other has other bins; expected streams with the same bins")
        self.sums = _added(self.sums, recentred(theirs.sums, -move))

    def spread(self, n: float, units: bool, drop: bool) -> Spread:
        """Return V of each column, if there are n rows."""
        return spread(_kept(self.sums, drop), self.axes.scales(n), self.axes.nested, units)

    def sources(self, n: float, drop: bool) -> list[Source]:
        """Return what a result keeps of each column."""
        K = int(np.log2(self.axes.slots))
        merges = np.where(self.axes.exact | (not self.axes.nested), 0, K - self.axes.scales(n)[0])
        found = _sources(self.sums, self.axes.start, drop, ordered=True)
        return [replace(s, merges=int(m)) if m else s for s, m in zip(found, merges, strict=True)]

    def weights(self, drop: bool) -> np.ndarray:
        """Return the weight of each fold (G, d)."""
        return self.sums[0, :, :, : -1 if drop else None].sum(axis=-1)


class Levels:
    """Sums of one column in each of its levels: categories, or the values of a population."""

    def __init__(self, ordered: bool) -> None:
        self.labels, self.ordered = pd.Index([]), ordered
        self.sums = np.zeros((3, FOLDS, 1, 1))

    def add(self, column: Any, each: Parts, fold: np.ndarray) -> None:
        """Add rows of a `Column`."""
        known = ~np.isnan(column.values)
        if column.labels is None:
            labels, code = np.unique(column.values[known], return_inverse=True)
        else:
            labels, code = column.labels, column.values[known].astype(np.intp)
        where = self._union(pd.Index(labels))
        slot = np.full(len(known), len(self.labels))
        slot[known] = where[code]
        if len(each) > len(self.sums):
            self.sums = _five(self.sums)
        tally(self.sums[:, :, 0], slot, each, fold * self.sums.shape[-1])

    def _union(self, new: pd.Index) -> np.ndarray:
        """Make room for new labels, and return the places of all of them."""
        both = self.labels.append(new[~new.isin(self.labels)]) if len(self.labels) else new
        grown = np.zeros((*self.sums.shape[:-1], len(both) + 1))
        grown[..., : len(self.labels)], grown[..., -1] = self.sums[..., :-1], self.sums[..., -1]
        self.labels, self.sums = both, grown
        return both.get_indexer(new)

    def merge(self, other: Levels, move: float) -> None:
        """Add the sums of others, whose scores are centred at `move` more."""
        where, theirs = self._union(other.labels), recentred(other.sums, -move)
        mine = np.zeros((*theirs.shape[:-1], len(self.labels) + 1))
        mine[..., where], mine[..., -1] = theirs[..., :-1], theirs[..., -1]
        self.sums = _added(self.sums, mine)

    def spread(self, n: float, units: bool, drop: bool) -> Spread:
        """Return V: one partition. Where nearly all rows are alone, it is nan."""
        sums = _kept(self.sums, drop)
        one = np.ones(1, int)
        found = spread(sums, (one, one), False, units)
        W, _, _, WW = (a.sum(axis=0)[0] for a in moments(sums))
        alone = W[W * W < 1.5 * WW].sum() / max(W.sum(), TINY)
        return found if alone < _ALONE else found._replace(V=np.array([np.nan]))

    def sources(self, n: float, drop: bool) -> list[Source]:
        """Return what a result keeps, levels in order."""
        labels = self.labels.to_numpy()
        order = np.argsort(labels, kind="stable") if self.ordered else np.arange(len(labels))
        sums = self.sums[..., np.append(order, -1)]
        return _sources(sums, labels[order][None], drop, ordered=self.ordered)

    def weights(self, drop: bool) -> np.ndarray:
        """Return the weight of each fold (G, 1)."""
        return self.sums[0, :, :, : -1 if drop else None].sum(axis=-1)


def _kept(sums: np.ndarray, drop: bool) -> np.ndarray:
    """Return sums, without those of missing values if they are dropped."""
    if drop:
        sums = sums.copy()
        sums[..., -1] = 0
    return sums


def numbers_of(read: Read, rows: Rows, each: Parts, n_bins: int | None = None) -> Numbers:
    """Return the sums of columns that `read` gives, in bins found from a sample of their rows."""
    few = rows.n <= _ALL or n_bins is not None
    some = slice(0, rows.n) if few else _sample(read, rows.n, SAMPLE * 2 ** int(scales(rows.n)[1]))
    unit = None if rows.unit is None else rows.unit[some]
    F = read(some, None)
    found = Numbers(Axes.of(F, rows.n, n_bins, roomy=not few, unit=unit))
    if few:
        found.add(F, each, rows.fold)
        return found
    for a in range(0, rows.n, ROWS):
        here = slice(a, min(a + ROWS, rows.n))
        found.add(read(here, None), [e if e is None else e[here] for e in each], rows.fold[here])
    return found


def _sample(read: Read, n: int, m: int) -> slice | np.ndarray:
    """Return about m rows, chosen by a hash of what is in them, so whatever their order."""
    for columns in (2, None):
        key = np.zeros(n, np.uint64)
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


def sparse_numbers(part: Any, each: Parts, fold: np.ndarray) -> tuple[np.ndarray, Numbers]:
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
    few = levels <= 1.5 * 2 ** scales(len(fold))[0]
    slot = np.cumsum(new) - 1 - (np.cumsum(levels) - levels)[col]
    here = few[col]
    col = (np.cumsum(few) - 1)[col]
    col, value, row, known, new, slot = (a[here] for a in (col, value, row, known, new, slot))
    d, Q = int(few.sum()), int(spacing(levels[few].max(initial=2)))
    each_level = np.full((d, Q), np.inf)
    each_level[col[new], slot[new]] = value[new]
    start = spaced(each_level, np.isfinite(each_level), Q, True)
    slot = np.where(known, slot * (Q // spacing(levels[few]))[col], Q)
    found = Numbers(Axes(start, np.ones(d, bool), np.ones(d)))
    stored, zero, shape = row >= 0, slot[row < 0], (FOLDS, d, Q + 1)
    at = (fold[row[stored]] * d + col[stored]) * (Q + 1) + slot[stored]
    sums = [np.bincount(at, a if a is None else a[row[stored]], int(np.prod(shape))) for a in each]
    found.sums = np.array(sums, dtype=float).reshape(len(each), *shape)
    total = np.array([np.bincount(fold, a, FOLDS) for a in each])
    left = total[:, :, None] - found.sums.sum(axis=-1)
    found.sums[:, :, np.arange(d), zero] += left
    return few, found
