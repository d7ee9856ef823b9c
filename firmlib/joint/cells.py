"""Cells of two factors: what they explain of Var(s) beyond coarser partitions."""

from __future__ import annotations

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.variance import TINY, Bins
from firmlib.tables.checks import check_memory


def nothing(rows: Rows, V: float = 0.0) -> Estimate:
    """Return the estimate of a feature that explains nothing or, in a population, V."""
    pvalue = np.full(1, np.nan if rows.population else 1.0)
    return Estimate(np.full(1, V), np.zeros((3, 1)), pvalue, np.zeros((rows.G, 1)))


def contrast(rows: Rows, r: np.ndarray, a: np.ndarray, b: np.ndarray, *axes: int) -> Estimate:
    """Return V = sum_k c_k sum_b T_b over partitions k and their bins b, for centred scores r.

    c is 1 for the cells of the factors a and b, and -1 for the cells merged along each of `axes`.
    All rows as one bin have the c that makes the sum of all c 0.
    """
    ways = {(): 1} | {(axis,): -1 for axis in axes} | {(0, 1): len(axes) - 1}
    G, shape, wr = 1 if rows.population else rows.G, (a.max() + 1, b.max() + 1), rows.w * r
    check_memory("the cells of two columns", (4, G, *shape))
    at = np.ravel_multi_index((rows.fold % G, a, b), (G, *shape))
    sums = [np.bincount(at, part, G * np.prod(shape)) for part in (rows.w, wr, wr**2, rows.w**2)]

    def merged(axis: tuple[int, ...]) -> np.ndarray:
        part = np.reshape(sums, (4, G, *shape)).sum(axis=tuple(2 + k for k in axis))
        part = part.reshape(4, G, -1)
        if rows.unit is not None:  # pairs of rows in one fold are not used
            part[2:] = part[1] ** 2, part[0] ** 2
        return part

    cells = Bins.of(tuple(merged(()).sum(axis=1)))
    signal, pvalue = test_contrast(cells, ways, shape)
    if rows.population:
        return nothing(rows, signal)
    V, without = np.zeros(1), np.zeros((G, 1))
    for axis, c in ways.items():
        part = merged(axis)
        total = part.sum(axis=1, keepdims=True)
        left = total - part
        left *= left[0] > 1e-9 * total[0]  # not what rounding leaves
        V += c * Bins.of(tuple(total)).T.sum(axis=-1)
        without += c * Bins.of(tuple(left)).T.sum(axis=-1, keepdims=True)
    rest, jackknifed = cells.rest.sum(), cells.jackknifed.sum()
    least = 4 * (cells.p**2 * np.maximum(cells.e, 0)).sum()
    least *= rows.unit is None  # what units share moves all means alike
    noise = np.array([[rest], [jackknifed - rest], [least]])
    share = np.bincount(rows.fold, rows.w, G) / rows.w.sum()
    return Estimate.of_folds(V, without, share, noise, np.where(V > 0, pvalue, 1.0))


def test_contrast(
    cells: Bins, ways: dict[tuple[int, ...], int], shape: tuple[int, ...]
) -> tuple[float, float]:
    """Return sum_k c_k sum_b p_b m_b^2, and the p-value of V = 0 (Brown and Forsythe 1974).

    A bin of a coarser partition has the noise of the cells in it.
    """
    p, m, e, n = cells[:4]
    u = p * np.maximum(e, 0)
    signal = noise = between = 0.0
    for axis, c in ways.items():
        P, S, U = (part.reshape(shape).sum(axis=axis) for part in (p, p * m, p * u))
        each = U / np.maximum(P, TINY)
        signal += c * (S**2 / np.maximum(P, TINY)).sum()
        noise, between = noise + c * each.sum(), between + c * (each**2).sum()
    within = (u**2 / np.maximum(n - 1, 1)).sum()
    if signal <= TINY or noise <= 1e-15 * signal:
        return signal, float(signal <= TINY)
    with np.errstate(all="ignore"):
        found = special.fdtrc(noise**2 / between, noise**2 / within, signal / noise)
    return signal, 1.0 if np.isnan(found) else float(found)
