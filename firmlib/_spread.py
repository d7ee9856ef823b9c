"""The variance of q_f from sums in bins (Definition 2), with what a test and an error need.

Bins are on the first axis of all arrays, features on the last ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, prod
from typing import Any, NamedTuple, Self

import numpy as np

from firmlib._inference import Estimate, Influence, brown_forsythe, cauchy, uncertainty
from firmlib._rounding import EMPTY, NUDGE, ROUNDING

_PAIR = 2 - NUDGE  # rows of which two can be compared, whatever their weights were rounded to
_ROUNDED = 16 * np.finfo(float).eps  # share of all squares; less is rounding: no noise, no sign
_LEAST = 4 - NUDGE  # rows from which a bin has a line, and one of many levels is not rare
_TOGETHER = 8  # numbers of merged bins that are looked at together, of a few features
_FEW = 100


class Sums(NamedTuple):
    """Sums over the rows of each bin, or over all rows; None where they are not needed.

    w, wr, wrr : of w, w r and w r^2, for the scores minus their mean r.
    wf : of w f.
    ww, wwr, wwrr : of w_i w_j, w_i w_j r_j and w_i w_j r_i r_j over all pairs of rows, equal or
        not, of the same unit. A unit is a row, or what belongs together. None if weights count
        rows: k rows are k units, and these sums are the first three.
    wrrr : of w r^3.
    wg, wgg, wgr : of w g, w g^2 and w g r, where g is f minus the first value of the bin.
    wrrrr, ..., wrrrrrrrr : of w r^4 up to w r^8, if a stream is to be standardized.
    """

    w: np.ndarray
    wr: np.ndarray
    wrr: np.ndarray
    wf: Any = None
    ww: Any = None
    wwr: Any = None
    wwrr: Any = None
    wrrr: Any = None
    wg: Any = None
    wgg: Any = None
    wgr: Any = None
    wrrrr: Any = None
    wrrrrr: Any = None
    wrrrrrr: Any = None
    wrrrrrrr: Any = None
    wrrrrrrrr: Any = None

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sums over pairs of rows of the same unit."""
        if self.ww is None or self.wwr is None or self.wwrr is None:
            return self.w, self.wr, self.wrr
        return self.ww, self.wwr, self.wwrr

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Return what a function makes of each of the sums."""
        return self._make(None if sums is None else change(sums) for sums in self)

    def plus(self, other: Sums) -> Self:
        """Return the sums over the rows of both, as far as both have them."""
        if (self.ww is None) != (other.ww is None):  # one part has no weights
            ww, wwr, wwrr = self.pairs
            self = self._replace(ww=ww, wwr=wwr, wwrr=wwrr)
            ww, wwr, wwrr = other.pairs
            other = other._replace(ww=ww, wwr=wwr, wwrr=wwrr)
        parts = zip(self, other, strict=True)
        return self._make([None if a is None or b is None else a + b for a, b in parts])

    def shifted(self, d: Any) -> Self:
        """Return the sums with r + d instead of r."""
        w, wr, wrr, wf, ww, wwr, wwrr, wrrr, wg, wgg, wgr, *high = self
        if self.wrrrr is not None:
            powers = (w, wr, wrr, wrrr, *high)
            high = [
                sum(comb(k, j) * d ** (k - j) * powers[j] for j in range(k + 1))
                for k in range(4, 9)
            ]
        if ww is not None:
            wwr, wwrr = wwr + d * ww, wwrr + d * (2 * wwr + d * ww)
        if wrrr is not None:
            wrrr = wrrr + d * (3 * wrr + d * (3 * wr + d * w))
        if wgr is not None:
            wgr = wgr + d * wg
        wr, wrr = wr + d * w, wrr + d * (2 * wr + d * w)
        return self._make((w, wr, wrr, wf, ww, wwr, wwrr, wrrr, wg, wgg, wgr, *high))

    def divided(self, sd: float) -> Self:
        """Return the sums with r / sd instead of r."""
        powers = (name.count("r") for name in self._fields)
        parts = zip(self, powers, strict=True)
        return self._make(None if a is None else a / sd**power for a, power in parts)

    def coarse(self) -> Self:
        """Return the sums of weights and scores alone, without higher powers and lines."""
        return self._make((*self[:3], None, *self[4:7], *[None] * len(self[7:])))


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread:
    """Means m in bins with their variances u / w; V = Var[q_f(f(X))], its error and its test."""

    m: np.ndarray
    u: np.ndarray
    variance: np.ndarray
    pvalue: np.ndarray
    uncertainty: Any = None
    held_back: np.ndarray | float = 0.0

    def estimate(self, sign: np.ndarray) -> Estimate:
        """Return what is said of the features, without the bins."""
        more = self.uncertainty._asdict() if self.uncertainty else {"error": 0.0}
        found = {"variance": self.variance, "held_back": self.held_back, "pvalue": self.pvalue}
        return Estimate(**found, sign=sign, **more)


def spread(
    sums: Sums,
    rows: str,
    total: Sums | None = None,
    ordered: np.ndarray | bool = True,
    known: Influence | None = None,
) -> Spread:
    """Return how far the means differ between bins (first axis), for features on the last axes.

    From a sample by the within-bin U-statistic: the mean of w_i w_j r_i r_j over pairs of rows
    of different units within a bin, over that of w_i w_j, estimates q_f(t)^2 without bias, and
    the same over all pairs estimates the squared mean. With the weights W in total,

        V = sum_b p_b (m_b^2 - e_b) + e,  e_b = (wwrr_b - m_b^2 ww_b) / (w_b^2 - ww_b),

    and e the same of all rows. What a line within bins adds, and V of many levels without `ordered`
    numbers, may be noise, and count times 1 - p-value; rare levels in so far as they stand out.
    For a population, V is the sum of p_b m_b^2 alone, without error.
    """
    w, W = sums.w, sums.w.sum(axis=0)
    some = np.maximum(w, EMPTY)
    centre = sums.wr.sum(axis=0) / W
    flat = ((w > 0).sum(axis=0) == 1) | (sums.wrr.sum(axis=0) == 0)
    m = np.where((w > 0) & ~flat, sums.wr / some - centre, 0.0)
    m = np.where(m**2 > ROUNDING**2 * sums.wrr.sum(axis=0) / W, m, 0.0)  # else all q are equal
    between = (w * m**2).sum(axis=0) / W
    if rows == "population":
        return Spread(m=m, u=np.zeros_like(m), variance=between, pvalue=np.nan * between)
    moved = sums.coarse().shifted(-centre)
    ww, wwr, wwrr = moved.pairs
    e, u, n = bin_noise(sums, m, wwr, wwrr)
    e, u = np.where(flat, 0.0, e), np.where(flat, 0.0, u)
    total = moved.each(lambda a: a.sum(axis=0)) if total is None else total.coarse()
    all_ww, _, all_wwrr = total.shifted(-total.wr / total.w).pairs
    e_total = np.where(flat, 0.0, all_wwrr / (total.w**2 - all_ww))
    variance = between - (w * e).sum(axis=0) / W + e_total
    pvalue = np.where(flat, 1.0, _test(moved, m, u, n, ordered, known))
    line = line_error = np.zeros_like(variance)
    if sums.wgg is not None:
        line, line_error = np.where(flat, 0.0, _gated_line(sums, n))
    variance, held_back = variance + line, pvalue * line
    if not np.all(ordered):
        many, rare = _rare_levels(sums, m, u, n, total.w**2 / all_ww)
        of_levels = np.where(many, rare + pvalue * (variance - rare), 0.0)
        held_back = np.where(ordered, held_back, of_levels)
    variance = variance - held_back
    rounded = _ROUNDED * sums.wrr.sum(axis=0) / W
    variance = np.where(np.abs(variance) > rounded, variance, 0.0)
    cubes = sums.wrrr if sums.ww is None else None  # weights of sampling would need w^3 r^3
    if cubes is not None:
        mean = sums.wr / some
        cubes = cubes - mean * (3 * sums.wrr - mean * (3 * sums.wr - mean * w))
    return Spread(
        m=m,
        u=u,
        variance=variance,
        held_back=held_back,
        pvalue=pvalue,
        uncertainty=uncertainty(w, m, u, n, wwr - m * ww, cubes, known).plus(line_error),
    )


def paired_bins(sums: Sums) -> np.ndarray:
    """Return which bins have rows of two units."""
    if sums.ww is None:
        return sums.w > _PAIR
    return sums.w**2 > (1 + NUDGE) * sums.ww


def bin_noise(
    sums: Sums, m: np.ndarray, wwr: np.ndarray, wwrr: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return e_b, u_b = w_b Var(m_b), and the effective rows w^2 / ww of the bins.

    e_b is unbiased for Var(m_b), but may fall below 0; u_b is not, of few rows of uneven weight.
    Lone rows borrow the pooled variance v = u w / ww of a row.
    """
    w, ww = sums.w, sums.pairs[0]
    paired = paired_bins(sums)
    n = np.where(w > 0, w**2 / np.maximum(ww, EMPTY), 0.0)
    pairs = np.where(paired, w**2 - ww, 1.0)
    squares = wwrr - m * (2 * wwr - m * ww)  # of w (r - m)
    squares = np.where(squares > _ROUNDED * wwrr.sum(axis=0), squares, 0.0)
    lost = squares if sums.ww is None else wwrr - m**2 * ww
    k = ww / np.maximum(w, EMPTY)
    df = np.where(paired, n - 1, 0.0).sum(axis=0)  # so bins with many units count, not large units
    pooled = np.where(paired, lost / np.where(paired, k, 1.0) ** 2, 0.0).sum(axis=0)
    pooled = np.maximum(pooled, 0.0) / np.maximum(df, EMPTY) * k
    u = np.where(paired, squares * w / pairs, pooled)
    e = np.where(paired, lost / pairs, pooled / np.maximum(w, EMPTY))
    return e, u, n


def standardized_influence(sums: Sums) -> Influence:
    """Return `Scores.influence` of standardized scores from sums of powers; weights are counts.

    In a bin psi = (1 - V) r^2 - c (r - q)^2, with c = 1 / (1 - 1 / w), is a polynomial in r.
    """
    q = sums.wr / np.maximum(sums.w, EMPTY)
    V = (sums.w * q**2).sum(axis=0) / sums.w.sum(axis=0)
    c = 1 / np.maximum(1 - 1 / np.maximum(sums.w, EMPTY), 0.5)
    psi = np.array([-c * q**2, 2 * c * q, 1 - V - c])  # coefficients of 1, r, r^2
    square = _product(psi, psi)
    cube = _product(square, psi)
    powers = (sums.w, sums.wr, sums.wrr, sums.wrrr, *sums[11:])
    squares, cubes, fourths = (
        (p * powers[: len(p)]).sum(axis=(0, 1)) for p in (square, cube, _product(square, square))
    )
    return Influence(np.maximum(squares, 0.0), cubes, np.maximum(fourths, 0.0), False)


def _product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the product of polynomials, whose coefficients are on the first axis."""
    found = np.zeros((len(p) + len(q) - 1, *p.shape[1:]))
    for k, coefficient in enumerate(p):
        found[k : k + len(q)] += coefficient * q
    return found


def _gated_line(sums: Sums, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what a line within each bin explains, in so far as it stands out, and its error.

    In a bin that is c_b = p_b (v_b - RSS_b / (n_b - 2)).
    """
    w, some = sums.w, np.maximum(sums.w, EMPTY)
    fits, p = n >= _LEAST, w / w.sum(axis=0)
    m = sums.wr / some
    srr = np.maximum(sums.wrr - sums.wr * m, 0)
    with np.errstate(all="ignore"):
        sgg, sgr = sums.wgg - sums.wg**2 / some, sums.wgr - sums.wg * m
        gain = np.where(sgg > ROUNDING * sums.wgg, sgr**2 / sgg, 0.0)
    fits &= np.isfinite(sgg) & np.isfinite(gain)
    df = np.where(fits, n - 2, 1.0)
    v = srr / some * n / (df + 1)
    left = np.maximum(srr - gain, 0) / some * n / df
    c = np.where(fits, p * (v - left), 0.0)
    noise = np.where(fits, 2 * (p * v / df) ** 2, 0.0).sum(axis=0)
    gate = _gate(c, noise)
    return gate * c.sum(axis=0), gate * np.sqrt((c**2).sum(axis=0))


def _rare_levels(
    sums: Sums, m: np.ndarray, u: np.ndarray, n: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether levels are many, and what rare ones seem to add without standing out.

    Many are more than the bins for so many effective rows, rare those with less than half of a
    bin, or than the four rows of the smallest bins; c_b = p_b ((m_b - m)^2 - u_b / w_b), where m
    is the mean of all of these. A lone row has no noise of its own to stand out from.
    """
    w, W, bins = sums.w, sums.w.sum(axis=0), np.sqrt(rows)
    many = (w > 0).sum(axis=0) > bins
    rare = (w > 0) & ((w < W / bins / 2) | (n < _LEAST))
    w, u = np.where(rare, w, 0.0), np.where(rare, u, 0.0)
    mean = (w * m).sum(axis=0) / np.maximum(w.sum(axis=0), EMPTY)
    c = (w * (m - mean) ** 2 - u) / W
    own, noise = np.where(paired_bins(sums), (c, 2 * (u / W) ** 2), 0.0)
    return many, c.sum(axis=0) - _gate(own, noise.sum(axis=0)) * own.sum(axis=0)


def _gate(c: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return how far the sum C of c_b stands out: 1 - 2 / t^2, or 0.

    t is C over its own error: that from the c_b, or half as much as noise alone would make it.
    """
    C, squares = c.sum(axis=0), (c**2).sum(axis=0)
    t2 = np.maximum(C**2 / np.maximum(squares, EMPTY), C**2 / np.maximum(4 * noise, EMPTY))
    return np.where(C > 0, np.maximum(0, 1 - 2 / np.maximum(t2, EMPTY)), 0.0)


def _test(
    sums: Sums,
    m: np.ndarray,
    u: np.ndarray,
    n: np.ndarray,
    ordered: np.ndarray | bool,
    known: Influence | None,
) -> np.ndarray:
    """Return the p-value that all q are equal, of the bins and of bins merged to 2, 4, 8, ....

    A trend stands out in few bins, a rough curve in many. Levels without order are not merged,
    nor are bins that share units.
    """
    pvalue = brown_forsythe(sums.w, m, u, n)
    bins, shape = (sums.w > 0).sum(axis=0), m.shape[1:]
    merges = np.broadcast_to(ordered, shape)
    if known is not None:
        merges = merges & ~np.asarray(known.shared, dtype=bool)
    most = int(np.where(merges, bins, 0).max(initial=0))
    middle = (np.cumsum(sums.w, axis=0) - sums.w / 2) / sums.w.sum(axis=0)
    found, column = [pvalue[None]], np.arange(pvalue.size).reshape(shape)
    together = _TOGETHER if pvalue.size <= _FEW else 1
    for finest in range((most - 1).bit_length() - 1, 0, -together):  # 2^finest < most
        steps = min(finest, together)
        step = np.arange(steps).reshape(-1, *[1] * m.ndim)  # each merges two and two
        merging = (middle * 2**finest).astype(int).clip(0, 2**finest - 1) >> step
        index = ((merging * steps + step) * pvalue.size + column).ravel()
        merged = _in_merged_bins(sums, index, (2**finest, steps, *shape))
        mean = merged.wr / np.maximum(merged.w, EMPTY)
        _, noise, rows = bin_noise(merged, mean, *merged.pairs[1:])
        p = brown_forsythe(merged.w, mean, noise, rows)
        use = merges & (bins > 2 ** (finest - step[:, 0])) & ((merged.w > 0).sum(axis=0) > 1)
        found.append(np.where(use, p, np.nan))
    return cauchy(np.concatenate(found))


def _in_merged_bins(sums: Sums, index: np.ndarray, shape: tuple[int, ...]) -> Sums:
    """Return the sums in bins merged in several ways (second axis), filled up with empty bins."""

    def merged(a: np.ndarray) -> np.ndarray:
        values = np.broadcast_to(a, (shape[1], *a.shape)).ravel()
        return np.bincount(index, values, prod(shape)).reshape(shape)

    return sums.each(merged)
