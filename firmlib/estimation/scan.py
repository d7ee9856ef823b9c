"""One pass over the features of a table: their sums, and what follows from these."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from firmlib.estimation.bins import scales
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import (
    Levels,
    Numbers,
    Parts,
    Read,
    Source,
    numbers_of,
    parts,
    sparse_numbers,
)
from firmlib.estimation.variance import TINY
from firmlib.tables.checks import short
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_CELLS = 2**22  # sums that are held at a time
_VALUES = 2**22  # values of columns that are held at a time


Sums = Numbers | Levels | Line


class Scan:
    """Collects V of features from their sums over n rows, in any order."""

    def __init__(
        self, names: list[str], n: int, *, population: bool, units: bool, drop: bool
    ) -> None:
        self.names, self.n, self.drop = names, n, drop
        self.population, self.units = population, units
        m = len(names)
        self.sources: list[Source] = [Source()] * m
        self.estimate = Estimate(
            np.zeros(m), np.zeros((3, m)), np.full(m, np.nan), np.zeros((FOLDS, m))
        )
        self.silent: list[str] = []

    def take(self, places: Sequence[int], sums: Sums, columns: Sequence[Column | None]) -> None:
        """Take the features at these places from their sums; columns tell kinds and labels."""
        for place, source, column in zip(
            places, sums.sources(self.n, self.drop), columns, strict=True
        ):
            if column is not None:
                by_label = isinstance(sums, Levels) and column.labels is not None
                plain = column.kind == "number" or by_label
                source = replace(source, kind=column.kind, shown=None if plain else column.shown)
            self.sources[place] = source
        at, mine = np.asarray(places), self.estimate
        if self.population and not isinstance(sums, Line):
            mine.V[at] = [self.sources[i].explained for i in places]
            return
        found, weights = sums.spread(self.n, self.units, self.drop), sums.weights(self.drop)
        mine.V[at] = found.V
        if self.population:
            return
        share = weights / np.maximum(weights.sum(axis=0), TINY)
        each = Estimate.of_folds(found.V, found.without, share, found.noise, found.pvalue)
        pooled = [self.sources[i].sums for i in places]
        varies = [sums is not None and np.count_nonzero(sums[0]) > 1 for sums in pooled]
        told = np.isfinite(found.V) & varies
        self.silent.extend(self.names[i] for i in at[~told].tolist())
        mine.V[at] = np.where(told, each.V, 0)
        mine.pvalue[at] = np.where(told, each.pvalue, 1)
        mine.noise[:, at] = np.where(told, each.noise, 0)
        mine.psi[:, at] = np.where(told, each.psi, 0)

    def done(self) -> tuple[Estimate, list[Source]]:
        """Return all features; warn of those that nothing can be said of."""
        if self.silent:
            warnings.warn(
                f"importance 0 for {short(self.silent)}, {len(self.silent)} of {len(self.names)} "
                "features: they are constant, missing, have a level of their own in nearly every "
                "row, or are nominal and have no slope",
                stacklevel=4,
            )
        return self.estimate, self.sources


def new_sums(column: Column, n: int, *, population: bool, slope: bool) -> Sums | None:
    """Return empty sums for a column, or None if it is one of numbers in slots."""
    if slope:
        return Line(column.dense(n), column.kind == "nominal")
    if population or column.kind == "nominal":
        return Levels(column.kind != "nominal")
    return None


def scan(
    features: Sequence[Any],
    table: Table,
    rows: Rows,
    *,
    slope: bool = False,
    n_bins: int | None = None,
    missing: str = "level",
    every: bool = False,
) -> tuple[Estimate, list[Source]]:
    """Return V and sources of features; `every`: they are all columns of the table, in order."""
    found = Scan(
        [f.name for f in features],
        rows.n,
        population=rows.population,
        units=rows.unit is not None,
        drop=missing == "drop",
    )
    each = parts(rows.s - rows.centre, rows.w if rows.weighted else None)
    left = list(range(len(features)))
    if every and not slope and not rows.population and missing != "raise":
        if table.plain:
            _plain(found, table, rows, each, n_bins)
            return found.done()
        if is_sparse(table.data) and not (n_bins or table.categorical or rows.unit is not None):
            left = _sparse(found, table, rows, each)
    waiting: list[tuple[int, Column, np.ndarray]] = []
    n, together = rows.n, _together(rows.n)
    for i in left:
        column = features[i].of(table).take(rows.keep)
        if missing == "raise":
            check_present(f"feature {features[i].name!r}", column.values)
        sums = new_sums(column, n, population=rows.population and not n_bins, slope=slope)
        values = column.dense(n)
        if sums is None:
            waiting.append((i, column, values))
            if (len(waiting) + 1) * n > _VALUES or len(waiting) >= together:
                _numbers(found, waiting, rows, each, n_bins)
            continue
        sums.add(values if slope else column._replace(values=values, rows=None), each, rows.fold)
        found.take([i], sums, [column])
    _numbers(found, waiting, rows, each, n_bins)
    return found.done()


def _together(n: int) -> int:
    """Return how many columns of numbers are summed up together."""
    return max(1, _CELLS // (5 * FOLDS * (2 ** int(scales(n)[1]) + 1)))


def _numbers(
    found: Scan,
    waiting: list[tuple[int, Column, np.ndarray]],
    rows: Rows,
    each: Parts,
    n_bins: int | None,
) -> None:
    """Sum up the columns that wait, and forget them."""
    if waiting:
        F = np.array([values for *_, values in waiting])
        sums = numbers_of(lambda here, most: F[:most, here], rows, each, n_bins)
        found.take([i for i, *_ in waiting], sums, [column for _, column, _ in waiting])
        waiting.clear()


def _plain(found: Scan, table: Table, rows: Rows, each: Parts, n_bins: int | None) -> None:
    """Sum up all columns of an array, block by block."""
    kept = None if isinstance(rows.keep, slice) else np.flatnonzero(rows.keep)

    def reader(columns: range) -> Read:
        def read(here: slice | np.ndarray, most: int | None) -> np.ndarray:
            some = slice(columns.start, columns.stop if most is None else columns.start + most)
            return table.block(some, here if kept is None else kept[here])

        return read

    step = _together(rows.n)
    for a in range(0, table.width, step):
        some = range(a, min(a + step, table.width))
        sums = numbers_of(reader(some), rows, each, n_bins)
        found.take(some, sums, [None] * len(some))


def _sparse(found: Scan, table: Table, rows: Rows, each: Parts) -> list[int]:
    """Sum up sparse columns of few levels; return the other columns."""
    data, left = table.readable, []
    if not isinstance(rows.keep, slice):
        data = data[np.flatnonzero(rows.keep)]
    step = 256
    for a in range(0, table.width, step):
        some = np.arange(a, min(a + step, table.width))
        few, sums = sparse_numbers(data[:, some[0] : some[-1] + 1], each, rows.fold)
        if few.any():
            found.take(some[few].tolist(), sums, [None] * int(few.sum()))
        left += some[~few].tolist()
    return left
