"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from pandas.util import hash_array  # type: ignore[attr-defined]

from firmlib.estimation import stored
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import How, Sums, scales, summed
from firmlib.estimation.variance import Cells, Source, plain, spread
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_FEW = 2**14  # up to this many rows, all of them determine the bins
_LOOKED_AT = 64  # features that may be needed to tell rows apart
_CELLS = 2**20  # sums that are held at a time, about
_SAMPLE = 8  # rows per slot in the sample that determines the bins
_ODD = np.uint64(0x9E3779B97F4A7C15)

Found = tuple[Estimate, list[Source]]
Summed = tuple[Sums | Line, Column]
Part = tuple[Sequence[int], Estimate, list[Source]]

AS_USUAL = How()


def scan(features: Sequence[Any], table: Table, rows: Rows, how: How = AS_USUAL) -> Found:
    """Return V and sources of features."""
    found: list[Part] = []
    left: Any = np.arange(len(features))
    usual = how == AS_USUAL and isinstance(rows.keep, slice) and rows.unit is None
    if is_sparse(table.data) and usual and not rows.population:
        for at, cells in stored.cells(features, table, rows):
            found.append((at, spread(cells), cells.sources([Column(np.empty(0))] * len(at))))
            left = np.setdiff1d(left, at)
    some = _sample(features[:_LOOKED_AT], table, rows, how) if len(left) else slice(None)
    each = ((k, _of_feature(features[k], table, rows, how, some)) for k in left)
    found += measured(each, rows.w.sum(), rows.population, rows.unit is not None)
    return joined(found, [f.name for f in features])


def _of_feature(feature: Any, table: Table, rows: Rows, how: How, some: Any) -> Summed:
    """Return the sums of a feature, and its column without values, which are freed."""
    column = read(feature, table, rows, how)
    return summed(column, rows, how, some), column._replace(values=np.empty(0))


def read(feature: Any, table: Table, rows: Rows, how: How) -> Column:
    """Return a feature in the rows that count."""
    column = feature.of(table)
    column = column if isinstance(rows.keep, slice) else column.take(rows.keep)
    if how.missing == "raise":
        check_present(f"feature {feature.name!r}", column.values)
    return column


def _sample(features: Sequence[Any], table: Table, rows: Rows, how: How) -> Any:
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


def measured(
    each: Iterable[tuple[int, Summed]], weight: float, population: bool, units: bool
) -> Iterator[Part]:
    """Yield V and sources of the features at some positions, from their sums."""
    waiting = defaultdict(list)
    for k, (one, column) in each:
        kind = one.axis and (one.axis.K, one.axis.ordered, len(one.sums))
        waiting[kind].append((k, one, column))
        if len(waiting[kind]) * one.sums.size > _CELLS:
            yield _measured(waiting.pop(kind), weight, population, units)
    yield from (_measured(some, weight, population, units) for some in waiting.values())


def _measured(some: Sequence[Any], weight: float, population: bool, units: bool) -> Part:
    """Return positions, V and sources of features whose sums have one shape."""
    at, each, columns = zip(*some, strict=True)
    if isinstance(each[0], Line):
        sources = [one.source(c, weight) for one, c in zip(each, columns, strict=True)]
        return at, Estimate.concatenate([one.estimate(population) for one in each]), sources
    base, finest = np.array([one.axis.scales(one.known) for one in each]).T
    own: Any = {"base": base, "finest": finest, "weight": weight, "ordered": each[0].axis.ordered}
    own |= {"start": [one.axis.start for one in each], "centre": [one.centre for one in each]}
    cells = Cells.of(np.stack([one.sums for one in each], axis=2), units, **own)
    estimate = Estimate.untested(plain(cells.pooled)) if population else spread(cells)
    return at, estimate, cells.sources(columns)


def joined(found: Sequence[Part], names: Sequence[str]) -> Found:
    """Return V and sources in the order of positions; V is 0, with a warning, where it is nan."""
    if not found:
        return Estimate.untested(np.zeros(0)), []
    at, estimates, sources = zip(*found, strict=True)
    order, sources = np.argsort(np.concatenate(at)), list(chain(*sources))
    estimate = Estimate.concatenate(estimates).taken(order)
    silent = np.isnan(estimate.V)
    if silent.any():
        some = [name for name, no in zip(names, silent, strict=True) if no]
        warn(
            f"importance 0 for {short(some)}, {len(some)} of {len(names)} features: they are "
            "constant, missing, nominal without a slope, or have a level of their own in nearly "
            "every row or unit"
        )
        V, noise, psi = (np.where(silent, 0, a) for a in (estimate.V, estimate.noise, estimate.psi))
        estimate = Estimate(V, noise, np.where(silent, 1, estimate.pvalue), psi)
    return estimate, [sources[k] for k in order]
