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


def pairs(
    pairs: Pairs, table: Table, rows: Rows, how: How
) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    some = pairs.parts(table)
    count = len(some) * (len(some) - 1) // 2
    if pairs.kind != "interaction":
        count *= 4 if pairs.kind == "conjunction" else 1
        check_memory(f"{count} pairs of {len(some)} columns", (FOLDS, count))
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
    found = [contrast(rows, e, a, b, 0, 1) for a, b in progress(each, "interactions")]
    names = [f"{a.name} × {b.name}" for a, b in combinations(some, 2)]
    return Estimate.concatenate(found), names, unexplained


def _binary(some: Sequence[Feature], table: Table, kind: str) -> Iterator[Feature]:
    """Yield the xor, or the four conjunctions, of each pair of features with two values."""

    def conjunction(x: np.ndarray, y: np.ndarray, i: int, j: int) -> np.ndarray:
        return 1.0 * ((x == i) & (y == j))

    each = [(f.name, *two_values(f, table)) for f in some]
    for (f, u, x), (g, v, y) in combinations(each, 2):
        if kind == "xor":
            yield Feature(f"{f} ⊕ {g}", lambda x, y: np.abs(x - y), x, y, ready=True)
            continue
        for i, a in enumerate(u):
            for j, b in enumerate(v):
                yield Feature(f"{f}={a} ∧ {g}={b}", conjunction, x, y, i, j, ready=True)


def nothing(rows: Rows, V: float = 0.0) -> Estimate:
    """Return the estimate of a feature that explains nothing or, in a population, V."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.full(1, V), np.zeros((3, 1)), pvalue, np.zeros((FOLDS, 1)))


def contrast(rows: Rows, r: np.ndarray, a: np.ndarray, b: np.ndarray, *axes: int) -> Estimate:
    """Return V = sum_k c_k sum_b T_b over partitions k and their bins b, for centred scores r.

    c is 1 for the cells of the factors a and b, and -1 for the cells merged along each of `axes`.
    All rows as one bin have the c that makes the sum of all c 0.
    """
    G, shape, wr = 1 if rows.population else FOLDS, (a.max() + 1, b.max() + 1), rows.w * r
    if any(shape[axis] == 1 for axis in axes):
        return nothing(rows)
    check_memory("the cells of two columns", (4, G, *shape))
    at = np.ravel_multi_index((rows.fold % G, a, b), (G, *shape))
    sums = [np.bincount(at, part, G * np.prod(shape)) for part in (rows.w, wr, wr**2, rows.w**2)]
    ways = {(): 1} | {(axis,): -1 for axis in axes} | {(0, 1): len(axes) - 1}
    merged = {}
    for axis in ways:
        part = np.reshape(sums, (4, G, *shape)).sum(axis=tuple(2 + k for k in axis))
        merged[axis] = part = part.reshape(4, G, -1)
        if rows.unit is not None:  # pairs of rows in one fold are not used
            part[2:] = part[1] ** 2, part[0] ** 2
    cells = Bins.of(tuple(merged[()].sum(axis=1)))
    signal, pvalue = test_contrast(cells, ways, shape)
    if rows.population:
        return nothing(rows, signal)
    V, without = np.zeros(1), np.zeros((G, 1))
    for axis, part in merged.items():
        total = part.sum(axis=1, keepdims=True)
        left = total - part
        left *= left[0] > 1e-9 * total[0]  # not what rounding leaves
        V += ways[axis] * Bins.of(tuple(total)).T.sum(axis=-1)
        without += ways[axis] * Bins.of(tuple(left)).T.sum(axis=-1, keepdims=True)
    rest, jackknifed = cells.rest.sum(), cells.jackknifed.sum()
    least = 4 * (cells.p**2 * np.maximum(cells.e, 0)).sum()
    least *= rows.unit is None  # what units share moves all means alike
    noise = np.array([[rest], [jackknifed - rest], [least]])
    share = np.bincount(rows.fold, rows.w, G) / rows.w.sum()
    return Estimate.of_folds(V, without, share, noise, np.where(V > 0, pvalue, 1.0))


def test_contrast(
    cells: Bins, ways: dict[tuple[int, ...], int], shape: tuple[int, ...]
) -> tuple[float, float]:
    """Return sum_k c_k sum_b p_b m_b^2, and the p-value of V = 0 (Brown and Forsythe 1974)."""
    p, m, e, n = cells[:4]
    u = p * np.maximum(e, 0)
    signal = noise = between = 0.0
    for axis, c in ways.items():  # a bin of a coarser partition has the noise of its cells
        P, S, U = (part.reshape(shape).sum(axis=axis) for part in (p, p * m, p * u))
        each = U / np.maximum(P, TINY)
        signal += c * (S**2 / np.maximum(P, TINY)).sum()
        noise, between = noise + c * each.sum(), between + c * (each**2).sum()
    within = (u**2 / np.maximum(n - 1, 1)).sum()
    if signal <= TINY or abs(noise) <= 1e-15 * signal:
        return signal, float(signal <= TINY)
    with np.errstate(all="ignore"):
        found = special.fdtrc(noise**2 / between, noise**2 / within, signal / noise)
    return signal, 1.0 if np.isnan(found) else float(found)
