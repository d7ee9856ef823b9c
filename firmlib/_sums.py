"""Sums over parts of the rows, which add up in any order: what `StreamingFirm` keeps.

A feature's bins are fixed once; what its rows add up to in them (`FeatureSums`) adds up over
parts of the data, and levels that come later get bins of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import isnan
from typing import Any, NamedTuple, Self

import numpy as np

from firmlib._bins import Bins
from firmlib._checks import check_memory
from firmlib._columns import Column, Scale
from firmlib._moments import FINE, tally
from firmlib._scored import Scores
from firmlib._spread import Sums

_BEYOND = 30  # of n first rows, about two rows in n lie beyond by chance, 30 in n hardly ever


class FeatureSums(NamedTuple):
    """What `tally` found for a feature, in the bins it started with and levels that came later.

    `beyond` is the weight of the rows outside the range that the first bins were found from.
    """

    start: Bins
    limit: float
    bins: Bins
    sums: Sums
    beyond: float = 0.0

    @classmethod
    def empty(cls, start: Bins, limit: float) -> Self:
        """Return the sums of no rows; there is always a bin for missing values."""
        if start.scale.labels is not None or np.isnan(start.first[0]):
            limit = np.inf  # levels cannot be binned, and nothing is known yet of what is missing
        limit = max(limit, len(start.first))
        bins = _with_missing(start)
        return cls(start, limit, bins, Sums(*np.zeros((4, len(bins.first)))))

    def of(self, name: str, column: Column, scores: Scores) -> Self:
        """Return the sums of other rows, in these bins and those of new levels."""
        unknown = isnan(self.bins.first[0])
        scale = column.scale if unknown else joined(name, self.bins.scale, column)
        if scale is not column.scale:
            column = column._replace(values=column.on(scale))
        f, scores = scores.of_column(column)
        same, beyond = scale is self.bins.scale, 0.0
        bins = self.bins if same else replace(self.bins, scale=scale)
        index, new = scores.index(bins, f, column.ends)
        if new:
            bins = self._widened(np.unique(f), scale)
            index, _ = scores.index(bins, f, column.ends)
        if self.start.method == "binned":
            beyond = scores.beyond(bins, f, column.ends)
        return self._replace(bins=bins, sums=tally(index, bins, scores, f), beyond=beyond)

    def merged(self, name: str, other: FeatureSums) -> Self:
        """Return the sums of both."""
        scale = self.bins.scale
        if scale is not other.bins.scale:
            if np.isnan(self.bins.first[0]):
                scale = other.bins.scale
            else:
                scale = joined(name, scale, Column(other.bins.first, None, other.bins.scale))
            self, other = self._on(scale), other._on(scale)
        bins = self.bins
        if bins.method == "discrete" and bins is not other.bins:
            late = other.bins.method == "discrete"
            bins = self._widened(other.bins.first, scale) if late else other.bins
        sums = self._in(bins).plus(other._in(bins))
        return self._replace(bins=bins, sums=sums, beyond=self.beyond + other.beyond)

    def shifted(self, d: float) -> Self:
        """Return the sums with r + d instead of r."""
        return self._replace(sums=self.sums.shifted(d))

    def changed(self, **sums: None) -> Self:
        """Return these without some of the sums."""
        return self._replace(sums=self.sums._replace(**sums))

    def _widened(self, levels: np.ndarray, scale: Scale) -> Bins:
        """Return bins of more levels; if they are too many, from one first level to the next."""
        union = np.union1d(self.bins.first, levels)
        if len(union) == len(self.bins.first):
            return replace(self.bins, scale=scale)
        if len(union) - 1 > self.limit:
            return _with_missing(Bins(self.start.first, "binned", scale=scale))
        return Bins(union, "discrete", scale=scale)

    def _on(self, scale: Scale) -> Self:
        """Return the same with the codes of another scale."""
        first = Column(self.bins.first, None, self.bins.scale).on(scale)
        order = np.argsort(first)
        bins = replace(self.bins, first=first[order], scale=scale)
        return self._replace(bins=bins, sums=self.sums.each(lambda a: a[order]))

    def _in(self, bins: Bins) -> Sums:
        if self.bins is bins or self.bins.method == "binned":
            return self.sums
        if bins.method == "discrete":
            index = bins.first.searchsorted(self.bins.first)  # all levels are there, nan the last
        else:
            index = bins.index(self.bins.first)
        return self.sums.each(lambda values: np.bincount(index, values, len(bins.first)))

    def warn(self, name: str) -> None:
        """Warn if the first rows were no random sample of all."""
        W = self.sums.w.sum()
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
    """The sums of all features, of scores minus `centre`, and the number of rows.

    `whole` says whether all weights were whole numbers. `total` are the sums over all rows, with
    pairs of rows of the same unit, if several rows belong together.
    """

    names: Sequence[str]
    centre: float
    n: int
    features: list[FeatureSums]
    whole: bool = True
    total: Sums | None = None

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.features[0].sums.w.sum())

    def near(self, s: np.ndarray, mean: float) -> float:
        """Return the centre for other scores: this one if it is near their mean, else the mean."""
        return self.centre if abs(mean - self.centre) <= s.std() else mean

    def around(self, centre: float) -> Self:
        """Return the sums of scores minus another centre."""
        step = self.centre - centre  # how far it moves, which far from 0 is not what was added
        if not step:
            return self
        features = [feature.shifted(step) for feature in self.features]
        total = None if self.total is None else self.total.shifted(step)
        return self._replace(centre=centre, features=features, total=total)

    def merged(self, other: Statistics) -> Self:
        """Return those of both, around the mean of both centres: no digits are lost far from 0."""
        share = other.weight / (self.weight + other.weight)
        centre = self.centre + share * (other.centre - self.centre)
        a, b = self.around(centre), other.around(centre)
        features = [
            one.merged(name, more)
            for name, one, more in zip(self.names, a.features, b.features, strict=True)
        ]
        if (a.total is None) != (b.total is None):
            raise ValueError("groups came with some of the rows, expected with all or none")
        total = None if a.total is None or b.total is None else a.total.plus(b.total)
        whole = self.whole and other.whole
        return type(self)(self.names, centre, self.n + other.n, features, whole, total)

    def needed(self, weight_type: str) -> Self:
        """Return what is needed of them for so many rows and this kind of weights, centred."""
        W, wr = self.scores().parts[:2]
        now = self.around(self.centre + float(wr[0] / W[0]))
        features = now.features
        if weight_type == "count" and self.total is None:
            features = [f.changed(ww=None, wwr=None, wwrr=None) for f in features]
        if (self.weight if weight_type == "count" else self.n) >= FINE:
            features = [f.changed(wg=None, wgg=None, wgr=None) for f in features]
            features = [f if f.sums.wrrrr is not None else f.changed(wrrr=None) for f in features]
        return now._replace(features=features)

    def divided(self, sd: float) -> Self:
        """Return the same of scores divided by a number."""
        features = [f._replace(sums=f.sums.divided(sd)) for f in self.features]
        total = None if self.total is None else self.total.divided(sd)
        return self._replace(centre=self.centre / sd, features=features, total=total)

    def scores(self) -> Scores:
        """Return the sums of the scores as if all were one entry."""
        sums = self.features[0].sums if self.total is None else self.total.each(np.atleast_1d)
        sums = sums.each(lambda a: a.sum(keepdims=True))
        return Scores(self.centre, sums.wr, sums.w, sums)


class Chunk(NamedTuple):
    """The features of some rows, read one after another, with scores and weights; all have one.

    `unit` is the number of the unit of each row, if several rows belong together.
    """

    columns: Iterable[Column]
    s: np.ndarray
    w: np.ndarray
    unit: np.ndarray | None = None

    def copied(self) -> Self:
        """Return a copy that nobody else holds."""
        columns = [
            c._replace(values=c.values.copy(), rows=None if c.rows is None else c.rows.copy())
            for c in self.columns
        ]
        return type(self)(columns, self.s.copy(), self.w.copy(), self.unit)

    def listed(self) -> Self:
        """Return the same, whose features can be read again."""
        return self._replace(columns=list(self.columns))

    def taken(self, keep: np.ndarray) -> Self:
        """Return the rows that a mask keeps."""
        unit = None if self.unit is None else self.unit[keep]
        columns = [c.taken(keep) for c in self.columns]
        return type(self)(columns, self.s[keep], self.w[keep], unit)

    @classmethod
    def of(cls, names: Sequence[str], chunks: Sequence[Self]) -> Self:
        """Return the rows of several copies as one."""
        if len(chunks) == 1:
            return chunks[0]
        lengths = [len(chunk.s) for chunk in chunks]
        columns = []
        for name, parts in zip(names, zip(*(c.columns for c in chunks), strict=True), strict=True):
            dense = any(part.rows is None for part in parts)
            check_memory("the first rows", (sum(lengths), len(names) if dense else 1))
            columns.append(_concatenated(name, parts, lengths))
        s, w = (np.concatenate(v) for v in zip(*((c.s, c.w) for c in chunks), strict=True))
        units = [c.unit for c in chunks if c.unit is not None]
        if not units:
            return cls(columns, s, w)
        if len(units) < len(chunks):
            raise ValueError("groups came with some of the rows, expected with all or none")
        first = np.cumsum([0, *(unit.max() + 1 for unit in units[:-1])])
        return cls(
            columns, s, w, np.concatenate([u + k for u, k in zip(units, first, strict=True)])
        )


def _concatenated(name: str, parts: Sequence[Column], lengths: Sequence[int]) -> Column:
    first = next((part for part in parts if not _is_missing(part)), parts[0])
    scale = reduce(lambda scale, part: joined(name, scale, part), parts, first.scale)
    parts = [part._replace(values=part.on(scale)) for part in parts]
    if any(part.rows is None for part in parts):
        dense = [part.dense(n) for part, n in zip(parts, lengths, strict=True)]
        return Column(np.concatenate(dense), None, scale)
    starts = np.cumsum([0, *lengths[:-1]])
    rows = [part.rows + start for part, start in zip(parts, starts, strict=True)]  # type: ignore[operator]
    return Column(np.concatenate([part.values for part in parts]), np.concatenate(rows), scale)


def joined(name: str, scale: Scale, column: Column) -> Scale:
    """Return a scale for a feature in other rows too; where it is missing in all, any will do."""
    if scale is column.scale or _is_missing(column):
        return scale
    return scale.joined(f"feature {name!r}", column.scale)


def _is_missing(column: Column) -> bool:
    return column.rows is None and bool(np.isnan(column.values).all())


def _with_missing(bins: Bins) -> Bins:
    return bins if bins.missing else replace(bins, first=np.append(bins.first, np.nan))


def check_bins(bins: Any, method: str) -> dict[str, Bins]:
    """Return bins that were given for each feature."""
    if not isinstance(bins, Mapping) or not bins:
        raise ValueError(f"bins={bins!r} must be the bins of a StreamingFirm, a mapping from names")
    for name, each in bins.items():
        if not isinstance(each, Bins):
            raise ValueError(f"bins[{name!r}]={each!r} must be Bins, as in those of StreamingFirm")
        if method not in ("auto", each.method) and each.scale.labels is None:
            raise ValueError(f"bins[{name!r}] are {each.method}, but method={method!r}")
    return dict(bins)


def check_same(mine: dict[str, Bins], others: dict[str, Bins]) -> None:
    """Raise unless two parts have the same bins."""
    for name, a in mine.items():
        b = others[name]
        if a is b or (a.scale.kind == b.scale.kind and a.scale.labels is not None):
            continue  # levels find each other by name
        if not (a.method == b.method and np.array_equal(a.first, b.first, equal_nan=True)):
            raise ValueError(
                f"other has {len(b.first)} {b.method} bins of feature {name!r} that differ from "
                f"the {len(a.first)} {a.method} ones here; expected parts made with the same "
                "bins=, for example those of one of them"
            )
