"""Cells: how much of Var(s) they explain beyond coarser partitions, from sums over (fold, cell).

V = sum_k c_k sum_b T_b over partitions k and their bins b, with T = p (m^2 - e) as in
`firmlib.estimation.variance`; c = 1 for the cells, -1 for each coarser partition, and all rows as
one bin have the c that makes the sum 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.sums import parts, tally
from firmlib.estimation.variance import TINY, Bins, left_out, pooled

_CENTRE = np.zeros((1, 1))


def sum_up(rows: Rows, r: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (3 or 5, G, 1, size) of centred scores r."""
    sums = np.zeros((5 if rows.weighted else 3, rows.G, size))
    tally(sums, cell, parts(r, rows.w if rows.weighted else None), rows.fold * size)
    return sums[:, :, None]


def nothing(rows: Rows) -> Estimate:
    """Return the estimate of a feature that explains nothing."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.zeros(1), np.zeros((3, 1)), pvalue, np.zeros((rows.G, 1)))


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums (3 or 5, G, 1, cells); coarser partitions as matrices (cells, bins) of 0 and 1."""

    rows: Rows
    sums: np.ndarray
    coarse: tuple[np.ndarray, ...]

    @cached_property
    def partitions(self) -> list[tuple[int, np.ndarray, np.ndarray, Bins]]:
        """Of each partition c, its matrix, its sums and its bins."""
        size, k = self.sums.shape[-1], len(self.coarse)
        ways = [(1, np.eye(size)), *((-1, way) for way in self.coarse)]
        ways += [(k - 1, np.ones((size, 1)))] if k != 1 else []
        sums = [self.sums, *(self.sums @ way for _, way in ways[1:])]
        bins = [Bins.of(pooled(a, _CENTRE, self.rows.unit is not None)) for a in sums]
        return [(*way, a, b) for way, a, b in zip(ways, sums, bins, strict=True)]

    @cached_property
    def V(self) -> np.ndarray:
        """The estimate (1,); the variance itself if the rows are the population."""
        whole = self.rows.population
        return sum(
            c * (b.p * b.m**2 if whole else b.T).sum(axis=-1) for c, _, _, b in self.partitions
        )

    @cached_property
    def estimate(self) -> Estimate:
        """V with its uncertainty; that takes most of the time."""
        units, weight = self.rows.unit is not None, self.sums[0].sum(axis=-1)
        without = sum(c * left_out(a, _CENTRE, b, units) for c, _, a, b in self.partitions)
        return Estimate.of_folds(self.V, without, weight / weight.sum(), self.noise, self.pvalue)

    @property
    def noise(self) -> np.ndarray:
        """What `Estimate` has as noise, of the cells."""
        cells = self.partitions[0][-1]
        rest, jackknifed = cells.rest.sum(axis=-1), cells.jackknifed.sum(axis=-1)
        return np.array(
            [rest, jackknifed - rest, 4 * (cells.p**2 * np.maximum(cells.e, 0)).sum(axis=-1)]
        )

    @cached_property
    def pvalue(self) -> np.ndarray:
        """Of V = 0: F = signal / noise, after Brown and Forsythe (1974).

        A bin of a coarser partition has the noise of the cells in it.
        """
        p, m, e, n = self.partitions[0][-1][:4]
        e = np.maximum(e, 0)
        signal = noise = square = 0.0
        for c, way, _, _ in self.partitions:
            P, S, N = (a @ way for a in (p, p * m, p**2 * e))
            P = np.maximum(P, TINY)
            signal, noise = signal + c * (S**2 / P).sum(), noise + c * (N / P).sum()
            square += c * ((N / P) ** 2).sum()
        inner = ((p * e) ** 2 / np.maximum(n - 1, 1)).sum()
        if signal <= 0 or noise <= 1e-15 * signal:
            return np.array([0.0 if signal > TINY and noise <= 1e-15 * signal else 1.0])
        found = special.fdtrc(
            noise**2 / max(square, TINY), noise**2 / max(inner, TINY), signal / noise
        )
        return np.array([np.nan_to_num(found, nan=1.0)])
