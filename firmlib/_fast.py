"""Compiled loops over the rows, where numba is installed (the extra `fast`) and rows are many."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from firmlib._grid import Cells, Grid

LEAST = 2**22
"""Values at once from which loading numba is worth its while; of fewer at a time, eight times."""

_OFTEN = 8
_NEAR = 2**15  # cells whose sums stay in a cache
_HEAVY = 1 / 8  # of all weight on one cell
_LOOKS = 32, 4, 1  # after these parts of the rows, cells are looked at
_seen = 0


@cache
def _compiled() -> Any:
    try:
        from numba.core import config

        from firmlib import _compiled
    except (ImportError, OSError, RuntimeError):  # not there, or machine code cannot be kept
        return None
    settings: Any = config
    return None if settings.DISABLE_JIT else _compiled  # as Python they would take for ever


def loops(values: int = 0) -> Any:
    """Return compiled loops for so many more values; None if NumPy will do, or is all there is.

    Loading takes half a second: about what they save over all those values. Then they are used.
    """
    global _seen
    _seen += values if values < LEAST else _OFTEN * values
    return _compiled() if _seen >= _OFTEN * LEAST else None


class Swept(Cells):
    """Cells whose rows are summed up in one sweep; where these are many, counted before."""

    def __init__(
        self, scores: Any, f: np.ndarray, w: np.ndarray, grid: Grid, cells: int, most: float
    ) -> None:
        self.f, self.w, self.grid, self.most, self.cells = f, w, grid, most, cells
        self.scores, self.loops, self.table = scores, scores.loops, None
        if cells <= _NEAR and not scores.fine:
            self._sweep()

    def _sweep(self) -> None:
        """Sum up the rows in cells, until cells turn out to be too coarse for bins."""
        self.table, start = np.zeros((self.cells, 4)), 0
        for share in _LOOKS:
            end = len(self.f) // share
            rows = (a[start:end] for a in (self.f, self.scores.r, self.w))
            self.loops.sweep(*rows, tuple(self.grid), self.table)
            start, full = end, self.table[:, 0] > self.most
            if full.any() and share > 1:  # what all rows have there is looked at anyway
                self.crowded = not self.loops.values(self.f[:end], tuple(self.grid), full)[1]
            if self.crowded:
                self.table = None
                return

    @cached_property
    def n(self) -> np.ndarray:
        if self.table is not None:
            return self.table[:, 0].copy()
        return self.count(self.grid, self.cells, 1)

    def count(self, grid: Grid, cells: int, step: int) -> np.ndarray:
        f = np.ascontiguousarray(self.f[::step])
        if self.w.strides == (0,):  # one number stands for all
            return self.w[0] * self.loops.count(f, tuple(grid), cells)
        return self.loops.weigh(f, np.ascontiguousarray(self.w[::step]), tuple(grid), cells)

    def values(self, full: np.ndarray) -> np.ndarray | None:
        found, alone = self.loops.values(self.f, tuple(self.grid), full)
        return found if alone else None

    def runs(self, edges: np.ndarray, nudge: float) -> tuple[np.ndarray, np.ndarray]:
        return self.loops.runs(self.n.astype(float, copy=False), edges, nudge)

    def index(self, bin_of_cell: np.ndarray, first: np.ndarray) -> Any:
        if self.table is not None:
            return Summed(self.loops.gathered(self.table, bin_of_cell))
        heavy = self.n.max() > _HEAVY * self.n.sum()
        return swept(self.scores, self.f, self.grid, bin_of_cell, first, 4 if heavy else 1)


class Summed(NamedTuple):
    """What stands for the bin of each row where sums in bins are known: of w, w r, w r^2, w f.

    Where lines within bins are wanted, also of w r^3, w g^2, w g r and w g.
    """

    table: np.ndarray


def swept(
    scores: Any,
    f: np.ndarray,
    grid: Grid,
    bin_of_cell: np.ndarray,
    first: np.ndarray,
    ways: int = 1,
) -> Summed:
    """Return the sums in bins that begin at these values."""
    rows, numbers = (f, scores.r, scores.weights), scores.numbers
    ways = 1 if scores.fine else ways
    found = scores.loops.sweep_bins(*rows, tuple(grid), bin_of_cell, first, numbers, ways)
    return Summed(found)
