"""Bins: numbers are sorted into 2^K slots by rank, with a lookup table of equal cells.

Slots are nested: slot q of 2^K lies in slot q // 2 of 2^(K-1). Slot Q is for missing values.
Slots are narrower near the ends, where curves are often steep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

SAMPLE = 8
"""Rows per slot in the sample that determines the slots."""

FEW = 2**14
"""Up to this many rows, all of them determine the slots."""

_SEARCHED = 2**12  # up to this many rows, values are searched for among the starts of the slots
_CELLS = 16  # of the lookup table per slot
_LAG = 8  # slots whose width shows where cells must be finest
_FINEST, _TAILS = 9, 1.5


def scales(n: Any) -> Any:
    """Return base and K: about sqrt(n) bins are always used; 2^K slots have four rows or more."""
    n = np.maximum(n, 2)
    K = np.clip(np.ceil(np.log2(n / 4)), 1, _FINEST).astype(int)
    return np.clip(np.round(np.log2(n) / 2), 1, K).astype(int), K


class Lookup(NamedTuple):
    """Equal cells in f or, if `unit` is positive, in arcsinh((f - centre) / unit)."""

    centre: np.ndarray
    unit: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    slot: np.ndarray  # (d, cells + 3): below, cells, above, missing
    own: np.ndarray  # the share of the slots that start in a cell of their own

    @classmethod
    def of(cls, start: np.ndarray, centre: np.ndarray, unit: np.ndarray) -> Lookup:
        """Return cells for the starts of slots (d, Q)."""
        (d, Q), cells = start.shape, _CELLS * start.shape[1]
        with np.errstate(all="ignore"):
            at = np.where(np.isfinite(start), _scaled(start, centre, unit), np.nan)
            low, high = np.fmin.reduce(at, axis=1), np.fmax.reduce(at, axis=1)
            low, scale = np.nan_to_num(low), (cells - 2) / (high - low)
            scale = np.where(np.isfinite(scale), scale, 1.0)
            low = low - 1.5 / scale  # the first cell is for what lies below
            cell = np.clip((at - low[:, None]) * scale[:, None], 1, cells)
            new = np.diff(at, axis=1) > 0
            own = new & (np.floor(cell[:, 1:] - 1e-6) > np.floor(cell[:, :-1] + 1e-6))
        cell = np.where(np.isnan(cell), cells + 1, np.floor(cell - 1e-6)).astype(np.intp)
        cell += np.arange(0, d * (cells + 3), cells + 3)[:, None]
        slot = np.bincount(cell.ravel(), minlength=d * (cells + 3)).reshape(d, -1)
        slot = np.maximum(slot.cumsum(axis=1) - 1, 0)
        slot[:, -2], slot[:, -1] = np.maximum(np.isfinite(start).sum(axis=1) - 1, 0), Q
        share = own.sum(axis=1) / np.maximum(new.sum(axis=1), 1)
        return cls(centre, unit, low, scale, slot.astype(np.int16), share)


@dataclass(frozen=True, eq=False)
class Axes:
    """The bins of d columns of numbers.

    start (d, Q): the least value of each slot, +inf beyond the last level; equal starts belong to
    the last slot. exact (d,): each level has its own slot. share (d,): share of independent rows.
    kind: slots that can be merged are "nested"; a fixed number of bins is "fixed"; "levels" has a
    slot for each level, however many there are. ends (d,): the larger share of rows in the first
    and the last slot. search: whether values are found without a lookup table.
    """

    start: np.ndarray
    exact: np.ndarray
    share: np.ndarray
    kind: str = "nested"
    ends: np.ndarray | float = 1.0
    search: bool = True

    @property
    def slots(self) -> int:
        """Number of slots, missing values aside."""
        return self.start.shape[1]

    def scales(self, n: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the base scale and the finest scale of each column for n rows."""
        if self.kind != "nested":
            return np.ones(len(self.start), int), np.ones(len(self.start), int)
        new = (self.start[:, 1:] > self.start[:, :-1]) & np.isfinite(self.start[:, 1:])
        by_level = np.log2(spacing(new.sum(axis=1) + 1))
        by_rank, K = scales(n * self.share), int(np.log2(self.slots))
        base, finest = (np.where(self.exact, by_level, k) for k in by_rank)
        return np.minimum(base, K).astype(int), np.minimum(finest, K).astype(int)

    @classmethod
    def of_levels(cls, f: np.ndarray) -> Axes:
        """Return a bin for each value of one column."""
        levels = np.unique(f[~np.isnan(f)]) if np.isfinite(f).any() else np.zeros(1)
        return cls(levels[None], np.ones(1, bool), np.ones(1), "levels")

    @classmethod
    def of(
        cls,
        F: np.ndarray,
        n: float,
        n_bins: int | None = None,
        *,
        roomy: bool = False,
        unit: np.ndarray | None = None,
    ) -> Axes:
        """Find the bins of columns (d, m), a sample of n rows that belong to units.

        Up to 1.5 2^base levels have a slot each; more levels share slots by rank. `n_bins` fixes
        the number of bins; `roomy` leaves slots for levels that the sample lacks.
        """
        share = independent(F, unit) / max(F.shape[1], 1)
        base, K = scales(n * share)[0], int(scales(n)[1])
        F = np.sort(F, axis=1)  # missing values last
        d, m = F.shape
        known = m - np.isnan(F).sum(axis=1)
        new = np.ones((d, m), bool)
        new[:, 1:] = F[:, 1:] != F[:, :-1]
        new &= np.arange(m) < known[:, None]
        levels = new.sum(axis=1)
        exact = levels <= (n_bins or 1.5 * 2**base)
        most = spacing(levels[exact].max(initial=0))
        Q = n_bins or int(most if exact.all() and not roomy else max(2**K, most))
        start = np.full((d, Q), np.inf)
        if not exact.all():
            tails = 1.0 if n_bins else _TAILS
            at = special.betainc(tails, tails, np.arange(Q) / Q)
            start[~exact] = _starts(F[~exact], known[~exact], new[~exact], at)
        if exact.any():
            start[exact] = spaced(F[exact], new[exact], Q, not n_bins)
        last = np.maximum(np.isfinite(start).sum(axis=1) - 1, 0)
        above = (start[np.arange(d), last][:, None] <= F).sum(axis=1)
        below = (start[:, 1:2] > F).sum(axis=1) if Q > 1 else above
        ends = np.maximum(above, below) / np.maximum(known, 1)
        kind = "fixed" if n_bins else "nested"
        return cls(start, exact, share, kind, ends, bool(n_bins) or n <= _SEARCHED)

    @cached_property
    def lookup(self) -> Lookup:
        """The lookup table: linear cells or, if too coarse, cells around the narrowest slots."""
        linear = Lookup.of(self.start, *np.zeros((2, len(self.start))))
        coarse = np.flatnonzero(linear.own < self._enough)
        if len(coarse):  # long tails
            start, lag = self.start[coarse], min(_LAG, self.slots - 1)
            with np.errstate(invalid="ignore"):  # inf - inf
                width = start[:, lag:] - start[:, :-lag]
            width = np.where(width > 0, width, np.inf)
            least, row = width.argmin(axis=1), np.arange(len(start))
            other = Lookup.of(start, start[row, least], width[row, least] / lag)
            better = other.own > linear.own[coarse]
            for mine, theirs in zip(linear, other, strict=True):
                mine[coarse[better]] = theirs[better]
        return linear

    @property
    def _enough(self) -> np.ndarray:
        """The share of the slots that must start in a cell of their own."""
        return np.where(self.exact, 1.0, 0.9)

    def find(self, F: np.ndarray, first: int = 0) -> np.ndarray:
        """Return the slot of each value of columns (k, m), which begin at column `first`."""
        here = slice(first, first + len(F))
        if self.search:
            return np.array(
                [self._searched(*pair) for pair in zip(self.start[here], F, strict=True)]
            )
        centre, unit, low, scale, table, own = (a[here] for a in self.lookup)
        with np.errstate(all="ignore"):
            place = _scaled(F, centre, unit) - low[:, None]
            place *= scale[:, None]
        width = table.shape[1]
        np.clip(place, 0, width - 2, out=place)
        if np.isnan(place.sum()):
            place[np.isnan(place)] = width - 1
        if len(F) > 1:
            place += np.arange(0, len(F) * width, width)[:, None]
        slot = table.take(place.astype(np.int32))
        for k in np.flatnonzero(own < self._enough[here]):
            slot[k] = self._searched(self.start[first + k], F[k])
        return slot

    def _searched(self, start: np.ndarray, f: np.ndarray) -> np.ndarray:
        found = np.maximum(start.searchsorted(f, side="right") - 1, 0)
        return np.where(np.isnan(f), self.slots, found)


def independent(F: np.ndarray, unit: np.ndarray | None) -> np.ndarray:
    """Return the number of known values in columns (d, n) that differ in value or unit."""
    known = ~np.isnan(F)
    if unit is None:
        return known.sum(axis=1)
    code = np.unique(unit, return_inverse=True)[1]
    pairs = (np.stack([f[here], code[here]]) for f, here in zip(F, known, strict=True))
    return np.array([np.unique(both, axis=1).shape[1] for both in pairs])


def spacing(levels: Any) -> Any:
    """Return the smallest power of two that is at least 2 and at least the number of levels."""
    return 2 ** np.ceil(np.log2(np.maximum(levels, 2))).astype(int)


def spaced(F: np.ndarray, new: np.ndarray, Q: int, nested: bool) -> np.ndarray:
    """Return starts of slots (d, Q), with the levels F[new] of sorted columns spread evenly."""
    d, m = F.shape
    levels = np.full((d, m + 1), np.inf)
    levels[np.nonzero(new)[0], (np.cumsum(new, axis=1) - 1)[new]] = F[new]
    step = Q // spacing(new.sum(axis=1)) if nested else np.ones(d, int)
    return np.take_along_axis(levels, np.minimum(-(-np.arange(Q) // step[:, None]), m), axis=1)


def _starts(F: np.ndarray, known: np.ndarray, new: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the least value of each slot: that of the first level whose mid-rank reaches it.

    Skewness decides on which side a level on the edge of two slots belongs, so that a column and
    its negative have the same bins.
    """
    m, known = F.shape[1], known[:, None]
    place = np.arange(m)
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    after = np.where(np.append(new[:, 1:], np.ones((len(F), 1), bool), axis=1), place + 1, m)
    after = np.minimum(np.minimum.accumulate(after[:, ::-1], axis=1)[:, ::-1], known)
    least, below, above, most = (
        np.take_along_axis(F, np.maximum(i, 0), 1) / 2
        for i in (0 * known, (known - 1) // 2, known // 2, known - 1)
    )
    skew = np.nansum(F / np.maximum(known, 1), axis=1, keepdims=True) - (below + above)
    up = np.where(skew < -1e-9 * (most - least), -1, 1)
    want = at * known
    i = np.clip(np.ceil(want - 0.5).astype(np.intp), 0, known - 1)
    mid = (np.take_along_axis(first, i, 1) + np.take_along_axis(after, i, 1)) / 2
    i = np.where(mid >= want - 1e-9 * up * known, i, np.take_along_axis(after, i, 1))
    value = np.take_along_axis(F, np.minimum(i, known - 1), 1)
    return np.where(i < known, value, np.inf)


def _scaled(F: np.ndarray, centre: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return columns as cells are equal in."""
    if not unit.any():
        return F
    F = F.copy()
    for k in np.flatnonzero(unit):
        F[k] = np.arcsinh((F[k] - centre[k]) / unit[k])
    return F
