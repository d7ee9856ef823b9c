"""The best sum of curves of all columns, and the share of Var(s) that it leaves.

A curve is piecewise linear between knots at weighted quantiles; a level of a nominal column, and a
missing value, is a knot of its own. Curves are fitted in turn (backfitting) until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.rows import Rows, rows_of
from firmlib.scores import Score, respond
from firmlib.tables.columns import Column
from firmlib.tables.table import Table

__all__ = ["Unexplained", "unexplained"]

SWEEPS = 100
NOTHING = 1e-5  # a sum of curves that leaves less of Var(s) is taken to be all of the score
ROWS_PER_KNOT = 20


class Curve(NamedTuple):
    """Rows between knots: `left` and `right` of each row, and how far it is along, `part`.

    `inverse` is that of the Gram matrix of the hat functions around the knots.
    """

    left: np.ndarray
    right: np.ndarray
    part: np.ndarray
    inverse: np.ndarray

    @classmethod
    def of(cls, column: Column, w: np.ndarray, most: int) -> Curve:
        """Place at most `most` knots, or one on each nominal level."""
        x = column.dense(len(w))
        known = ~np.isnan(x)
        knots, index = np.unique(x[known], return_inverse=True)
        nominal = column.kind == "nominal"
        if nominal:
            rank = np.argsort(np.argsort(-np.bincount(index, w[known]), kind="stable"))
            x = x.copy()
            x[known] = np.minimum(rank[index], 5 * most)  # the rarest levels share a knot
            knots = np.arange(min(len(knots), 5 * most + 1), dtype=float)
        elif len(knots) > most:
            knots = _knots(knots, np.bincount(index, w[known]), most)
        size = len(knots)
        left = np.full(len(x), size)
        left[known] = np.clip(np.searchsorted(knots, x[known], side="right") - 1, 0, size - 1)
        right = np.where((left < size - 1) & (not nominal), left + 1, left)
        step = np.append(np.diff(knots), [1.0, 1.0])
        part = np.where(right > left, (x - np.append(knots, 0.0)[left]) / step[left], 0.0)
        diagonal = np.bincount(left, w * (1 - part) ** 2, size + 1)
        gram = np.diag(diagonal + np.bincount(right, w * part**2, size + 1))
        side = np.bincount(left, w * part * (1 - part), size + 1)[:-1]
        gram += np.diag(side, 1) + np.diag(side, -1)
        return cls(left, right, part, np.linalg.pinv(gram, rcond=1e-9, hermitian=True))

    @property
    def leverage(self) -> np.ndarray:
        """How much of its own score each row (of weight 1) gets back, beyond the mean's."""
        A, part, left, right = self.inverse, self.part, self.left, self.right
        ends = (1 - part) ** 2 * A[left, left] + part**2 * A[right, right]
        return ends + 2 * part * (1 - part) * A[left, right]

    def fit(self, we: np.ndarray) -> np.ndarray:
        """Return the curve that fits e best, in the rows."""
        size, up = len(self.inverse), we * self.part
        sums = np.bincount(self.left, we - up, size) + np.bincount(self.right, up, size)
        values = self.inverse @ sums
        return values[self.left] + self.part * (values[self.right] - values[self.left])


def _knots(values: np.ndarray, w: np.ndarray, most: int) -> np.ndarray:
    """Return weighted quantiles of sorted values, more of them towards both ends."""
    share = (np.cumsum(w) - w / 2) / w.sum()
    wanted = np.sin(np.linspace(0, np.pi / 2, most)) ** 2
    return values[np.unique(np.clip(np.searchsorted(share, wanted), 0, len(values) - 1))]


@dataclass(frozen=True, repr=False)
class Unexplained:
    """The share of Var(s) that is in no sum of single columns, and its standard error."""

    share: float
    error: float

    def __repr__(self) -> str:
        digits = 0 if self.error >= 0.005 or self.share in (0, 1) else 1
        numbers = f"{100 * self.share:.{digits}f} % ± {100 * self.error:.{digits}f}"
        return f"{numbers} of the score's variance is in no sum of single columns"


def additive(rows: Rows, columns: Sequence[Column]) -> tuple[np.ndarray, Unexplained]:
    """Return what the best sum of curves leaves of the scores, as in rows left out; its share."""
    n, r, w = rows.n, rows.r, rows.w
    total = float(w @ r**2)
    if total == 0:
        return r, Unexplained(0.0, 0.0)
    each = n / len(columns)  # rows to fit a curve to
    most = int(np.clip(max(each / ROWS_PER_KNOT, min(each / 6, 8)), 3, 100))
    most = n if rows.population else most
    curves = [Curve.of(column, w, most) for column in columns]
    e, last, now = r.copy(), total, total
    for _ in range(SWEEPS):
        for curve in curves:
            e -= curve.fit(w * e)
        now = float(w @ e**2)
        if last - now < 1e-3 * now / len(curves) or now < NOTHING * total:
            break
        last = now
    if now < NOTHING * total:
        return np.zeros(n), Unexplained(0.0, 0.0)
    if not rows.population:  # e^2 / (1 - h) has no bias, in tails with much noise either
        own = w / w.sum() + w * sum(curve.leverage - 1 / w.sum() for curve in curves)
        e /= np.sqrt(np.clip(1 - own, 0.1, 1))
    share = min(float(w @ e**2) / total, 1.0)
    influence = w * (e**2 - share * r**2) / total
    folds = np.bincount(rows.fold, influence, rows.G)
    error = 0.0 if rows.population else np.sqrt(rows.G / (rows.G - 1) * (folds**2).sum())
    return e, Unexplained(share, float(error))


def unexplained(
    score: Score,
    X: Any,
    *,
    sample_weight: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    categorical: Sequence[Any] | None = None,
    response_method: str = "auto",
    target: Any = None,
) -> Unexplained:
    """Share of Var(s) that the best sum g_1(x_1) + g_2(x_2) + ... of single columns leaves.

    A ranking of single columns does not show this part: it is in interactions, or in noise if the
    score is not a function of X, such as labels. If it is large, look at ``Pairs("interaction")``
    before you drop a column. Curves have at most 100 knots, so a score that oscillates faster than
    them counts as unexplained, too.

    Parameters
    ----------
    score, X, sample_weight, groups, categorical, response_method, target
        As for `firmlib.firm`.

    Returns
    -------
    Unexplained
        With the attributes `share` and `error`.

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> firmlib.unexplained(lambda X: X[:, 0] * X[:, 1] + X[:, 2], X)
    49 % ± 1 of the score's variance is in no sum of single columns
    """
    table = Table.of(X).with_categorical(categorical)
    response = respond(score, table, response_method=response_method, target=target)
    sample = rows_of(response.values, table, sample_weight, groups)
    columns = [table.column(j).take(sample.keep) for j in range(table.width)]
    return additive(sample, columns)[1]
