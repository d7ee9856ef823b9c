"""Interactions: what two columns show together of the part of the score in no sum of curves.

With e what the best sum of curves of all columns leaves (`firmlib.joint.additive`), in cells of
bins of both columns,

    V = Var(E[e | x_j, x_k]) - Var(E[e | x_j]) - Var(E[e | x_k]).

It is 0 for every pair if the score is additive, whatever the correlations of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.joint.additive import Unexplained, additive
from firmlib.joint.cells import contrast, sum_up
from firmlib.joint.learning import steps
from firmlib.tables.columns import Column

MOST_PAIRS = 20_000
FINEST = 5  # 2**5 bins of a column


class Axis:
    """A column in bins of about equal weight, narrower at both ends; missing values last."""

    def __init__(self, column: Column, w: np.ndarray, scale: int) -> None:
        levels, index = np.unique(column.dense(len(w)), return_inverse=True)
        self.missing = bool(np.isnan(levels[-1]))
        self.nominal = column.kind == "nominal"
        weight = np.bincount(index, w)[: len(levels) - self.missing]
        bins = np.arange(len(weight))
        if self.nominal:
            bins = np.minimum(np.argsort(np.argsort(-weight, kind="stable")), 2**scale - 1)
        elif len(weight) > 2**scale:
            share = (np.cumsum(weight) - weight / 2) / weight.sum()
            share = share / 2 + np.arcsin(np.sqrt(share)) / np.pi
            bins = np.unique((share * 2**scale).astype(int), return_inverse=True)[1]
        self.size = int(bins.max(initial=-1)) + 1 + self.missing
        self.index = np.append(bins, [self.size - 1] * self.missing).astype(int)[index]

    def pairs(self, size: int) -> np.ndarray:
        """Return where pairs of neighbours begin among `size` bins; two bins stay as they are."""
        known = size - self.missing
        if self.nominal or known < 3:
            return np.arange(size)
        return np.append(np.arange(0, known, 2), [known] * self.missing).astype(int)


def interactions(
    rows: Rows, columns: Sequence[Column], names: Sequence[str], progress: bool = False
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
    axes = [Axis(column, rows.w, scale) for column in columns]
    found = []
    for a, b in steps(list(combinations(axes, 2)), progress, "pairs"):
        sums = sum_up(rows, e, a.index * b.size + b.index, a.size * b.size)
        found.append(_pair(sums.reshape(4, rows.G, a.size, b.size), a, b, rows.population))
    return Estimate.concatenate(found), unexplained


def _pair(sums: np.ndarray, a: Axis, b: Axis, exact: bool) -> Estimate:
    """Return the estimate of a pair from sums (4, G, bins, bins).

    V comes from half as many bins as there are. The finer ones add what they have more, as far as
    it stands out, and a third of that for a smooth effect within bins. The test combines all scales
    but the finest by Cauchy's rule (Liu and Xie, 2020).
    """
    tables, scales = [], []
    while True:
        G, down, across = sums.shape[1:]
        by_row, by_column = np.eye(down).repeat(across, axis=0), np.tile(np.eye(across), (down, 1))
        tables.append((sums.reshape(4, G, 1, -1), by_row, by_column))
        scales.append(contrast(*tables[-1], exact=exact, folds=len(scales) == 1))
        starts = a.pairs(down), b.pairs(across)
        if exact or (len(starts[0]), len(starts[1])) == (down, across):
            break
        sums = np.add.reduceat(np.add.reduceat(sums, starts[0], axis=2), starts[1], axis=3)
    if exact:
        return scales[0]
    fine, base = scales[0], scales[1] if len(scales) > 1 else contrast(*tables[0])
    step = fine.V - base.V
    if len(scales) > 1 and step > np.sqrt(fine.noise[0]) / 2:  # else it does not stand out
        fine = contrast(*tables[0])
    psi = fine.psi - base.psi
    error = np.sqrt((psi**2).sum(axis=0))
    gate = 4 / 3 * np.clip(step / np.where(error > 0, error, np.inf) - 1, 0, 1) * fine.psi.any()
    noise = base.noise + np.outer([1, 0, 0], (gate * step / 4) ** 2)
    tests = np.clip([one.pvalue for one in scales[1:] or scales], 1e-300, 0.99)
    pvalue = np.arctan2(1, (1 / np.tan(np.pi * tests)).mean(axis=0)) / np.pi
    return Estimate(base.V + gate * step, noise, pvalue, base.psi + gate * psi)
