"""Bins: numbers are sorted into 2^K slots by rank, with a lookup table.

Slots are nested: slot q of 2^K lies in slot q // 2 of 2^(K-1). Slot Q is for missing values.
Slots are narrower near the ends, where curves are often steep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

SAMPLE = 8
"""Rows per slot in the sample that determines the slots."""

FEW = 2**14
"""Up to this many rows, all of them determine the slots."""

_SEARCHED = 2**12  # up to this many rows, values are searched for among the starts of the slots
_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
_SORTED = np.argsort(_HALVES, kind="stable")
_LAG = 8  # slots whose width shows where halves must be finest
_FINEST, _TAILS = 9, 1.5


def scales(n: Any) -> Any:
    """Return base and K: about sqrt(n) bins are always used; 2^K slots have four rows or more."""
    n = np.maximum(n, 2)
    K = np.clip(np.ceil(np.log2(n / 4)), 1, _FINEST).astype(int)
    return np.clip(np.round(np.log2(n) / 2), 1, K).astype(int), K


@dataclass(frozen=True, eq=False)
class Axes:
    """The bins of d columns of numbers.

    start (d, Q): the least value of each slot, +inf beyond the last level; equal starts belong to
    the last slot. exact (d,): each level has its own slot. share (d,): share of independent rows.
    kind: slots that can be merged are "nested"; a fixed number of bins is "fixed"; "levels" has a
    slot for each level, however many there are. ends (d,): the larger share of rows in the first
    and the last slot. search: whether values are found without lookup `tables`.
    """

    start: np.ndarray
    exact: np.ndarray
    share: np.ndarray
    kind: str = "nested"
    ends: np.ndarray | float = 1.0
    search: bool = True
    tables: dict[int, Any] = field(default_factory=dict, repr=False)

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

    def find(self, F: np.ndarray, first: int = 0) -> np.ndarray:
        """Return the slot of each value of columns (k, m), which begin at column `first`."""
        return np.array([self._slot(first + k, f) for k, f in enumerate(F)])

    def _slot(self, j: int, f: np.ndarray) -> np.ndarray:
        if not self.search and j not in self.tables:
            self.tables[j] = _table(self.start[j], 1.0 if self.exact[j] else 0.9)
        if self.search or self.tables[j] is None:
            return self._searched(self.start[j], f)
        centre, scale, slot = self.tables[j]
        with np.errstate(over="ignore"):
            half = ((f - centre) * scale).astype(np.float16)
        return slot.take(half.view(np.uint16))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tables": {}}  # they are large, and found again

    def _searched(self, start: np.ndarray, f: np.ndarray) -> np.ndarray:
        found = np.maximum(start.searchsorted(f, side="right") - 1, 0)
        return np.where(np.isnan(f), self.slots, found)


def _table(start: np.ndarray, share: float) -> tuple[float, float, np.ndarray] | None:
    """Return a centre, a scale and the slot of each half-precision number (f - centre) scale.

    Half precision is finest at the centre, where slots are narrowest. None if less than this share
    of the slots start at numbers of their own.
    """
    missing, start = len(start), start[np.isfinite(start)]
    if not len(start):
        return None
    lag = min(_LAG, len(start) - 1)
    with np.errstate(all="ignore"):
        width = start[lag:] - start[: len(start) - lag]
        centre = start[np.where(width > 0, width, np.inf).argmin()]
        scale = 512 / (np.quantile(np.abs(start - centre), 0.95) or np.abs(start - centre).max())
        scale = scale if np.isfinite(scale) else 1.0
        half = ((start - centre) * scale).astype(np.float16).astype(np.float32)
        new = np.diff(start) > 0
        if (new & (np.diff(half) > 0)).sum() < share * new.sum():
            return None
    runs = np.diff(_HALVES[_SORTED].searchsorted(half), prepend=0, append=len(_HALVES))
    slot = np.empty(len(_HALVES), np.int16)
    slot[_SORTED] = np.repeat(np.maximum(np.arange(-1, len(start)), 0), runs)
    slot[np.isnan(_HALVES)] = missing
    return centre, scale, slot


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
