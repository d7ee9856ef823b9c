"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from firmlib.estimation.bins import Axes, scales, spaced, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Read, Source, Sums, fold_totals, moved_totals, summed
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_CELLS = 2**19  # sums that are held at a time
_VALUES = 2**22  # values of columns that are held at a time
_SPARSE = 64  # sparse columns that are summed up together


class Found(NamedTuple):
    """Places of some features, their V and what a result keeps of them."""

    places: Sequence[int]
    estimate: Estimate
    sources: list[Source]


class How(NamedTuple):
    """How features are measured."""

    n_bins: int | None = None
    missing: str = "level"
    slope: bool = False


AS_USUAL = How()


class Tally:
    """The sums of several features over the rows so far, in blocks of columns.

    Numbers share a block, with the given axes or new ones. A nominal column, a column of a
    population or a slope has a block of its own.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Rows,
        how: How,
        *,
        axes: Axes | None = None,
        roomy: bool = False,
    ) -> None:
        self.blocks: list[tuple[list[int], Sums | Line]] = []
        numbers, drop = [], how.missing == "drop"
        for j, column in enumerate(columns):
            nominal = column.kind == "nominal"
            if how.slope:
                self.blocks.append(([j], Line(nominal)))
            elif nominal or (rows.population and how.n_bins is None):
                self.blocks.append(([j], Sums(Axes.of_levels(column.values), drop=drop)))
            else:
                numbers.append(j)
        if numbers:
            new = {"drop": drop, "roomy": roomy}
            read = _reader(columns, numbers)
            sums = Sums(axes, drop=drop) if axes else Sums.of(read, rows, how.n_bins, **new)
            self.blocks.append((numbers, sums))
        self.totals, self.centre, self.n = np.zeros((6, FOLDS)), rows.centre, 0

    @property
    def axes(self) -> Axes | None:
        """The bins of the numbers."""
        shared = [s.axes for _, s in self.blocks if isinstance(s, Sums) and s.axes.kind != "levels"]
        return shared[0] if shared else None

    def add(self, columns: Sequence[Column], rows: Rows) -> None:
        """Add rows of columns without gaps."""
        for some, sums in self.blocks:
            sums.add(_reader(columns, some), rows)
        self.totals += fold_totals(rows, self.centre)
        self.n += rows.n

    def merge(self, other: Tally, codes: Sequence[np.ndarray]) -> None:
        """Add the rows of another one with the same bins; codes[j] are the new codes of labels."""
        if [some for some, _ in self.blocks] != [some for some, _ in other.blocks]:
            raise ValueError(
                "other has columns of other kinds; expected streams with the same bins"
            )
        for (some, mine), (_, theirs) in zip(self.blocks, other.blocks, strict=True):
            mine.merge(theirs, codes[some[0]])  # type: ignore[arg-type]
        self.totals = self.totals + moved_totals(other.totals, other.centre - self.centre)
        self.n += other.n

    def found(
        self, columns: Sequence[Column | None], *, population: bool, units: bool
    ) -> Iterator[Found]:
        """Yield the features of each block."""
        for some, sums in self.blocks:
            estimate = sums.estimate(self.n, population=population, units=units)
            yield Found(some, estimate, sums.sources(self.n, [columns[j] for j in some]))

    def check_bins(self, names: Sequence[str]) -> None:
        """Warn if too many values fall into the first or the last slot of a column."""
        for some, sums in self.blocks:
            if isinstance(sums, Line):
                continue
            axes, W = sums.axes, sums.sums[0].sum(axis=0)[:, :-1]
            last = np.maximum(np.isfinite(axes.start).sum(axis=1) - 1, 0)
            ends = np.maximum(W[:, 0], W[np.arange(len(W)), last])
            crowded = (ends > (0.05 + 2 * axes.ends) * W.sum(axis=1)) & ~axes.exact
            if crowded.any():
                beyond = [names[some[k]] for k in np.flatnonzero(crowded)]
                warn(
                    f"many values of {short(beyond)} lie beyond those of the first rows, from "
                    "which bins were found, so importances are too small: shuffle the rows, or "
                    "pass bins= of a stream that saw rows from all parts"
                )


def _reader(columns: Sequence[Column], some: Sequence[int]) -> Read:
    F = np.array([columns[j].values for j in some])
    return lambda columns, rows: F[columns, rows]


def collected(parts: Iterator[Found], names: Sequence[str]) -> tuple[Estimate, list[Source]]:
    """Return V and sources of all features, in the order of `names`.

    Warn of those whose V is nan: they get 0.
    """
    places, estimates, sources = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(places))
    estimate = Estimate.concatenate(estimates).taken(order)
    silent = np.isnan(estimate.V)
    if silent.any():
        some = [name for name, no in zip(names, silent, strict=True) if no]
        warn(
            f"importance 0 for {short(some)}, {len(some)} of {len(names)} features: they are "
            "constant, missing, have a level of their own in nearly every row, or are nominal and "
            "have no slope"
        )
        kept = np.where(silent, 0.0, 1.0)
        estimate = Estimate(
            np.where(silent, 0, estimate.V),
            np.nan_to_num(estimate.noise) * kept,
            np.where(silent, 1, estimate.pvalue),
            np.nan_to_num(estimate.psi) * kept,
        )
    every = [source for some in sources for source in some]
    return estimate, [every[i] for i in order]


def scan(
    features: Sequence[Any], table: Table, rows: Rows, how: How = AS_USUAL, *, every: bool = False
) -> tuple[Estimate, list[Source]]:
    """Return V and sources of features; `every`: they are all columns of the table, in order."""
    if not features:
        return Estimate.exact(np.zeros(0)), []
    every = every and not how.slope and not rows.population and how.missing != "raise"
    parts = _scanned(features, table, rows, how, every)
    return collected(parts, [f.name for f in features])


def _scanned(
    features: Sequence[Any], table: Table, rows: Rows, how: How, every: bool
) -> Iterator[Found]:
    units, left = rows.unit is not None, list(range(len(features)))
    if every and table.plain:
        yield from _plain(table, rows, how)
        return
    if every and is_sparse(table.data) and not (how.n_bins or table.categorical or units):
        left = yield from _sparse(table, rows, how)
    n = rows.n
    step = max(1, min(_together(n), _VALUES // n))
    for a in range(0, len(left), step):
        some = left[a : a + step]
        columns = [read(features[i], table, rows, how) for i in some]
        tally = Tally(columns, rows, how)
        tally.add(columns, rows)
        for found in tally.found(columns, population=rows.population, units=units):
            yield found._replace(places=[some[j] for j in found.places])


def read(feature: Any, table: Table, rows: Rows, how: How) -> Column:
    """Return the values of a feature in all rows that count."""
    column = feature.of(table).take(rows.keep)
    if how.missing == "raise":
        check_present(f"feature {feature.name!r}", column.values)
    return column


def _together(n: int) -> int:
    """Return how many columns of numbers are summed up together."""
    return max(1, _CELLS // (3 * FOLDS * (2 ** int(scales(n)[1]) + 1)))


def _plain(table: Table, rows: Rows, how: How) -> Iterator[Found]:
    """Sum up all columns of an array, block by block."""
    kept = None if isinstance(rows.keep, slice) else np.flatnonzero(rows.keep)
    n, drop = rows.n, how.missing == "drop"
    step = _together(n)
    for first in range(0, table.width, step):
        places = range(first, min(first + step, table.width))

        def read(columns: slice, here: slice | np.ndarray, places: range = places) -> np.ndarray:
            some = places[columns]
            rows = here if kept is None else kept[here]
            return table.block(slice(some.start, some.stop), rows)

        sums = Sums.of(read, rows, how.n_bins, drop=drop)
        sums.add(read, rows)
        estimate = sums.estimate(n, population=False, units=rows.unit is not None)
        yield Found(places, estimate, sums.sources(n, [None] * len(places)))


def _sparse(table: Table, rows: Rows, how: How) -> Generator[Found, None, list[int]]:
    """Sum up columns with few stored values; return the other columns."""
    data, n = table.readable, rows.n
    if not isinstance(rows.keep, slice):
        data = data[np.flatnonzero(rows.keep)]
    few = np.diff(data.indptr) < 1.5 * 2 ** scales(n)[0]  # each may be a level, beside 0
    values = data.data.astype(float)
    few &= np.abs(values).max(initial=0) < 2**53 or data.dtype.kind == "f"  # floats merge integers
    odd = np.isinf(values)  # `Table.column` refuses them
    if how.missing == "drop":  # scores are centred by column
        odd |= np.isnan(values)
    few[np.searchsorted(data.indptr, np.flatnonzero(odd), side="right") - 1] = False
    parts, some = rows.parts(rows.centre), np.flatnonzero(few)
    for a in range(0, len(some), _SPARSE):
        places = some[a : a + _SPARSE]
        sums = _sparse_sums(data[:, places], parts, rows)
        estimate = sums.estimate(n, population=False, units=False)
        yield Found(places.tolist(), estimate, sums.sources(n, [None] * len(places)))
    return np.flatnonzero(~few).tolist()


def _sparse_sums(data: Any, parts: np.ndarray, rows: Rows) -> Sums:
    """Return the sums of a CSC matrix in the levels of its columns.

    Only stored values are read; the sums of zeros are the totals minus the sums of these.
    """
    n, d = data.shape
    col = np.append(np.repeat(np.arange(d), np.diff(data.indptr)), np.arange(d))
    value, row = np.append(data.data, np.zeros(d)), np.append(data.indices, np.full(d, n))
    order = np.lexsort((value, col))  # missing values last
    col, value, row = col[order], value[order], row[order]
    known = ~np.isnan(value)
    new = np.append(True, (np.diff(col) > 0) | (np.diff(value) > 0)) & known
    levels = np.bincount(col[new], minlength=d)
    slot = np.cumsum(new) - 1 - (np.cumsum(levels) - levels)[col]
    Q = int(spacing(levels.max()))
    each_level = np.full((d, Q), np.inf)
    each_level[col[new], slot[new]] = value[new]
    start = spaced(each_level, np.isfinite(each_level), Q, True)
    slot = np.where(known, slot * (Q // spacing(levels))[col], Q)
    found = Sums(Axes(start, np.ones(d, bool), np.ones(d)))
    stored, size = row < n, FOLDS * d
    each, where = parts[:, row[stored]], rows.fold[row[stored]] * d + col[stored]
    sums = summed(where * (Q + 1) + slot[stored], each, size * (Q + 1))
    sums = np.ascontiguousarray(sums).reshape(-1, FOLDS, d, Q + 1)
    total = summed(rows.fold, parts, FOLDS)[:, :, None]
    zeros = (slice(None), slice(None), np.arange(d), slot[~stored])
    sums[zeros] += total - summed(where, each, size).reshape(-1, FOLDS, d)
    found.sums, found.centre = sums, np.full(d, rows.centre)
    return found
