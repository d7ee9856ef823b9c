"""The best sum of curves of all columns, and the share of Var(s) that it leaves.

A curve is piecewise linear between knots at weighted quantiles; a level of a nominal column, and a
missing value, is a knot of its own. Curves are fitted in turn (backfitting) until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csr_array

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, rows_of
from firmlib.scores import Score, respond
from firmlib.tables.columns import Column
from firmlib.tables.table import Table

__all__ = ["Unexplained", "unexplained"]

SWEEPS = 100
NOTHING = 1e-5  # a sum of curves that leaves less of Var(s) is taken to be all of the score
ROWS_PER_KNOT = 20


@dataclass(frozen=True, repr=False)
class Unexplained:
    """The share of Var(s) that is in no sum of single columns, and its standard error."""

    share: float
    error: float

    def __repr__(self) -> str:
        digits = 0 if self.error >= 0.005 or self.share in (0, 1) else 1
        numbers = f"{100 * self.share:.{digits}f} % ± {100 * self.error:.{digits}f}"
        return f"{numbers} of the score's variance is in no sum of single columns"


def hats(column: Column, w: np.ndarray, most: int) -> csr_array:
    """Return hat functions (n, knots) around `most` knots, two in each row; lines go on outside."""
    x = column.values
    known = ~np.isnan(x)
    knots, index = np.unique(x[known], return_inverse=True)
    weight = np.bincount(index, w[known])
    left, part = np.zeros(len(x), int), np.zeros(len(x))
    if column.kind == "nominal":
        rank = np.argsort(np.argsort(-weight, kind="stable"))
        left[known] = np.minimum(rank[index], 5 * most)  # the rarest levels share a knot
    else:
        if len(knots) > most:  # quantiles, more of them towards both ends
            share = (np.cumsum(weight) - weight / 2) / weight.sum()
            wanted = special.betainc(1.5, 1.5, np.arange(0.5, most) / most)
            knots = knots[np.unique(share.searchsorted(wanted).clip(0, len(knots) - 1))]
        below = knots.searchsorted(x[known], side="right").clip(1, max(len(knots) - 1, 1)) - 1
        step = np.append(np.diff(knots), 1.0)
        left[known], part[known] = below, (x[known] - knots[below]) / step[below]
    left[~known] = left.max() + 2  # a missing value is a knot of its own
    value, at = (np.column_stack(both).ravel() for both in ([1 - part, part], [left, left + 1]))
    return csr_array((value, at, np.arange(0, len(at) + 1, 2)), shape=(len(x), at.max() + 1))


def bins(column: Column, w: np.ndarray, most: int) -> np.ndarray:
    """Return the number of the knot that is nearest to each row, of those that are so to any."""
    B = hats(column, w, most)
    value = B.data.reshape(-1, 2)
    return np.unique(B.indices[::2] + (value[:, 1] > value[:, 0]), return_inverse=True)[1]


def additive(rows: Rows, columns: Sequence[Column]) -> tuple[np.ndarray, Unexplained]:
    """Return what the best sum of curves leaves of the scores, as in rows left out; its share."""
    n, r, w = rows.n, rows.r, rows.w
    total = now = float(w @ r**2)
    each = n / len(columns)  # rows to fit a curve to
    most = int(np.clip(max(each / ROWS_PER_KNOT, min(each / 6, 8)), 3, 100))
    curves = [hats(column, w, n if rows.population else most) for column in columns]
    curves = [(B, np.linalg.pinv((B.T @ (B * w[:, None])).toarray(), 1e-9, True)) for B in curves]
    e = r.copy()
    for _ in range(SWEEPS):
        last = now
        for B, inverse in curves:
            e -= B @ (inverse @ (B.T @ (w * e)))
        now = float(w @ e**2)
        if now <= NOTHING * total:
            return np.zeros(n), Unexplained(0.0, 0.0)
        if last - now < 1e-3 * now / len(curves):
            break
    if not rows.population:  # e^2 / (1 - h) has no bias, even in tails with much noise
        h = np.full(n, -len(curves) / w.sum())
        for B, inverse in curves:
            at, value = B.indices.reshape(-1, 2), B.data.reshape(-1, 2)
            h += np.einsum("na,nab,nb->n", value, inverse[at[:, :, None], at[:, None]], value)
        e /= np.sqrt(np.clip(1 - w / w.sum() - w * h, 0.1, 1))
    share = min(float(w @ e**2) / total, 1.0)
    J = Estimate.of_rows((e**2 - share * r**2) * (w.sum() / total), rows).J[0]
    return e, Unexplained(share, 0.0 if rows.population else float(np.sqrt(J)))


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

    A ranking of single columns does not show this part: interactions, oscillations too fast for 100
    knots, and noise. If it is large, look at ``Pairs("interaction")`` before you drop a column.

    `sample_weight`, `groups`, `categorical`, `response_method` and `target` are as for `firm`.

    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> firmlib.unexplained(lambda X: X[:, 0] * X[:, 1] + X[:, 2], X)
    50 % ± 1 of the score's variance is in no sum of single columns
    """
    table = Table.of(X).with_categorical(categorical)
    response = respond(score, table, response_method=response_method, target=target)
    rows = rows_of(response.values, table, sample_weight, groups)
    return additive(rows, [table.column(j).take(rows.keep) for j in range(table.width)])[1]
