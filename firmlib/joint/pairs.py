"""All pairs of columns: interactions, and conjunctions and xors of columns with two values.

Interactions are measured on e, what the best sum of curves of all columns leaves of the score
(`firmlib.joint.additive`), in cells of bins of both columns:

    V = Var(E[e | x_j, x_k]) - Var(E[e | x_j]) - Var(E[e | x_k]).

It is 0 for every pair if the score is additive, whatever the correlations of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.scan import scan
from firmlib.features import Feature, Pairs, two_values
from firmlib.joint.additive import Unexplained, additive, bins
from firmlib.joint.cells import contrast, nothing
from firmlib.tables.checks import check_memory
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

_MOST_PAIRS = 20_000
_BINS = 4, 24  # of a column, at least and at most


def pairs(pairs: Pairs, table: Table, rows: Rows) -> tuple[Estimate, list[str], Unexplained | None]:
    """Return the estimate of all pairs, their names and, of interactions, what is unexplained."""
    some = pairs.parts(table)
    count = len(some) * (len(some) - 1) // 2
    if pairs.kind != "interaction":
        count *= 4 if pairs.kind == "conjunction" else 1
        check_memory(f"{count} pairs of {len(some)} columns", (rows.G, count))
        both = list(_binary(some, table, pairs.kind))
        return scan(both, table, rows)[0], [f.name for f in both], None
    if count > _MOST_PAIRS:
        raise ValueError(
            f"interactions of {len(some)} columns are {count} pairs; expected at most "
            f"{_MOST_PAIRS}: name fewer columns, such as the most important ones"
        )
    columns = [f.of(table).take(rows.keep) for f in some]
    e, unexplained = additive(rows, columns)
    most = rows.n if rows.population else int(np.clip(1.4 * rows.n**0.25, *_BINS))
    each = list(combinations([bins(column, rows.w, most) for column in columns], 2))
    found = [
        contrast(rows, e, a, b, 0, 1) if a.any() and b.any() else nothing(rows)
        for a, b in progress(each, "interactions")
    ]
    names = [f"{a.name} × {b.name}" for a, b in combinations(some, 2)]
    return Estimate.concatenate(found), names, unexplained


def _binary(some: Sequence[Feature], table: Table, kind: str) -> Iterator[Feature]:
    """Yield the xor, or the four conjunctions, of each pair of features with two values."""
    for f, g in combinations([(f.name, *two_values(f, table)) for f in some], 2):
        (f, u, x), (g, v, y) = f, g
        if kind == "xor":
            yield Feature(f"{f} ⊕ {g}", lambda x, y: np.abs(x - y), x, y, ready=True)
            continue
        for i, a in enumerate(u):
            for j, b in enumerate(v):
                yield Feature(f"{f}={a} ∧ {g}={b}", _both, x, y, i, j, ready=True)


def _both(x: np.ndarray, y: np.ndarray, i: int, j: int) -> np.ndarray:
    return 1.0 * ((x == i) & (y == j))
