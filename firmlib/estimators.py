"""How q_f and its variance are estimated from rows (Definition 2 and the slope after it)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

METHODS = ("auto", "discrete", "binned", "slope")
ROWS = ("auto", "sample", "population")


@dataclass(frozen=True, eq=False)
class ConditionalScore:
    """The conditional expected score q_f, Definition 1, at finitely many values.

    Attributes
    ----------
    t : ndarray
        Values of the feature: its levels, or the mean of the feature in each bin.
    q : ndarray
        E[s(X) | f(X) = t].
    p : ndarray
        Pr(f(X) = t); sums to 1.
    n : ndarray
        Rows (or the sum of their weights) behind each value.
    method : str
        "discrete", "binned" or "slope".
    variance : float
        Var[q_f(f(X))] = Q_f^2: of these values for a population, corrected for the noise in
        them, and perhaps negative, for a sample.
    """

    t: np.ndarray
    q: np.ndarray
    p: np.ndarray
    n: np.ndarray
    method: str
    variance: float


class Estimate(NamedTuple):
    """One feature's curve and the sign of its slope."""

    curve: ConditionalScore
    sign: float


def estimate(
    s: np.ndarray, f: np.ndarray, w: np.ndarray, *, method: str, rows: str, n_bins: int | str
) -> Estimate:
    """Estimate q_f and Var[q_f(f(X))] from scores `s`, feature values `f` and weights `w`.

    `rows` is "sample" or "population" (see `firmlib.firm`). As a sample, the rows give the
    within-bin U-statistic: the mean of s_i s_j over pairs i != j within a bin estimates
    q_f(t)^2 without bias, and the same over all pairs estimates the squared mean. Written
    with the unbiased variances v_b within the bins and v in total, that is

        V = sum_b p_b (m_b - m)^2 - (sum_b v_b - v) / n.

    As a population, V is the first term alone.
    """
    keep = w > 0
    s, f, w = s[keep], f[keep], w[keep]
    order = np.argsort(f, kind="stable")
    s, f, w = s[order], f[order], w[order]
    W, mean = w.sum(), w @ s / w.sum()
    flat = f[0] == f[-1] or np.ptp(s) == 0
    r = np.zeros_like(s) if flat else s - mean
    starts = np.flatnonzero(np.r_[True, f[1:] != f[:-1]])  # of each level

    z = f - w @ f / W
    z = z / (np.abs(z).max() or 1.0)  # any unit will do, and this one can't overflow
    covariance, z_variance = w @ (z * r) / W, w @ z**2 / W
    downhill = covariance < -1e-12 * np.sqrt(z_variance * (w @ r**2) / W)

    if n_bins == "auto":
        size = len(starts) if rows == "population" else W
        n_bins = max(2, int(np.sqrt(size) + 1e-9))  # the nudge: 3 x 1/3 rows are one row
    if method == "auto":
        few = rows == "population" or len(starts) <= n_bins
        method = "discrete" if few else "binned"
    if method == "binned":
        starts = starts[_equal_frequency(np.add.reduceat(w, starts), n_bins)]

    n = np.add.reduceat(w, starts)
    t = np.add.reduceat(w * f, starts) / n if method == "binned" else f[starts]
    if method == "slope":
        m = covariance / (z_variance or 1.0) * z[starts]
    else:
        m = np.add.reduceat(w * r, starts) / n
    variance = n @ m**2 / W
    if rows == "sample" and method != "slope" and not flat:
        within = r - np.repeat(m, np.diff(np.r_[starts, len(r)]))
        variance -= _plug_in_bias(np.add.reduceat(w * within**2, starts), n, w @ r**2)
    curve = ConditionalScore(t, m + mean, n / W, n, method, float(variance))
    return Estimate(curve, -1.0 if downhill else 1.0)


def _equal_frequency(n: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the first level of each of about `n_bins` bins of equal weight; ties stay together."""
    middle = np.cumsum(n) - n / 2
    # The nudge keeps a level that lies on an edge there, however its weight was split.
    bin_of_level = np.floor(n_bins * middle / n.sum() + 1e-9)
    return np.flatnonzero(np.r_[True, np.diff(bin_of_level) > 0])


def _plug_in_bias(within: np.ndarray, n: np.ndarray, total: float) -> float:
    """Bias (sum_b v_b - v) / n of the plug-in variance; lone rows borrow the pooled v_b."""
    paired = n > 2 - 1e-9
    if not paired.any():
        raise ValueError(
            "a sample needs two rows in some level or bin of the feature to tell its effect from "
            "noise; use fewer n_bins, or rows='population' if the rows are the whole distribution"
        )
    pooled = within[paired].sum() / (n[paired] - 1).sum()
    v = np.where(paired, within / np.where(paired, n - 1, 1), pooled)
    return (v.sum() - total / (n.sum() - 1)) / n.sum()
