"""Cells: how much of Var(s) they explain beyond coarser partitions, from sums over (fold, cell)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, parts
from firmlib.estimation.sums import summed
from firmlib.estimation.variance import TINY, Bins, left_out, pooled


def sum_up(rows: Rows, r: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (3 or 5, G, 1, size) of centred scores r."""
    each = parts(r, rows.w if rows.weighted else None)
    return summed(rows.fold * size + cell, each, rows.G * size).reshape(-1, rows.G, 1, size)


def nothing(rows: Rows) -> Estimate:
    """Return the estimate of a feature that explains nothing."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.zeros(1), np.zeros((3, 1)), pvalue, np.zeros((rows.G, 1)))


def contrast(rows: Rows, sums: np.ndarray, *coarse: np.ndarray) -> Estimate:
    """Return V = sum_k c_k sum_b T_b over partitions k and bins b, with T = p (m^2 - e).

    c is 1 for the cells and -1 for each coarser partition, a matrix (cells, bins) of 0 and 1. All
    rows as one bin have the c that makes the sum 0.
    """
    size, units = sums.shape[-1], rows.unit is not None
    ways = [(1, np.eye(size)), *((-1, way) for way in coarse)]
    ways += [(len(coarse) - 1, np.ones((size, 1)))] if len(coarse) != 1 else []
    V, without = np.zeros(1), np.zeros((rows.G, 1))
    for c, way in ways:
        part = sums if c == 1 and way.shape[1] == size else sums @ way
        bins = Bins.of(pooled(part, units))
        if rows.population:
            V += c * (bins.p * bins.m**2).sum()
        else:
            V += c * bins.T.sum()
            without += c * left_out(part, bins, units)
    if rows.population:
        return replace(nothing(rows), V=V)
    cells, weight = Bins.of(pooled(sums, units)), sums[0].sum(axis=-1)
    rest, jackknifed = cells.rest.sum(axis=-1), cells.jackknifed.sum(axis=-1)
    least = 4 * (cells.p**2 * np.maximum(cells.e, 0)).sum(axis=-1)
    noise = np.array([rest, jackknifed - rest, least])
    return Estimate.of_folds(V, without, weight / weight.sum(), noise, _test(cells, ways))


def _test(cells: Bins, ways: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """Return the p-value of V = 0: F = signal / noise, after Brown and Forsythe (1974).

    A bin of a coarser partition has the noise of the cells in it.
    """
    p, m, e, n = cells.p[0], cells.m[0], np.maximum(cells.e[0], 0), cells.n[0]
    c = np.concatenate([np.full(way.shape[1], c) for c, way in ways])
    P, S, N = np.array([p, p * m, p**2 * e]) @ np.hstack([way for _, way in ways])
    P = np.maximum(P, TINY)
    signal, noise, between = c @ (S**2 / P), c @ (N / P), c @ (N / P) ** 2
    if signal <= TINY or noise <= 1e-15 * signal:  # no signal, or no noise
        return np.array([float(signal <= TINY)])
    within = ((p * e) ** 2 / np.maximum(n - 1, 1)).sum()
    square = noise**2 / np.maximum([between, within], TINY)
    return np.nan_to_num([special.fdtrc(*square, signal / noise)], nan=1.0)
