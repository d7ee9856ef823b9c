"""Cells: how much of Var(s) they explain beyond coarser partitions, from sums over (fold, cell)."""

from __future__ import annotations

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, parts
from firmlib.estimation.sums import summed
from firmlib.estimation.variance import TINY, Bins, left_out, pooled


def known(rows: Rows, V: float = 0.0) -> Estimate:
    """Return the estimate of a feature that explains nothing or, in a population, V."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.array([V]), np.zeros((3, 1)), pvalue, np.zeros((rows.G, 1)))


def explained(rows: Rows, r: np.ndarray, cell: np.ndarray) -> float:
    """Return sum p m^2 over the cells of a population with centred scores r."""
    W, S = np.bincount(cell, rows.w), np.bincount(cell, rows.w * r)
    return float((S**2 / np.maximum(W, TINY)).sum() / W.sum())


def sum_up(rows: Rows, r: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (3 or 5, G, 1, size) of centred scores r."""
    each = parts(r, rows.w if rows.weighted else None)
    return summed(rows.fold * size + cell, each, rows.G * size).reshape(-1, rows.G, 1, size)


def contrast(rows: Rows, sums: np.ndarray, *coarse: np.ndarray) -> Estimate:
    """Return V = sum_k c_k sum_b T_b over partitions k and bins b, with T = p (m^2 - e).

    c is 1 for the cells and -1 for each coarser partition, a matrix (cells, bins) of 0 and 1. All
    rows as one bin have the c that makes the sum 0.
    """
    units = rows.unit is not None
    V, without = np.zeros(1), np.zeros((rows.G, 1))
    for c, part in [(1, sums), *((c, sums @ way) for c, way in _coarser(coarse))]:
        bins = Bins.of(pooled(part, units))
        V += c * bins.T.sum()
        without += c * left_out(part, bins, units)
    cells, weight = Bins.of(pooled(sums, units)), sums[0].sum(axis=-1)
    rest, jackknifed = cells.rest.sum(axis=-1), cells.jackknifed.sum(axis=-1)
    least = 4 * (cells.p**2 * np.maximum(cells.e, 0)).sum(axis=-1)
    noise = np.array([rest, jackknifed - rest, least])
    pvalue = test_contrast(rows, sums, *coarse)
    return Estimate.of_folds(V, without, weight / weight.sum(), noise, pvalue)


def _coarser(coarse: tuple[np.ndarray, ...]) -> list[tuple[int, np.ndarray]]:
    """Return the coarser partitions with their c, all rows as one bin last."""
    return [(-1, way) for way in coarse] + [(len(coarse) - 1, np.ones((len(coarse[0]), 1)))]


def test_contrast(rows: Rows, sums: np.ndarray, *coarse: np.ndarray) -> np.ndarray:
    """Return the p-value of V = 0: F = signal / noise, after Brown and Forsythe (1974).

    A bin of a coarser partition has the noise of the cells in it.
    """
    p, m, e, n = (a[0] for a in Bins.of(pooled(sums, rows.unit is not None))[:4])
    e = np.maximum(e, 0)
    cells = np.array([p, p * m, p**2 * e])
    signal = noise = between = 0.0
    for c, (P, S, N) in [(1, cells), *((c, cells @ way) for c, way in _coarser(coarse))]:
        P = np.maximum(P, TINY)
        signal, noise = signal + c * (S**2 / P).sum(), noise + c * (N / P).sum()
        between += c * ((N / P) ** 2).sum()
    if signal <= TINY or noise <= 1e-15 * signal:  # no signal, or no noise
        return np.array([float(signal <= TINY)])
    within = ((p * e) ** 2 / np.maximum(n - 1, 1)).sum()
    square = noise**2 / np.maximum([between, within], TINY)
    return np.nan_to_num([special.fdtrc(*square, signal / noise)], nan=1.0)
