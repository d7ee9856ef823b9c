"""Cells: how much of Var(s) they explain beyond coarser partitions, from sums over (fold, cell)."""

from __future__ import annotations

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.variance import Bins


def nothing(rows: Rows) -> Estimate:
    """Return the estimate of a feature that explains nothing."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.zeros(1), np.zeros((3, 1)), pvalue, np.zeros((rows.G, 1)))


def parts(rows: Rows, r: np.ndarray) -> np.ndarray:
    """Return what each row with centred score r adds to W, S, SS and WW (4, n)."""
    return np.array([rows.w, rows.w * r, (rows.w * r) ** 2, rows.w**2])


def cell_sums(rows: Rows, r: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (4, G, 1, size) over folds and cells."""
    at = rows.fold * size + cell
    each = [np.bincount(at, part, rows.G * size) for part in parts(rows, r)]
    return np.reshape(each, (4, rows.G, 1, size))


def contrast(rows: Rows, sums: np.ndarray, *coarse: np.ndarray) -> Estimate:
    """Return V = sum_k c_k sum_b T_b of m features, over partitions k and their bins b.

    `sums` (4, G, m, cells); c is 1 for the cells and -1 for each coarser partition, a matrix
    (cells, bins) of 0 and 1. All rows as one bin have the c that makes the sum of all c 0.
    """
    one = np.ones((sums.shape[-1], 1))
    ways = [*((-1, way) for way in coarse), (len(coarse) - 1, one)]
    if rows.population:
        W, S = sums[:2].sum(axis=1)
        V = _squares(W, S) + sum(c * _squares(W @ way, S @ way) for c, way in ways)
        zeros = np.zeros((3, len(V))), np.full(len(V), np.nan), np.zeros((rows.G, len(V)))
        return Estimate(V / W.sum(axis=-1), *zeros)
    V, without = np.zeros(sums.shape[2]), np.zeros(sums.shape[1:3])
    for c, part in [(1, sums), *((c, sums @ way) for c, way in ways)]:
        if rows.unit is not None:  # pairs of rows in one fold are not used
            part[2:] = part[1] ** 2, part[0] ** 2
        total = part.sum(axis=1, keepdims=True)
        left = total - part
        left *= left[0] > 1e-9 * total[0]  # not what rounding leaves
        V += c * Bins.of(tuple(total[:, 0])).T.sum(axis=-1)
        without += c * Bins.of(tuple(left)).T.sum(axis=-1)
    cells, weight = Bins.of(tuple(sums.sum(axis=1))), sums[0].sum(axis=-1)
    rest, jackknifed = cells.rest.sum(axis=-1), cells.jackknifed.sum(axis=-1)
    least = 4 * (cells.p**2 * np.maximum(cells.e, 0)).sum(axis=-1)
    least *= rows.unit is None  # what units share moves all means alike
    noise = np.array([rest, jackknifed - rest, least])
    pvalue = np.where(V > 0, test_contrast(cells, ways), 1.0)
    return Estimate.of_folds(V, without, weight / weight.sum(axis=0), noise, pvalue)


def test_contrast(cells: Bins, ways: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """Return p-values of V = 0: F = signal / noise, after Brown and Forsythe (1974).

    A bin of a coarser partition has the noise of the cells in it.
    """
    p, m, e, n = cells[:4]
    u = p * np.maximum(e, 0)
    cell = np.array([p, p * m, p * u])
    signal = noise = between = 0.0
    for c, (P, S, U) in [(1, cell), *((c, cell @ way) for c, way in ways)]:
        each = U / np.maximum(P, TINY)
        signal = signal + c * _squares(P, S)
        noise, between = noise + c * each.sum(axis=-1), between + c * (each**2).sum(axis=-1)
    within = (u**2 / np.maximum(n - 1, 1)).sum(axis=-1)
    with np.errstate(all="ignore"):
        found = special.fdtrc(noise**2 / between, noise**2 / within, signal / noise)
    noiseless = (signal <= TINY) | (noise <= 1e-15 * signal)
    return np.nan_to_num(np.where(noiseless, signal <= TINY, found), nan=1.0)


def _squares(P: np.ndarray, S: np.ndarray) -> np.ndarray:
    return (S**2 / np.maximum(P, TINY)).sum(axis=-1)
