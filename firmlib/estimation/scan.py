"""One pass over the features of a table: sums and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pandas.util import hash_array  # type: ignore[attr-defined]

from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Axis, How, Sums, scales, summed
from firmlib.estimation.variance import Source, spread
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.table import Table, is_sparse

_CELLS = 2**20  # sums that are held at a time
_FEW = 2**14  # up to this many rows, all of them determine the bins
_LOOKED_AT = 64  # features that may be needed to tell rows apart
_SAMPLE = 8  # rows per slot in the sample that determines the bins
_ODD = np.uint64(0x9E3779B97F4A7C15)

Found = tuple[Estimate, list[Source]]


AS_USUAL = How()
NUMBERS = Column(np.empty(0))


def scan(features: Sequence[Any], table: Table, rows: Rows, how: How = AS_USUAL) -> Found:
    """Return V and sources of features."""
    some, units, weight, zeros = None, rows.unit is not None, rows.w.sum(), None
    plain = how == AS_USUAL and isinstance(rows.keep, slice) and not (units or rows.population)
    if plain and is_sparse(table.data):
        zeros = np.array([np.bincount(rows.fold, part, FOLDS) for part in rows.parts])
    parts, sources, batch = [Estimate.untested(np.zeros(0))], [], []
    for feature in features:
        column, one = NUMBERS, None
        if zeros is not None:
            one = _sparse(feature, table, rows, zeros)
        if one is None:
            some = _sample(features[:_LOOKED_AT], table, rows, how) if some is None else some
            column = read(feature, table, rows, how)
            one = summed(column, rows, how, some)
        sources.append(one.source(column, weight))
        batch.append(one)
        if len(batch) * one.sums.size > _CELLS or feature is features[-1]:
            parts.append(estimated(batch, rows.population, units))
            batch = []
    return known(Estimate.concatenate(parts), [f.name for f in features]), sources


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
    key, m = np.zeros(rows.n, np.uint64), _SAMPLE * 2 ** scales(rows.n)[1]
    for feature in features:
        column = read(feature, table, rows, how)
        if column.kind != "nominal":
            key = hash_array(column.values + 0.0) + _ODD * key  # type: ignore[operator]
            some = np.flatnonzero(key < np.uint64(2.0**64 / rows.n * m))
            if abs(len(some) - m) < 0.1 * m and len(np.unique(key[some])) > 0.9 * m:
                return some
    return slice(None)


def _sparse(feature: Any, table: Table, rows: Rows, total: np.ndarray) -> Sums | None:
    """Return the sums of a sparse column of few levels, of which only stored values are read."""
    if feature.function is not Table.column or (stored := table.stored(*feature.args)) is None:
        return None
    f, at = stored
    levels = np.unique(f if len(f) == rows.n else np.append(f, 0.0))
    known = rows.n - int(np.isnan(f).sum())
    if len(levels) > 1.5 * 2 ** scales(known)[0]:
        return None
    axis = Axis.of_levels(levels[~np.isnan(levels)], ordered=True)
    one = Sums.of(f, rows.taken(at, like=rows), axis, known)
    return one if len(f) == rows.n else one.filled(0.0, total)


def estimated(some: Sequence[Sums | Line], population: bool, units: bool) -> Estimate:
    """Return V of features from their sums; nan if it cannot be estimated."""
    alike: dict[Any, list[int]] = {}
    for j, one in enumerate(some):
        key: Any = j
        if isinstance(one, Sums) and not population:
            key = one.axis.K, one.axis.ordered, len(one.sums)
        alike.setdefault(key, []).append(j)
    parts = []
    for places in alike.values():
        first, *others = (some[j] for j in places)
        if isinstance(first, Line):
            parts.append(first.estimate(population))
        elif population:
            parts.append(_plain(first.sums))
        else:
            each: Any = [first, *others]
            sums = np.stack([one.nested() for one in each], axis=2)
            base, finest = np.array([one.axis.scales(one.known) for one in each]).T
            parts.append(spread(sums, base, finest, ordered=first.axis.ordered, units=units))
    order = np.argsort([j for places in alike.values() for j in places])
    return Estimate.concatenate(parts).taken(order)


def _plain(sums: np.ndarray) -> Estimate:
    """Return V = sum p m^2 - (sum p m)^2 of a population."""
    W, S = sums[:2].sum(axis=1)
    total = max(W.sum(), TINY)
    m = S / np.maximum(W, TINY) - S.sum() / total
    return Estimate.untested(np.array([W @ m**2 / total]))


def known(estimate: Estimate, names: Sequence[str]) -> Estimate:
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
