"""Sparse columns of few levels: the stored values are read, and all other rows hold a zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.sums import scales
from firmlib.estimation.variance import Cells
from firmlib.tables.table import Table

_TOGETHER = 1024  # columns


def cells(features: Sequence[Any], table: Table, rows: Rows) -> Iterator[tuple[list[int], Cells]]:
    """Yield positions of features, and their cells.

    Columns of many levels, and those that numbers cannot hold, are left out.
    """
    data: Any = table.readable
    if data.dtype.kind not in "iuf":
        return
    f, count, d = data.data, np.diff(data.indptr), table.width
    most = np.inf if data.dtype.kind == "f" else 2**53  # floats merge larger integers
    odd = np.repeat(np.arange(d), count)[~((f < most) & (f > -most))]
    fits, room = np.bincount(odd, minlength=d) == 0, 1.5 * 2 ** scales(rows.n)[0]
    for j in np.flatnonzero(count >= room):
        fits[j] &= len(np.unique(f[data.indptr[j] : data.indptr[j + 1]])) < room
    fits[[*table.categorical]] = False
    at = [k for k, f in enumerate(features) if f.function is Table.column and fits[f.args[0]]]
    at.sort(key=lambda k: count[features[k].args[0]])  # a block has columns of as many levels
    for first in range(0, len(at), _TOGETHER):
        some = at[first : first + _TOGETHER]
        yield some, _cells(data[:, [features[k].args[0] for k in some]], rows)


def _cells(data: Any, rows: Rows) -> Cells:
    """Return the cells of some columns."""
    d, row, count = data.shape[1], data.indices, np.diff(data.indptr)
    column, zeros = np.repeat(np.arange(d), count), np.flatnonzero(count < rows.n)
    both = np.append(column, zeros) + 1j * np.append(data.data, np.zeros(len(zeros)))
    levels, code = np.unique(both, return_inverse=True)  # by column, then by value
    of = levels.real.astype(int)
    size = np.bincount(of)
    base = np.maximum(np.frexp(size - 1.0)[1], 1)
    K = int(base.max())
    rank = (np.arange(len(of)) - (size.cumsum() - size)[of]) << (K - base)[of]
    start = np.full((d, 2**K), np.inf)
    start[of, rank] = levels.imag
    slot = (of * (2**K + 1) + rank)[code.ravel()]

    each = [part[row] for part in rows.parts]  # of the stored values, then of zeros in every fold
    place = rows.fold[row] * d + column
    all_ = np.array([np.bincount(rows.fold, part, FOLDS) for part in rows.parts])[:, :, None]
    found = np.array([np.bincount(place, own, FOLDS * d) for own in each]).reshape(-1, FOLDS, d)
    sums = np.column_stack([each, (all_ - found)[:, :, zeros].reshape(len(each), -1)])
    place = np.append(place, np.add.outer(d * np.arange(FOLDS), zeros))
    slot = np.append(slot[: len(row)], np.tile(slot[len(row) :], FOLDS))
    shape = len(sums), d, 2**K + 1
    pooled = np.reshape([np.bincount(slot, own, shape[1] * shape[2]) for own in sums], shape)

    def folded(factors: np.ndarray) -> np.ndarray:
        each = zip(factors.reshape(len(factors), -1), sums, strict=False)
        moved = sum(factor[slot] * own for factor, own in each)
        return np.bincount(place, moved, FOLDS * d).reshape(FOLDS, d)

    return Cells(pooled, folded, base, base, [*start], [rows.centre] * d, rows.w.sum())
