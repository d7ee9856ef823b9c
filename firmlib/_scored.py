"""Scored rows: scores minus their mean, with weights and units, and what each row adds to sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from firmlib._bins import Bins, find_bins
from firmlib._columns import Column
from firmlib._fast import Summed, Swept, loops, swept
from firmlib._inference import Influence
from firmlib._rounding import EMPTY
from firmlib._spread import Sums

MANY = 2048
"""Rows from which it is faster to sum up two numbers of each at once."""

_NO_ROWS = np.empty(0)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores minus their mean, weights, and what is summed up in bins.

    mean : of the scores.
    r, w : scores minus their mean, and weights, of the rows.
    unit : the number of the unit that each row belongs to, if several rows belong together.
    standardized : whether the scores were divided by their own standard deviation.
    parts : what each row adds to sums. An entry may stand for several rows, `count` of them.
    loops : compiled ones, if they are to be used.
    """

    mean: float
    r: np.ndarray
    w: np.ndarray
    parts: Sums
    unit: np.ndarray | None = None
    standardized: bool = False
    count: np.ndarray | None = None
    loops: Any = None

    @classmethod
    def of(
        cls,
        s: np.ndarray,
        w: np.ndarray,
        mean: float | None = None,
        *,
        sampling: bool = False,
        unit: np.ndarray | None = None,
        fine: bool = False,
        standardized: bool = False,
        powers: bool = False,
    ) -> Self:
        """Return scores minus `mean`, by default their own; weights are counts or `sampling`.

        If `fine`, lines within bins and the skewness are wanted, too; `powers` are those up to r^8.
        """
        if mean is None:
            mean = float((w * s).sum() / w.sum())  # w @ s would wake a pool of threads
        r = s - mean if np.ptp(s) > 0 else np.zeros_like(s)
        wr = w * r
        parts = Sums(w, wr, wr * r)
        if sampling and unit is None:
            parts = parts._replace(ww=w * w, wwr=w * wr, wwrr=wr * wr)
        if fine or powers:
            parts = parts._replace(wrrr=parts.wrr * r)
        if powers:
            parts = parts._replace(**{f"w{k * 'r'}": parts.wrr * r ** (k - 2) for k in range(4, 9)})
        return cls(mean, r, w, parts, unit, standardized)

    def divided(self, sd: float) -> Self:
        """Return the scores divided by their standard deviation."""
        return type(self).of(
            (self.r + self.mean) / sd,
            self.w,
            sampling=self.parts.ww is not None,
            unit=self.unit,
            fine=self.fine,
            standardized=True,
        )

    def compiled(self, values: int) -> Self:
        """Return the same, to be summed up by compiled loops if so many values are worth it."""
        found = loops(values)
        return replace(self, loops=found) if self.plain and self.parts.wrrrr is None else self

    @property
    def plain(self) -> bool:
        """Whether rows count as they are: not by weights of sampling or by unit, nor divided."""
        return self.parts.ww is None and self.unit is None and not self.standardized

    @property
    def fine(self) -> bool:
        """Whether lines within bins and the skewness are wanted, too."""
        return self.parts.wrrr is not None

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights; where all are alike, one number that is read again and again."""
        return np.broadcast_to(self.w[0], self.w.shape) if self.alike else self.w

    @property
    def numbers(self) -> int:
        """How many sums compiled loops make in each bin."""
        return 8 if self.fine else 4

    def index(self, bins: Bins, f: np.ndarray, ends: Any = None) -> tuple[Any, bool]:
        """Return the bin of each value or the sums in them, and whether some level has no bin."""
        if self.loops is not None and not np.isnan(ends[1] if ends else f.max()):
            if bins.grid is not None and bins.bin_of_cell is not None:
                return swept(self, f, bins.grid, bins.bin_of_cell, bins.first), False
            if bins.cells is not None:
                rows = f, self.r, self.weights
                table, known = self.loops.search(*rows, *bins.cells[:3], bins.first, self.numbers)
                return Summed(table), bins.method == "discrete" and not known
        with np.errstate(over="ignore"):  # far beyond the cells is beyond them
            index = bins.index(f)
        new = bins.method == "discrete" and np.any((bins.first[index] != f) & ~np.isnan(f))
        return index, bool(new)

    def beyond(self, bins: Bins, f: np.ndarray, ends: Any = None) -> float:
        """Return the weight of the rows outside the range that the bins were found from."""
        if ends and bins.first[0] <= ends[0] and ends[1] <= bins.last:
            return 0.0
        if self.loops is not None and self.alike:
            return float(self.w[0]) * self.loops.beyond(f, bins.first[0], bins.last)
        return float(self.w[(f < bins.first[0]) | (f > bins.last)].sum())

    @cached_property
    def total(self) -> Sums:
        """The sums over all rows."""
        if self.unit is None:
            return self.parts.each(np.sum)
        return by_unit(np.zeros_like(self.unit), 1, self).each(np.sum)

    @cached_property
    def alike(self) -> bool:
        """Whether all rows have the same weight."""
        return self.w.min() == self.w.max()

    def taken(self, keep: np.ndarray) -> Self:
        """Return those of some rows, minus the same mean."""
        unit = None if self.unit is None else self.unit[keep]
        parts = self.parts.each(lambda a: a[keep])
        return type(self)(self.mean, self.r[keep], self.w[keep], parts, unit, self.standardized)

    def repeated(self, times: int) -> Self:
        """Return those of the rows again and again, minus the same mean."""
        parts = self.parts.each(lambda a: np.tile(a, times))
        return type(self)(self.mean, _NO_ROWS, parts.w, parts)

    def sd(self, rows: str) -> float:
        """Return the standard deviation of the scores."""
        W, wr, wrr = self.total[:3]
        n = W**2 / self.total.pairs[0]
        return float(np.sqrt(max(wrr - wr**2 / W, 0.0) / W * (n / (n - (rows == "sample")))))

    def of_column(self, column: Column) -> tuple[np.ndarray, Self]:
        """Return a feature's values with the scores that belong to them.

        The rows in which a sparse column is 0 become one entry, whose sums follow by subtraction.
        """
        f, where = column.values, column.rows
        if where is None:
            return f, self
        if self.unit is not None or self.standardized:
            return column.dense(len(self.r)), self
        table, totals = self._stacked
        there = table.take(where, axis=1)
        rest = totals - there.sum(axis=1)
        each = iter(np.concatenate([there, rest[:, None]], axis=1))
        sums = Sums._make([None if a is None else next(each) for a in self.parts])
        count = np.ones(len(f) + 1, dtype=int)
        count[-1] = len(self.r) - len(f)
        entries = type(self)(self.mean, _NO_ROWS, sums.w, sums, count=count)
        return np.concatenate([f, [0.0]]), entries

    @cached_property
    def _stacked(self) -> tuple[np.ndarray, np.ndarray]:
        """What each row adds to those sums that there are, as one table, and their totals."""
        pairs = zip(self.parts, self.total, strict=True)
        parts, totals = zip(*(pair for pair in pairs if pair[0] is not None), strict=True)
        return np.array(parts), np.array(totals)

    @cached_property
    def _paired(self) -> list[np.ndarray]:
        """What each row adds to those sums that there are, two and two as complex numbers."""
        parts = [a for a in self.parts if a is not None]
        odd = parts.pop() if len(parts) % 2 else None
        pairs = [a + 1j * b for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return pairs if odd is None else [*pairs, odd]

    def summed(self, index: Any, n_bins: int) -> Sums:
        """Return the sums over the rows of each bin of what each adds to them."""
        if self.count is not None or len(index) < MANY:
            return self.parts.each(lambda a: np.bincount(index, a, n_bins))
        each = iter([sums for a in self._paired for sums in summed_pairs(a, index, n_bins)])
        return Sums._make(None if a is None else next(each) for a in self.parts)

    def find_bins(
        self, f: np.ndarray, *, counts: bool | None = None, **options: Any
    ) -> tuple[Bins, np.ndarray]:
        """Return bins for the values of a feature, and the bin of each: as many as units allow.

        Where values are alike within units, these count, and rows where they are not.
        """
        w, n = self.w, None
        if self.count is None and self.alike:
            w, options["alike"] = self.weights, True
        if self.unit is not None:
            ranked = np.sort(f)
            z = ranked.searchsorted(f) + ranked.searchsorted(f, side="right") - float(len(f))
            alike = self.squares(z) / max(((w * z) ** 2).sum(), EMPTY)
            n = int(np.clip(len(f) / max(alike, EMPTY), self.unit.max() + 1, len(f)))
        elif not (self.parts.ww is None if counts is None else counts):  # their scale is arbitrary
            n = len(w) if self.count is None else int(self.count.sum())
        if n is not None:
            w = w * (n / w.sum())
        if self.loops is not None:
            f, w = np.ascontiguousarray(f), self.weights
            options["sweep"] = partial(Swept, self)
        return find_bins(f, w, count=self.count, **options)

    def psi(self, q: np.ndarray, V: float) -> np.ndarray:
        """Return the influence 2 r q - q^2 - V of each row on V, where q_f of the rows is q.

        On V / Var(s), with scores divided by their sd, it is (1 - V) r^2 - (r - q)^2.
        """
        r = self.r
        return (1 - V) * r**2 - (r - q) ** 2 if self.standardized else (2 * r - q) * q - V

    def squares(self, psi: np.ndarray, power: int = 2) -> float:
        """Return the sum over units of (sum of w psi)^power, the variance of the sum of w psi."""
        if self.unit is not None:
            return float((np.bincount(self.unit, self.w * psi) ** power).sum())
        return float(((self.w if self.parts.ww is None else self.w**power) * psi**power).sum())

    def influence(self, index: np.ndarray, sums: Sums) -> Influence:
        """Return the sums over units that `uncertainty` asks for."""
        q = sums.wr / np.maximum(sums.w, EMPTY)
        V, q = float(sums.w @ q**2 / sums.w.sum()), q[index]
        if self.standardized:  # residuals are too small, as they have a share in their mean
            share = (sums.pairs[0] / np.maximum(sums.w, EMPTY) ** 2)[index]
            q = self.r - (self.r - q) / np.sqrt(np.maximum(1 - share, 0.5))
        psi = self.psi(q, V)
        shared = False
        if self.unit is not None:
            one = np.zeros(self.unit.max() + 1, dtype=int)
            one[self.unit] = index
            shared = bool((one[self.unit] != index).any())
        squares, cubes, fourths = (self.squares(psi, power) for power in (2, 3, 4))
        return Influence(squares, cubes, fourths, shared)


def summed_pairs(a: np.ndarray, index: Any, n_bins: int) -> list[np.ndarray]:
    """Return the sums in each bin; two of complex numbers, faster than one after the other."""
    if a.dtype != complex:
        return [np.bincount(index, a, n_bins)]
    sums = np.zeros((n_bins, 2))
    np.add.at(sums.view(complex).ravel(), index, a)
    return list(sums.T)


def by_unit(index: Any, n_bins: int, scores: Scores, sums: Sums | None = None) -> Sums:
    """Return the sums with those over pairs of rows that share a bin and a unit."""
    assert scores.unit is not None
    key, part = np.unique(index * (scores.unit.max() + 1) + scores.unit, return_inverse=True)
    w, wr = (np.bincount(part, values) for values in (scores.w, scores.parts.wr))
    bins = key // (scores.unit.max() + 1)
    ww, wwr, wwrr = (np.bincount(bins, values, n_bins) for values in (w * w, w * wr, wr * wr))
    sums = scores.parts.each(np.sum) if sums is None else sums
    return sums._replace(ww=ww, wwr=wwr, wwrr=wwrr)
