"""The line through the scores instead of bins (after Definition 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from firmlib._columns import NUMBER, Scale
from firmlib._inference import Estimate
from firmlib._rounding import ROUNDING
from firmlib._scored import Scores


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
        W, _, wrr = scores.total[:3]
        centre = float(w @ f / W)
        unit = float(np.abs(f - centre).max()) or 1.0  # any will do, and this one can't overflow
        z = (f - centre) / unit
        covariance, z_variance = scores.parts.wr @ z / W, w @ z**2 / W
        if f.min() == f.max():
            covariance = z_variance = 0.0
        beta = covariance / (z_variance or 1.0)
        variance = beta**2 * z_variance
        error, pvalue, slope = 0.0, np.nan if rows == "population" else 1.0, 0.0
        noise = scores.squares(z * (r - beta * z))
        if rows == "sample" and z_variance * wrr > 0:
            error = float(np.sqrt(scores.squares(scores.psi(beta * z, float(variance)))) / W)
            z_score = abs(covariance) * W / np.sqrt(noise) if noise else np.inf
            pvalue = float(2 * special.ndtr(-z_score))
            slope = 4 * noise / (W**2 * z_variance)
        downhill = covariance < -ROUNDING * np.sqrt(z_variance * wrr / W)
        estimate = Estimate(
            variance=float(variance),
            error=error,
            pvalue=pvalue,
            slope=slope,
            rest=max(error**2 - slope * variance, 0.0),
            sign=-1.0 if downhill else 1.0,
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
