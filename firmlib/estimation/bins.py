"""Bins: numbers are sorted into 2^K slots by rank, with a lookup table.

Slots are nested: slot q of 2^K lies in slot q // 2 of 2^(K-1). Slot Q is for missing values.
Slots are narrower near the ends, where curves are often steep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy import special

_SEARCHED = 2**12  # up to this many rows, values are searched for among the starts of the slots
_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
_SORTED = np.argsort(_HALVES, kind="stable")
_LAG = 8  # slots whose width shows where halves must be finest
_FINEST, _TAILS = 9, 1.5

Table = tuple[float, float, np.ndarray]


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
    and the last slot. tables: lookup tables of the columns; values without one are searched for.
    """

    start: np.ndarray
    exact: np.ndarray
    share: np.ndarray
    kind: str = "nested"
    ends: np.ndarray = field(default_factory=lambda: np.ones(1))
    tables: tuple[Table | None, ...] = ()

    @property
    def slots(self) -> int:
        """Number of slots, missing values aside."""
        return self.start.shape[1]

    def levels(self, j: int) -> np.ndarray:
        """Return the different starts of a column."""
        return np.unique(self.start[j][np.isfinite(self.start[j])])

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tables": bool(self.tables)}  # they are large

    def __setstate__(self, state: dict[str, Any]) -> None:
        tables = map(_table, state["start"], state["exact"]) if state["tables"] else ()
        self.__dict__.update(state, tables=tuple(tables))

    def taken(self, some: Sequence[int]) -> Self:
        """Return the bins of some columns."""
        parts = {name: getattr(self, name)[some] for name in ("start", "exact", "share", "ends")}
        return replace(
            self, **parts, tables=tuple(self.tables[j] for j in some[: len(self.tables)])
        )

    @classmethod
    def joined(cls, some: Sequence[Self]) -> Self:
        """Return bins of several columns, each with as many slots, as one."""
        each = ("start", "exact", "share", "ends")
        parts = {name: np.concatenate([getattr(axes, name) for axes in some]) for name in each}
        return replace(some[0], **parts, tables=sum((axes.tables for axes in some), ()))

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
    def of_levels(cls, f: np.ndarray) -> Self:
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
    ) -> Self:
        """Find the bins of columns (d, m), a sample of n rows that belong to units.

        Up to 1.5 2^base levels have a slot each; more levels share slots by rank. `n_bins` fixes
        the number of bins; `roomy` leaves slots for levels that the sample lacks.
        """
        share = independent(F, unit) / max(F.shape[1], 1)
        base, K = scales(n * share)[0], int(scales(n)[1])
        F = np.sort(F, axis=1)  # missing values last
        new = np.append(np.ones((len(F), 1), bool), F[:, 1:] > F[:, :-1], axis=1)
        new &= ~np.isnan(F)
        size, known = new.sum(axis=1), F.shape[1] - np.isnan(F).sum(axis=1)
        exact = size <= (n_bins or 1.5 * 2**base)
        Q = int(spacing(size[exact].max(initial=0)))
        Q = n_bins or (Q if exact.all() and not roomy else max(2**K, Q))
        at = special.betainc(*[1.0 if n_bins else _TAILS] * 2, np.arange(Q) / Q)
        start, ends = np.full((len(F), Q), np.inf), np.zeros(len(F))
        for j, (f, m) in enumerate(zip(F, known, strict=True)):
            first = np.flatnonzero(new[j])
            start[j] = spaced(f[first], Q, not n_bins) if exact[j] else by_rank(f[:m], first, at)
            if m:
                last = start[j][np.isfinite(start[j])][-1]
                ends[j] = max(f[:m].searchsorted(start[j, 1]), m - f[:m].searchsorted(last)) / m
        tables = () if n_bins or n <= _SEARCHED else tuple(map(_table, start, exact))
        return cls(start, exact, share, "fixed" if n_bins else "nested", ends, tables)

    def grown(self, j: int, values: np.ndarray) -> Self:
        """Return bins in which new levels of a column have slots of their own, if there is room."""
        old, Q, nested = self.levels(j), self.slots, self.kind == "nested"
        values = np.setdiff1d(values, old)
        if self.kind == "levels":
            return replace(self, start=np.union1d(old, values)[None])
        start, exact, tables = self.start.copy(), self.exact.copy(), [*self.tables]
        exact[j] = len(old) + len(values) <= Q
        start[j] = spaced(np.union1d(old, values[: Q - len(old)]), Q, nested)
        if tables:
            tables[j] = _table(start[j], exact[j])
        return replace(self, start=start, exact=exact, tables=tuple(tables))

    def find(self, F: np.ndarray, first: int = 0) -> np.ndarray:
        """Return the slot of each value of columns (k, m), which begin at column `first`."""
        tables = self.tables[first : first + len(F)] or (None,) * len(F)
        return np.array([self._slot(first + k, f, tables[k]) for k, f in enumerate(F)])

    def _slot(self, j: int, f: np.ndarray, table: Table | None) -> np.ndarray:
        if table is None:
            slot = np.maximum(self.start[j].searchsorted(f, side="right") - 1, 0)
            return np.where(np.isnan(f), self.slots, slot)
        centre, scale, slot = table
        with np.errstate(over="ignore"):
            half = ((f - centre) * scale).astype(np.float16)
        return slot.take(half.view(np.uint16))


def _table(start: np.ndarray, exact: bool) -> Table | None:
    """Return a centre, a scale and the slot of each half-precision number (f - centre) scale.

    Half precision is finest at the centre, where slots are narrowest. None if too few slots start
    at numbers of their own.
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
        if (new & (np.diff(half) > 0)).sum() < (1.0 if exact else 0.9) * new.sum():
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


def spaced(levels: np.ndarray, Q: int, nested: bool) -> np.ndarray:
    """Return starts of Q slots over which sorted levels are spread evenly."""
    step = Q // spacing(len(levels)) if nested else 1
    return np.append(levels, np.inf)[np.minimum(-(-np.arange(Q) // step), len(levels))]


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
