"""Sums over parts of the rows, which add up in any order: what `StreamingFirm` keeps.

A feature's bins are fixed once; what its rows add up to in them (`FeatureSums`) adds up over
parts of the data, and levels that come later get bins of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from firmlib._bins import Bins
from firmlib._checks import check_memory
from firmlib._moments import Scores, tally
from firmlib._table import Column, Table, is_sparse

_BEYOND = 30  # of n first rows, about two rows in n lie beyond by chance, 30 in n hardly ever


class FeatureSums(NamedTuple):
    """What `tally` found for a feature, in the bins it started with and levels that came later.

    `beyond` is the weight of the rows outside the range that the first bins were found from.
    """

    start: Bins
    limit: float
    bins: Bins
    sums: np.ndarray
    beyond: float = 0.0

    @classmethod
    def empty(cls, start: Bins, limit: float) -> Self:
        """Return the sums of no rows."""
        limit = max(limit, len(start.first))
        return cls(start, limit, start, np.zeros((4, len(start.first))))

    def of(self, f: np.ndarray, scores: Scores) -> Self:
        """Return the sums of other rows, in these bins and those of new levels."""
        bins, beyond = self.bins, 0.0
        with np.errstate(over="ignore"):  # far beyond the cells is beyond them
            index = bins.index(f)
            if bins.method == "discrete" and np.any(bins.first[index] != f):
                bins = self._widened(np.unique(f))
                index = bins.index(f)
        if self.start.method == "binned" and (f.min() < bins.first[0] or f.max() > bins.last):
            beyond = float(scores.w[bins.outside(f)].sum())
        sums = tally(index, len(bins.first), scores, f)
        return self._replace(bins=bins, sums=sums, beyond=beyond)

    def merged(self, other: FeatureSums) -> Self:
        """Return the sums of both."""
        bins = self.bins
        if bins.method == "discrete" and bins is not other.bins:
            late = other.bins.method == "discrete"
            bins = self._widened(other.bins.first) if late else other.bins
        sums = self._in(bins) + other._in(bins)
        return self._replace(bins=bins, sums=sums, beyond=self.beyond + other.beyond)

    def shifted(self, d: float) -> Self:
        """Return the sums with r + d instead of r."""
        w, wr, wrr, wf = self.sums
        return self._replace(sums=np.array([w, wr + d * w, wrr + d * (2 * wr + d * w), wf]))

    def _widened(self, levels: np.ndarray) -> Bins:
        """Return bins of more levels; if they are too many, from one first level to the next."""
        union = np.union1d(self.bins.first, levels)
        if len(union) == len(self.bins.first):
            return self.bins
        if len(union) > self.limit:
            return Bins(self.start.first, "binned")
        return Bins(union, "discrete")

    def _in(self, bins: Bins) -> np.ndarray:
        if self.bins is bins or self.bins.method == "binned":
            return self.sums
        index = bins.index(self.bins.first)
        return np.array([np.bincount(index, values, len(bins.first)) for values in self.sums])

    def warn(self, name: str) -> None:
        """Warn if the first rows were no random sample of all."""
        W = self.sums[0].sum()
        if self.bins.method != self.start.method:
            warnings.warn(
                f"feature {name!r} has more than {self.limit} levels, but the rows that its bins "
                f"were found from had {len(self.start.first)}: it is binned at these; if they are "
                "too few, take more rows, at random, as the first ones",
                stacklevel=3,
            )
        if self.start.n and self.beyond > _BEYOND * max(1.0, W / self.start.n):
            warnings.warn(
                f"{self.beyond / W:.0%} of the rows lie outside the range of feature {name!r} in "
                f"the first {self.start.n:.0f}, which its bins were found from: its importance is "
                "understated. Are the rows sorted? Shuffle them, or give bins= of a StreamingFirm "
                "that has seen a random sample",
                stacklevel=3,
            )


class Statistics(NamedTuple):
    """The sums of all features, of scores minus `centre`, and the number of rows."""

    centre: float
    n: int
    features: list[FeatureSums]

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.features[0].sums[0].sum())

    def merged(self, other: Statistics) -> Self:
        """Return those of both, around the mean of both: so no digits are lost far from 0."""
        share = other.weight / (self.weight + other.weight)
        centre = self.centre + share * (other.centre - self.centre)
        # By how far it really moved, which is not what was added: far from 0 that was rounded.
        steps = self.centre - centre, other.centre - centre
        pairs = zip(self.features, other.features, strict=True)
        features = [a.shifted(steps[0]).merged(b.shifted(steps[1])) for a, b in pairs]
        return type(self)(centre, self.n + other.n, features)

    def scores(self) -> Scores:
        """Return the sums of the scores as if all were one entry."""
        w, wr, wrr, _ = self.features[0].sums.sum(axis=1, keepdims=True)
        return Scores(self.centre, wr, w, wr, wrr)


class Chunk(NamedTuple):
    """Rows that have been checked but for the features' values; all have a weight."""

    table: Table
    s: np.ndarray
    w: np.ndarray
    keep: slice | np.ndarray = slice(None)

    def column(self, j: int) -> Column:
        """Return the values of a feature, finite."""
        return self.table.column(j).taken(self.keep)

    def copied(self) -> Self:
        """Return a copy that nobody else holds."""
        data = self.table.copied()[self.keep]
        return type(self)(Table(data, "F", at_least=0), self.s.copy(), self.w.copy())

    @classmethod
    def of(cls, chunks: Sequence[Self]) -> Self:
        """Return the rows of several copies as one."""
        if len(chunks) == 1:
            return chunks[0]
        tables = [chunk.table.data for chunk in chunks]
        if all(map(is_sparse, tables)):
            from scipy import sparse

            data = sparse.vstack(tables, format="csc")
        else:
            check_memory("the first rows", (sum(t.shape[0] for t in tables), tables[0].shape[1]))
            data = np.concatenate([t.toarray() if is_sparse(t) else t for t in tables])
        s, w = (np.concatenate(v) for v in zip(*((c.s, c.w) for c in chunks), strict=True))
        return cls(Table(data, "F"), s, w)
