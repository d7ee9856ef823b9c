"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from firmlib.estimation.bins import Axes, scales, spacing
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Found, Sums, summed
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_CELLS = 2**20  # sums that are held at a time
_VALUES = 2**22  # values of columns that are held at a time
_ROWS = 2**16  # that are summed together
_FEW = 2**14  # up to this many rows, all of them determine the slots
_SAMPLE = 8  # rows per slot in the sample that determines the slots
_SPARSE = 64  # sparse columns that are summed up together


class How(NamedTuple):
    """How features are measured."""

    n_bins: int | None = None
    missing: str = "level"
    slope: bool = False


AS_USUAL = How()
Values = Callable[..., np.ndarray]
"""Return the values (d, m) of columns, or of some of them, in some of the rows that count."""


class Tally:
    """The sums of several features over the rows so far, in blocks of columns.

    Numbers share a block. A nominal column, a column of a population, a slope, and a column whose
    missing values are dropped have a block of their own. `axes` are those of another tally.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        values: Values,
        rows: Rows,
        how: How,
        *,
        axes: Sequence[Axes | None] = (),
        roomy: bool = False,
    ) -> None:
        levels = [c.kind == "nominal" or (rows.population and not how.n_bins) for c in columns]
        self.dropping, self.n = how.slope or how.missing == "drop", 0
        alone = [level or self.dropping for level in levels]
        parts = [[j for j, own in enumerate(alone) if not own]]
        parts = parts * bool(parts[0]) + [[j] for j, own in enumerate(alone) if own]
        numbers = [j for j, level in enumerate(levels) if not level]
        some: Any = slice(0, rows.n)
        if rows.n > _FEW and numbers and not (axes or how.n_bins or how.slope):
            m = _SAMPLE * 2 ** int(scales(rows.n)[1])
            some, roomy = _sample(values, numbers, rows.n, m), True
        unit = None if rows.unit is None else rows.unit[some]
        self.blocks: list[tuple[list[int], Sums | Line]] = []
        for part in parts:
            shared: list[Any] = [axes[j] for j in part] if axes else [None]
            if how.slope:
                sums = Line(columns[part[0]].kind == "nominal")
            elif levels[part[0]]:
                sums = Sums(Axes.of_levels(values(some, part)[0]))
            elif None in shared:
                F = values(some, part)
                sums = Sums(Axes.of(F, rows.n, how.n_bins, roomy=roomy, unit=unit))
            else:
                sums = Sums(Axes.joined(shared))
            self.blocks.append((part, sums))

    @property
    def axes(self) -> list[Axes | None]:
        """The bins of each column; None for levels and slopes, which need none."""
        found: list[Axes | None] = [None] * sum(len(some) for some, _ in self.blocks)
        for some, sums in self.blocks:
            if isinstance(sums, Sums) and sums.axes.kind != "levels":
                for k, j in enumerate(some):
                    found[j] = sums.axes.taken([k])
        return found

    def add(self, values: Values, rows: Rows) -> Self:
        """Add rows."""
        for a in range(0, rows.n, _ROWS):
            here = slice(a, min(a + _ROWS, rows.n))
            F, part = values(here), rows.taken(here)
            for some, sums in self.blocks:
                f, kept = F if len(some) == len(F) else F[some], part
                if self.dropping and np.isnan(f).any():
                    known = ~np.isnan(f[0])
                    sums.dropped += part.w[~known].sum()
                    f, kept = f[:, known], part.taken(known)
                if kept.n:
                    sums.add(f, kept)
        self.n += rows.n
        return self

    def merge(self, other: Tally, codes: Sequence[Column]) -> None:
        """Add the rows of another one with the same bins; `codes` hold the new codes of labels."""
        if [some for some, _ in self.blocks] != [some for some, _ in other.blocks]:
            raise ValueError(
                "other has columns of other kinds; expected streams with the same bins"
            )
        for (some, mine), (_, theirs) in zip(self.blocks, other.blocks, strict=True):
            mine.merge(theirs, codes[some[0]])  # type: ignore[arg-type]
        self.n += other.n

    def found(self, columns: Sequence[Column], *, population: bool, units: bool) -> Found:
        """Return V of the columns, nan if it cannot be estimated, and what a result keeps."""
        places = [some for some, _ in self.blocks]
        parts = [
            sums.found(self.n, [columns[j] for j in some], population, units)
            for some, sums in self.blocks
        ]
        return in_order(places, parts)

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


def _sample(values: Values, numbers: list[int], n: int, m: int) -> slice | np.ndarray:
    """Return about m rows, chosen by a hash of their numbers and so independent of their order."""
    for some in (numbers[:2], numbers):
        key = np.full(n, 0x2545F4914F6CDD1D, np.uint64)  # rows of zeros must not have the key 0
        for a in range(0, n, _ROWS):
            here = slice(a, min(a + _ROWS, n))
            for f in values(here, some):
                key[here] ^= (f + 0.0).view(np.uint64)  # -0.0 is 0.0
                key[here] *= np.uint64(0x9E3779B97F4A7C15)
                key[here] ^= key[here] >> np.uint64(29)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
        rows = np.flatnonzero(key < np.uint64(2.0**64 / n * m))
        if m / 2 < len(rows) < 2 * m and len(np.unique(key[rows])) > m / 3:
            return rows
    return slice(0, n)


def in_order(places: Sequence[Any], parts: Sequence[Found]) -> Found:
    """Return several estimates as one, in the order of their places."""
    order = np.argsort(np.concatenate(places))
    sources = [source for _, some in parts for source in some]
    estimate = Estimate.concatenate([estimate for estimate, _ in parts]).taken(order)
    return estimate, [sources[i] for i in order]


def known(estimate: Estimate, names: Sequence[str]) -> Estimate:
    """Return the estimate with 0 for V that is nan, and warn of these features."""
    silent = np.isnan(estimate.V)
    if not silent.any():
        return estimate
    some = [name for name, no in zip(names, silent, strict=True) if no]
    warn(
        f"importance 0 for {short(some)}, {len(some)} of {len(names)} features: they are constant, "
        "missing, have a level of their own in nearly every row, or are nominal and have no slope"
    )
    V, pvalue = np.where(silent, 0, estimate.V), np.where(silent, 1, estimate.pvalue)
    noise, psi = (np.where(silent, 0, a) for a in (estimate.noise, estimate.psi))
    return Estimate(V, noise, pvalue, psi)


def scan(
    features: Sequence[Any], table: Table, rows: Rows, how: How = AS_USUAL, *, every: bool = False
) -> Found:
    """Return V and sources of features; `every`: they are all columns of the table, in order."""
    if not features:
        return Estimate.exact(np.zeros(0)), []
    units, left = rows.unit is not None, np.arange(len(features))
    places, found = [], []
    usual = not (how.slope or rows.population or how.n_bins or table.categorical or units)
    if every and is_sparse(table.data) and usual and how.missing != "raise":
        few = _few(table, rows, how)
        places, found = _sparse(table, rows, np.flatnonzero(few))
        left = np.flatnonzero(~few)
    plain = every and table.plain and how.missing != "raise"
    step = max(1, _CELLS // (3 * FOLDS * (2 ** int(scales(rows.n)[1]) + 1)))
    step = step if plain else max(1, min(step, _VALUES // rows.n))
    for some in np.split(left, range(step, len(left), step)) if len(left) else ():
        if plain:
            columns, values = (
                [NUMBERS] * len(some),
                block(table, rows, some[0], len(some)),
            )
        else:
            columns = [read(features[i], table, rows, how) for i in some]
            values = stacked(columns)
        tally = Tally(columns, values, rows, how).add(values, rows)
        places.append(some)
        found.append(tally.found(columns, population=rows.population, units=units))
    estimate, sources = in_order(places, found)
    return known(estimate, [f.name for f in features]), sources


NUMBERS = Column(np.empty(0))


def block(table: Table, rows: Rows, first: int, d: int) -> Values:
    """Return how to read d columns of a plain table."""
    kept = None if isinstance(rows.keep, slice) else np.flatnonzero(rows.keep)

    def values(here: slice | np.ndarray, some: Sequence[int] = range(d)) -> np.ndarray:
        adjacent = slice(first + some[0], first + some[-1] + 1)  # numbers are all there are
        return table.block(adjacent, here if kept is None else kept[here])

    return values


def stacked(columns: Sequence[Column]) -> Values:
    """Return how to read columns."""
    every = range(len(columns))
    return lambda here, some=every: np.array([columns[j].values[here] for j in some])


def read(feature: Any, table: Table, rows: Rows, how: How) -> Column:
    """Return a feature in the rows that count."""
    column = feature.of(table).take(rows.keep)
    if how.missing == "raise":
        check_present(f"feature {feature.name!r}", column.values)
    return column


def _few(table: Table, rows: Rows, how: How) -> np.ndarray:
    """Return which columns of a sparse table have so few values that each is a level."""
    data = table.readable
    few = np.diff(data.indptr) < 1.5 * 2 ** scales(rows.n)[0]
    values = data.data.astype(float)
    few &= np.abs(values).max(initial=0) < 2**53 or data.dtype.kind == "f"  # floats merge integers
    odd = np.isinf(values)  # `Table.column` refuses them
    if how.missing == "drop":
        odd |= np.isnan(values)
    few[np.searchsorted(data.indptr, np.flatnonzero(odd), side="right") - 1] = False
    return few


def _sparse(table: Table, rows: Rows, few: np.ndarray) -> tuple[list[np.ndarray], list[Found]]:
    """Sum up sparse columns."""
    data, parts, found = table.readable, rows.parts(rows.centre), []
    if not isinstance(rows.keep, slice):
        data = data[np.flatnonzero(rows.keep)]
    places = np.split(few, range(_SPARSE, len(few), _SPARSE)) if len(few) else []
    for some in places:
        sums = _sparse_sums(data[:, some], parts, rows)
        found.append(sums.found(rows.n, [NUMBERS] * len(some), False, False))
    return places, found


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
