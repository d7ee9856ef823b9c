"""What interacts: the part of E[s | x_j, x_k] that no sum g(x_j) + h(x_k) explains.

A sum of lines is taken off first; then g and h are found by least squares on a grid of bins of
both columns and interpolated between the middles of bins, so that slopes within bins are taken off
as well; what is left of the scores is looked at in cells twice as wide, about n^(2/3) of them, and
where it is clear in those of the grid itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np

from firmlib._beyond import Cells, beyond, nothing, standardized
from firmlib._columns import Column
from firmlib._inference import Estimate
from firmlib._rounding import EMPTY, NUDGE, ROUNDING
from firmlib._scored import Scores
from firmlib._spread import Sums

_MOST = 32  # coarse bins of a column
_BEYOND = 1.0  # how many bins a line may go on at the ends


class Axis(NamedTuple):
    """A column in bins.

    index : the bin of each row.
    line : the values, centred, of numbers in bins; else None.
    left, part : where the row lies between the middles of two bins: this one, and how far on.
    after : the bin after each, or itself.
    coarse : the coarser bin of each bin.
    rough : the coarser bin of each row.
    """

    index: np.ndarray
    line: np.ndarray | None
    left: np.ndarray
    part: np.ndarray
    after: np.ndarray
    coarse: np.ndarray
    rough: np.ndarray
    ordered: bool
    levels: bool

    @classmethod
    def of(cls, column: Column, scores: Scores, n_bins: int, rows: str) -> Self:
        """Find bins for a column; of levels without order, the rarest are one."""
        f = column.dense(len(scores.r))
        options = {"method": "auto", "rows": rows, "n_bins": 2 * n_bins, "scale": column.scale}
        bins, index = scores.find_bins(f, **options)
        index = index.astype(np.intp)
        size, ordered = len(bins.first), not bins.nominal
        if not ordered and rows == "sample" and size > 2 * n_bins:
            rank = np.argsort(np.argsort(-np.bincount(index, scores.w), kind="stable"))
            index, size = np.minimum(rank, 2 * n_bins)[index], 2 * n_bins + 1
        known, places = size - bins.missing, np.arange(size)
        coarse = _halved(size, bins.missing) if bins.method == "binned" else places
        line, left, part, after = None, index, np.zeros(len(f)), places
        if bins.method == "binned" and known > 1:
            there = index < known
            line = np.where(there, f - np.average(f[there], weights=scores.w[there]), 0.0)
            line /= np.abs(line).max()
            middle = np.bincount(index, scores.w * line) / np.bincount(index, scores.w)
            step = np.append(np.diff(middle[:known]), [1.0] * (1 + bins.missing))
            step = np.where(step > 0, step, 1.0)  # values of very different size are alike here
            left = np.clip(index - (line < middle[index]), 0, known - 2)
            left = np.where(there, left, index)
            part = np.clip((line - middle[left]) / step[left], -_BEYOND, 1 + _BEYOND)
            part = np.where(there, part, 0.0)
            after = np.where(places < known - 1, places + 1, places)
        levels = bins.method == "discrete"
        return cls(index, line, left, part, after, coarse, coarse[index], ordered, levels)

    def curve(self, values: np.ndarray) -> np.ndarray:
        """Return what the values of the bins are in the rows, interpolated."""
        if self.line is None:
            return values.take(self.index)
        return values.take(self.left) + self.part * (values[self.after] - values).take(self.left)


def _halved(size: int, missing: bool) -> np.ndarray:
    """Return the pair of neighbours that each bin belongs to; missing values stay apart."""
    coarse = np.arange(size) // 2
    if missing and size % 2 == 0:
        coarse[-1] += 1
    return coarse


def estimate_interactions(
    scores: Scores, columns: Sequence[Column], names: Sequence[str], rows: str
) -> tuple[list[str], Estimate, list[str]]:
    """Estimate the interaction of all pairs of columns; return names, estimates and methods."""
    n = scores.w.sum() if scores.parts.ww is None else len(scores.w)
    n_bins = min(max(3, round(n ** (1 / 3))), _MOST)
    axes = [Axis.of(column, scores, n_bins, rows) for column in columns]
    pairs = list(combinations(range(len(axes)), 2))
    found = Estimate.empty(len(pairs))
    for i, (j, k) in enumerate(pairs):
        one, two = axes[j], axes[k]
        if min(len(one.coarse), len(two.coarse)) == 1 or not scores.r.any():
            found.put(i, nothing(rows))
            continue
        e, finer = _left(scores, one, two), None
        terms = Scores.of(e, scores.w, 0.0, sampling=scores.parts.ww is not None).parts
        if any(x.line is not None for x in (one, two)):
            finer = partial(_cells, terms, one.index, two.index, len(one.coarse), len(two.coarse))
        tables = list(_tables(terms, one, two, rows))
        try:
            found.put(i, beyond(tables, rows, finer, standardized(scores, e)))
        except ValueError as error:
            raise ValueError(f"feature {f'{names[j]} × {names[k]}'!r}: {error}") from error
    methods = ["discrete" if axes[j].levels and axes[k].levels else "binned" for j, k in pairs]
    return [f"{names[j]} × {names[k]}" for j, k in pairs], found, methods


def _left(scores: Scores, one: Axis, two: Axis) -> np.ndarray:
    """Return e, the scores without the best sum of curves."""
    w, e = scores.w, _without_lines(scores, [x.line for x in (one, two) if x.line is not None])
    shape = len(one.coarse), len(two.coarse)
    cell = one.index * shape[1] + two.index
    table = np.bincount(cell, w, shape[0] * shape[1]).reshape(shape)
    g, h, _ = _additive(table, np.bincount(cell, w * e, table.size).reshape(shape))
    e = e - one.curve(g) - two.curve(h)
    return np.zeros_like(e) if np.abs(e).max() < ROUNDING * np.abs(scores.r).max() else e


def _cells(terms: Sums, a: np.ndarray, b: np.ndarray, rows: int, columns: int) -> Cells:
    """Sum up in the cells of a table of bins, and fit a sum of curves again."""
    index, shape = a * columns + b, (rows, columns)
    sums = terms.each(lambda term: np.bincount(index, term, rows * columns))
    g, h, leverage = _additive(sums.w.reshape(shape), sums.wr.reshape(shape))
    inside = float((sums.w * leverage.ravel()).sum())  # the curves do not vary within cells
    return Cells(index, sums, (g[:, None] + h).ravel(), leverage.ravel(), inside)


def _tables(terms: Sums, one: Axis, two: Axis, rows: str) -> Iterator[Cells]:
    """Yield the cells of the coarse bins, and of coarser and coarser ones."""
    a, b, shape = one.rough, two.rough, (one.coarse[-1] + 1, two.coarse[-1] + 1)
    while True:
        cells = _cells(terms, a, b, *shape)
        yield cells
        wide = [_coarser(axis, size) for axis, size in zip((one, two), shape, strict=True)]
        if rows == "population" or (wide[0][-1] + 1, wide[1][-1] + 1) == shape:
            return
        terms = cells.sums
        a, b = np.repeat(wide[0], shape[1]), np.tile(wide[1], shape[0])
        shape = wide[0][-1] + 1, wide[1][-1] + 1


def _without_lines(scores: Scores, lines: list[np.ndarray]) -> np.ndarray:
    """Return the scores without the sum of lines that fits them best."""
    if not lines:
        return scores.r
    gram = np.array([[(scores.w * x) @ y for y in lines] for x in lines])
    slopes = np.linalg.pinv(gram) @ [x @ scores.parts.wr for x in lines]
    return scores.r - sum(slope * x for slope, x in zip(slopes, lines, strict=True))


def _coarser(axis: Axis, size: int) -> np.ndarray:
    """Return bins half as many, down to three, where they have an order."""
    return np.arange(size) // 2 if axis.ordered and size > 4 else np.arange(size)


def _additive(w: np.ndarray, wr: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit g(row) + h(column) to the means of a table; return both and the leverage in each cell.

    With g taken out of the normal equations, h solves (D - w'P) h = r - P'r for P the rows of w
    over their sums and D its column sums.
    """
    across, down = np.maximum(w.sum(axis=1), EMPTY), w.sum(axis=0)
    P = w / across[:, None]
    M = np.diag(down * (1 + NUDGE) + EMPTY) - w.T @ P + np.outer(down, down) / down.sum()
    C = np.linalg.inv(M + np.diag(np.where(down > 0, 0.0, 1.0)))
    h = C @ (wr.sum(axis=0) - P.T @ wr.sum(axis=1))
    g = wr.sum(axis=1) / across - P @ h
    PC = P @ C
    leverage = (1 / across + (PC * P).sum(axis=1))[:, None] + np.diag(C) - 2 * PC
    return np.where(w.sum(axis=1) > 0, g, 0.0), h, np.where(w > 0, leverage, 0.0)
