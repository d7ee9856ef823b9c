"""All pairs of columns: interactions, and conjunctions and xors of columns with two values."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.scan import scan
from firmlib.estimation.sums import parts as added
from firmlib.estimation.variance import spread
from firmlib.features.reading import Pairs, _two_values
from firmlib.joint.additive import Unexplained
from firmlib.joint.interactions import interactions
from firmlib.tables.checks import check_memory
from firmlib.tables.table import Table

_BYTES = 2**26  # of sums that are looked at together


def pairs(pairs: Pairs, table: Table, rows: Rows) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    parts = pairs.parts(table)
    if pairs.kind == "interaction":
        columns = [part.of(table).take(rows.keep) for part in parts]
        names = [part.name for part in parts]
        found, unexplained = interactions(rows, columns, names)
        return found, [f"{a} × {b}" for a, b in combinations(names, 2)], unexplained
    count = len(parts) * (len(parts) - 1) // 2 * (4 if pairs.kind == "conjunction" else 1)
    check_memory(f"{count} pairs of {len(parts)} columns", (rows.G, count))
    named = [_two_values(part, table) for part in parts]
    if rows.unit is not None or rows.population or min(len(a) for _, a, _ in named) < 2:
        some = pairs.features(table)
        return scan(some, table, rows)[0], [f.name for f in some], None
    found = binary_pairs(rows, np.array([x[rows.keep] for *_, x in named]), pairs.kind)
    if pairs.kind == "xor":
        return found, [f"{f} ⊕ {g}" for (f, *_), (g, *_) in combinations(named, 2)], None
    both = ((f, g, product(a, b)) for (f, a, _), (g, b, _) in combinations(named, 2))
    return found, [f"{f}={a} ∧ {g}={b}" for f, g, values in both for a, b in values], None


def binary_pairs(rows: Rows, x: np.ndarray, kind: str) -> Estimate:
    """Estimate four conjunctions or the xor of all pairs of columns x (d, n) of 0, 1 and nan.

    With B (2 d, n) the indicators of both values of all columns, B diag(a) B' sums `a` over the
    rows where two columns have two values. These sums by fold are all that is needed.
    """
    d = len(x)
    B = np.stack([x == 0, x == 1], axis=1).reshape(2 * d, -1).astype(float)
    each = added(rows.s - rows.centre, rows.w if rows.weighted else None)
    terms = np.array([np.ones(rows.n) if a is None else a for a in each])
    folds = [np.flatnonzero(rows.fold == g) for g in range(rows.G)]
    total = np.array([terms[:, g].sum(axis=1) for g in folds]).T[:, :, None, None]
    share = total[0, :, 0] / total[0].sum()
    step, found = max(1, _BYTES // (8 * len(terms) * rows.G * 4 * d)), []
    for start in range(0, d - 1, step):
        stop = min(start + step, d - 1)
        left, right = B[2 * start : 2 * stop], B[2 * start :]
        both = np.array([[(left[:, g] * a[g]) @ right[:, g].T for g in folds] for a in terms])
        both = both.reshape(len(terms), rows.G, stop - start, 2, d - start, 2).swapaxes(3, 4)
        j, k = np.triu_indices(stop - start, 1, d - start)
        cells = both[:, :, j, k].reshape(*both.shape[:2], -1, 4)  # values 00, 01, 10, 11
        if kind == "conjunction":
            cells = cells.reshape(*both.shape[:2], -1, 1)
        else:
            cells = cells[..., [0, 1]] + cells[..., [3, 2]]
        rest = total - cells.sum(axis=-1, keepdims=True)
        rest = np.where(rest[0] > 1e-9 * total[0], rest, 0.0)
        one = np.ones(cells.shape[2], int)
        V = spread(np.append(cells, rest, axis=-1), (one, one), False, False)
        found.append(Estimate.of_folds(V.V, V.without, share, V.noise, V.pvalue))
    return Estimate.concatenate(found)
