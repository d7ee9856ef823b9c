"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from firmlib.estimation.bins import Axes, scales, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Source, Sums, fold_totals, moved_totals, summed
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_CELLS = 2**19  # sums that are held at a time
_VALUES = 2**22  # values of columns that are held at a time
_ROWS = 2**16  # that are summed together
_FEW = 2**14  # up to this many rows, all of them determine the slots
_SAMPLE = 8  # rows per slot in the sample that determines the slots
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

    Numbers share a block. A nominal column, a column of a population, a slope, and a column whose
    missing values are dropped have a block of their own. `axes` are those of another tally.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Rows,
        how: How,
        *,
        axes: Sequence[Axes | None] = (),
        roomy: bool = False,
    ) -> None:
        drop = how.missing == "drop"
        alone = [
            drop or how.slope or c.kind == "nominal" or (rows.population and how.n_bins is None)
            for c in columns
        ]
        together = [j for j, own in enumerate(alone) if not own]
        parts = [together] * bool(together) + [[j] for j, own in enumerate(alone) if own]
        known = iter(axes)
        self.blocks: list[tuple[list[int], Sums | Line]] = []
        self.totals, self.centre, self.n = np.zeros((6, FOLDS)), rows.centre, 0
        some: Any = slice(None)
        if rows.n > _FEW and not (axes or how.n_bins or rows.population or how.slope):
            numbers = [c.values for c in columns if c.kind != "nominal"]
            some, roomy = _sample(numbers, _SAMPLE * 2 ** int(scales(rows.n)[1])), True
        unit = None if rows.unit is None else rows.unit[some]
        for part in parts:
            column = columns[part[0]]
            if how.slope:
                self.blocks.append((part, Line(column.kind == "nominal")))
                continue
            own = next(known, None)
            if own is None and (column.kind == "nominal" or rows.population and not how.n_bins):
                own = Axes.of_levels(column.values)
            elif own is None:
                F = np.array([columns[j].values[some] for j in part])
                own = Axes.of(F, rows.n, how.n_bins, roomy=roomy, unit=unit)
            self.blocks.append((part, Sums(own, drop=drop)))

    @property
    def axes(self) -> list[Axes | None]:
        """The bins of the blocks."""
        return [getattr(sums, "axes", None) for _, sums in self.blocks]

    def add(self, columns: Sequence[Column], rows: Rows) -> None:
        """Add rows."""
        for a in range(0, rows.n, _ROWS):
            here = slice(a, a + _ROWS)
            F, part = np.array([c.values[here] for c in columns]), rows.taken(here)
            for some, sums in self.blocks:
                sums.add(F if len(some) == len(F) else F[some], part)
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

    def found(self, columns: Sequence[Column], *, population: bool, units: bool) -> Iterator[Found]:
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


def _sample(columns: Sequence[np.ndarray], m: int) -> slice | np.ndarray:
    """Return about m rows, chosen by a hash of their values and so independent of their order."""
    n = len(columns[0]) if columns else 0
    for some in (columns[:2], columns):
        key = np.full(n, 0x2545F4914F6CDD1D, np.uint64)  # rows of zeros must not have the key 0
        for f in some:
            key ^= (f + 0.0).view(np.uint64)  # -0.0 is 0.0
            key *= np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
        rows = np.flatnonzero(key < np.uint64(2.0**64 / max(n, 1) * m))
        if m / 2 < len(rows) < 2 * m and len(np.unique(key[rows])) > m / 3:
            return rows
    return slice(None)


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
    parts = _scanned(features, table, rows, how, every)
    return collected(parts, [f.name for f in features])


def _scanned(
    features: Sequence[Any], table: Table, rows: Rows, how: How, every: bool
) -> Iterator[Found]:
    units, left = rows.unit is not None, np.arange(len(features))
    usual = not (how.slope or rows.population or how.n_bins or table.categorical or units)
    if every and is_sparse(table.data) and usual and how.missing != "raise":
        few = _few(table, rows, how)
        yield from _sparse(table, rows, np.flatnonzero(few))
        left = np.flatnonzero(~few)
    cells = 3 * FOLDS * (2 ** int(scales(rows.n)[1]) + 1)
    step = max(1, min(_CELLS // cells, _VALUES // rows.n))
    for some in np.split(left, range(step, len(left), step)):
        if not len(some):
            continue
        columns = read([features[i] for i in some], table, rows, how, some[0] if every else None)
        tally = Tally(columns, rows, how)
        tally.add(columns, rows)
        for found in tally.found(columns, population=rows.population, units=units):
            yield found._replace(places=some[found.places])


def read(
    features: Sequence[Any], table: Table, rows: Rows, how: How, first: int | None = None
) -> list[Column]:
    """Return features in the rows that count; `first`: the place of the first of adjacent columns."""
    if first is not None and table.plain and how.missing != "raise":
        some = slice(0, table.n) if isinstance(rows.keep, slice) else np.flatnonzero(rows.keep)
        return [Column(f) for f in table.block(slice(first, first + len(features)), some)]
    columns = [f.of(table).take(rows.keep) for f in features]
    for feature, column in zip(features, columns, strict=True):
        if how.missing == "raise":
            check_present(f"feature {feature.name!r}", column.values)
    return columns


def _few(table: Table, rows: Rows, how: How) -> np.ndarray:
    """Return which columns of a sparse table have few stored values, each of which may be a level."""
    data = table.readable
    few = np.diff(data.indptr) < 1.5 * 2 ** scales(rows.n)[0]
    values = data.data.astype(float)
    few &= np.abs(values).max(initial=0) < 2**53 or data.dtype.kind == "f"  # floats merge integers
    odd = np.isinf(values)  # `Table.column` refuses them
    if how.missing == "drop":
        odd |= np.isnan(values)
    few[np.searchsorted(data.indptr, np.flatnonzero(odd), side="right") - 1] = False
    return few


def _sparse(table: Table, rows: Rows, places: np.ndarray) -> Iterator[Found]:
    """Sum up sparse columns."""
    data, parts = table.readable, rows.parts(rows.centre)
    if not isinstance(rows.keep, slice):
        data = data[np.flatnonzero(rows.keep)]
    for some in np.split(places, range(_SPARSE, len(places), _SPARSE)):
        if len(some):
            sums = _sparse_sums(data[:, some], parts, rows)
            estimate = sums.estimate(rows.n, population=False, units=False)
            columns = [Column(np.empty(0))] * len(some)
            yield Found(some, estimate, sums.sources(rows.n, columns))


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
    level = np.cumsum(new) - 1 - (np.cumsum(levels) - levels)[col]
    Q = int(spacing(levels.max()))
    slot = np.where(known, level * (Q // spacing(levels))[col], Q)
    start = np.full((d, Q), np.inf)
    start[col[new], slot[new]] = value[new]
    start = np.minimum.accumulate(start[:, ::-1], axis=1)[:, ::-1]
    found = Sums(Axes(start, np.ones(d, bool), np.ones(d)))
    stored, size = row < n, FOLDS * d
    each, where = parts[:, row[stored]], rows.fold[row[stored]] * d + col[stored]
    sums = summed(where * (Q + 1) + slot[stored], each, size * (Q + 1))
    sums = np.ascontiguousarray(sums).reshape(-1, FOLDS, d, Q + 1)
    total = summed(rows.fold, parts, FOLDS)[:, :, None]
    zeros = (slice(None), slice(None), np.arange(d), slot[~stored])
    sums[zeros] += total - summed(where, each, size).reshape(-1, FOLDS, d)
    found.sums, found.centre = sums, rows.centre
    return found
