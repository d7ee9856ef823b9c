"""All pairs of columns: interactions, and conjunctions and xors of columns with two values."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.scan import scan
from firmlib.features import Pairs, two_values
from firmlib.joint.additive import Unexplained
from firmlib.joint.cells import contrast
from firmlib.joint.interactions import interactions
from firmlib.tables.checks import check_memory
from firmlib.tables.table import Table

_BYTES = 2**26  # of sums that are looked at together


def pairs(
    pairs: Pairs, table: Table, rows: Rows, progress: bool = False
) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    parts = pairs.parts(table)
    if pairs.kind == "interaction":
        columns = [part.of(table).take(rows.keep) for part in parts]
        names = [part.name for part in parts]
        found, unexplained = interactions(rows, columns, names, progress)
        return found, [f"{a} × {b}" for a, b in combinations(names, 2)], unexplained
    labels, values, codes = zip(*(two_values(part, table) for part in parts), strict=True)
    count = len(parts) * (len(parts) - 1) // 2 * (4 if pairs.kind == "conjunction" else 1)
    check_memory(f"{count} pairs of {len(parts)} columns", (rows.G, count))
    if rows.unit is None:
        found = binary_pairs(rows, np.column_stack([x[rows.keep] for x in codes]), pairs.kind)
    else:  # squares of sums over units are not sums of squares over rows
        found = scan(pairs.features(table), table, rows)[0]
    places = list(combinations(range(len(parts)), 2))
    if pairs.kind == "xor":
        return found, [f"{labels[j]} ⊕ {labels[k]}" for j, k in places], None
    names = [
        f"{labels[j]}={a} ∧ {labels[k]}={b}"
        for j, k in places
        for a in values[j]
        for b in values[k]
    ]
    return found, names, None


def binary_pairs(rows: Rows, x: np.ndarray, kind: str) -> Estimate:
    """Estimate four conjunctions or the xor of all pairs of columns x (n, d) of 0 and 1.

    With B (n, 2 d) the indicators of both values of all columns, B'diag(a)B sums `a` over the rows
    where two columns have two values. These sums by fold are all that V, its test and psi need.
    """
    n, d = x.shape
    order = np.argsort(rows.fold, kind="stable")
    ends = np.searchsorted(rows.fold[order], np.arange(rows.G + 1))
    B = np.stack([x == 0, x == 1], axis=-1).reshape(n, 2 * d)[order].astype(float)
    wr = rows.w * rows.r
    terms = np.array([rows.w, wr, rows.w**2, wr**2])[:, order]
    folds = [slice(a, b) for a, b in pairwise(ends)]
    total = np.array([terms[:, fold].sum(axis=1) for fold in folds]).T[:, :, None, None]
    step = max(1, _BYTES // (8 * 4 * rows.G * 4 * d))
    found = []
    for start in range(0, d - 1, step):
        stop, some = min(start + step, d - 1), slice(2 * start, 2 * min(start + step, d - 1))
        both = np.array([[(B[g, some].T * t[g]) @ B[g, 2 * start :] for g in folds] for t in terms])
        both = both.reshape(4, rows.G, stop - start, 2, d - start, 2).swapaxes(3, 4)
        j, k = np.triu_indices(stop - start, 1, d - start)
        both = both[:, :, j, k].reshape(4, rows.G, -1, 4)  # values 00, 01, 10, 11 of each pair
        if kind == "conjunction":
            cells = both.reshape(4, rows.G, -1, 1)
        else:
            cells = np.stack([both[..., 1] + both[..., 2], both[..., 0] + both[..., 3]], axis=-1)
        rest = total - cells.sum(axis=-1, keepdims=True)
        rest = np.where(np.abs(rest) < 1e-9 * np.abs(total), 0.0, rest)
        found.append(contrast(np.append(cells, rest, axis=-1), exact=rows.population))
    return Estimate.concatenate(found)
