"""Sums in bins, and what follows from them (Definition 2 and the slope after it).

Per bin four sums over the rows tell all that is needed (`tally`), and they add up over parts of
the data; from them follow q_f, the variance of q_f, a standard error and a test (`summarize`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import special

from firmlib._bins import Bins, find_bins
from firmlib._columns import NUMBER, Column, Scale

METHODS = ("auto", "discrete", "binned", "slope")
ROWS = ("auto", "sample", "population")

_NO_ROWS = np.empty(0)
_EMPTY = 1e-300  # divides where a bin has no rows; the quotient is not used
_PAIR = 2 - 1e-9  # rows of which two can be compared, whatever their weights were rounded to
_ROUNDED = 16 * np.finfo(float).eps  # share of all squares; less is rounding: no noise, no sign
ROUNDING = 1e-12
"""A slope below this share of what it could be at most is rounding, and has no sign."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores minus their mean, weights, and what is summed in bins: w, w r and w r^2.

    An entry may stand for several rows, `count` of them.
    """

    mean: float
    r: np.ndarray
    w: np.ndarray
    wr: np.ndarray
    wrr: np.ndarray
    count: np.ndarray | None = None

    @classmethod
    def of(cls, s: np.ndarray, w: np.ndarray, mean: float | None = None) -> Self:
        """Return scores minus `mean`, by default their own."""
        if mean is None:
            mean = float((w * s).sum() / w.sum())  # w @ s would wake a pool of threads
        r = s - mean if np.ptp(s) > 0 else np.zeros_like(s)
        wr = w * r
        return cls(mean, r, w, wr, wr * r)

    @cached_property
    def _summed(self) -> np.ndarray:
        return np.array([self.w, self.wr, self.wrr])

    @cached_property
    def total(self) -> np.ndarray:
        """The sums of w, w r and w r^2 over all rows."""
        return np.array([self.w.sum(), self.wr.sum(), self.wrr.sum()])

    def taken(self, keep: np.ndarray) -> Self:
        """Return those of some rows, minus the same mean."""
        return type(self)(self.mean, self.r[keep], self.w[keep], self.wr[keep], self.wrr[keep])

    def sd(self, rows: str) -> float:
        """Return the standard deviation of the scores."""
        W, wr, wrr = self.total
        return float(np.sqrt(max(wrr - wr**2 / W, 0.0) / (W - (rows == "sample"))))

    def of_column(self, column: Column) -> tuple[np.ndarray, Self]:
        """Return a feature's values with the scores that belong to them.

        The rows in which a sparse column is 0 become one entry, whose sums follow by subtraction.
        """
        f, where = column.values, column.rows
        if where is None:
            return f, self
        sums = np.empty((3, len(f) + 1))
        sums[:, :-1] = self._summed[:, where]
        sums[:, -1] = self.total - sums[:, :-1].sum(axis=1)
        count = np.ones(len(f) + 1, dtype=int)
        count[-1] = len(self.r) - len(f)
        w, wr, wrr = sums
        return np.concatenate([f, [0.0]]), type(self)(self.mean, _NO_ROWS, w, wr, wrr, count)


class Tally(NamedTuple):
    """A feature's bins and the sums in them, as `tally` makes them.

    `dropped` is the weight of rows that were left out because the feature is missing there.
    """

    bins: Bins
    sums: np.ndarray
    dropped: float = 0.0

    @classmethod
    def of(
        cls, scores: Scores, column: Column, *, method: str, rows: str, n_bins: int | str
    ) -> Self:
        """Find bins for the values of a feature, and sum up in them."""
        f, scores = scores.of_column(column)
        bins, index = find_bins(
            f,
            scores.w,
            method=method,
            rows=rows,
            n_bins=n_bins,
            count=scores.count,
            scale=column.scale,
        )
        return cls(bins, tally(index, bins, scores, f))

    @property
    def method(self) -> str:
        """How q_f is estimated."""
        return self.bins.method

    @property
    def missing(self) -> float:
        """The share of rows in which the feature is missing."""
        missing = self.sums[0, -1] if self.bins.missing else 0.0
        return float((missing + self.dropped) / (self.sums[0].sum() + self.dropped))

    def check(self, rows: str) -> None:
        """Raise if no bin has two rows, so that effect and noise cannot be told apart."""
        n, _, squares, _ = self.sums
        if rows == "sample" and n.max() <= _PAIR and len(n) > 1 and squares.any():
            raise ValueError(
                "a sample needs two rows in some level or bin of the feature to tell its effect "
                "from noise; use fewer n_bins, or rows='population' if the rows are the whole "
                "distribution"
            )

    def curve(self, mean: float, rows: str) -> dict[str, Any]:
        """Return q_f as the fields of a `ConditionalScore`."""
        taken = self.sums[0] > 0
        n, sr, srr, sf = self.sums[:, taken]
        found = spread(n, sr, srr, rows)
        t = self.bins.first[taken]
        if self.bins.method == "binned":
            t = np.where(np.isnan(t), t, sf / n)
        return {
            "t": self.bins.scale.shown(t),
            "q": found.m + sr.sum() / n.sum() + mean,
            "p": n / n.sum(),
            "n": n,
            "method": self.bins.method,
            "variance": float(found.variance),
            "standard_error": np.sqrt(found.v / n),
            "kind": self.bins.scale.kind,
        }


def tally(index: np.ndarray, bins: Bins, scores: Scores, f: np.ndarray) -> np.ndarray:
    """Return the sums of w, w r, w r^2 and w f over the rows of each bin, shape (4, n_bins)."""
    f = np.nan_to_num(f, copy=True, nan=0.0) if bins.missing else f
    summed = (scores.w, scores.wr, scores.wrr, scores.w * f)
    sums = np.array([np.bincount(index, values, len(bins.first)) for values in summed])
    if not np.isfinite(sums[3].sum()):
        raise ValueError(f"values such as {np.abs(f).max():.3g} overflow when summed; rescale them")
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """What is known of one feature (numbers) or of several (arrays with one entry per feature).

    variance : Var[q_f(f(X))], which can fall below 0 in a sample.
    error : of the variance.
    pvalue : of the test that the variance is 0.
    noise : the variance of the mean score that is left if the bins of the rows are given.
    sign : -1 where q_f falls with f on the whole, else 1.
    """

    variance: Any
    error: Any
    pvalue: Any
    noise: Any = 0.0
    sign: Any = 1.0

    @classmethod
    def empty(cls, m: int) -> Self:
        """Return room for `m` features."""
        return cls(**{name: np.zeros(m) for name in cls.__dataclass_fields__})

    def put(self, where: Any, other: Estimate) -> None:
        """Take over what is known of other features, at these places."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[where] = getattr(other, name)


def summarize(tallies: Sequence[Tally], rows: str) -> Estimate:
    """Return the variance of q_f with its error, test and sign, for each feature."""
    estimates = Estimate.empty(len(tallies))
    sizes = np.array([len(one.bins.first) for one in tallies], dtype=int)
    alike = np.ceil(np.log2(sizes))  # features with about as many bins are looked at together
    for which in (np.flatnonzero(alike == k) for k in np.unique(alike)):
        sums = np.zeros((4, sizes[which].max(), len(which)))
        t = np.zeros(sums.shape[1:])
        for i, j in enumerate(which.tolist()):
            sums[:, : sizes[j], i] = tallies[j].sums
            t[: sizes[j], i] = tallies[j].bins.first
        n, sr, srr, sf = sums
        binned = [tallies[j].bins.method == "binned" for j in which.tolist()]
        t = np.where(binned & ~np.isnan(t), sf / np.maximum(n, _EMPTY), t)
        found = spread(n, sr, srr, rows)
        nominal = [tallies[j].bins.nominal for j in which.tolist()]
        downhill = _downhill(n, t, found.m, srr.sum(axis=0)) & ~np.array(nominal)
        sign = np.where(downhill, -1.0, 1.0)
        estimates.put(which, found.estimate(sign))
    return estimates


def _downhill(n: np.ndarray, t: np.ndarray, m: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return whether q_f falls with t on the whole, where t is known."""
    n, t = np.where(np.isnan(t), 0.0, n), np.nan_to_num(t, nan=0.0)
    z = t / np.maximum(np.abs(t).max(axis=0), _EMPTY)  # any unit will do, and can't overflow
    z = np.where(n > 0, z - (n * z).sum(axis=0) / np.maximum(n.sum(axis=0), _EMPTY), 0.0)
    slope = (n * z * m).sum(axis=0)
    return slope < -ROUNDING * np.sqrt((n * z**2).sum(axis=0) * squares)


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread:
    """Means m and variances v in bins; V = Var[q_f(f(X))], its error, p-value of 0, noise."""

    m: np.ndarray
    v: np.ndarray
    variance: np.ndarray
    error: np.ndarray
    pvalue: np.ndarray
    noise: np.ndarray

    def estimate(self, sign: np.ndarray) -> Estimate:
        """Return what is said of the features, without the bins."""
        return Estimate(
            variance=self.variance,
            error=self.error,
            pvalue=self.pvalue,
            noise=self.noise,
            sign=sign,
        )


def spread(n: np.ndarray, sr: np.ndarray, srr: np.ndarray, rows: str) -> Spread:
    """Return how far the means differ between bins (first axis), for features on the last axes.

    From a sample of W rows, by the within-bin U-statistic: the mean of s_i s_j over pairs i != j
    within a bin estimates q_f(t)^2 without bias, and the same over all pairs estimates the
    squared mean. Written with the unbiased variances v_b within the bins and v in total, that is

        V = sum_b p_b (m_b - m)^2 - (sum_b v_b - v) / W.

    For a population, V is the first term alone, without error.
    """
    W, some = n.sum(axis=0), np.maximum(n, _EMPTY)
    centre = sr.sum(axis=0) / W
    flat = ((n > 0).sum(axis=0) == 1) | (srr.sum(axis=0) == 0)
    m = np.where((n > 0) & ~flat, sr / some - centre, 0.0)
    variance = (n * m**2).sum(axis=0) / W
    if rows == "population":
        none = np.zeros_like(variance)
        return Spread(
            m=m, v=np.zeros_like(m), variance=variance, error=none, pvalue=none * np.nan, noise=none
        )
    squares, rounded = srr - sr**2 / some, _ROUNDED * srr.sum(axis=0)
    v = np.where(flat, 0.0, _within(np.where(squares > rounded, squares, 0.0), n))
    total = srr.sum(axis=0) - W * centre**2
    variance -= np.where(flat, 0.0, (v.sum(axis=0) - total / (W - 1)) / W)
    return Spread(
        m=m,
        v=v,
        variance=np.where(np.abs(variance) > rounded / W, variance, 0.0),
        error=_standard_error(m, n, v),
        pvalue=np.where(flat, 1.0, _brown_forsythe(m, n, v)),
        noise=(n * v).sum(axis=0) / W**2,
    )


def _within(squares: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the unbiased variances v_b within the bins; lone rows borrow the pooled one."""
    paired = n > _PAIR
    df = np.where(paired, n - 1, 0.0)
    pooled = (squares * paired).sum(axis=0) / np.maximum(df.sum(axis=0), _EMPTY)
    return np.where(paired, squares / np.where(paired, df, 1.0), np.where(n > 0, pooled, 0.0))


def _standard_error(m: np.ndarray, n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return that of V, by its influence function psi = 2 (s - mu)(q - mu) - (q - mu)^2 - V.

    Var(psi) = 4 E[v q^2] + Var(q^2) for centred q. The noise in m_b^2 is taken off; where q = 0
    there remains the variance 2 sum_b v_b^2 / W^2 of a U-statistic of second order.
    """
    W, vv = n.sum(axis=0), (v**2 * np.maximum(n - 1, 1) / (n + 1)).sum(axis=0)
    slope = 4 * (v * n * m**2).sum(axis=0) - 4 * vv
    bend = (n * (m**2 - (n * m**2).sum(axis=0) / W) ** 2).sum(axis=0)
    return np.sqrt(np.maximum(slope, 0) + bend + 2 * vv) / W


def _brown_forsythe(m: np.ndarray, n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Test that all q are equal where the bins' variances need not be.

    F = sum_b n_b m_b^2 / sum_b (1 - p_b) v_b, with degrees of freedom by two moments.

    M. B. Brown, A. B. Forsythe. Technometrics 16(1), 1974. D. V. Mehrotra. Communications in
    Statistics – Simulation and Computation 26(3), 1997.
    """
    p, signal = n / n.sum(axis=0), (n * m**2).sum(axis=0)
    noise = ((1 - p) * v).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # no noise: any difference is real
        df1 = noise**2 / (
            (v**2).sum(axis=0) + (p * v).sum(axis=0) ** 2 - 2 * (p * v**2).sum(axis=0)
        )
        df2 = noise**2 / (((1 - p) * v) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
        pvalue = special.fdtrc(df1, df2, signal / noise)
    return np.where(noise > 0, pvalue, np.where(signal > 0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Slope:
    """The linear part of q_f: beta times the feature, with variance beta^2 Var(f)."""

    estimate: Estimate
    beta: float  # of (f - centre) / unit
    centre: float
    unit: float
    error: float  # of beta
    f: np.ndarray
    w: np.ndarray
    scale: Scale
    missing: float = 0.0
    method: str = "slope"

    @classmethod
    def of(cls, scores: Scores, f: np.ndarray, rows: str, scale: Scale = NUMBER) -> Self:
        """Fit the line by least squares."""
        r, w = scores.r, scores.w
        W, _, wrr = scores.total
        centre = float(w @ f / W)
        unit = float(np.abs(f - centre).max()) or 1.0  # any will do, and this one can't overflow
        z = (f - centre) / unit
        covariance, z_variance = scores.wr @ z / W, w @ z**2 / W
        if f.min() == f.max():
            covariance = z_variance = 0.0
        beta = covariance / (z_variance or 1.0)
        variance = beta**2 * z_variance
        error, pvalue = 0.0, np.nan if rows == "population" else 1.0
        noise = w @ (z * (r - beta * z)) ** 2
        if rows == "sample" and z_variance * wrr > 0:
            psi = 2 * r * beta * z - (beta * z) ** 2 - variance
            error = float(np.sqrt(w @ psi**2) / W)
            z_score = abs(covariance) * W / np.sqrt(noise) if noise else np.inf
            pvalue = float(2 * special.ndtr(-z_score))
        downhill = covariance < -ROUNDING * np.sqrt(z_variance * wrr / W)
        estimate = Estimate(
            variance=float(variance), error=error, pvalue=pvalue, sign=-1.0 if downhill else 1.0
        )
        beta_error = float(np.sqrt(noise) / (W * (z_variance or 1.0))) * (error > 0)
        return cls(estimate, float(beta), centre, unit, beta_error, f, w, scale)

    def curve(self, mean: float, rows: str) -> dict[str, Any]:
        """Return the line as the fields of a `ConditionalScore`."""
        levels, index = np.unique(self.f, return_inverse=True)
        n = np.bincount(index, self.w)
        x = (levels - self.centre) / self.unit
        return {
            "t": self.scale.shown(levels),
            "q": self.beta * x + mean,
            "p": n / n.sum(),
            "n": n,
            "method": "slope",
            "variance": self.estimate.variance,
            "standard_error": self.error * np.abs(x),
            "kind": self.scale.kind,
        }
