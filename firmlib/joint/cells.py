"""Cells: the variance of E[s | cell] from sums over (fold, cell), with its test and psi.

W, S, WW, SS are the sums of w, w r, w^2 and (w r)^2 over the rows (or units) of a cell. With
p = W / sum W and m = S / W, e = (SS - m^2 WW) / (W^2 - WW) estimates Var(m), and sum p (m^2 - e)
estimates E[E[s | cell]^2] without bias. A contrast of partitions is a difference of such sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows

TINY = 1e-300


class Moments(NamedTuple):
    """Over cells: the share p, the mean m, its variance e (0 if `exact`), the number n of rows."""

    p: np.ndarray
    m: np.ndarray
    e: np.ndarray
    n: np.ndarray

    @classmethod
    def of(cls, sums: np.ndarray, exact: bool) -> Moments:
        """Find them from sums (4, ..., cells); a cell of one row has the pooled noise."""
        W, S, WW, SS = sums
        m, pairs, n = S / np.maximum(W, TINY), W**2 - WW, W**2 / np.maximum(WW, TINY)
        lone = pairs <= 1e-9 * W**2
        e = np.where(lone, 0.0, np.maximum(SS - m**2 * WW, 0.0) / np.where(lone, 1.0, pairs))
        free = np.where(lone, 0.0, n - 1)
        pooled = (free * e * n).sum(axis=-1) / np.maximum(free.sum(axis=-1), TINY)
        e = (1 - exact) * np.where(lone, (W > 0) * pooled[..., None], e)
        return cls(W / np.maximum(W.sum(axis=-1, keepdims=True), TINY), m, e, n)


def sum_up(rows: Rows, r: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """Return the sums W, S, WW, SS of scores r over (fold, one feature, cell)."""
    index, w, wr = rows.fold * size + cell, rows.w, rows.w * r
    if rows.unit is not None:
        key = rows.unit.astype(np.int64) * size + cell
        _, first, of = np.unique(key, return_index=True, return_inverse=True)
        index, w, wr = index[first], np.bincount(of, w), np.bincount(of, wr)
    W, S, SS = (np.bincount(index, a, rows.G * size) for a in (w, wr, wr * wr))
    alike = rows.unit is None and not rows.weighted
    WW = W if alike else np.bincount(index, w * w, rows.G * size)
    return np.array([W, S, WW, SS]).reshape(4, rows.G, 1, size)


def contrast(
    fine: np.ndarray, *coarse: np.ndarray, exact: bool = False, folds: bool = True
) -> Estimate:
    """Measure what cells show beyond coarse partitions, from sums (4, G, m, cells) of m features.

    A coarse partition is a matrix (cells, its cells) of 0 and 1. All rows as one cell get the
    weight with which the weights of all partitions add up to 0. `exact`: rows are the population.
    Without `folds`, psi is left out, which takes most of the time.
    """
    ways: list[tuple[int, np.ndarray | None]] = [(1, None), *((-1, one) for one in coarse)]
    if len(coarse) != 1:
        ways.append((len(coarse) - 1, np.ones((fine.shape[-1], 1))))

    def V(sums: np.ndarray) -> np.ndarray:
        found = [(k, Moments.of(_merged(sums, way), exact)) for k, way in ways]
        return np.sum([k * (c.p * (c.m**2 - c.e)).sum(axis=-1) for k, c in found], axis=0)

    pooled, G = fine.sum(axis=1), fine.shape[1]
    p, _m, e, n = cells = Moments.of(pooled, exact)
    if exact:
        nothing = np.zeros((G, len(p)))
        return Estimate(V(pooled), nothing[:3], np.full(len(p), np.nan), nothing)
    left = V(pooled[:, None] - fine) if folds else np.zeros((G, len(p)))
    psi = (left.mean(axis=0) - left) * np.sqrt((G - 1) / G)
    rest = 2 * (p**2 * e**2 * np.maximum(n - 1, 0) / (n + 1)).sum(axis=-1)
    noise = np.array([rest, rest, 4 * (p**2 * e).sum(axis=-1)])
    return Estimate(V(pooled), noise, _test(cells, ways), psi)


def _merged(a: np.ndarray, way: np.ndarray | None) -> np.ndarray:
    """Add up over the cells of a coarse partition, as one matrix product."""
    return a if way is None else (a.reshape(-1, len(way)) @ way).reshape(*a.shape[:-1], -1)


def _test(cells: Moments, ways: list[tuple[int, np.ndarray | None]]) -> np.ndarray:
    """Return the p-value of no effect: F = signal / noise, after Brown and Forsythe (1974).

    A cell of a coarse partition has the noise of the fine cells in it.
    """
    p, m, e, n = cells
    signal = noise = square = 0.0
    for k, way in ways:
        P, S, N = (_merged(a, way) for a in (p, p * m, p**2 * e))
        P = np.maximum(P, TINY)
        signal, noise = signal + k * (S**2 / P).sum(axis=-1), noise + k * (N / P).sum(axis=-1)
        square = square + k * ((N / P) ** 2).sum(axis=-1)
    inner = ((p * e) ** 2 / np.maximum(n - 1, 1)).sum(axis=-1)
    free, ratio = np.maximum(noise, 0) ** 2, np.maximum(signal, 0) / np.maximum(noise, TINY)
    found = special.fdtrc(free / np.maximum(square, TINY), free / np.maximum(inner, TINY), ratio)
    real = (noise <= 1e-15 * np.abs(signal)) & (signal > 0)  # where there is no noise
    return np.where(real, 0.0, np.where(np.isnan(found) | (noise <= 0), 1.0, found))
