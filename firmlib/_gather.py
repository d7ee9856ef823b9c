"""Rows are gathered until there are enough to find bins from, and summed up in them from then on.

What `firmlib.StreamingFirm` does between taking rows in and giving a result.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np

from firmlib._bins import Bins
from firmlib._columns import Column
from firmlib._moments import FINE, Tally, summarize, tally
from firmlib._paired import GROUPS
from firmlib._rows import are_whole, check_differences, check_weight_type
from firmlib._scored import Scores
from firmlib._spread import standardized_influence
from firmlib._sums import Chunk, FeatureSums, Statistics

MAX_LEVELS = 1024
"""Levels up to which those that appear later get bins of their own, if method="auto"."""


class Gatherer:
    """The rows that wait for bins, or the sums of all rows seen."""

    n_bins: int | str
    method: str
    rows: str
    weight_type: str
    missing: str
    standardize: bool
    keep: bool
    first_rows: int
    _names: list[str] | None = None
    _bins: dict[str, Bins] | None = None
    _waiting: tuple[Chunk, ...] = ()  # rows seen before there were bins
    _n_waiting: int = 0
    _statistics: Statistics | None = None
    _apart: tuple[Any, ...] = ()
    _seen: int = 0  # rows, or units, that were summed up apart

    @property
    def has_bins(self) -> bool:
        """Whether bins were given, or found from enough rows."""
        return self._bins is not None

    @property
    def bins(self) -> dict[str, Bins]:
        """The bins of each feature, without levels that came later; for `bins` of other parts."""
        if self._bins is not None:
            return dict(self._bins)
        features = self._current().features
        return {k: v.start for k, v in zip(self._names or (), features, strict=True)}

    def _take(self, chunk: Chunk, names: list[str]) -> None:
        """Gather rows until they are enough to find bins from, and sum them up from then on."""
        if self._bins is None:
            if self._n_waiting + len(chunk.s) < self.first_rows:
                self._waiting, self._names = (*self._waiting, chunk.copied()), names
                self._n_waiting += len(chunk.s)
                return
            if self._waiting:
                chunk = Chunk.of(names, (*self._waiting, chunk.copied()))
        chunk = chunk.listed() if self.keep else chunk
        total = both(self._statistics, self._summed(chunk, names))
        if self.keep:
            self._apart = each_of(self._apart, self._summed_apart(chunk, total, self._seen))
            self._seen += len(chunk.s) if chunk.unit is None else int(chunk.unit.max()) + 1
        self._statistics = total
        self._names, self._waiting, self._n_waiting = names, (), 0
        if self._bins is None and self._statistics is not None:
            starts = (feature.start for feature in self._statistics.features)
            self._bins = dict(zip(names, starts, strict=True))

    def _summed(self, chunk: Chunk, names: list[str]) -> Statistics:
        constant = np.ptp(chunk.s) == 0  # then exactly: two such chunks must not seem to differ
        mean = float(chunk.s[0] if constant else (chunk.w * chunk.s).sum() / chunk.w.sum())
        sample, seen = self.rows == "sample", self._statistics.n if self._statistics else 0
        if self._statistics is not None:
            mean = self._statistics.near(chunk.s, mean)
        scores = Scores.of(
            chunk.s,
            chunk.w,
            mean,
            sampling=sample and self.weight_type != "count" and bool(np.any(chunk.w != 1)),
            unit=chunk.unit,
            fine=sample and seen + len(chunk.s) < FINE,
            powers=sample and self.standardize,
        ).compiled(len(chunk.s) * len(names))
        whole = are_whole(chunk.w)
        features = [
            self._one(j, name, column, scores, whole)
            for j, (name, column) in enumerate(zip(names, chunk.columns, strict=True))
        ]
        total = None if chunk.unit is None else scores.total
        return Statistics(names, scores.mean, len(chunk.s), features, whole, total)

    def _one(self, j: int, name: str, column: Column, scores: Scores, whole: bool) -> FeatureSums:
        """Sum up a feature in its bins, which are found here if there are none yet."""
        limit = np.inf if self.method == "discrete" else MAX_LEVELS
        if self._statistics is not None:
            return self._statistics.features[j].of(name, column, scores)
        if self._bins is not None:
            return FeatureSums.empty(self._bins[name], limit).of(name, column, scores)
        f, of_values = scores.of_column(column)
        start, index = of_values.find_bins(
            f,
            counts=self.weight_type != "sampling" and whole,
            method=self.method,
            rows=self.rows,
            n_bins=self.n_bins,
            scale=column.scale,
        )
        if scores.unit is not None:  # whole units lie beyond the range by chance
            start = replace(start, n=float(scores.unit.max() + 1))
        empty = FeatureSums.empty(start, limit)
        return empty._replace(sums=tally(index, empty.bins, of_values, f))

    def _summed_apart(self, chunk: Chunk, total: Statistics, seen: int) -> tuple[Any, ...]:
        """Return the sums of 25 groups of rows or units in the bins of `total`, after `seen`."""
        other, unit = copy.copy(self), chunk.unit
        group = (seen + (np.arange(len(chunk.s)) if unit is None else unit)) % GROUPS
        other._statistics = total
        here = (group == k for k in range(GROUPS))
        return tuple(
            other._summed(chunk.taken(k), list(total.names)) if k.any() else None for k in here
        )

    def _current(self) -> Statistics:
        if self._statistics is not None:
            return self._statistics
        if not self._waiting or self._names is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        return self._summed(Chunk.of(self._names, self._waiting), self._names)

    def _tallies(self, total: Statistics) -> tuple[Statistics, str, float, list[Tally]]:
        """Return what is needed of the sums, the kind of weights, sd(s) and the sums in bins."""
        kind = self.weight_type
        if kind == "auto":
            kind = "count" if total.whole else "sampling"
        now = total.needed(kind)
        scores = now.scores()
        if kind == "count":
            check_weight_type(kind, scores.w, self.rows, self.method)
        elif self.standardize:
            raise ValueError(
                "standardize=True with weights of sampling needs all rows at once; expected False, "
                "or firm on a table in memory (result.standardized has the importances)"
            )
        sd = scores.sd(self.rows)
        lost = np.abs(now.features[0].sums.wr).max()  # of constant scores it is 0, too
        check_differences("s", sd or float(lost), self.rows)
        if self.standardize and sd > 0:
            now, sd = now.divided(sd), 1.0
        pairs = zip(self._names or [], now.features, strict=True)
        found = [self._tally(name, f)._replace(total=now.total) for name, f in pairs]
        return now, kind, sd, found

    def _variance(self, part: Statistics) -> np.ndarray:
        """Return the variance of q_f of each feature in some of the rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said once, of all rows
            return summarize(self._tallies(part)[-1], self.rows).unbiased

    def _tally(self, name: str, feature: FeatureSums) -> Tally:
        """Return the sums in those bins of a feature that have rows."""
        feature.warn(name)
        w, dropped = feature.sums.w, 0.0
        taken: Any = w > 0
        if self.missing == "drop":
            taken[-1], dropped = False, float(w[-1])
        count = np.count_nonzero(taken)
        if count == len(w) - 1 and not taken[-1]:
            taken = slice(count)  # as a rule all but missing values; need no copy
        if not count:
            raise ValueError(f"feature {name!r} is missing in all rows; missing='drop' leaves none")
        bins = Bins(feature.bins.first[taken], feature.bins.method, scale=feature.bins.scale)
        sums = feature.sums.each(lambda a: a[taken])
        known = sums.wrrrr is not None
        found = Tally(
            bins, sums, influence=standardized_influence(sums) if known else None, dropped=dropped
        )
        try:
            found.check(self.rows)
        except ValueError as error:
            raise ValueError(f"feature {name!r}: {error}") from error
        return found

    def emptied(self) -> Self:
        """Return one that has seen no rows, with the same bins."""
        other = copy.copy(self)
        other._waiting, other._n_waiting, other._statistics, other._apart = (), 0, None, ()
        return other


def both(one: Statistics | None, other: Statistics | None) -> Any:
    """Return the sums of both, or of the one that there is."""
    return one.merged(other) if one is not None and other is not None else one or other


def each_of(some: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `both` of each group of rows."""
    return tuple(map(both, some, others)) if some and others else some or others
