"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress, groupby, tee
from typing import Any

import numpy as np
from pandas.util import hash_array  # type: ignore[attr-defined]

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Axis, How, Sums, scales, summed
from firmlib.estimation.variance import Source, spread
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_FEW = 2**14  # up to this many rows, all of them determine the bins
_LOOKED_AT = 64  # features that may be needed to tell rows apart
_CELLS = 2**20  # sums that are held at a time, about
_TOGETHER = 128  # sparse columns that are read together
_SAMPLE = 8  # rows per slot in the sample that determines the bins
_ODD = np.uint64(0x9E3779B97F4A7C15)

Found = tuple[Estimate, list[Source]]
Summed = tuple[Sums | Line, Column]

AS_USUAL = How()


def scan(features: Sequence[Any], table: Table, rows: Rows, how: How = AS_USUAL) -> Found:
    """Return V and sources of features."""
    each, names = _summed(features, table, rows, how), [f.name for f in features]
    return measured(each, names, rows.w.sum(), rows.population, rows.unit is not None)


def _summed(features: Sequence[Any], table: Table, rows: Rows, how: How) -> Iterator[Summed]:
    """Yield the sums of each feature, and its column."""
    plain = how == AS_USUAL and isinstance(rows.keep, slice) and rows.unit is None
    some, sparse = None, is_sparse(table.data) and plain and not rows.population
    for first in range(0, len(features), _TOGETHER):
        block = features[first : first + _TOGETHER]
        stored = _of_stored(block, table, rows) if sparse else {}
        for feature in block:
            if feature in stored:
                yield stored[feature], Column(np.empty(0))
                continue
            some = _sample(features[:_LOOKED_AT], table, rows, how) if some is None else some
            column = read(feature, table, rows, how)
            yield summed(column, rows, how, some), column._replace(values=np.empty(0))


def read(feature: Any, table: Table, rows: Rows, how: How) -> Column:
    """Return a feature in the rows that count."""
    column = feature.of(table)
    column = column if isinstance(rows.keep, slice) else column.take(rows.keep)
    if how.missing == "raise":
        check_present(f"feature {feature.name!r}", column.values)
    return column


def _sample(features: Sequence[Any], table: Table, rows: Rows, how: How) -> slice | np.ndarray:
    """Return the rows that determine the bins.

    Of many rows it is a sample, chosen by a hash of their numbers and so whatever their order is.
    """
    if rows.n <= _FEW or how.n_bins or how.slope or rows.population:
        return slice(None)
    key, m = np.full(1, _ODD), _SAMPLE * 2 ** scales(rows.n)[1]
    for feature in features:
        column = read(feature, table, rows, how)
        if column.kind != "nominal":
            key = hash_array(column.values + 0.0) + _ODD * key  # type: ignore[operator]
            some = np.flatnonzero(key < np.uint64(2.0**64 / rows.n * m))
            if abs(len(some) - m) < 0.1 * m and len(np.unique(key[some])) > 0.9 * m:
                return some
    return slice(None)


def _of_stored(features: Sequence[Any], table: Table, rows: Rows) -> dict[Any, Sums]:
    """Return the sums of sparse columns of few levels, of which only stored values are read."""
    features = [f for f in features if f.function is Table.column]
    features = [f for f in features if f.args[0] not in table.categorical]
    data = table.readable[:, [f.args[0] for f in features]]
    if not features or data.dtype.kind not in "iuf":
        return {}
    f, at, count, d = data.data.astype(float), data.indices, np.diff(data.indptr), len(features)
    column, zeros = np.repeat(np.arange(d), count), np.flatnonzero(count < rows.n)
    most = np.inf if data.dtype.kind == "f" else 2**53  # floats merge larger integers
    fits = np.bincount(column[~(np.abs(f) < most)], minlength=d) == 0
    both = np.column_stack([np.append(column, zeros), np.append(f, 0.0 * zeros)]).view(complex)
    levels, code = np.unique(both, return_inverse=True)  # by column, then by value
    begin = np.flatnonzero(np.diff(np.real(levels), prepend=-1))
    each = np.split(np.imag(levels), begin[1:])
    if fits.all():
        fits = np.array([len(own) <= 1.5 * 2 ** scales(rows.n)[0] for own in each])
    if not fits.all():  # other columns are read whole
        return _of_stored([*compress(features, fits)], table, rows)
    axes = [Axis.of_levels(own, ordered=True) for own in each]
    first = np.cumsum([0] + [len(axis.start) + 1 for axis in axes])  # of the bins of all columns
    bins = np.arange(len(levels)) + np.repeat(first[:-1] - begin, [len(own) for own in each])
    stored, zero = np.split(bins[code.ravel()], [len(f)])
    sums = np.zeros((len(rows.parts), first[-1], FOLDS))
    for own, part in zip(sums, rows.parts, strict=True):
        part = np.ones(rows.n) if part is None else part
        cell = stored * FOLDS + rows.fold[at]
        own += np.bincount(cell, part[at], own.size).reshape(own.shape)
        rest = np.bincount(rows.fold, part, FOLDS) - np.add.reduceat(own, first[:-1])
        own[zero] += rest[zeros]
    found = zip(features, axes, np.split(sums.swapaxes(1, 2), first[1:-1], axis=2), strict=True)
    return {f: Sums(axis, rows.centre, own, rows.n) for f, axis, own in found}


def measured(
    each: Iterable[Summed], names: Sequence[str], weight: float, population: bool, units: bool
) -> Found:
    """Return V and sources of features from their sums."""
    parts, sources = [Estimate.untested(np.zeros(0))], []
    sizes, each = tee(each)
    cells = accumulate(one.sums.size for one, _ in sizes)
    for _, batch in groupby(zip(cells, each, strict=True), lambda pair: pair[0] // _CELLS):
        some = [pair for _, pair in batch]
        sources += [one.source(column, weight) for one, column in some]
        alike = defaultdict(list)
        for k, (one, _) in enumerate(some):
            alike[one.axis and (one.axis.K, one.axis.ordered, len(one.sums))].append(k)
        found = [_estimated([some[k][0] for k in at], population, units) for at in alike.values()]
        order = np.argsort(np.concatenate([*alike.values()]))
        parts.append(Estimate.concatenate(found).taken(order))
    return _known(Estimate.concatenate(parts), names), sources


def _estimated(some: Sequence[Any], population: bool, units: bool) -> Estimate:
    """Return V of features whose sums have one shape."""
    if isinstance(some[0], Line):
        return Estimate.concatenate([line.estimate(population) for line in some])
    if population:
        return Estimate.untested(np.array([one.plain() for one in some]))
    base, finest = np.array([one.axis.scales(one.known) for one in some]).T
    sums = np.stack([one.sums for one in some], axis=2)
    return spread(sums, base, finest, ordered=some[0].axis.ordered, units=units)


def _known(estimate: Estimate, names: Sequence[str]) -> Estimate:
    """Return the estimate with 0 for V that is nan, and warn of these features."""
    silent = np.isnan(estimate.V)
    if not silent.any():
        return estimate
    some = [name for name, no in zip(names, silent, strict=True) if no]
    warn(
        f"importance 0 for {short(some)}, {len(some)} of {len(names)} features: they are constant, "
        "missing, nominal without a slope, or have a level of their own in nearly every row or unit"
    )
    V, noise, psi = (np.where(silent, 0, a) for a in (estimate.V, estimate.noise, estimate.psi))
    return Estimate(V, noise, np.where(silent, 1, estimate.pvalue), psi)
