"""Bins: the values of a feature are levels, or are sorted into 2^K slots by rank.

Slots are nested: slot q of 2^K lies in slot q // 2 of 2^(K-1). They are narrower near the ends,
where curves are often steep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import special

FINEST = 9
_SEARCHED = 2**12  # up to this many rows, values are searched for among the starts of the bins
_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
_BELOW, _ABOVE = slice(0xFC00, 0x7FFF, -1), slice(0x7C01)  # -inf to -0 and 0 to inf among them
_ASCENDING = np.append(_HALVES[_BELOW], _HALVES[_ABOVE])
_LAG = 8  # bins whose width shows where halves must be finest
_RANKS = {K: special.betainc(1.5, 1.5, np.arange(2**K) / 2**K) for K in range(1, FINEST + 1)}


def scales(n: float) -> tuple[int, int]:
    """Return base and K: about sqrt(n) bins are always used; 2^K slots have four rows or more."""
    n = max(n, 2)
    K = min(max(int(np.ceil(np.log2(n / 4))), 1), FINEST)
    return min(max(round(np.log2(n) / 2), 1), K), K


@dataclass(frozen=True, eq=False)
class Axis:
    """The bins of one feature; the last one, for missing values, is not listed.

    start (bins,): the least value of each. slot (bins,): its place among 2^K slots. most: how many
    levels may have bins of their own; 0 if values share bins. ordered: whether neighbours can be
    merged. share: of independent rows. ends: the larger share of rows in the first and the last
    bin. quick: whether values are looked up rather than searched for.
    """

    start: np.ndarray
    slot: np.ndarray
    K: int
    most: float = np.inf
    ordered: bool = False
    share: float = 1.0
    ends: float = 1.0
    quick: bool = False

    @classmethod
    def of_levels(cls, levels: np.ndarray, **options: Any) -> Self:
        """Return a bin for each of some sorted levels."""
        K = max(len(levels) - 1, 1).bit_length()
        return cls(levels, np.arange(len(levels)), K, **options)

    @classmethod
    def of(cls, f: np.ndarray, n: int, n_bins: int | None, unit: np.ndarray | None) -> Self:
        """Find the bins of numbers, a sample of n rows that belong to units.

        Up to 1.5 2^base levels have a bin each; more levels share bins by rank. `n_bins` fixes
        the number of bins.
        """
        share = independent(f, unit) / max(len(f), 1)
        (base, _), (_, K) = scales(n * share), scales(n)
        f = np.sort(f)[: len(f) - np.count_nonzero(np.isnan(f))]
        first = np.flatnonzero(np.append(True, f[1:] > f[:-1])[: len(f)])
        options: dict[str, Any] = {"ordered": not n_bins, "share": share}
        options["quick"] = not n_bins and n > _SEARCHED
        if len(first) <= (n_bins or 1.5 * 2**base):
            return cls.of_levels(f[first], most=n_bins or 2**FINEST, **options)
        start = by_rank(f, first, np.arange(n_bins) / n_bins if n_bins else _RANKS[K])
        slot = np.flatnonzero(np.append(start[1:] > start[:-1], np.isfinite(start[-1])))
        start = start[slot]
        if slot[0]:  # room for values below the least one, if many rows have it
            start, slot = np.append(np.nextafter(f[0], -np.inf), start), np.append(0, slot)
        ends = max(f.searchsorted(start[1]), len(f) - f.searchsorted(start[-1])) / len(f)
        return cls(
            start, slot, max(n_bins - 1, 1).bit_length() if n_bins else K, 0, ends=ends, **options
        )

    def scales(self, n: float) -> tuple[int, int]:
        """Return the base scale and the finest scale for n rows."""
        base, finest = scales(n * self.share)
        if not self.ordered:
            return 1, 1
        if self.most and len(self.start) <= 1.5 * 2**base:
            return self.K, self.K
        return min(base, self.K), min(finest, self.K)

    def grown(self, values: np.ndarray) -> Self:
        """Return bins in which new levels have bins of their own, if there is room."""
        new = np.setdiff1d(values, self.start)
        room = int(min(self.most - len(self.start), len(new)))
        some = new[np.arange(room) * len(new) // max(room, 1)]
        grown = self.of_levels(np.union1d(self.start, some))
        most = self.most if room == len(new) else 0
        return replace(self, start=grown.start, slot=grown.slot, K=grown.K, most=most)

    def find(self, f: np.ndarray) -> np.ndarray:
        """Return the bin of each value."""
        if self._table is None:
            found = np.maximum(self.start.searchsorted(f, side="right") - 1, 0)
            return np.where(np.isnan(f), len(self.start), found)
        centre, scale, bins = self._table
        with np.errstate(over="ignore"):
            half = ((f - centre) * scale).astype(np.float16)
        return bins.take(half.view(np.uint16))

    @cached_property
    def _table(self) -> tuple[float, float, np.ndarray] | None:
        """A centre, a scale, and the bin of each half-precision number (f - centre) scale.

        Half precision is finest at the centre, where bins are narrowest. None if too few starts
        differ in it.
        """
        start = self.start
        if not self.quick or len(start) == 0:
            return None
        lag = min(_LAG, len(start) - 1)
        with np.errstate(all="ignore"):
            width = start[lag:] - start[: len(start) - lag]
            centre = start[np.where(width > 0, width, np.inf).argmin()]
            away = np.abs(start - centre)
            scale = 512 / (np.quantile(away, 0.95) or away.max())
            scale = scale if np.isfinite(scale) else 1.0
            half = ((start - centre) * scale).astype(np.float16).astype(np.float32)
        if np.count_nonzero(np.diff(half) > 0) < (1.0 if self.most else 0.9) * (len(start) - 1):
            return None
        runs = np.diff(_ASCENDING.searchsorted(half), prepend=0, append=len(_ASCENDING))
        found = np.repeat(np.maximum(np.arange(-1, len(start)), 0), runs)
        bins = np.full(len(_HALVES), len(start), np.int16)  # not a number is missing
        bins[_BELOW], bins[_ABOVE] = np.split(found, [0x7C01])
        return centre, scale, bins

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_table"}


def independent(f: np.ndarray, unit: np.ndarray | None) -> int:
    """Return the number of known values that differ in value or unit."""
    known = ~np.isnan(f)
    if unit is None:
        return np.count_nonzero(known)
    return np.unique(np.stack([f[known], unit[known]]), axis=1).shape[1]


def by_rank(f: np.ndarray, first: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the least level of each slot: the first one whose mid-rank reaches a share `at`.

    The levels of the sorted values f begin at `first`. Skewness decides on which side a level on
    the edge of two slots belongs, so that a column and its negative have the same bins.
    """
    n = len(f)
    skew = (f / n).sum() - (f[(n - 1) // 2] / 2 + f[n // 2] / 2)
    up = -1 if skew < -1e-9 * (f[-1] / 2 - f[0] / 2) else 1
    middle = (first + np.append(first[1:], n)) / 2
    return np.append(f[first], np.inf)[middle.searchsorted((at - 1e-9 * up) * n)]
