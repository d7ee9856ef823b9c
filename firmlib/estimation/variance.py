"""V = Var q_f from sums in bins, scale by scale, and V without each fold.

Bins b of a partition have sums over rows i with weight w_i and centred score r_i:
W = sum w_i, S = sum w_i r_i, WW = sum w_i^2, SS = sum (w_i r_i)^2; if rows belong to units, the
last two are sums over folds of W^2 and S^2. Then p = W / sum W, m = S / W, n = WW^-1 W^2, and
e = (SS - m^2 WW) / (W^2 - WW) is the variance of m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate, influence
from firmlib.tables.columns import Column

_ALONE = 0.9  # share of rows alone in their levels at which nothing can be estimated


def recentred(sums: np.ndarray, c: np.ndarray | float) -> np.ndarray:
    """Return sums of 1, r, r^2 or w, wr, (wr)^2, w^2, w^2 r with c subtracted from every score."""
    w, r, rr = sums[:3]
    ww, wr = sums[3:] if len(sums) > 3 else (w, r)
    return np.array([w, r - c * w, rr - 2 * c * wr + c * c * ww, ww, wr - c * ww][: len(sums)])


def moments(sums: np.ndarray, units: bool = False) -> tuple[np.ndarray, ...]:
    """Return W, S, SS, WW of each fold and bin."""
    w, r, rr = sums[:3]
    return (w, r, r * r, w * w) if units else (w, r, rr, sums[3] if len(sums) > 3 else w)


def halved(sums: np.ndarray) -> np.ndarray:
    """Return sums (..., slots + 1) with neighbouring slots merged, the missing one apart."""
    out = np.empty((*sums.shape[:-1], sums.shape[-1] // 2 + 1))
    np.add(sums[..., :-1:2], sums[..., 1:-1:2], out=out[..., :-1])
    out[..., -1] = sums[..., -1]
    return out


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
        """Return them from W, S, SS, WW (..., bins); a bin with one row gets the pooled `lone`."""
        W, S, SS, WW = M
        p, m = W / np.maximum(W.sum(axis=-1, keepdims=True), TINY), S / np.maximum(W, TINY)
        n, pairs = W * W / np.maximum(WW, TINY), W * W - WW
        paired = pairs > 1e-9 * W * W
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
    return np.where((p > 0).sum(axis=-1) < 2, 1.0, found)


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


def spread(
    sums: np.ndarray, base: np.ndarray, finest: np.ndarray, *, ordered: bool, units: bool
) -> Estimate:
    """Return V of columns from sums (3 or 5, G, d, slots + 1); nan if it cannot be estimated.

    The last slot is for missing values. V = sum c_k V_k (`gates`), where V_k is the sum of T over
    the bins of scale k minus T of all rows as one bin; `base` and `finest` are the base scale and
    the finest scale of each column.
    """
    one = sums.sum(axis=-1, keepdims=True)
    if units or len(sums) > 3:  # otherwise V is the same wherever scores are centred
        centre = one[1].sum(axis=0) / np.maximum(one[0].sum(axis=0), TINY)
        sums, one = recentred(sums, centre), recentred(one, centre)
    part, scale = sums if units else sums.sum(axis=1, keepdims=True), []
    whole = Bins.of(pooled(one, units))
    for k in range(int(np.log2(sums.shape[-1] - 1)) if ordered else 1):
        part = halved(part) if k else part
        scale.insert(0, Bins.of(pooled(part, units)))
    V = np.array([b.T.sum(axis=-1) for b in scale]) - whole.T[:, 0]
    c, noise = gates(scale, V, base, finest)
    noise[2] *= not units  # effects shared within units shift all means, so V hardly changes
    without, part = -left_out(one, whole, units) * c.sum(axis=0), sums
    for k in range(len(scale))[::-1]:
        part = halved(part) if k + 1 < len(scale) else part
        some: Any = slice(None) if c[k].all() else np.flatnonzero(c[k])  # a slice copies nothing
        here = Bins(*(a[some] for a in scale[k]))
        without[:, some] += c[k, some] * left_out(part[:, :, some], here, units)
        if not c[:k].any():
            break
    tests = [np.where(k < base, test_equal(b), np.nan) for k, b in enumerate(scale)]
    V, pvalue = (c * V).sum(axis=0), cauchy(np.array(tests))
    silent = (scale[-1].p > 0).sum(axis=-1) < 2
    if not ordered:
        silent |= (scale[-1].p * (scale[-1].n < 1.5)).sum(axis=-1) >= _ALONE
    pvalue = np.where(V > 0, pvalue, np.maximum(pvalue, 0.5))
    psi = influence(V, without, one[0, ..., 0])
    return Estimate(np.where(silent, np.nan, V), noise, pvalue, psi)


def pooled(sums: np.ndarray, units: bool) -> tuple[np.ndarray, ...]:
    """Return W, S, SS, WW of all folds."""
    return tuple(a.sum(axis=0) for a in moments(sums, units))


def left_out(sums: np.ndarray, bins: Bins, units: bool) -> np.ndarray:
    """Return the sum of T over bins without each fold (G, d)."""
    own = moments(sums, units)
    W, S, SS = (a.sum(axis=0) - a for a in own[:3])
    WW = W if own[3] is own[0] else own[3].sum(axis=0) - own[3]
    square, pairs = S * S, W * W - WW
    paired = pairs > 1e-9 * WW
    T = W * (square - SS) / np.where(paired, pairs, 1)
    if not paired.all():
        T = np.where(paired, T, square / np.maximum(W, TINY) - bins.lone * W)
    return T.sum(axis=-1) / np.maximum(W.sum(axis=-1), TINY)


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
    merge: int = 1  # bins per point of the curve
    scale: Column | None = None  # the user's dates and labels

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
        if self.merge > 1:  # the bin with the median row gives the value
            points = sums[:, :-1].reshape(len(sums), -1, self.merge).sum(axis=-1)
            middle = np.cumsum(points[0]) - points[0] / 2
            t = t.take(np.cumsum(sums[0, :-1]).searchsorted(middle), mode="clip")
            sums = np.append(points, sums[:, -1:], axis=1)
        here = sums[0] > 0
        here[-1] |= not here.any()
        t = np.append(t, np.nan)[here]
        w, r, rr, *rest = sums[:, here]
        bins = Bins.of((w, r, rr, rest[0] if rest else w))
        t = t if self.scale is None else self.scale.shown(t)
        return t, bins._replace(m=bins.m + self.centre)
