"""V = Var q_f from sums in bins, scale by scale, and V without each fold.

A bin of a partition has the sums W of weights w, S of x = wr, SS of x^2 and WW of w^2 over its
rows, where r is the centred score; if rows belong to units, SS and WW are sums over folds of S^2
and W^2. Then p = W / sum W, m = S / W, n = W^2 / WW, and the variance of m is
e = (SS - m^2 WW) / (W^2 - WW).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate, influence
from firmlib.estimation.rows import FOLDS
from firmlib.tables.columns import Column

_SIN = np.sin(1.0 + np.arange(FOLDS))
_PAIRED = 0.05  # of W^2; else one row has nearly all weight of a bin, which has no pairs
_ALONE = 0.9  # share of rows alone in their levels at which nothing can be estimated


def recentred(sums: np.ndarray, c: np.ndarray | float) -> np.ndarray:
    """Return sums of w, x = wr, x^2, wx, w^2 with c subtracted from every score r.

    Without weights, there are the first three only.
    """
    if np.ndim(c) == 0 and c == 0:
        return sums
    w, x, xx, wx, ww = moments(sums)
    return np.array([w, x - c * w, xx - 2 * c * wx + c * c * ww, wx - c * ww, ww][: len(sums)])


def moments(sums: np.ndarray, units: bool = False) -> tuple[np.ndarray, ...]:
    """Return sums of w, x, x^2, wx, w^2 over the rows of each fold and bin, or of its one unit."""
    w, x, xx, *more = sums
    return (w, x, x * x, w * x, w * w) if units else (w, x, xx, *(more or (x, w)))


def halved(sums: np.ndarray) -> np.ndarray:
    """Return sums (..., slots + 1) with neighbouring slots merged, the missing one apart."""
    return np.append(sums[..., :-1:2] + sums[..., 1:-1:2], sums[..., -1:], axis=-1)


def doubled(factors: np.ndarray) -> np.ndarray:
    """Return factors of merged slots for both slots, the missing one apart."""
    return np.append(np.repeat(factors[..., :-1], 2, axis=-1), factors[..., -1:], axis=-1)


class Bins(NamedTuple):
    """Of each bin p, its mean m, the variance e of m, effective rows n, and T = p (m^2 - e)."""

    p: np.ndarray
    m: np.ndarray
    e: np.ndarray
    n: np.ndarray
    T: np.ndarray
    lone: np.ndarray  # variance of a row, pooled over bins

    @classmethod
    def of(cls, M: tuple[np.ndarray, ...]) -> Bins:
        """Return them from `moments` (..., bins); a bin with one row gets the pooled `lone`."""
        W, S, SS, _, WW = M
        p, m = W / np.maximum(W.sum(axis=-1, keepdims=True), TINY), S / np.maximum(W, TINY)
        n, pairs = W * W / np.maximum(WW, TINY), W * W - WW
        paired = pairs > _PAIRED * W * W
        e = np.where(paired, (SS - m * m * WW) / np.where(paired, pairs, 1), 0)
        df = np.where(paired, n - 1, 0)
        lone = (df * e * n).sum(axis=-1, keepdims=True)
        lone = np.maximum(lone / np.maximum(df.sum(axis=-1, keepdims=True), TINY), 0)
        e = np.where(paired, e, np.where(W > 0, lone, 0))
        return cls(p, m, e, n, p * (m * m - e), lone)

    @property
    def rest(self) -> np.ndarray:
        """Var(T) of each bin if all means are equal."""
        return 2 * self.p**2 * self.e**2 * np.maximum(self.n - 1, 1) / (self.n + 1)


def test_equal(bins: Bins) -> np.ndarray:
    """Return p-values of equal means (Brown, Forsythe 1974; Mehrotra 1997)."""
    p, m, e, n = bins[:4]
    u = p * np.maximum(e, 0)
    signal = (p * m * m).sum(axis=-1) - (p * m).sum(axis=-1) ** 2
    noise = (u - p * u).sum(axis=-1)
    between = ((1 - 2 * p) * u * u).sum(axis=-1) + (p * u).sum(axis=-1) ** 2
    within = ((1 - p) ** 2 * u * u / np.maximum(n - 1, 1)).sum(axis=-1)
    found = f_test(signal, noise, between, within)
    some = ((p > 0).sum(axis=-1) > 1) & (n.max(axis=-1) > 1.5)  # otherwise there is no noise
    return np.where(some, found, 1.0)


def f_test(signal: Any, noise: Any, between: Any, within: Any) -> Any:
    """Return the p-value of a signal whose mean is the noise, with these variances of both."""
    with np.errstate(all="ignore"):
        found = special.fdtrc(noise**2 / between, noise**2 / within, signal / noise)
    found = np.where(np.abs(noise) > 1e-15 * signal, found, signal <= TINY)
    return np.where(np.isnan(found), 1.0, found)


def cauchy(p: np.ndarray) -> np.ndarray:
    """Return p-values (k, d) of k tests combined (Liu, Xie 2020); nan: no such test."""
    with np.errstate(divide="ignore", over="ignore"):
        mean = np.nanmean(1 / np.tan(np.pi * np.clip(p, TINY, 0.99)), axis=0)
    least = np.nanmin(p, axis=0)
    several = (np.isfinite(p).sum(axis=0) > 1) & (least > TINY)
    return np.where(several, np.arctan2(1, mean) / np.pi, least)


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums of d features over cells: one cell for each fold and slot, as many slots for each.

    pooled (3 or 5, d, slots + 1): sums of all folds; the last ones are of missing values. folded:
    multiplies the first sums by factors (1 to 5, d, slots + 1) and adds them up by fold (G, d).
    base, finest (d,): scales. start (d, slots): the least value of each slot. centre (d,): what was
    subtracted from scores. weight: of all rows. ordered: whether neighbouring slots can be merged.
    units (3 or 5, G, d, slots + 1): the sums of each fold, if rows belong to units.
    """

    pooled: np.ndarray
    folded: Callable[[np.ndarray], np.ndarray]
    base: np.ndarray
    finest: np.ndarray
    start: Sequence[np.ndarray]
    centre: Sequence[float]
    weight: float
    ordered: bool = True
    units: np.ndarray | None = None

    @classmethod
    def of(cls, sums: np.ndarray, units: bool, **rest: Any) -> Self:
        """Return the cells with sums (3 or 5, G, d, slots + 1) in one array."""
        folded = lambda factors: np.einsum("pgds,pds->gd", sums[: len(factors)], factors)  # noqa: E731
        return cls(sums.sum(axis=1), folded, units=sums if units else None, **rest)

    def sources(self, columns: Sequence[Column]) -> list[Source]:
        """Return what a result keeps of each feature."""
        pooled = self.pooled
        mark = _SIN @ self.folded(pooled[:1])
        missing = np.maximum(1 - pooled[0, :, :-1].sum(axis=-1) / self.weight, 0).round(12)
        merge = pooled.shape[-1] // 2**self.base if self.ordered else np.ones_like(self.base)
        own = mark.tolist(), missing.tolist(), self.centre, pooled.swapaxes(0, 1), self.start
        each = zip(columns, *own, merge.tolist(), strict=True)
        return [Source._make((column.kind, *one, column)) for column, *one in each]


def spread(cells: Cells) -> Estimate:
    """Return V of features; nan if it cannot be estimated.

    V = sum c_k V_k (`gates`), where V_k is the sum of T over the bins of scale k minus T of all
    rows as one bin.
    """
    units = cells.units is not None
    part = cells.pooled[:, None] if cells.units is None else cells.units
    one = part.sum(axis=-1, keepdims=True)
    mean = one[1].sum(axis=0) / np.maximum(one[0].sum(axis=0), TINY)
    parts = [recentred(part, mean)]
    while cells.ordered and parts[0].shape[-1] > 3:
        parts.insert(0, halved(parts[0]))
    each = [moments(sums, units) for sums in (recentred(one, mean), *parts)]
    whole, *scale = (Bins.of(pooled(M)) for M in each)
    V = np.array([b.T.sum(axis=-1) for b in scale]) - whole.T[:, 0]
    c, noise = gates(scale, V, cells.base, cells.finest)
    noise[2] *= not units  # effects shared within units shift all means, so V hardly changes
    tests = [np.where(k < cells.base, test_equal(b), np.nan) for k, b in enumerate(scale)]
    V, pvalue = (c * V).sum(axis=0), cauchy(np.array(tests))
    silent = (scale[-1].p > 0).sum(axis=-1) < 2
    if not cells.ordered:
        silent |= (scale[-1].p * (scale[-1].n < 1.5)).sum(axis=-1) >= _ALONE
    pvalue = np.where(V > 0, pvalue, np.maximum(pvalue, 0.5))
    factors = zip(np.insert(c, 0, -c.sum(axis=0), axis=0), each, [whole, *scale], strict=True)
    falls = [c_k[:, None] * fall(pooled(M), b.lone) for c_k, M, b in factors]
    if units:
        moved = np.sum([*map(fallen, each, falls)], axis=0)
    else:
        total = falls[0]
        for own in falls[1:]:
            total = own + (doubled(total) if total.shape[-1] > 1 else total)
        moved = cells.folded(uncentred(total, mean, len(cells.pooled)))
    psi = influence(moved, cells.folded(np.ones_like(cells.pooled[:1])))
    return Estimate(np.where(silent, np.nan, V), noise, pvalue, psi)


def plain(pooled: np.ndarray) -> np.ndarray:
    """Return V = sum p (m - sum p m)^2 of populations."""
    p, m = Bins.of(moments(pooled))[:2]
    return (p * (m - (p * m).sum(axis=-1, keepdims=True)) ** 2).sum(axis=-1)


def pooled(M: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return W, S, SS, WW of all folds."""
    return tuple(a.sum(axis=0) for a in M)


def fall(M: tuple[np.ndarray, ...], lone: np.ndarray) -> np.ndarray:
    """Return by how much T falls without a row, as factors of its w, x = wr, x^2 and wx.

    Without it, T = W (S^2 - SS) / (W^2 - WW) is A(w) (S^2 - SS - 2 S x + 2 x^2), where
    A(w) = (W - w) / (W^2 - WW - 2 W w + 2 w^2) is linear from w = 0 to the mean weight k = WW / W.
    Of two rows, one stays alone in its bin: (S - x)^2 / (W - k) - lone (W - k).
    """
    W, S, SS, _, WW = (np.maximum(M[0], TINY), *M[1:])
    k, pairs = np.maximum(WW, TINY) / W, W * W - WW
    alone, few = pairs <= _PAIRED * W * W, 2.9 * k > W
    at_0 = W / np.where(alone, 1, pairs)
    left = np.where(alone, 1, W - np.where(few, 1, 2) * k)
    at_k, N = np.where(alone, 0, 1 / left), S * S - SS
    T = np.where(alone, S * S / W - lone * W, at_0 * N)
    step = (at_k - at_0) / k
    last = [(T - at_k * S * S + ~alone * lone * left) / k, 2 * S * at_k, -at_k, 0 * S]
    return np.where(few, last, [-step * N, 2 * S * at_0, -2 * at_k, 2 * S * step])


def fallen(M: tuple[np.ndarray, ...], factors: np.ndarray) -> np.ndarray:
    """Return by how much the sum of T over bins falls with each fold (G, d)."""
    return np.einsum("pgds,pds->gd", np.array(M[: len(factors)]), factors)


def uncentred(factors: np.ndarray, c: np.ndarray, count: int) -> np.ndarray:
    """Return factors of w, x, x^2, wx as those of 3 or 5 sums in which x is not yet x - c w."""
    w, x, xx, wx = factors
    w, ww, wx = w - c * x, c * c * xx - c * wx, wx - 2 * c * xx
    return np.array([w, x, xx, wx, ww] if count > 3 else [w + ww, x + wx, xx])


def gates(
    bins: list[Bins], V: np.ndarray, base: np.ndarray, most: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return c (scales, d) so that V = sum_k c_k V_k, and the noise (3, d).

    Finer scales than the base add gate_k d_k, d_k = V_k - V_{k-1}, where gate_k rises from 0 at
    one error of d_k to 1 at two errors. The squared error of d_k is the jackknife's for equal
    means, plus 4 x^2 / n for each halved bin to which halving adds x (few rows, or outliers). The
    noise is Var(V) for equal means, which the jackknife counts twice, and 4 sum p^2 e,
    Var(V) / V of a noisy curve.
    """
    K, d = V.shape
    here, gate = np.arange(d), np.ones((K + 1, d))
    gate[K] = 0
    for k in range(1, K):
        coarse, fine = bins[k - 1], bins[k]
        added = fine.T[:, :-1].reshape(d, -1, 2).sum(axis=-1) - coarse.T[:, :-1]
        error = (4 * added**2 / np.maximum(coarse.n[:, :-1], 1)).sum(axis=-1)
        error += np.maximum(2 * (fine.rest.sum(axis=-1) - coarse.rest.sum(axis=-1)), TINY)
        open_ = np.clip((V[k] - V[k - 1]) / np.sqrt(error) - 1, 0, 1)
        gate[k] = np.where(k < base, 1, open_ * (k < most))
    rest = np.array([b.rest.sum(axis=-1) for b in bins])[base - 1, here]
    least = np.array([4 * (b.p**2 * np.maximum(b.e, 0)).sum(axis=-1) for b in bins])[base - 1, here]
    return gate[:-1] - gate[1:], np.array([rest, rest, least])


class Source(NamedTuple):
    """Kind of a feature, and pooled sums (3 or 5, bins + 1) for its curve, kept in a result.

    `mark` identifies the values of the feature. Joint features have no sums.
    """

    kind: str = "number"
    mark: float = 0.0
    missing: float = np.nan
    centre: float = 0.0  # of the scores in these sums
    sums: np.ndarray | None = None
    t: np.ndarray | None = None  # a value of each bin
    merge: int = 1  # bins per point of the curve
    scale: Column | None = None  # the user's dates and labels

    def direction(self) -> float:
        """Return 1 or -1: how the score moves with the rank of the feature; nan if it has none."""
        if self.sums is None or self.kind == "nominal":
            return np.nan
        W, S = self.sums[0, :-1], self.sums[1, :-1]
        rank = np.cumsum(W) - W / 2
        rank -= W @ rank / (W.sum() or 1)
        rises = S @ rank
        return float(np.sign(rises)) if abs(rises) > 1e-12 * np.abs(S) @ np.abs(rank) else np.nan

    def curve(self) -> tuple[np.ndarray, Bins]:
        """Return a value of each point of q_f that has rows (missing: nan, None), and the bins."""
        assert self.sums is not None
        assert self.t is not None
        sums, t = self.sums, self.t
        if self.merge > 1:  # the bin with the median row gives the value
            points = sums[:, :-1].reshape(len(sums), -1, self.merge).sum(axis=-1)
            middle = np.cumsum(points[0]) - points[0] / 2
            t = t.take(np.cumsum(sums[0, :-1]).searchsorted(middle), mode="clip")
            sums = np.append(points, sums[:, -1:], axis=1)
        here = sums[0] > 0
        here[-1] |= not here.any()
        t = np.append(t, np.nan)[here]
        bins = Bins.of(moments(sums[:, here]))
        t = t if self.scale is None else self.scale.shown(t)
        return t, bins._replace(m=bins.m + self.centre)
