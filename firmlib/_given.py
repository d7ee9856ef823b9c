"""What a feature adds: sqrt(E Var(E[s | f, g] | g)), what the score moves with f once g is known.

With V_g = Var(E[s | g]) that is sqrt(V_{f,g} - V_g). For one or two columns g, the rows are put
into about n^(4/9) cells of g. Within each, a plane in g is taken off the score and off the feature,
or what g does within the cell would seem to be the feature's; then the cell is parted by what is
left of the feature, into about 2 n^(2/9) parts (a category: into its levels). For more columns, and
for groups of rows, both variances are learnt (`firmlib._groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from firmlib._beyond import Cells, beyond, nothing, standardized
from firmlib._columns import Column
from firmlib._inference import Estimate
from firmlib._rounding import EMPTY, NUDGE, ROUNDING
from firmlib._scored import Scores
from firmlib._spread import Sums


class Planes:
    """Planes in g, one in each cell, by least squares."""

    def __init__(self, cell: np.ndarray, g: list[np.ndarray], w: np.ndarray) -> None:
        self.cell, self.w, self.W = cell, w, np.bincount(cell, w)
        self.g = [self._unit(x - self._mean(x)) for x in g]
        moments = [[np.bincount(cell, w * x * y) for y in self.g] for x in self.g]
        self.inverse, self.parameters = None, float(len(self.W))
        if g:
            table = np.array(moments).transpose(2, 0, 1)
            self.inverse = np.linalg.pinv(table, rcond=NUDGE, hermitian=True)
            self.parameters += float(np.einsum("ajk,akj->", self.inverse, table))  # their ranks

    def _mean(self, x: np.ndarray) -> np.ndarray:
        return (np.bincount(self.cell, self.w * x) / self.W)[self.cell]

    def _unit(self, x: np.ndarray) -> np.ndarray:
        """Return x divided by its sd in the cell; 0 where it does not vary there."""
        sd = np.sqrt(np.bincount(self.cell, self.w * x**2) / self.W)
        return x * np.where(sd > ROUNDING, 1 / np.maximum(sd, ROUNDING), 0.0)[self.cell]

    def residual(self, y: np.ndarray) -> np.ndarray:
        """Return what the planes leave of y."""
        y = y - self._mean(y)
        if self.inverse is None:
            return y
        with_y = np.array([np.bincount(self.cell, self.w * x * y) for x in self.g])
        slopes = np.einsum("ajk,ka->ja", self.inverse, with_y)
        return y - sum(slope[self.cell] * x for slope, x in zip(slopes, self.g, strict=True))

    def cells(self, terms: Sums, part: np.ndarray, parts: int) -> Cells:
        """Sum up in the parts of the cells; with the leverage of the planes on their means."""
        index, size = self.cell * parts + part, len(self.W) * parts
        sums = terms.each(lambda term: np.bincount(index, term, size))
        leverage = np.repeat(1 / self.W, parts)
        if self.inverse is not None:
            w = np.maximum(sums.w, EMPTY)
            g = np.array([np.bincount(index, self.w * x, size) / w for x in self.g])
            inverse = np.repeat(self.inverse, parts, axis=0)
            leverage = leverage + np.einsum("ja,ajk,ka->a", g, inverse, g)
        return Cells(index, sums, np.zeros(size), leverage, self.parameters)


def estimate_given(
    scores: Scores, column: Column, given: Sequence[Column], rows: str
) -> tuple[Estimate, str]:
    """Estimate what a feature adds to one or two given columns; return also its method."""
    n = scores.w.sum() if scores.parts.ww is None else len(scores.w)
    many = max(2, round(n ** (4 / 9 / len(given))))
    cell, lines = np.zeros(len(scores.r), dtype=np.intp), []
    for one in given:
        g = one.dense(len(scores.r))
        options = {"method": "auto", "rows": rows, "n_bins": many, "scale": one.scale}
        bins, index = scores.find_bins(g, **options)
        cell = np.unique(cell * len(bins.first) + index, return_inverse=True)[1]
        if bins.method == "binned":
            lines.append(_scaled(np.nan_to_num(g, nan=0.0)))
    planes = Planes(cell, lines, scores.w)
    f = column.dense(len(scores.r))
    parts = 2 ** int(np.log2(max(2 * n ** (2 / 9), 4)))
    options = {"method": "auto", "rows": rows, "n_bins": parts, "scale": column.scale}
    bins, part = scores.find_bins(f, **options)
    ordered, size, known = not bins.nominal, len(bins.first), ~np.isnan(f)
    if size == 1 or not scores.r.any():
        return nothing(rows), bins.method
    rest, e = planes.residual(_scaled(np.where(known, f, 0.0))), planes.residual(scores.r)
    if np.abs(e).max() < ROUNDING * np.abs(scores.r).max():
        e = np.zeros_like(e)
    terms, finer = Scores.of(e, scores.w, 0.0, sampling=scores.parts.ww is not None).parts, None
    if bins.method == "binned":
        fine = _parted(cell, np.where(known, rest, np.nan), scores.w, 2 * parts)
        finer = partial(planes.cells, terms, fine, 2 * parts + 1)
        part, size = fine // 2, parts + 1
    tables = list(_tables(terms, planes, part, size, rows == "sample" and ordered))
    found = beyond(tables, rows, finer, standardized(scores, e))
    falls = ordered and (scores.w * rest * e)[known].sum() < 0
    return replace(found, sign=-1.0 if falls else 1.0), bins.method


def _scaled(f: np.ndarray) -> np.ndarray:
    """Return values in a unit in which squares neither overflow nor vanish."""
    f = f - f.mean()
    return f / (np.abs(f).max() or 1.0)


def _parted(cell: np.ndarray, f: np.ndarray, w: np.ndarray, parts: int) -> np.ndarray:
    """Return the part of its cell that each row is in, of about equal weight; missing: the last.

    Ties are never split, so that a weight k is the same as the row k times.
    """
    order, known = np.lexsort((f, cell)), ~np.isnan(f)
    new = (np.diff(cell[order]) != 0) | (np.diff(f[order]) != 0)
    run = np.append(0, np.cumsum(new))  # of equal values
    weight = np.bincount(run, np.where(known, w, 0.0)[order])
    total = np.bincount(cell, np.where(known, w, 0.0))
    where = np.empty(len(weight), dtype=np.intp)
    where[run] = cell[order]
    before = np.cumsum(weight) - weight / 2 - (np.cumsum(total) - total)[where]
    share = (before / np.maximum(total[where], EMPTY))[run]
    part = np.empty(len(f), dtype=np.intp)
    part[order] = np.clip(share * parts, 0, parts - 1).astype(np.intp)
    return np.where(known, part, parts)


def _tables(
    terms: Sums, planes: Planes, part: np.ndarray, size: int, merges: bool
) -> Iterator[Cells]:
    """Yield the parts of the cells, and parts merged to half as many."""
    while True:
        yield planes.cells(terms, part, size)
        if not merges or size <= 4:
            return
        part, size = part // 2, (size + 1) // 2
