"""A feature's values become bins: its levels where they are few, else intervals (Definition 1).

Intervals hold about as many rows each and never split ties. From a few thousand rows on they are
found on a grid of equal cells, without sorting. Every level of a category is a bin, and so are the
missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isnan
from typing import NamedTuple, Self

import numpy as np

from firmlib._columns import NUMBER, Scale
from firmlib._rounding import NUDGE, ROUNDING

LARGE = 2048
"""Rows from which bins are found on a grid."""

_CELLS = 64  # of that grid per bin
_SEARCH_CELLS = 16  # per bin, to look it up
_SHARED = 4  # first values in a cell from which a binary search is faster


class Grid(NamedTuple):
    """Equal cells, of f or, where f has long tails, of arcsinh((f - centre) / unit)."""

    centre: float
    unit: float
    long_tails: bool
    low: float
    scale: float

    @classmethod
    def over(cls, f: np.ndarray, count: np.ndarray | None, cells: int, long_tails: bool) -> Self:
        """Return cells over the range of f, whose values stand for `count` rows each."""
        grid = cls(0.0, 1.0, long_tails, 0.0, 1.0)
        if long_tails:
            centre = _median(f, count)
            away = np.abs(f - centre)
            unit = _median(away, count) or float(np.average(away, weights=count))
            grid = grid._replace(centre=centre, unit=unit)
        low, high = grid.place(np.array([f.min(), f.max()]))
        # a hair less than all cells, so that the largest value lies in the last
        return grid._replace(low=low, scale=cells * (1 - ROUNDING) / (high - low))

    def place(self, f: np.ndarray) -> np.ndarray:
        """Return where in the grid the values lie, in cells."""
        if self.long_tails:
            f = np.arcsinh((f - self.centre) / self.unit)
        return (f - self.low) * self.scale

    def value(self, place: np.ndarray) -> np.ndarray:
        """Return the value that lies there."""
        f = self.low + place / self.scale
        return self.centre + self.unit * np.sinh(f) if self.long_tails else f


def _median(f: np.ndarray, count: np.ndarray | None) -> float:
    if count is None:
        return float(np.median(f))
    order = np.argsort(f, kind="stable")
    last = np.cumsum(count[order])
    n = last[-1]
    middle = np.searchsorted(last, [(n - 1) // 2, n // 2], side="right")
    return float(f[order[middle]].mean())


@dataclass(frozen=True, eq=False)
class Bins:
    """Intervals of a feature's values, given by the first value of each; ties are never split.

    The bin of missing values, if there is one, is the last, and its first value is nan. On a grid
    the bin of a value is that of its cell, and is looked up. `last` is the largest value of the
    `n` rows that the bins were found from. The `scale` says what the values stand for.
    """

    first: np.ndarray
    method: str
    grid: Grid | None = None
    bin_of_cell: np.ndarray | None = None
    last: float = np.inf
    n: float = 0.0
    scale: Scale = NUMBER

    @property
    def missing(self) -> bool:
        """Whether the last bin is that of missing values."""
        return isnan(self.first[-1])

    @property
    def nominal(self) -> bool:
        """Whether its levels have no order."""
        return self.scale.kind == "nominal"

    def index(self, f: np.ndarray) -> np.ndarray:
        """Return the bin of each value; those beyond the ends go to the outermost."""
        if not self.missing:
            return self._index(f)
        if not np.isnan(f.max()):
            return self._known._index(f)
        index, known = np.full(len(f), len(self.first) - 1), ~np.isnan(f)
        if len(self.first) > 1:
            index[known] = self._known._index(f[known])
        return index

    @cached_property
    def _known(self) -> Self:
        return replace(self, first=self.first[:-1])

    def _index(self, f: np.ndarray) -> np.ndarray:
        if self.grid is not None and self.bin_of_cell is not None:
            cell = np.clip(self.grid.place(f), 0, len(self.bin_of_cell) - 1)
            return self.bin_of_cell[cell.astype(np.int32)]
        if len(f) < _SEARCH_CELLS * len(self.first) and "_cells" not in self.__dict__:
            return np.maximum(self.first.searchsorted(f, side="right") - 1, 0)
        low, scale, before, shared = self._cells
        if shared > _SHARED:
            return np.maximum(self.first.searchsorted(f, side="right") - 1, 0)
        index = before[_cell(f, low, scale, len(before))]
        ends = np.append(self.first, np.inf)
        for _ in range(shared):
            index += f >= ends[index]
        return np.maximum(index - 1, 0)

    @cached_property
    def _cells(self) -> tuple[float, float, np.ndarray, int]:
        """Cells of equal width with how many first values lie before each, and at most in one.

        If only a few share a cell, comparing with these is faster than a binary search.
        """
        low, cells = self.first[0], _SEARCH_CELLS * len(self.first)
        with np.errstate(over="ignore", divide="ignore"):
            scale = cells / (self.first[-1] - low)
        if not 0 < scale < np.inf:
            return low, scale, np.zeros(0, np.int32), _SHARED + 1
        shared = np.bincount(_cell(self.first, low, scale, cells), minlength=cells)
        before = (np.cumsum(shared) - shared).astype(np.int32)
        return low, scale, before, int(shared.max())

    def outside(self, f: np.ndarray) -> np.ndarray:
        """Return which values lie beyond those that the bins were found from; none is missing."""
        return (f < self.first[0]) | (f > self.last)


def _cell(f: np.ndarray, low: float, scale: float, cells: int) -> np.ndarray:
    return np.clip((f - low) * scale, 0, cells - 1).astype(np.int32)


def find_bins(
    f: np.ndarray,
    w: np.ndarray,
    *,
    method: str,
    rows: str,
    n_bins: int | str,
    count: np.ndarray | None = None,
    scale: Scale = NUMBER,
    alike: bool = False,
) -> tuple[Bins, np.ndarray]:
    """Return bins for the values of a feature, and the bin of each.

    With n_bins="auto" the outermost bins are halved again and again: q_f may change much there.
    A value may stand for several rows, `count` of them with the weight `w` together. Categories
    are discrete, whatever the method. If all weights are `alike`, so are the bins of all features
    without ties.
    """
    if scale.labels is not None:
        return _of_levels(f, scale)
    if not np.isnan(f.max()):
        bins, index = _find(f, w, method, rows, n_bins, count, alike)
        return bins if scale is NUMBER else replace(bins, scale=scale), index
    known = ~np.isnan(f)
    index = np.full(len(f), 0)
    bins = Bins(np.empty(0), "discrete", n=len(f))
    if known.any():
        some = None if count is None else count[known]
        bins, index[known] = _find(f[known], w[known], method, rows, n_bins, some, alike)
    index[~known] = len(bins.first)
    return replace(bins, first=np.append(bins.first, np.nan), scale=scale), index


def _of_levels(f: np.ndarray, scale: Scale) -> tuple[Bins, np.ndarray]:
    """Return a bin for each label that occurs, and one for missing values: codes need no sort."""
    labels = 0 if scale.labels is None else len(scale.labels)
    code = np.where(np.isnan(f), labels, f).astype(np.intp)
    taken = np.bincount(code, minlength=labels + 1) > 0
    first = np.append(np.arange(float(labels)), np.nan)[taken]
    return Bins(first, "discrete", n=len(f), scale=scale), (np.cumsum(taken) - 1)[code]


def _find(
    f: np.ndarray,
    w: np.ndarray,
    method: str,
    rows: str,
    n_bins: int | str,
    count: np.ndarray | None,
    alike: bool,
) -> tuple[Bins, np.ndarray]:
    """Return bins for values of which none is missing."""
    n = len(f) if count is None else int(count.sum())
    tails = n_bins == "auto" and rows == "sample"
    if isinstance(n_bins, str) and rows == "sample":
        n_bins = max(2, int(np.sqrt(w.sum()) + NUDGE))
    elif isinstance(n_bins, str):
        n_bins = 0  # as many as the levels tell
    some = method == "auto" and len(f) <= n_bins  # levels, without looking
    many = n >= LARGE and rows == "sample" and method != "discrete"
    if many and not some and _CELLS * n_bins <= 4 * n:
        for long_tails in (False, True):
            found = _on_grid(f, w, count, method, n_bins, tails, long_tails)
            if found is not None:
                return found
    order = f.argsort(kind="stable")
    ranked = f[order]
    begins = _begins(ranked)
    index = np.empty(len(f), dtype=np.intp)
    levels = np.count_nonzero(begins)
    last = float(ranked[-1])
    n_bins = n_bins or max(2, int(np.sqrt(levels)))
    if method == "auto":
        method = "discrete" if rows == "population" or levels <= n_bins else "binned"
    if method == "binned" and alike and levels == len(f):
        begins, index[order] = _of_ranks(levels, float(w[0]), n_bins, tails)
    else:
        index[order] = begins.cumsum() - 1
        if method == "binned":
            first = _equal_frequency(np.bincount(index, w), n_bins, tails)
            index = (first.cumsum() - 1)[index]
            begins[begins] = first
    return Bins(ranked[begins], method, last=last, n=n), index


def _on_grid(
    f: np.ndarray,
    w: np.ndarray,
    count: np.ndarray | None,
    method: str,
    n_bins: int,
    tails: bool,
    long_tails: bool,
) -> tuple[Bins, np.ndarray] | None:
    """Return bins that are runs of cells, in linear time; None if the cells are too coarse.

    They are where more than a quarter of a bin lies within a cell and is not one value.
    """
    cells = _CELLS * n_bins
    with np.errstate(all="ignore"):
        grid = Grid.over(f, count, cells, long_tails)
        if not 0 < grid.scale < np.inf or not np.isfinite(grid.low):
            return None
    cell = grid.place(f).astype(np.int32)
    n = np.bincount(cell, w, cells)
    taken = n > 0
    few = method == "auto" and np.count_nonzero(taken) <= n_bins
    full = taken if few else n > n.sum() / (4 * n_bins)
    value = np.zeros(cells)
    if full.any():
        value[cell] = f
        if np.any((value[cell] != f) & full[cell]):
            return None
    seen = {"last": float(f.max()), "n": len(f) if count is None else float(count.sum())}
    if few:
        return Bins(value[taken], "discrete", **seen), (np.cumsum(taken) - 1)[cell]
    first = np.zeros(cells, dtype=bool)
    first[taken] = _equal_frequency(n[taken], n_bins, tails)
    bin_of_cell = np.maximum(np.cumsum(first, dtype=np.int32) - 1, 0)
    bins = Bins(grid.value(np.flatnonzero(first)), "binned", grid, bin_of_cell, **seen)
    return bins, bin_of_cell[cell]


def _equal_frequency(n: np.ndarray, n_bins: int, tails: bool) -> np.ndarray:
    """Return whether each level begins one of about `n_bins` bins of equal weight.

    With `tails` the first and the last bin are halved until about four rows are left.
    """
    W = float(n.sum())
    middle = (n.cumsum() - n / 2) / W
    # a level that lies on an edge stays there, however its weight was split
    edges = _edges(W, n_bins, tails)
    return _begins(edges.searchsorted(middle + NUDGE / n_bins, side="right"))


@lru_cache(maxsize=8)
def _of_ranks(n: int, w: float, n_bins: int, tails: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return where bins begin among n values without ties, of the weight w each, and the bins."""
    first = _equal_frequency(np.full(n, w), n_bins, tails)
    return first, first.cumsum() - 1


@lru_cache(maxsize=8)
def _edges(W: float, n_bins: int, tails: bool) -> np.ndarray:
    """Return the shares of the weight at which bins end."""
    edges = np.arange(1, n_bins) / n_bins
    if tails:
        halvings = max(0, int(np.log2(max(W / (4 * n_bins), 1)) + NUDGE))
        halves = 0.5 ** np.arange(halvings, 0, -1) / n_bins
        edges = np.concatenate([halves, edges, 1 - halves[::-1]])
    return edges


def _begins(ranked: np.ndarray) -> np.ndarray:
    """Return where a run of equal entries begins."""
    begins = np.ones(len(ranked), dtype=bool)
    np.not_equal(ranked[1:], ranked[:-1], out=begins[1:])
    return begins
