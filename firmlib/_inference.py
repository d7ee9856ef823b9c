"""How sure an estimate is: the variance of V = Var[q_f(f(X))], its test and its interval.

Bins are on the first axis, features on the last. A bin has the weight w, the mean m of centred
scores, the variance u / w of that mean, and n effective rows; if weights count rows, n = w and u
is the variance of the scores in the bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import special

from firmlib._rounding import EMPTY, ROUNDING

ROWS_THAT_DECIDE = 10  # a note says where fewer rows than these decide how large the error is
_UNSURE = 0.99  # p-values beyond it would outweigh others when combined


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """What is known of one feature (numbers) or of several (arrays with one entry per feature).

    variance : V = Var[q_f(f(X))], which can fall below 0 in a sample.
    error : of the variance.
    pvalue : of the test that the variance is 0.
    slope, rest : the squared error is about slope times the variance, plus rest.
    skewness : of the estimate.
    wobble : 1 over the degrees of freedom of the squared error; 0 if they are many or not known.
    sign : -1 where q_f falls with f on the whole, else 1.
    held_back : what was taken off the variance because it may be noise.
    heavy : 1 where a handful of rows decides how large the error is.
    """

    variance: Any
    error: Any
    pvalue: Any
    slope: Any = 0.0
    rest: Any = 0.0
    skewness: Any = 0.0
    wobble: Any = 0.0
    sign: Any = 1.0
    heavy: Any = 0.0
    held_back: Any = 0.0

    @property
    def unbiased(self) -> Any:
        """The variance with what was held back, for intervals and comparisons."""
        return self.variance + self.held_back

    @classmethod
    def empty(cls, m: int) -> Self:
        """Return room for `m` features."""
        return cls(**{name: np.zeros(m) for name in cls.__dataclass_fields__})

    def put(self, where: Any, other: Estimate) -> None:
        """Take over what is known of other features, at these places."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[where] = getattr(other, name)

    def interval(self, confidence_level: float, comparisons: int = 1) -> tuple[Any, Any]:
        """Return the ends of a score interval of Q = sqrt(V), with Hall's shift.

        V is inside if (estimate - V)^2 <= z^2 (slope V + rest); both ends move by
        (2 z^2 + 1) / 6 times skewness times error if V is clear of 0 (P. Hall, Journal of the
        Royal Statistical Society B 54(1), 1992). Where the test does not reject, 0 is inside.
        With `comparisons`, all of so many intervals hold together (Bonferroni).
        """
        alpha = (1 - confidence_level) / comparisons
        df = 1 / np.maximum(self.wobble, ROUNDING)
        z = special.stdtrit(df, 1 - alpha / 2)
        V, shown, a = self.unbiased, self.variance, self.slope
        half = z * np.sqrt(a * np.maximum(V, 0) + self.rest + z**2 * a**2 / 4)
        shift = self.skewness * self.error * (2 * z**2 + 1) / 6 * (self.error < V / 2)
        middle = V + z**2 * a / 2 + shift
        known = np.isnan(self.pvalue)  # of a population
        low = np.where((self.pvalue <= alpha) | known, np.minimum(middle - half, shown), 0.0)
        high = np.maximum(middle + half, shown)
        return np.sqrt(np.maximum(low, 0)), np.sqrt(np.maximum(high, 0))


class Uncertainty(NamedTuple):
    """The error of V, its two parts, the skewness of V, and where few rows decide."""

    error: np.ndarray
    slope: np.ndarray
    rest: np.ndarray
    skewness: np.ndarray
    wobble: np.ndarray
    heavy: np.ndarray

    def plus(self, error: np.ndarray) -> Self:
        """Return that of V plus something that has this error of its own."""
        return self._replace(error=np.hypot(self.error, error), rest=self.rest + error**2)


class Influence(NamedTuple):
    """Sums over units of powers of psi summed up in each; do units share bins?"""

    squares: Any
    cubes: Any
    fourths: Any
    shared: Any


def uncertainty(
    w: np.ndarray,
    m: np.ndarray,
    u: np.ndarray,
    n: np.ndarray,
    tilt: np.ndarray | float,
    cubes: np.ndarray | None,
    known: Influence | None,
) -> Uncertainty:
    """Return that of V, by its influence function psi = 2 (s - mu)(q - mu) - (q - mu)^2 - V.

    Var(psi) = 4 E[v q^2] + Var(q^2) for centred q. The noise in m_b^2 is taken off; where q = 0
    there remains the variance 2 sum_b u_b^2 / W^2 of a U-statistic of second order. `tilt` is the
    sum of w^2 (r - m) in each bin, `cubes` that of w (r - m)^3. With several rows per unit the
    sums of psi by unit are `known`, and replace the two terms; the sum of their squares S has
    the degrees of freedom 2 S^2 over the sum of fourth powers (F. E. Satterthwaite, 1946).

    3 S^2 over that sum is how many rows decide: all if psi is normal, as it is taken to be in
    each bin where the sum is not known.
    """
    W, k = w.sum(axis=0), w / np.maximum(n, EMPTY)
    vv = (u**2 * np.maximum(n - 1, 1) / (n + 1)).sum(axis=0)
    squared = m**2
    away = squared - (w * squared).sum(axis=0) / W
    noise = 4 * w * u * squared
    bends = w * k * away**2 + 4 * m * away * tilt
    slope, bend = noise.sum(axis=0), np.maximum(bends.sum(axis=0), 0)
    squares, wobble = np.maximum(slope + bend, EMPTY), np.zeros_like(W)
    fourths = 3 * ((noise + bends) ** 2 / np.maximum(n, EMPTY)).sum(axis=0)
    cubed = None
    if cubes is not None:  # **3 would take logarithms
        cubed = (8 * squared * m * cubes + 3 * noise * away + w * away**2 * away).sum(axis=0)
    if known is not None:
        factor, cubed, fourths = known.squares / squares, known.cubes, known.fourths
        slope, bend, squares = slope * factor, bend * factor, np.maximum(known.squares, EMPTY)
        wobble = fourths / squares / squares / 2
    signal = np.maximum((w * squared).sum(axis=0), EMPTY)
    return Uncertainty(
        error=np.sqrt(np.maximum(slope - 4 * vv, 0) + bend + 2 * vv) / W,
        slope=slope / signal / W,
        rest=(bend + 2 * vv) / W**2,
        skewness=np.zeros_like(W) if cubed is None else cubed / squares / np.sqrt(squares),
        wobble=wobble,
        heavy=(3 * squares < ROWS_THAT_DECIDE * (fourths / squares)) * 1.0,
    )


def brown_forsythe(w: np.ndarray, m: np.ndarray, u: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Test that all q are equal where the bins' variances need not be.

    F = sum_b w_b m_b^2 / sum_b (1 - p_b) u_b, with degrees of freedom by two moments.

    M. B. Brown, A. B. Forsythe. Technometrics 16(1), 1974. D. V. Mehrotra. Communications in
    Statistics – Simulation and Computation 26(3), 1997.
    """
    p, signal = w / w.sum(axis=0), (w * m**2).sum(axis=0)
    noise = ((1 - p) * u).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # no noise: any difference is real
        df1 = noise**2 / (
            (u**2).sum(axis=0) + (p * u).sum(axis=0) ** 2 - 2 * (p * u**2).sum(axis=0)
        )
        df2 = noise**2 / (((1 - p) * u) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
        pvalue = special.fdtrc(df1, df2, signal / noise)
    return np.where(noise > 0, pvalue, np.where(signal > 0, 0.0, 1.0))


def cauchy(pvalues: np.ndarray) -> np.ndarray:
    """Combine p-values of tests that may depend on each other (first axis; nan is no test).

    Y. Liu, J. Xie. Journal of the American Statistical Association 115(529), 2020.
    """
    there = ~np.isnan(pvalues)
    one = there.sum(axis=0) <= 1
    p = np.minimum(np.where(there, pvalues, 0.5), _UNSURE)
    with np.errstate(divide="ignore", over="ignore"):  # a p-value of 0
        t = np.where(there, 1 / np.tan(np.pi * p), 0.0).sum(axis=0) / there.sum(axis=0)
    return np.where(one, np.nanmax(pvalues, axis=0), np.arctan2(1, t) / np.pi)
