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

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.features import Pairs, two_values
from firmlib.joint.additive import Unexplained, additive, hats, nearest
from firmlib.joint.cells import cell_sums, contrast, nothing, parts
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

_MOST_PAIRS = 20_000
_BINS = 4, 24  # of a column, at least and at most
_BYTES = 2**23  # of sums that are computed together


def pairs(pairs: Pairs, table: Table, rows: Rows) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    some = pairs.parts(table)
    count = len(some) * (len(some) - 1) // 2
    if pairs.kind == "interaction":
        if count > _MOST_PAIRS:
            raise ValueError(
                f"interactions of {len(some)} columns are {count} pairs; expected at most "
                f"{_MOST_PAIRS}: name fewer columns, such as the most important ones"
            )
        found, unexplained = interactions(rows, [f.of(table).take(rows.keep) for f in some])
        return found, [f"{a.name} × {b.name}" for a, b in combinations(some, 2)], unexplained
    count *= 4 if pairs.kind == "conjunction" else 1
    check_memory(f"{count} pairs of {len(some)} columns", (rows.G, count))
    values, x = zip(*(two_values(part, table) for part in some), strict=True)
    found = binary_pairs(rows, np.array(x)[:, rows.keep], pairs.kind)
    each = combinations(zip([part.name for part in some], values, strict=True), 2)
    if pairs.kind == "xor":
        return found, [f"{f} ⊕ {g}" for (f, _), (g, _) in each], None
    both = ((f, g, product(a, b)) for (f, a), (g, b) in each)
    return found, [f"{f}={a} ∧ {g}={b}" for f, g, words in both for a, b in words], None


def binary_pairs(rows: Rows, x: np.ndarray, kind: str) -> Estimate:
    """Estimate four conjunctions or the xor of all pairs of columns x (d, n) of 0, 1 and nan.

    With B (2 d, n) the indicators of both values of all columns, B diag(a) B' sums `a` over the
    rows where two columns have two values.
    """
    d, terms = len(x), parts(rows, rows.r)
    B = np.stack([x == 0, x == 1], axis=1).reshape(2 * d, -1).astype(float)
    folds = [np.flatnonzero(rows.fold == g) for g in range(rows.G)]
    total = np.array([terms[:, g].sum(axis=1) for g in folds]).T[:, :, None, None]
    step, found = max(1, _BYTES // (8 * 4 * rows.G * 4 * d)), []
    for start in progress(range(0, d - 1, step), "pairs"):
        stop = min(start + step, d - 1)
        left, right = B[2 * start : 2 * stop], B[2 * start :]
        both = np.array([[(left[:, g] * a[g]) @ right[:, g].T for g in folds] for a in terms])
        both = both.reshape(4, rows.G, stop - start, 2, d - start, 2).swapaxes(3, 4)
        j, k = np.triu_indices(stop - start, 1, d - start)
        cells = both[:, :, j, k].reshape(4, rows.G, -1, 4)  # values 00, 01, 10, 11
        if kind == "xor":
            cells = cells[..., [0, 1]] + cells[..., [3, 2]]
        cells = cells.reshape(4, rows.G, -1, 2 if kind == "xor" else 1)
        rest = total - cells.sum(axis=-1, keepdims=True)
        rest *= rest[0] > 1e-9 * total[0]  # not what rounding leaves
        found.append(contrast(rows, np.append(cells, rest, axis=-1)))
    return Estimate.concatenate(found)


def interactions(rows: Rows, columns: Sequence[Column]) -> tuple[Estimate, Unexplained]:
    """Estimate all pairs, in the order of `itertools.combinations`, and what is unexplained.

    A row is in the bin of the nearest of about 1.4 n^(1/4) knots.
    """
    e, unexplained = additive(rows, columns)
    most = rows.n if rows.population else int(np.clip(1.4 * rows.n**0.25, *_BINS))
    slots = [nearest(hats(column, rows.w, most)) for column in columns]
    found = []
    for a, b in progress(list(combinations(slots, 2)), "interactions"):
        A, B = a.max() + 1, b.max() + 1
        if A == 1 or B == 1:
            found.append(nothing(rows))
            continue
        check_memory("the cells of two columns", (A * B, A + B))
        by_row, by_column = np.eye(A).repeat(B, axis=0), np.tile(np.eye(B), (A, 1))
        found.append(contrast(rows, cell_sums(rows, e, a * B + b, A * B), by_row, by_column))
    return Estimate.concatenate(found), unexplained
