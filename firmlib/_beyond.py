"""What cells say beyond a simpler fit: the variance that is left of E[s | cell], and its test.

Cells are those of two columns (`firmlib._interaction`) or of a feature and what is given
(`firmlib._given`). A simpler fit, such as a sum of two curves, is taken off the scores first; what
remains is e. With the weight w of a cell, the mean m of e in it and the variance u / w of that
mean, the simpler fit takes a share of the noise, too, and leaves 1 - w h of it, where h is the
leverage of a row of the cell. So sum w m^2 exceeds W V by sum (1 - w h) u, which is taken off.
What varies within cells is lost: of a smooth effect a share that grows with the square of their
width, so that cells of half the width tell how much (Richardson's extrapolation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from firmlib._inference import Estimate, cauchy, uncertainty
from firmlib._rounding import EMPTY
from firmlib._scored import Scores
from firmlib._spread import Sums, bin_noise


class Cells(NamedTuple):
    """Sums of e in cells, the simpler fit to it, its leverages, and its parameters in all.

    `index` is the cell of each row, or of each finer cell.
    """

    index: np.ndarray
    sums: Sums
    fit: np.ndarray
    leverage: np.ndarray
    parameters: float

    @property
    def means(self) -> np.ndarray:
        """The mean m of what is left in each cell."""
        w = self.sums.w
        return np.where(w > 0, self.sums.wr / np.maximum(w, EMPTY) - self.fit, 0.0)


Ratio = Callable[[Cells, float], float]


def beyond(
    cells: Sequence[Cells],
    rows: str,
    finer: Callable[[], Cells] | None = None,
    ratio: Ratio | None = None,
) -> Estimate:
    """Estimate the variance of what is left.

    The first entry has the cells that V comes from; further ones have coarser cells, in which
    effects that vary slowly stand out, and are for the test alone. A V that is clear of 0 comes
    from `finer` cells, of half the width, and from how it changed. A `ratio` tells by what factor
    the square of its error changes.
    """
    found, used = [_one(one, rows) for one in cells], cells[0]
    numbers, pvalues = found[0][0], [pvalue for _, pvalue in found]
    if finer is not None and numbers["variance"] > 2 * numbers["error"]:
        coarse, used = numbers["variance"], finer()
        numbers = _one(used, rows)[0]
        numbers["variance"] += max(numbers["variance"] - coarse, 0) / 3
    if ratio is not None and numbers["error"] > 0:
        factor = ratio(used, numbers["variance"])
        numbers["error"] *= np.sqrt(factor)
        numbers |= {name: factor * numbers[name] for name in ("slope", "rest")}
    pvalue = np.nan if rows == "population" else float(cauchy(np.array(pvalues)[:, None])[0])
    return Estimate(**numbers, pvalue=pvalue)


def nothing(rows: str) -> Estimate:
    """Return the estimate of what cannot be there: of constant scores, or a constant feature."""
    return Estimate(variance=0.0, error=0.0, pvalue=np.nan if rows == "population" else 1.0)


def standardized(scores: Scores, e: np.ndarray) -> Ratio | None:
    """Return by what factor dividing by Var(s) changes the squared error; None of other scores.

    The influence on V is psi = 2 e m - m^2 - V, that on V / Var(s) is psi - V (r^2 - 1) for scores
    r with sd 1.
    """

    def ratio(cells: Cells, V: float) -> float:
        m = cells.means[cells.index]
        psi = (2 * (e - cells.fit[cells.index]) - m) * m
        psi -= scores.w @ psi / scores.w.sum()
        return scores.squares(psi - V * (scores.r**2 - 1)) / max(scores.squares(psi), EMPTY)

    return ratio if scores.standardized else None


def _one(cells: Cells, rows: str) -> tuple[dict[str, float], float]:
    """Return V with its error, and a p-value as in Brown and Forsythe's test."""
    sums, w, W = cells.sums, cells.sums.w, cells.sums.w.sum()
    m = cells.means
    signal = float(w @ m**2)
    if rows == "population":
        return {"variance": signal / W, "error": 0.0}, np.nan
    _, wwr, wwrr = sums.shifted(-cells.fit).pairs
    e, u, n = bin_noise(sums, m, wwr, wwrr)
    if sums.ww is not None:  # of few rows u is too small; with this factor it is right in total
        u = u * max(w @ e, 0.0) / max(u.sum(), EMPTY)
    share = np.where(w > 0, np.clip(w * cells.leverage, 0, 1), 1.0)
    left, within = 1 - share, np.maximum(n - 1, 0).sum()
    spare = within - cells.parameters + share[w > 0].sum()
    if spare < 1:  # then the simpler fit explains anything
        raise ValueError(
            f"{n.sum():.0f} rows in {np.count_nonzero(w)} cells of the columns are too few to tell "
            "an effect from noise; expected more rows, or columns with fewer levels"
        )
    if left.sum() < 0.5 or not sums.wrr.any():  # the simpler fit explains all cells, or the scores
        return {"variance": 0.0, "error": 0.0}, 1.0
    u = u * within / spare
    grow = n.sum() / max(n.sum() - cells.parameters, 1)  # the fit takes a share of V as well
    m, u, signal = m * np.sqrt(grow), u * grow, signal * grow
    noise = float(left @ u)
    if noise > 0:
        df = noise**2 / (left @ u**2), noise**2 / ((left * u) ** 2 @ (1 / np.maximum(n - 1, 1)))
        pvalue = float(special.fdtrc(*df, signal / noise))
    else:  # what there is, is real
        pvalue = 0.0 if signal > 0 else 1.0
    column = slice(None), None
    sure = uncertainty(w[column], m[column], u[column], n[column], 0.0, None, None)
    numbers = {name: float(value[0]) for name, value in sure._asdict().items()}
    return {"variance": (signal - noise) / W, **numbers}, pvalue
