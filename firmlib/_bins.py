"""A feature's values become bins: its levels where they are few, else intervals (Definition 1).

Intervals hold about as many rows each and never split ties. From a few thousand rows on they are
found on a grid of equal cells, without sorting. Every level of a category is a bin, and so are the
missing values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isnan
from typing import Any, Self

import numpy as np

from firmlib._columns import NUMBER, Scale
from firmlib._grid import Cells, Grid, begins
from firmlib._rounding import NUDGE

LARGE = 2048
"""Rows from which bins are found on a grid."""

_CELLS = 64  # of that grid per bin
_ENOUGH, _NEAR = 24, 2**14  # fewer per bin where their sums would not stay near in a cache
_SEARCH_CELLS = 16  # per bin, to look it up
_SHARED = 4  # first values in a cell from which a binary search is faster


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
            return self.bin_of_cell[self.grid.cell(f, len(self.bin_of_cell))]
        if len(f) < _SEARCH_CELLS * len(self.first) and "cells" not in self.__dict__:
            return np.maximum(self.first.searchsorted(f, side="right") - 1, 0)
        if self.cells is None:
            return np.maximum(self.first.searchsorted(f, side="right") - 1, 0)
        low, scale, before, shared = self.cells
        index = before[_cell(f, low, scale, len(before))]
        ends = np.append(self.first, np.inf)
        for _ in range(shared):
            index += f >= ends[index]
        return np.maximum(index - 1, 0)

    @cached_property
    def cells(self) -> tuple[float, float, np.ndarray, int] | None:
        """Cells of equal width with how many first values lie before each, and at most in one.

        If only a few share a cell, comparing with these is faster than a binary search; None if
        more do.
        """
        known = self.first[~np.isnan(self.first)]
        if not len(known):
            return None
        low, cells = float(known[0]), _SEARCH_CELLS * len(known)
        with np.errstate(over="ignore", divide="ignore"):
            scale = float(cells / (known[-1] - low))
        if not 0 < scale < np.inf:
            return None
        shared = np.bincount(_cell(known, low, scale, cells), minlength=cells)
        before = (np.cumsum(shared) - shared).astype(np.int32)
        return (low, scale, before, int(shared.max())) if shared.max() <= _SHARED else None


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
    ends: tuple[float, float] | None = None,
    sweep: Callable[..., Cells] = Cells,
) -> tuple[Bins, Any]:
    """Return bins for the values of a feature, and the bin of each (or what a `sweep` gives).

    With n_bins="auto" the outermost bins are halved again and again: q_f may change much there.
    A value may stand for several rows, `count` of them with the weight `w` together. Categories
    are discrete, whatever the method. If all weights are `alike`, so are the bins of all features
    without ties.
    """
    if scale.labels is not None:
        return _of_levels(f, scale)
    ends = ends or _ends(f)
    if not isnan(ends[1]):
        bins, index = _find(f, w, ends, method, rows, n_bins, count, alike, sweep)
        return bins if scale is NUMBER else replace(bins, scale=scale), index
    known = ~np.isnan(f)
    index = np.full(len(f), 0)
    bins = Bins(np.empty(0), "discrete", n=len(f))
    if known.any():
        some = None if count is None else count[known]
        g = f[known]
        bins, index[known] = _find(g, w[known], _ends(g), method, rows, n_bins, some, alike)
    index[~known] = len(bins.first)
    return replace(bins, first=np.append(bins.first, np.nan), scale=scale), index


def _sqrt(rows: float) -> int:
    return max(2, int(np.sqrt(rows) + NUDGE))


def starts_by_rank(
    n: int, w: float, *, method: str, rows: str, n_bins: int | str
) -> np.ndarray | None:
    """Return the ranks at which bins begin of any n values without ties, of the weight w each.

    None if their bins are not found by sorting, or are levels.
    """
    if rows != "sample" or method not in ("auto", "binned") or n >= LARGE:
        return None
    number = _sqrt(n * w) if isinstance(n_bins, str) else n_bins
    if method == "auto" and n <= number:
        return None
    return np.flatnonzero(_of_ranks(n, w, number, n_bins == "auto")[0])


def _ends(f: np.ndarray) -> tuple[float, float]:
    return float(f.min()), float(f.max())


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
    ends: tuple[float, float],
    method: str,
    rows: str,
    n_bins: int | str,
    count: np.ndarray | None,
    alike: bool,
    sweep: Callable[..., Cells] = Cells,
) -> tuple[Bins, Any]:
    """Return bins for values of which none is missing."""
    n, W = len(f) if count is None else int(count.sum()), w[0] * len(w) if alike else w.sum()
    tails = n_bins == "auto" and rows == "sample"
    if isinstance(n_bins, str) and rows == "sample":
        n_bins = _sqrt(W)
    elif isinstance(n_bins, str):
        n_bins = 0  # as many as the levels tell
    some = method == "auto" and len(f) <= n_bins  # levels, without looking
    many = n >= LARGE and rows == "sample" and method != "discrete"
    if many and not some and _CELLS * n_bins <= 4 * n:
        found = _on_grid(f, w, W, ends, count, method, n_bins, tails, sweep)
        if found is not None:
            return found
    order = f.argsort()  # ties end up in one bin, in whatever order
    ranked = f[order]
    starts = _begins(ranked)
    index = np.empty(len(f), dtype=np.intp)
    levels = np.count_nonzero(starts)
    n_bins = n_bins or max(2, int(np.sqrt(levels)))
    if method == "auto":
        method = "discrete" if rows == "population" or levels <= n_bins else "binned"
    if method == "binned" and alike and levels == len(f):
        starts, index[order] = _of_ranks(levels, float(w[0]), n_bins, tails)
    else:
        index[order] = starts.cumsum() - 1
        if method == "binned":
            first = _equal_frequency(np.bincount(index, w), n_bins, tails)
            index = (first.cumsum() - 1)[index]
            starts[starts] = first
    first = ranked[starts] + 0.0  # never -0.0, whichever of ties came first
    return Bins(first, method, last=ends[1], n=n), index


def _on_grid(
    f: np.ndarray,
    w: np.ndarray,
    W: float,
    ends: tuple[float, float],
    count: np.ndarray | None,
    method: str,
    n_bins: int,
    tails: bool,
    sweep: Callable[..., Cells],
) -> tuple[Bins, Any] | None:
    """Return bins that are runs of cells, in linear time; None if the cells are too coarse.

    They are where more than a quarter of a bin lies within a cell and is not one value.
    """
    cells = max(_ENOUGH * n_bins, min(_CELLS * n_bins, _NEAR))
    seen = {"last": ends[1], "n": len(f) if count is None else float(count.sum())}
    grid = Grid.over(*ends, cells)
    for widened in (False, True):
        if not grid.usable:
            return None
        found = sweep(f, w, grid, cells, W / n_bins / 4)
        if not found.crowded:
            few = method == "auto" and np.count_nonzero(found.n) <= n_bins
            full = found.n > 0 if few else found.full
            value = found.values(full) if full.any() else np.empty(0)
            if value is not None:
                break
        if not widened:
            cells = _CELLS * n_bins
            grid = found.long_tails(ends[1], cells)
    else:
        return None
    if few:
        bin_of_cell, first = np.cumsum(full, dtype=np.int32) - 1, value[full]
        return Bins(first, "discrete", **seen), found.index(bin_of_cell, first)
    cell, bin_of_cell = found.runs(_edges(float(W), n_bins, tails), NUDGE / n_bins)
    first = grid.value(cell)
    first[0] = ends[0] + 0.0  # not a rounded value, beyond which rows might lie; never -0.0
    return Bins(first, "binned", grid, bin_of_cell, **seen), found.index(bin_of_cell, first)


def _equal_frequency(n: np.ndarray, n_bins: int, tails: bool) -> np.ndarray:
    """Return whether each level begins one of about `n_bins` bins of equal weight.

    With `tails` the first and the last bin are halved until about four rows are left.
    """
    return begins(n, _edges(float(n.sum()), n_bins, tails), NUDGE / n_bins)


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
