"""The paper's linear regression: V = cov(s, f)^2 / var(f), from sums over folds; and Var(s)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate, influence
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.variance import Source
from firmlib.tables.columns import Column

_OTHERS = 1 - np.eye(FOLDS)  # sums without each fold, free of cancellation
_ROUNDING = 1e-13  # share of the mean square below which a variance is 0


@dataclass(frozen=True, eq=False)
class Line:
    """Sums (6, FOLDS) of w, wf, wf^2, wr, wfr and w^2, where f is (feature - centre) / unit.

    The unit is the largest difference from the centre; it is 0 if the feature is constant.
    """

    sums: np.ndarray
    centre: float
    unit: float
    middle: float  # of the scores
    nominal: bool = False

    axis: ClassVar[None] = None

    @classmethod
    def of(cls, f: np.ndarray, rows: Rows, nominal: bool = False) -> Line:
        """Return the sums of rows with known values f."""
        centre = rows.centre if f is rows.s else float(np.median(f)) if rows.n else 0.0
        unit = float(np.abs(f - centre).max(initial=0))
        sums = np.zeros((6, FOLDS))
        for here in rows.runs:
            x, w, r = (f[here] - centre) / (unit or 1), rows.w[here], rows.s[here] - rows.centre
            terms = w, w * x, w * x * x, w * r, w * r * x, w * w
            sums += [np.bincount(rows.fold[here], term, FOLDS) for term in terms]
        return cls(sums, centre, unit, rows.centre, nominal)

    def merged(self, other: Any, codes: Column | None = None) -> Line:
        """Return the sums of both; `codes` do not matter."""
        both = self, other
        heavy = max(both, key=lambda one: one.sums[0].sum())
        unit = max(self.unit, other.unit, abs(self.centre - other.centre))
        sums = sum(one._moved(heavy.centre, unit or 1, heavy.middle) for one in both)
        return replace(heavy, sums=sums, unit=unit)

    def _moved(self, centre: float, unit: float, middle: float) -> np.ndarray:
        """Return the sums for another centre, unit and middle."""
        move, (w, f, ff, r, fr, ww) = self.middle - middle, self.sums
        r, fr = r + move * w, fr + move * f
        c, u = (self.centre - centre) / unit, self.unit / unit  # f -> u f + c
        fr, ff, f = u * fr + c * r, u * u * ff + 2 * u * c * f + c * c * w, u * f + c * w
        return np.array([w, f, ff, r, fr, ww])

    def estimate(self, population: bool) -> Estimate:
        """Return V, its error and the test of the slope; V is nan if f is constant or nominal."""
        total, w = self.sums.sum(axis=1)[:, None], self.sums[0]
        V, v, slope = _explained(total)
        V = np.where((v > 0) & (not self.nominal), V, np.nan)
        if population:
            return Estimate.untested(np.nan_to_num(V))
        without, _, slopes = _explained(self.sums @ _OTHERS)
        error = v * (_influence(slope, slopes, w) ** 2).sum(axis=0)
        t = np.sqrt(V / np.maximum(error, 1e-24 * V + TINY))
        pvalue = 2 * special.stdtr(max((w > 0).sum(), 2) - 1.0, -t)
        noise = np.array([2 * error**2, 2 * error**2, 4 * error])
        return Estimate(V, noise, pvalue, _influence(V, without, w))

    def variance(self, rows: str, units: bool) -> Estimate:
        """Return the variance of f, without bias unless the rows are the population."""
        w, f, *_, ww = self.sums
        total = self.sums.sum(axis=1)
        mean, v, W2 = total[1] / total[0], _explained(total)[1], total[0] ** 2
        if units:  # Var(sum w f) is about v ww
            ww = (f - mean * w) ** 2 / max(v, TINY) * FOLDS / (FOLDS - 1)
        unbiased = 1.0 if rows == "population" else W2 / max(W2 - ww.sum(), TINY)
        without = _explained(self.sums @ _OTHERS)[1]
        V, without = (unbiased * self.unit**2 * a for a in (np.array([v]), without))
        return Estimate.untested(V, _influence(V, without, w))

    def source(self, column: Column, weight: float) -> Source:
        """Return the line at one standard deviation below and above the mean."""
        W, F, _, R, _, WW = self.sums.sum(axis=1)
        _, v, slope = _explained(self.sums.sum(axis=1))
        sign = np.array([-1, 1])
        q = np.append(R / max(W, TINY) + slope * np.sqrt(v) * sign, 0.0)
        t = self.centre + self.unit * (F / max(W, TINY) + np.sqrt(v) * sign)
        t = t if column.labels is None else np.clip(t.round(), 0, len(column.labels) - 1)
        p, w = W * np.array([0.5, 0.5, 0]), WW / max(W, TINY)  # so that n is that of the rows
        sums = np.array([p, p * q, p * q * q * w, p * q * w, p * w])
        missing = max(0.0, round(1 - W / weight, 12))
        mark = float(np.sin(1.0 + np.arange(FOLDS)) @ self.sums[2])
        if self.nominal:
            return Source(column.kind, mark, missing)
        return Source(column.kind, mark, missing, self.middle, sums, t, scale=column)


def _influence(V: np.ndarray, without: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return psi (G, 1) from V without each fold (G,)."""
    left = weight.sum() - weight
    return influence((left * (V - without))[:, None], weight[:, None])


def _explained(total: np.ndarray) -> tuple:
    """Return cov(s, f)^2 / var(f), var(f) and the slope from sums (6, ...)."""
    w, f, ff, r, fr, _ = total
    w = np.maximum(w, TINY)
    v, c = np.maximum(ff / w - (f / w) ** 2, 0), fr / w - f * r / w / w
    v = np.where(v > _ROUNDING * ff / w, v, 0.0)
    slope = np.where(v > 0, c / np.maximum(v, TINY), 0.0)
    return slope * c, v, slope
