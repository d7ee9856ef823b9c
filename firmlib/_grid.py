"""Equal cells over a feature's values, in which bins are found in linear time, without a sort."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any, NamedTuple, Self

import numpy as np

from firmlib._rounding import ROUNDING

_ONE = np.float64(1).view(np.int64)
_RESOLVED = 8  # cells between quartiles that tell them well enough
_ZOOMS = 2
_SOME = 2**16  # rows that tell quartiles well enough


class Grid(NamedTuple):
    """Equal cells, of f or, where f has long tails, of (f - centre) / unit bent like a logarithm.

    Without long tails the unit is 0.
    """

    centre: float
    unit: float
    low: float
    scale: float

    @classmethod
    def over(
        cls, low: float, high: float, cells: int, centre: float = 0.0, unit: float = 0.0
    ) -> Self:
        """Return cells from one value to another."""
        if unit:
            low, high = cls(centre, unit, 0.0, 1.0).place(np.array([low, high])).tolist()
        # a hair less than all cells, so that the largest value lies in the last
        return cls(centre, unit, low, cells * (1 - ROUNDING) / (high - low) if high > low else inf)

    @property
    def usable(self) -> bool:
        """Whether its numbers did not overflow."""
        return 0 < self.scale < inf and isfinite(self.low)

    def place(self, f: np.ndarray) -> np.ndarray:
        """Return where in the grid the values lie, in cells."""
        if self.unit:
            with np.errstate(all="ignore"):  # what overflows lies beyond the ends
                f = _bent((f - self.centre) * (1 / self.unit))
        place = f - self.low
        place *= self.scale
        return place

    def cell(self, f: np.ndarray, cells: int) -> np.ndarray:
        """Return the cell of each value; those beyond the ends lie in the outermost."""
        place = self.place(f)
        return np.clip(place, 0, cells - 1, out=place).astype(np.intp)

    def value(self, place: np.ndarray) -> np.ndarray:
        """Return the value that lies there."""
        f = self.low + place / self.scale
        return self.centre + self.unit * _straight(f) if self.unit else f


def _bent(y: np.ndarray) -> np.ndarray:
    """Return y up to 1 in size, and beyond about 1 + log2: the bits of a number 1 + |y| as such."""
    bits = (1 + np.abs(y)).view(np.int64) - _ONE
    return np.copysign(bits * 2.0**-52, y)


def _straight(y: np.ndarray) -> np.ndarray:
    """Return what `_bent` bends to y."""
    whole = np.floor(np.abs(y))
    return np.copysign(np.ldexp(1 + (np.abs(y) - whole), whole.astype(int)) - 1, y)


class Cells:
    """The values of a feature in the cells of a grid, with the weight `n` of each cell.

    Where a cell has more than `most`, all values in it should be one.
    """

    n: np.ndarray
    crowded = False  # whether some cell is known to have more than that, and several values

    def __init__(self, f: np.ndarray, w: np.ndarray, grid: Grid, cells: int, most: float) -> None:
        self.f, self.w, self.grid, self.most = f, w, grid, most
        self.cell = grid.place(f).astype(np.intp)  # none lies beyond the ends
        self.n = _weigh(self.cell, w, cells)

    @property
    def full(self) -> np.ndarray:
        """Which cells have more than that."""
        return self.n > self.most

    def count(self, grid: Grid, cells: int, step: int) -> np.ndarray:
        """Return the weight in each cell of another grid, of some of the rows."""
        return _weigh(grid.cell(self.f[::step], cells), self.w[::step], cells)

    def values(self, full: np.ndarray) -> np.ndarray | None:
        """Return the value in each full cell; None if there are several in one."""
        value = np.zeros(len(self.n))
        value[self.cell] = self.f
        return None if np.any((value[self.cell] != self.f) & full[self.cell]) else value

    def index(self, bin_of_cell: np.ndarray, first: np.ndarray) -> Any:
        """Return the bin of each row, or what stands for it; bins begin at these values."""
        return bin_of_cell.astype(np.intp).take(self.cell)

    def runs(self, edges: np.ndarray, nudge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the first cell of each run of cells between `edges`, and the run of each cell."""
        taken = np.flatnonzero(self.n > 0)
        first = taken[begins(self.n.take(taken), edges, nudge)]
        run = np.zeros(len(self.n), dtype=np.int32)
        run[first[1:]] = 1
        return first, np.cumsum(run, out=run)

    def long_tails(self, high: float, cells: int) -> Grid:
        """Return cells that widen outwards from about the quartiles, which are zoomed in upon."""
        grid, low, centre = self.grid, self.grid.low, 0.0
        step = max(1, len(self.f) // _SOME)
        for _ in range(_ZOOMS):
            known = step == 1 and grid is self.grid
            n = self.n if known else self.count(grid, cells, step)
            share = n.cumsum() / n.sum()
            first, middle, last = share.searchsorted([0.25, 0.5, 0.75])
            left, right = middle - first, last - middle
            place = first if 2 * left < right else last if 2 * right < left else middle
            centre = float(grid.value(place + 0.5))  # about where the values are densest
            if min(left, right) >= _RESOLVED:
                return Grid.over(low, high, cells, centre, min(left, right) / 4 / grid.scale)
            zoomed = Grid.over(*grid.value(np.array([first, last + 1.0])).tolist(), cells)
            if not zoomed.usable:
                break
            grid = zoomed
        # most values are one: with a small unit, any others but those close together are told apart
        return Grid.over(low, high, cells, centre, 1 / grid.scale)


def _weigh(cell: np.ndarray, w: np.ndarray, cells: int) -> np.ndarray:
    """Return the weight in each cell."""
    if w.strides != (0,):
        return np.bincount(cell, w, cells)
    n = np.bincount(cell, minlength=cells)  # one number stands for all weights
    return n if w[0] == 1 else w[0] * n  # whole numbers add up faster


def begins(n: np.ndarray, edges: np.ndarray, nudge: float) -> np.ndarray:
    """Return whether each level is the first beyond one of `edges`, which are shares of weight.

    The middle of a level counts. One that lies on an edge stays there, however its weight was
    split: for that it is nudged.
    """
    twice = 2 * n.cumsum() - n  # where the middle is
    found = np.zeros(len(n) + 1, dtype=bool)
    found[0] = found[twice.searchsorted((edges - nudge) * (2 * n.sum()))] = True
    return found[:-1]
