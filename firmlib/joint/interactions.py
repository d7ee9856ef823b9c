"""Interactions: what no sum of single columns explains.

The best sum of curves of all columns is fitted in turn (backfitting) until nothing changes. A curve
is piecewise linear between knots at weighted quantiles; a level of a nominal column, and a missing
value, is a knot of its own. What the sum leaves of the scores, e, is measured in cells of bins of
two columns:

    V = Var(E[e | x_j, x_k]) - Var(E[e | x_j]) - Var(E[e | x_k]).

It is 0 for every pair if the score is additive, whatever the correlations of the columns.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csr_array

from firmlib.estimation.jackknife import TINY, Estimate, influence
from firmlib.estimation.rows import FOLDS, Rows, rows_of
from firmlib.estimation.scan import read
from firmlib.estimation.sums import How
from firmlib.estimation.variance import Bins, Source, f_test, fall, fallen, moments, pooled
from firmlib.features import Pairs
from firmlib.scores import Score, respond
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

__all__ = ["Unexplained", "unexplained"]

SWEEPS = 100
NOTHING = 1e-5  # a sum of curves that leaves less of Var(s) is taken to be all of the score
ROWS_PER_KNOT = 20
MOST_VALUES = 0.75  # of all curves, per row; beyond, their sum follows the noise
MOST_PAIRS = 20_000
BINS = 4, 24  # of a column, at least and at most
BEYOND_FIRST = {(): 1, (-1,): -1}
BEYOND_BOTH = {(): 1, (-1,): -1, (-2,): -1, (-2, -1): 1}
"""Ways to merge cells of two factors: the axes to merge along, and the c of the bins."""


class Unexplained(NamedTuple):
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
    values = 1 + sum(np.count_nonzero(inverse.diagonal()) - 1 for _, inverse in curves)
    if values > MOST_VALUES * n and total and not rows.population:
        few = f"{n} rows are too few for curves of {len(columns)} columns with {values} values"
        raise ValueError(f"{few}; expected more rows, or fewer columns")
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


def pairs(
    pairs: Pairs, table: Table, rows: Rows, how: How
) -> tuple[Estimate, list[Source], tuple[tuple[str, str], ...], Unexplained]:
    """Return V, sources and both names of all pairs, and what is unexplained."""
    some = pairs.parts(table)
    count = len(some) * (len(some) - 1) // 2
    if count > MOST_PAIRS:
        fewer = f"expected at most {MOST_PAIRS}: name fewer columns, such as the most important"
        raise ValueError(f"interactions of {len(some)} columns are {count} pairs; {fewer}")
    columns = [read(f, table, rows, how) for f in some]
    there = np.all([~np.isnan(c.values) | (how.missing != "drop") for c in columns], axis=0)
    if not there.any():
        raise ValueError("missing='drop' leaves no row in which all columns are known")
    columns, rows = [c.take(there) for c in columns], rows.taken(there)
    e, unexplained = additive(rows, columns)
    most = rows.n if rows.population else int(np.clip(1.4 * rows.n**0.25, *BINS))
    each = list(combinations([bins(column, rows.w, most) for column in columns], 2))
    found = [contrast(rows, e, a, b, BEYOND_BOTH) for a, b in progress(each, "interactions")]
    names = tuple(combinations([f.name for f in some], 2))
    place = np.sin(1.0 + np.arange(rows.n))  # the same cells have the same mark
    sources = [Source("pair", mark=float((a + b) @ place)) for a, b in each]
    return Estimate.concatenate(found), sources, names, unexplained


def nothing(rows: Rows) -> Estimate:
    """Return the estimate of a feature that explains nothing."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.zeros(1), np.zeros((3, 1)), pvalue, np.zeros((FOLDS, 1)))


def contrast(
    rows: Rows, r: np.ndarray, a: np.ndarray, b: np.ndarray, ways: dict[tuple[int, ...], int]
) -> Estimate:
    """Return V = sum_k c_k sum_b T_b over partitions k and their bins b, for centred scores r.

    The partitions are the cells of the factors a and b, and cells merged along axes: the `ways`.
    The test of V = 0 is that of Brown and Forsythe (1974).
    """
    G, shape = 1 if rows.population else FOLDS, (a.max() + 1, b.max() + 1)
    if any(shape[k] == 1 for axis in ways for k in axis):
        return nothing(rows)
    check_memory("the cells of two columns", (5, G, *shape))
    at, w, x = np.ravel_multi_index((rows.fold % G, a, b), (G, *shape)), rows.w, rows.w * r
    each = (np.bincount(at, part, G * np.prod(shape)) for part in (w, x, x * x, w * x, w * w))
    sums, units = np.reshape([*each], (5, G, *shape)), rows.unit is not None
    cells = Bins.of(pooled(moments(sums.reshape(5, G, -1), units)))
    u = cells.p * np.maximum(cells.e, 0)
    V, moved, signal, noise, between = np.zeros(1), np.zeros((G, 1)), 0.0, 0.0, 0.0
    for axis, c in ways.items():  # a bin of a coarser partition has the noise of its cells
        M = moments(sums.sum(axis=axis).reshape(5, G, 1, -1), units)
        some = Bins.of(pooled(M))
        own = (cells.p * u).reshape(shape).sum(axis=axis).ravel() / np.maximum(some.p, TINY)
        V += c * some.T.sum(axis=-1)
        moved += c * fallen(M, fall(pooled(M), some.lone))
        signal += c * (some.p * some.m**2).sum()
        noise += c * own.sum()
        between += c * (own**2).sum()
    if rows.population:
        return Estimate.untested(np.array([signal]))
    within = (u**2 / np.maximum(cells.n - 1, 1)).sum()
    pvalue = f_test(signal, noise, between, within) if V[0] > 0 else 1.0
    rest = cells.rest.sum()
    least = 4 * (cells.p * u).sum() * (not units)  # effects within units shift all means alike
    psi = influence(moved, sums[0].reshape(G, -1).sum(axis=1, keepdims=True))
    return Estimate(V, np.array([[rest], [rest], [least]]), np.full(1, pvalue), psi)
