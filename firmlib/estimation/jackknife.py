"""Jackknife over folds of rows: psi (folds, features) is the influence of each fold on V.

Var(V) = sum psi^2, and Cov(V_i, V_j) = sum psi_i psi_j for features, scores or classes i and j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from firmlib.estimation.rows import FOLDS, Rows

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Estimate:
    """V of m features with its uncertainty.

    noise (3, m): rest, the variance of V if V = 0; what the jackknife counts twice; and the least
    Var(V) / V. psi (G, m): the influence of each fold on V.
    """

    V: np.ndarray
    noise: np.ndarray
    pvalue: np.ndarray
    psi: np.ndarray

    @classmethod
    def untested(cls, V: np.ndarray, psi: np.ndarray | None = None) -> Estimate:
        """Return V without a test and, if it is that of a population, without errors."""
        psi = np.zeros((FOLDS, len(V))) if psi is None else psi
        return cls(V, np.zeros((3, len(V))), np.full(len(V), np.nan), psi)

    @classmethod
    def of_rows(cls, value: np.ndarray, rows: Rows) -> Estimate:
        """Return the weighted mean of `value` (n,) or (n, m) as V, without a test."""
        each = rows.w * value.reshape(rows.n, -1).T
        w, *sums = (np.bincount(rows.fold, a, FOLDS) for a in (rows.w, *each))
        V = np.sum(sums, axis=1) / w.sum()
        return cls.untested(V, influence(np.transpose(sums), w[:, None]))

    @classmethod
    def concatenate(cls, some: Sequence[Estimate]) -> Estimate:
        """Return the estimates of all features in one."""
        parts = zip(*((e.V, e.noise, e.pvalue, e.psi) for e in some), strict=True)
        return cls(*(np.concatenate(each, axis=-1) for each in parts))

    def taken(self, some: np.ndarray) -> Estimate:
        """Return the estimates of some features."""
        return Estimate(self.V[some], self.noise[:, some], self.pvalue[some], self.psi[:, some])

    def divided(self, total: float, own: np.ndarray) -> Estimate:
        """Return V / Var(s), with Var(s) = `total` and the influence `own` (G,) of the folds."""
        V = self.V / total
        psi = (self.psi - np.multiply.outer(own, V)) / total
        noise = self.noise / np.array([[total**2], [total**2], [total]])
        noise[2] *= np.clip(1 - V, 0, 1)
        return replace(self, V=V, psi=psi, noise=noise)

    @property
    def Q(self) -> np.ndarray:
        """The importances, sqrt(V)."""
        return np.sqrt(np.maximum(self.V, 0))

    J = property(lambda self: (self.psi**2).sum(axis=0))  # the jackknife's variance of V

    @property
    def slope(self) -> np.ndarray:
        """The variance of V is about slope V + rest; J has the rest twice."""
        rest, _, least = self.noise
        found = np.maximum(self.J - 2 * rest, 0) / np.maximum(self.V, np.sqrt(rest) + TINY)
        return np.maximum(found, least)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of Q: se(V) / (2 Q), or sqrt(se(V)) if V is small relative to noise."""
        error = np.sqrt(self.slope * np.maximum(self.V, 0) + self.noise[0])
        return error / np.maximum(2 * self.Q, np.sqrt(error) + TINY)

    @property
    def heavy_tails(self) -> np.ndarray:
        """Whether fewer than ten folds dominate the error."""
        return 10 * (self.psi**4).sum(axis=0) > 3 * self.J**2

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds for Q from (estimate - V)^2 <= t^2 (slope V + rest).

        The lower bound is 0 if the test does not reject.
        """
        alpha, a, V = 1 - level, self.slope, np.maximum(self.V, 0)
        t = special.stdtrit(degrees(self.psi), 1 - alpha / 2)
        middle, half = self.V + t * t * a / 2, t * np.sqrt(a * V + self.noise[0] + (t * a / 2) ** 2)
        low = np.where(self.pvalue > alpha, 0, np.minimum(middle - half, V))  # nan: a population
        return np.sqrt(np.maximum(low, 0)), np.sqrt(np.maximum(middle + half, V))


def influence(fall: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return psi from what V times all weight falls by without each fold (G, m), of this weight."""
    W = np.maximum(weight.sum(axis=0), TINY)
    share = weight / W
    psi = np.where(share > 0, fall / W, 0)
    psi -= share * psi.sum(axis=0)
    return psi / np.sqrt(np.maximum(1 - (share**2).sum(axis=0), TINY))


def compare(
    one: Estimate, i: np.ndarray, other: Estimate, j: np.ndarray, level: float, paired: bool = True
) -> dict[str, np.ndarray]:
    """Return Q_i - Q_j of features of two estimates, with its error, interval and p-value.

    `paired`: on the same rows.
    """
    a, b = one.psi[:, i], other.psi[:, j]
    Ja, Jb = one.J[i], other.J[j]
    rho = np.clip((a * b).sum(axis=0) / np.maximum(np.sqrt(Ja * Jb), TINY), -1, 1) * paired
    total = ((a - b) ** 2).sum(axis=0) if paired else Ja + Jb
    twice = one.noise[1][i] + other.noise[1][j]
    variance = np.maximum(total - (1 - rho**2) ** 2 * twice, total / 4)
    gap, exact = one.V[i] - other.V[j], total <= 1e-24 * (Ja + Jb)
    df = degrees(a - b) if paired else np.minimum(degrees(a), degrees(b))
    t = np.where(exact, 0, np.abs(gap) / np.sqrt(np.maximum(variance, TINY)))
    p = np.where(exact & (gap != 0) & (Ja + Jb > 0), 0.0, 2 * special.stdtr(df, -t))
    Q, (low, high) = one.Q[i], (end[i] for end in one.interval(level))
    Q2, (low2, high2) = other.Q[j], (end[j] for end in other.interval(level))

    def both(x: np.ndarray, y: np.ndarray, r: np.ndarray) -> np.ndarray:  # Zou 2007
        return np.where(exact, 0, np.sqrt((x - y) ** 2 + 2 * (1 - r) * x * y))

    D = Q - Q2
    down = D - both(Q - low, high2 - Q2, np.where(low > 0, rho, -1 if paired else 0))
    up = D + both(high - Q, Q2 - low2, np.where(low2 > 0, rho, -1 if paired else 0))
    differ = p <= 1 - level
    down = np.where(differ & (D > 0), np.maximum(down, 0), np.minimum(down, 0))
    up = np.where(differ & (D < 0), np.minimum(up, 0), np.maximum(up, 0))
    a, b = one.standard_error[i], other.standard_error[j]
    error = np.where(exact, 0, np.sqrt(np.maximum(a * a + b * b - 2 * rho * a * b, 0)))
    return {"difference": D, "standard_error": error, "ci_low": down, "ci_high": up, "pvalue": p}


def degrees(psi: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom of the sum of squares (Satterthwaite)."""
    square = psi * psi
    J = square.sum(axis=0)
    folds = np.maximum((square > 1e-20 * J).sum(axis=0), 4)
    spread = np.maximum((square**2).sum(axis=0) - J**2 / folds, 1e-20 * J**2 + TINY)
    return np.clip(2 * J**2 / spread, 3, folds - 1)


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values adjusted for the family-wise error rate."""
    order = np.argsort(p, kind="stable")
    out = np.empty_like(p)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return out
