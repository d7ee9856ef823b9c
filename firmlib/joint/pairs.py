"""All pairs of columns: interactions, and conjunctions and xors of columns with two values.

Interactions are measured on e, what the best sum of curves of all columns leaves of the score
(`firmlib.joint.additive`), in cells of bins of both columns:

    V = Var(E[e | x_j, x_k]) - Var(E[e | x_j]) - Var(E[e | x_k]).

It is 0 for every pair if the score is additive, whatever the correlations of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from firmlib.estimation.bins import ranks, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, parts
from firmlib.estimation.variance import TINY, cauchy, merged, spread
from firmlib.features import Pairs, two_values
from firmlib.joint.additive import Unexplained, additive
from firmlib.joint.cells import contrast, explained, known, sum_up, test_contrast
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column
from firmlib.tables.progress import progress
from firmlib.tables.table import Table

_MOST_PAIRS = 20_000
_FINEST = 5  # 2**5 bins of a column
_BYTES = 2**23  # of sums that are looked at together


def pairs(pairs: Pairs, table: Table, rows: Rows) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    parts = pairs.parts(table)
    count = len(parts) * (len(parts) - 1) // 2
    if pairs.kind == "interaction":
        if count > _MOST_PAIRS:
            raise ValueError(
                f"interactions of {len(parts)} columns are {count} pairs; expected at most "
                f"{_MOST_PAIRS}: name fewer columns, such as the most important ones"
            )
        found, unexplained = interactions(rows, [f.of(table).take(rows.keep) for f in parts])
        return found, [f"{a.name} × {b.name}" for a, b in combinations(parts, 2)], unexplained
    count *= 4 if pairs.kind == "conjunction" else 1
    check_memory(f"{count} pairs of {len(parts)} columns", (rows.G, count))
    values, x = zip(*(two_values(part, table) for part in parts), strict=True)
    found = binary_pairs(rows, np.array(x)[:, rows.keep], pairs.kind)
    each = combinations(zip([part.name for part in parts], values, strict=True), 2)
    if pairs.kind == "xor":
        return found, [f"{f} ⊕ {g}" for (f, _), (g, _) in each], None
    both = ((f, g, product(a, b)) for (f, a), (g, b) in each)
    return found, [f"{f}={a} ∧ {g}={b}" for f, g, words in both for a, b in words], None


def binary_pairs(rows: Rows, x: np.ndarray, kind: str) -> Estimate:
    """Estimate four conjunctions or the xor of all pairs of columns x (d, n) of 0, 1 and nan.

    With B (2 d, n) the indicators of both values of all columns, B diag(a) B' sums `a` over the
    rows where two columns have two values. These sums by fold are all that is needed.
    """
    d = len(x)
    B = np.stack([x == 0, x == 1], axis=1).reshape(2 * d, -1).astype(float)
    terms = parts(rows.r, rows.w if rows.weighted else None)
    folds = [np.flatnonzero(rows.fold == g) for g in range(rows.G)]
    total = np.array([terms[:, g].sum(axis=1) for g in folds]).T[:, :, None, None]
    step, found = max(1, _BYTES // (8 * len(terms) * rows.G * 4 * d)), []
    for start in progress(range(0, d - 1, step), "pairs"):
        stop = min(start + step, d - 1)
        left, right = B[2 * start : 2 * stop], B[2 * start :]
        both = np.array([[(left[:, g] * a[g]) @ right[:, g].T for g in folds] for a in terms])
        both = both.reshape(len(terms), rows.G, stop - start, 2, d - start, 2).swapaxes(3, 4)
        j, k = np.triu_indices(stop - start, 1, d - start)
        cells = both[:, :, j, k].reshape(*both.shape[:2], -1, 4)  # values 00, 01, 10, 11
        if kind == "xor":
            cells = cells[..., [0, 1]] + cells[..., [3, 2]]
        cells = cells.reshape(*both.shape[:2], -1, 2 if kind == "xor" else 1)
        rest = total - cells.sum(axis=-1, keepdims=True)
        rest = np.where(rest[0] > 1e-9 * total[0], rest, 0.0)
        found.append(_of_bins(rows, np.append(cells, rest, axis=-1), total[0, :, 0]))
    return Estimate.concatenate(found)


def _of_bins(rows: Rows, sums: np.ndarray, weight: np.ndarray) -> Estimate:
    """Estimate features with these sums (3 or 5, G, features, bins) of centred scores."""
    one = np.ones(sums.shape[2], int)
    if rows.population:
        W, S = sums[:2].sum(axis=1)
        V = (S**2 / np.maximum(W, TINY)).sum(axis=-1) / W.sum(axis=-1)
        return Estimate(V, np.zeros((3, len(V))), one * np.nan, np.zeros((rows.G, len(V))))
    found = spread(sums, (one, one), False, rows.unit is not None)
    return Estimate.of_folds(
        found.V, found.without, weight / weight.sum(), found.noise, found.pvalue
    )


def interactions(rows: Rows, columns: Sequence[Column]) -> tuple[Estimate, Unexplained]:
    """Estimate all pairs, in the order of `itertools.combinations`, and what is unexplained."""
    e, unexplained = additive(rows, columns)
    Q = 2 ** (_FINEST if rows.population else int(np.clip(np.log2(rows.n) / 3 + 0.5, 2, _FINEST)))
    axes = [(_slots(column, rows.w, Q), column.kind == "nominal") for column in columns]
    found = []
    for (a, *nominal), (b, *other) in progress(list(combinations(axes, 2)), "interactions"):
        cell = a * (Q + 1) + b
        if not np.ptp(a) or not np.ptp(b):
            found.append(known(rows))
        elif rows.population:
            both, *each = (explained(rows, e, which) for which in (cell, a, b))
            found.append(known(rows, both - sum(each)))
        else:
            sums = sum_up(rows, e, cell, (Q + 1) ** 2).reshape(-1, rows.G, Q + 1, Q + 1)
            found.append(_pair(rows, sums, *nominal, *other))
    return Estimate.concatenate(found), unexplained


def _slots(column: Column, w: np.ndarray, Q: int) -> np.ndarray:
    """Return which of Q slots each row is in: by level or by rank; slot Q has missing values."""
    f, slot = column.dense(len(w)), np.full(len(w), Q)
    here = ~np.isnan(f)
    levels, index = np.unique(f[here], return_inverse=True)
    weight = np.bincount(index, w[here])
    if column.kind == "nominal":
        place = np.minimum(np.argsort(np.argsort(-weight, kind="stable")), Q - 1)
    elif len(levels) <= Q:
        place = np.arange(len(levels)) * (Q // spacing(len(levels)))
    else:
        share = (np.cumsum(weight) - weight / 2) / weight.sum()
        place = ranks(Q).searchsorted(share, side="right") - 1
    slot[here] = place[index]
    return slot


def _pair(rows: Rows, sums: np.ndarray, *nominal: bool) -> Estimate:
    """Return the estimate of a pair of columns from sums (3 or 5, G, slots + 1, slots + 1).

    V comes from half as many bins as there are slots. The finer ones add what they have more, as
    far as it stands out, and a third of that for a smooth effect within bins. The test combines all
    scales but the finest. Levels of `nominal` columns are not merged.
    """
    scales, Q = [_partitions(sums)], sums.shape[-1] - 1
    while Q > 2 and not all(nominal):
        Q //= 2
        for fixed in nominal[::-1]:
            sums = (sums if fixed else merged(sums, Q)).swapaxes(2, 3)
        scales.append(_partitions(sums))
    fine, *others = scales
    if not others:
        return contrast(rows, *fine)
    fine, base = contrast(rows, *fine), contrast(rows, *others[0])
    step, psi = fine.V - base.V, fine.psi - base.psi
    error = np.sqrt((psi**2).sum(axis=0))
    gate = 4 / 3 * np.clip(step / np.where(error > 0, error, np.inf) - 1, 0, 1)
    noise = base.noise + np.outer([1, 0, 0], (gate * step / 4) ** 2)
    tests = [base.pvalue, *(test_contrast(rows, *scale) for scale in others[1:])]
    return Estimate(base.V + gate * step, noise, cauchy(np.array(tests)), base.psi + gate * psi)


def _partitions(sums: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return cells (3 or 5, G, bins, bins) in a row, and the partitions by row and by column."""
    down, across = sums.shape[2:]
    by_row, by_column = np.eye(down).repeat(across, axis=0), np.tile(np.eye(across), (down, 1))
    return sums.reshape(*sums.shape[:2], 1, down * across), by_row, by_column
