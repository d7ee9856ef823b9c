"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from firmlib.estimation.bins import Axes, scales, spaced, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import (
    Levels,
    Numbers,
    Read,
    Source,
    fold_totals,
    moved_totals,
    summed,
)
from firmlib.estimation.variance import TINY
from firmlib.tables.checks import short
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_CELLS = 2**19  # sums that are held at a time
_VALUES = 2**22  # values of columns that are held at a time


class How(NamedTuple):
    """How features are measured."""

    n_bins: int | None = None
    missing: str = "level"
    slope: bool = False

    @property
    def drop(self) -> bool:
        return self.missing == "drop"


AS_USUAL = How()


class Tally:
    """The sums of several features over the rows so far."""

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Rows,
        how: How,
        *,
        axes: Axes | None = None,
        roomy: bool = False,
    ) -> None:
        self.others: dict[int, Levels | Line] = {}
        for j, column in enumerate(columns):
            nominal = column.kind == "nominal"
            if how.slope:
                self.others[j] = Line(nominal)
            elif nominal or (rows.population and how.n_bins is None):
                self.others[j] = Levels(not nominal, how.drop)
        self.places = [j for j in range(len(columns)) if j not in self.others]
        self.numbers: Numbers | None = None
        if self.places and axes is not None:
            self.numbers = Numbers(axes, how.drop)
        elif self.places:
            read = self._reader(columns)
            self.numbers = Numbers.of(read, rows, how.n_bins, how.drop, roomy)
        self.totals, self.centre = np.zeros((6, FOLDS)), rows.centre
        self.n = 0

    def _reader(self, columns: Sequence[Column]) -> Read:
        F = np.array([columns[j].values for j in self.places])
        return lambda here, most: F[:most, here]

    def add(self, columns: Sequence[Column], rows: Rows) -> None:
        """Add rows of columns without gaps."""
        if self.numbers is not None:
            self.numbers.add(self._reader(columns), rows)
        for j, sums in self.others.items():
            sums.add(columns[j], rows)
        self.totals += fold_totals(rows)
        self.n += rows.n

    def merge(self, other: Tally) -> None:
        """Add the rows of another one with the same bins."""
        if self.numbers is not None and other.numbers is not None:
            self.numbers.merge(other.numbers)
        for j, sums in self.others.items():
            sums.merge(other.others[j])  # type: ignore[arg-type]
        self.totals = self.totals + moved_totals(other.totals, other.centre - self.centre)
        self.n += other.n

    def check_bins(self, names: Sequence[str]) -> None:
        """Warn if too many values fall into the first or the last slot of a column."""
        if self.numbers is None:
            return
        axes, W = self.numbers.axes, self.numbers.sums[0].sum(axis=0)[:, :-1]
        last = np.maximum(np.isfinite(axes.start).sum(axis=1) - 1, 0)
        ends = np.maximum(W[:, 0], W[np.arange(len(W)), last])
        crowded = (ends > (0.05 + 2 * axes.ends) * W.sum(axis=1)) & ~axes.exact
        if crowded.any():
            beyond = [names[self.places[k]] for k in np.flatnonzero(crowded)]
            warnings.warn(
                f"many values of {short(beyond)} lie beyond those of the first rows, from which "
                "bins were found, so importances are too small: shuffle the rows, or pass bins= of "
                "a stream that saw rows from all parts",
                stacklevel=3,
            )


class Scan:
    """Collect V of features from their sums over n rows, in any order."""

    def __init__(self, names: list[str], n: int, *, population: bool, units: bool) -> None:
        self.names, self.n, self.population, self.units = names, n, population, units
        m = len(names)
        self.sources: list[Source] = [Source()] * m
        self.estimate = Estimate(
            np.zeros(m), np.zeros((3, m)), np.full(m, np.nan), np.zeros((FOLDS, m))
        )
        self.silent: list[str] = []

    def take_all(self, places: Sequence[int], tally: Tally, columns: Sequence[Column]) -> None:
        """Take all features of a tally."""
        groups = [([j], sums) for j, sums in tally.others.items()]
        groups += [] if tally.numbers is None else [(tally.places, tally.numbers)]
        for some, sums in groups:
            self.take([places[j] for j in some], sums, [columns[j] for j in some])

    def take(
        self,
        places: Sequence[int],
        sums: Numbers | Levels | Line,
        columns: Sequence[Column | None],
    ) -> None:
        """Take the features at these places from their sums; columns tell kinds and labels."""
        sources = sums.sources(self.n, columns)
        for place, source in zip(places, sources, strict=True):
            self.sources[place] = source
        at, mine = np.asarray(places), self.estimate
        if self.population and not isinstance(sums, Line):
            mine.V[at] = [source.explained for source in sources]
            return
        found = sums.spread(self.n, self.units)
        mine.V[at] = found.V
        if self.population:
            return
        share = found.weight / np.maximum(found.weight.sum(axis=0), TINY)
        each = Estimate.of_folds(found.V, found.without, share, found.noise, found.pvalue)
        varies = [s.sums is not None and np.count_nonzero(s.sums[0]) > 1 for s in sources]
        told = np.isfinite(found.V) & varies
        self.silent.extend(self.names[i] for i in at[~told].tolist())
        mine.V[at] = np.where(told, each.V, 0)
        mine.pvalue[at] = np.where(told, each.pvalue, 1)
        mine.noise[:, at] = np.where(told, each.noise, 0)
        mine.psi[:, at] = np.where(told, each.psi, 0)

    def done(self) -> tuple[Estimate, list[Source]]:
        """Return all features; warn of those that cannot be estimated."""
        if self.silent:
            warnings.warn(
                f"importance 0 for {short(self.silent)}, {len(self.silent)} of {len(self.names)} "
                "features: they are constant, missing, have a level of their own in nearly every "
                "row, or are nominal and have no slope",
                stacklevel=4,
            )
        return self.estimate, self.sources


def scan(
    features: Sequence[Any], table: Table, rows: Rows, how: How = AS_USUAL, *, every: bool = False
) -> tuple[Estimate, list[Source]]:
    """Return V and sources of features; `every`: they are all columns of the table, in order."""
    names, units = [f.name for f in features], rows.unit is not None
    found = Scan(names, rows.n, population=rows.population, units=units)
    left = list(range(len(features)))
    if every and not how.slope and not rows.population and how.missing != "raise":
        if table.plain:
            _plain(found, table, rows, how)
            return found.done()
        if is_sparse(table.data) and not (how.n_bins or table.categorical or units):
            left = _sparse(found, table, rows, how)
    step = max(1, min(_together(rows.n), _VALUES // rows.n))
    for a in range(0, len(left), step):
        some = left[a : a + step]
        columns = [read(features[i], table, rows, how) for i in some]
        tally = Tally(columns, rows, how)
        tally.add(columns, rows)
        found.take_all(some, tally, columns)
    return found.done()


def read(feature: Any, table: Table, rows: Rows, how: How) -> Column:
    """Return the values of a feature in all rows that count."""
    column = feature.of(table).take(rows.keep)
    if how.missing == "raise":
        check_present(f"feature {feature.name!r}", column.values)
    return column._replace(values=column.dense(len(rows.s)), rows=None)


def _together(n: int) -> int:
    """Return how many columns of numbers are summed up together."""
    return max(1, _CELLS // (3 * FOLDS * (2 ** int(scales(n)[1]) + 1)))


def _plain(found: Scan, table: Table, rows: Rows, how: How) -> None:
    """Sum up all columns of an array, block by block."""
    kept = None if isinstance(rows.keep, slice) else np.flatnonzero(rows.keep)

    def reader(columns: range) -> Read:
        def read(here: slice | np.ndarray, most: int | None) -> np.ndarray:
            some = slice(columns.start, columns.stop if most is None else columns.start + most)
            return table.block(some, here if kept is None else kept[here])

        return read

    step = _together(len(rows.s))
    for a in range(0, table.width, step):
        some = range(a, min(a + step, table.width))
        sums = Numbers.of(reader(some), rows, how.n_bins, how.drop, False)
        sums.add(reader(some), rows)
        found.take(some, sums, [None] * len(some))


def _sparse(found: Scan, table: Table, rows: Rows, how: How) -> list[int]:
    """Sum up sparse columns of few levels; return the other columns."""
    data, left = table.readable, []
    if not isinstance(rows.keep, slice):
        data = data[np.flatnonzero(rows.keep)]
    step = 64
    for a in range(0, table.width, step):
        some = np.arange(a, min(a + step, table.width))
        few, sums = _sparse_numbers(data[:, some[0] : some[-1] + 1], rows, how.drop)
        if few.any():
            found.take(some[few].tolist(), sums, [None] * int(few.sum()))
        left += some[~few].tolist()
    return left


def _sparse_numbers(part: Any, rows: Rows, drop: bool) -> tuple[np.ndarray, Numbers]:
    """Return which columns of a CSC matrix have few levels, and their sums.

    Only stored values are read; the sums of zeros are the totals minus the sums of these.
    """
    d, n = part.shape[1], rows.n
    col = np.append(np.repeat(np.arange(d), np.diff(part.indptr)), np.arange(d))
    value, row = np.append(part.data, np.zeros(d)), np.append(part.indices, np.full(d, n))
    order = np.lexsort((value, col))  # missing values last
    col, value, row = col[order], value[order], row[order]
    known = ~np.isnan(value)
    new = np.append(True, (np.diff(col) > 0) | (np.diff(value) > 0)) & known
    levels = np.bincount(col[new], minlength=d)
    few = levels <= 1.5 * 2 ** scales(n)[0]
    few[col[~known & drop]] = False  # their scores are centred elsewhere
    slot = np.cumsum(new) - 1 - (np.cumsum(levels) - levels)[col]
    here = few[col]
    col = (np.cumsum(few) - 1)[col]
    col, value, row, known, new, slot = (a[here] for a in (col, value, row, known, new, slot))
    d, Q = int(few.sum()), int(spacing(levels[few].max(initial=2)))
    each_level = np.full((d, Q), np.inf)
    each_level[col[new], slot[new]] = value[new]
    start = spaced(each_level, np.isfinite(each_level), Q, True)
    slot = np.where(known, slot * (Q // spacing(levels[few]))[col], Q)
    found = Numbers(Axes(start, np.ones(d, bool), np.ones(d)), drop)
    found.centre[:] = rows.centre
    stored, shape = row < n, (FOLDS, d, Q + 1)
    each, where = rows.parts[:, row[stored]], rows.fold[row[stored]] * d + col[stored]
    sums = summed(where * (Q + 1) + slot[stored], each, FOLDS * d * (Q + 1))
    sums = np.ascontiguousarray(sums).reshape(-1, *shape)
    total = summed(rows.fold, rows.parts, FOLDS)[:, :, None]
    zeros = (slice(None), slice(None), np.arange(d), slot[~stored])
    sums[zeros] += total - summed(where, each, FOLDS * d).reshape(-1, FOLDS, d)
    found.sums = sums
    return few, found
