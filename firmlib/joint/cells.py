"""Cells of two factors, and all pairs of columns: interactions, conjunctions and xors.

Interactions are measured on e, what the best sum of curves of all columns leaves of the score
(`firmlib.joint.additive`), in cells of bins of both columns:

    V = Var(E[e | x_j, x_k]) - Var(E[e | x_j]) - Var(E[e | x_k]).

It is 0 for every pair if the score is additive, whatever the correlations of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.scan import How, read, scan
from firmlib.estimation.variance import Bins
from firmlib.features import Feature, Pairs, two_values
from firmlib.joint.additive import Unexplained, additive, bins
from firmlib.tables.checks import check_memory
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

MOST_PAIRS = 20_000
BINS = 4, 24  # of a column, at least and at most
BEYOND_FIRST = {(): 1, (-1,): -1}
BEYOND_BOTH = {(): 1, (-1,): -1, (-2,): -1, (-2, -1): 1}
"""Ways to merge cells of two factors: the axes to merge along, and the c of the bins."""


def pairs(
    pairs: Pairs, table: Table, rows: Rows, how: How
) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    some = pairs.parts(table)
    count = len(some) * (len(some) - 1) // 2
    if pairs.kind != "interaction":
        check_memory(f"{count} pairs of {len(some)} columns", (4, FOLDS, count))
        both = list(_binary(some, table, pairs.kind))
        return scan(both, table, rows, how)[0], [f.name for f in both], None
    if count > MOST_PAIRS:
        raise ValueError(
            f"interactions of {len(some)} columns are {count} pairs; expected at most "
            f"{MOST_PAIRS}: name fewer columns, such as the most important ones"
        )
    columns = [read(f, table, rows, how) for f in some]
    if how.missing == "drop":
        there = np.all([~np.isnan(c.values) for c in columns], axis=0)
        if not there.any():
            raise ValueError("missing='drop' leaves no row in which all columns are known")
        columns, rows = [c.take(there) for c in columns], rows.taken(there)
    e, unexplained = additive(rows, columns)
    most = rows.n if rows.population else int(np.clip(1.4 * rows.n**0.25, *BINS))
    each = list(combinations([bins(column, rows.w, most) for column in columns], 2))
    found = [contrast(rows, e, a, b, BEYOND_BOTH) for a, b in progress(each, "interactions")]
    names = [f"{a.name} × {b.name}" for a, b in combinations(some, 2)]
    return Estimate.concatenate(found), names, unexplained


def _binary(some: Sequence[Feature], table: Table, kind: str) -> Iterator[Feature]:
    """Yield the xor, or the four conjunctions, of each pair of features with two values."""
    each = [(f.name, *two_values(f, table)) for f in some]
    for (f, u, x), (g, v, y) in combinations(each, 2):
        if kind == "xor":
            yield Feature(f"{f} ⊕ {g}", lambda x, y: np.abs(x - y), x, y, ready=True)
            continue
        for i, j in np.ndindex(2, 2):
            name = f"{f}={u[i]} ∧ {g}={v[j]}"
            yield Feature(name, lambda x, y: 1.0 * (x & y), x == i, y == j, ready=True)


def nothing(rows: Rows, V: float = 0.0) -> Estimate:
    """Return the estimate of a feature that explains nothing or, in a population, V."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.full(1, V), np.zeros((3, 1)), pvalue, np.zeros((FOLDS, 1)))


def contrast(
    rows: Rows, r: np.ndarray, a: np.ndarray, b: np.ndarray, ways: dict[tuple[int, ...], int]
) -> Estimate:
    """Return V = sum_k c_k sum_b T_b over partitions k and their bins b, for centred scores r.

    The partitions are the cells of the factors a and b, and cells merged along axes: the `ways`.
    """
    G, shape = 1 if rows.population else FOLDS, (a.max() + 1, b.max() + 1)
    if any(shape[k] == 1 for axis in ways for k in axis):
        return nothing(rows)
    check_memory("the cells of two columns", (4, G, *shape))
    at, wr = np.ravel_multi_index((rows.fold % G, a, b), (G, *shape)), rows.w * r
    each = (np.bincount(at, x, G * np.prod(shape)) for x in (rows.w, wr, wr**2, rows.w**2))
    sums = np.reshape([*each], (4, G, *shape))
    parts = {axis: _left_out(sums.sum(axis=axis), rows) for axis in ways}
    T = sum(c * parts[axis].T.sum(axis=-1) for axis, c in ways.items())
    cells = Bins(*(x[0] for x in parts[()]))
    u = cells.p * np.maximum(cells.e, 0)

    signal = noise = between = 0.0  # of the test of V = 0 (Brown and Forsythe 1974)
    for axis, c in ways.items():  # a bin of a coarser partition has the noise of its cells
        P, m = parts[axis].p[0], parts[axis].m[0]
        own = (cells.p * u).reshape(shape).sum(axis=axis).ravel() / np.maximum(P, TINY)
        signal += c * (P * m**2).sum()
        noise += c * own.sum()
        between += c * (own**2).sum()
    if rows.population:
        return nothing(rows, signal)
    within = (u**2 / np.maximum(cells.n - 1, 1)).sum()
    pvalue = float(signal <= TINY or T[0] <= 0)
    if not pvalue and abs(noise) > 1e-15 * signal:
        with np.errstate(all="ignore"):
            found = special.fdtrc(noise**2 / between, noise**2 / within, signal / noise)
        pvalue = np.nan_to_num(found, nan=1.0)

    rest, jackknifed = cells.rest.sum(), cells.jackknifed.sum()
    least = 4 * (cells.p * u).sum() * (rows.unit is None)  # units move all means alike
    errors = np.array([[rest], [jackknifed - rest], [least]])
    weight = np.bincount(rows.fold, rows.w, G)
    return Estimate.of_folds(T[:1], T[1:, None], weight, errors, np.full(1, pvalue))


def _left_out(sums: np.ndarray, rows: Rows) -> Bins:
    """Return the bins of all rows and, after them, of all but each fold, from sums (4, G, ...)."""
    sums = sums.reshape(*sums.shape[:2], -1)
    if rows.unit is not None:  # pairs of rows in one fold are not used
        sums[2:] = sums[1] ** 2, sums[0] ** 2
    total = sums.sum(axis=1, keepdims=True)
    some = np.append(total, total - sums, axis=1)
    return Bins.of(tuple(some * (some[0] > 1e-9 * total[0])))  # not what rounding leaves
