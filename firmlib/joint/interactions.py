"""Interactions: what two columns show together of the part of the score in no sum of curves.

With e what the best sum of curves of all columns leaves (`firmlib.joint.additive`), in cells of
bins of both columns,

    V = Var(E[e | x_j, x_k]) - Var(E[e | x_j]) - Var(E[e | x_k]).

It is 0 for every pair if the score is additive, whatever the correlations of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from firmlib.estimation.bins import ranks, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.variance import cauchy, merged
from firmlib.joint.additive import Unexplained, additive
from firmlib.joint.cells import Cells, nothing, sum_up
from firmlib.tables.columns import Column

MOST_PAIRS = 20_000
FINEST = 5  # 2**5 bins of a column


def interactions(
    rows: Rows, columns: Sequence[Column], names: Sequence[str]
) -> tuple[Estimate, Unexplained]:
    """Estimate all pairs, in the order of `itertools.combinations`, and what is unexplained."""
    count = len(columns) * (len(columns) - 1) // 2
    if count > MOST_PAIRS:
        raise ValueError(
            f"interactions of {len(columns)} columns are {count} pairs; expected at most "
            f"{MOST_PAIRS}: name fewer columns, such as {names[0]!r} and the most important ones"
        )
    e, unexplained = additive(rows, columns)
    scale = FINEST if rows.population else int(np.clip(np.log2(rows.n) / 3 + 0.5, 2, FINEST))
    axes = [(_slots(column, rows.w, 2**scale), column.kind == "nominal") for column in columns]
    found = [_pair(rows, e, a, b, 2**scale + 1) for a, b in combinations(axes, 2)]
    return Estimate.concatenate(found), unexplained


def _slots(column: Column, w: np.ndarray, Q: int) -> np.ndarray:
    """Return which of Q slots each row is in: by level or by rank; slot Q has missing values."""
    f, slot = column.dense(len(w)), np.full(len(w), Q)
    known = ~np.isnan(f)
    levels, index = np.unique(f[known], return_inverse=True)
    weight = np.bincount(index, w[known])
    if column.kind == "nominal":
        place = np.minimum(np.argsort(np.argsort(-weight, kind="stable")), Q - 1)
    elif len(levels) <= Q:
        place = np.arange(len(levels)) * (Q // spacing(len(levels)))
    else:
        share = (np.cumsum(weight) - weight / 2) / weight.sum()
        place = ranks(Q).searchsorted(share, side="right") - 1
    slot[known] = place[index]
    return slot


def _pair(
    rows: Rows, e: np.ndarray, a: tuple[np.ndarray, bool], b: tuple[np.ndarray, bool], size: int
) -> Estimate:
    """Return the estimate of a pair of columns, their slots and whether they are nominal.

    V comes from half as many bins as there are slots. The finer ones add what they have more, as
    far as it stands out, and a third of that for a smooth effect within bins. The test combines all
    scales but the finest. Nominal levels are not merged.
    """
    if not np.ptp(a[0]) or not np.ptp(b[0]):
        return nothing(rows)
    sums = sum_up(rows, e, a[0] * size + b[0], size * size).reshape(-1, rows.G, size, size)
    scales = [_cells(rows, sums)]
    while not rows.population and max(sums.shape[2:]) > 3 and not (a[1] and b[1]):
        down, across = sums.shape[2:]
        coarse = sums if b[1] else merged(sums, max(across // 2, 2))
        coarse = coarse if a[1] else merged(coarse.swapaxes(2, 3), max(down // 2, 2)).swapaxes(2, 3)
        if coarse.shape == sums.shape:
            break
        sums = coarse
        scales.append(_cells(rows, sums))
    if rows.population:
        return replace(nothing(rows), V=scales[0].V)
    fine, base = scales[0], scales[min(1, len(scales) - 1)]
    step, found = fine.V - base.V, base.estimate
    tests = np.array([one.pvalue for one in scales[1:] or scales])
    gate, psi = np.zeros(1), found.psi
    if step > np.sqrt(fine.noise[0]) / 2:  # else it does not stand out
        psi = fine.estimate.psi - found.psi
        error = np.sqrt((psi**2).sum(axis=0))
        gate = 4 / 3 * np.clip(step / np.where(error > 0, error, np.inf) - 1, 0, 1)
    noise = found.noise + np.outer([1, 0, 0], (gate * step / 4) ** 2)
    return Estimate(base.V + gate * step, noise, cauchy(tests), found.psi + gate * psi)


def _cells(rows: Rows, sums: np.ndarray) -> Cells:
    """Return cells of sums (3 or 5, G, bins, bins)."""
    down, across = sums.shape[2:]
    by_row, by_column = np.eye(down).repeat(across, axis=0), np.tile(np.eye(across), (down, 1))
    return Cells(rows, sums.reshape(-1, rows.G, 1, down * across), (by_row, by_column))
