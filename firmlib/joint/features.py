"""Groups of columns, and what features add to given columns, in the terms of `firm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.scan import scan
from firmlib.estimation.sums import Source
from firmlib.features import Feature, Group
from firmlib.joint.given import given, group
from firmlib.tables.columns import Column
from firmlib.tables.table import Table


def _taken(columns: Sequence[Column], sample: Rows) -> list[Column]:
    """Return the values of columns in all rows that count."""
    some = (column.take(sample.keep) for column in columns)
    return [c._replace(values=c.dense(sample.n), rows=None) for c in some]


def _columns(f: Feature | Group, table: Table, sample: Rows) -> list[Column]:
    return _taken(f.columns(table) if isinstance(f, Group) else [f.of(table)], sample)


def _combined(columns: Sequence[Column], table: Table) -> Column:
    values = np.column_stack([np.where(np.isnan(c.values), np.inf, c.values) for c in columns])
    code = np.unique(values, axis=0, return_inverse=True)[1].ravel().astype(float)
    return Column(code, None, "nominal", np.arange(len(code)))


def _of_levels(columns: Sequence[Sequence[Column]], table: Table, sample: Rows) -> Estimate:
    """Return V of groups of columns in a population: every combination is a level."""
    return scan([Feature("group", partial(_combined, c)) for c in columns], table, sample)[0]


def _mark(columns: Sequence[Column]) -> float:
    """Return a number that is the same for the same columns of the same rows."""
    place = np.sin(1.0 + np.arange(len(columns[0].values)))
    return float(sum(np.nan_to_num(c.values) @ place for c in columns))


def with_groups(
    found: Sequence[Feature | Group],
    table: Table,
    sample: Rows,
    estimate: Estimate,
    sources: Sequence[Source],
) -> tuple[Estimate, list[Source]]:
    """Return estimates of single features and of groups of columns in the order of `found`."""
    is_group = np.array([isinstance(f, Group) for f in found])
    columns = [_columns(f, table, sample) for f in found if isinstance(f, Group)]
    if sample.population:
        joined = _of_levels(columns, table, sample)
    else:
        joined = group(sample, columns, [f.name for f in found if isinstance(f, Group)])
    both = Estimate.concatenate([estimate, joined])
    every = [*sources, *(Source("group", _mark(c)) for c in columns)]
    order = np.argsort(np.argsort(is_group, kind="stable"))
    return both.taken(order), [every[i] for i in order]


def adds_to(
    found: Sequence[Feature | Group], table: Table, sample: Rows, known: tuple[str, ...]
) -> tuple[Estimate, list[Source]]:
    """Return what features add to the columns that are known."""
    for f in found:
        if f.name in known:
            raise ValueError(f"feature {f.name!r} is also in given=; remove it from one of them")
    columns = [_columns(f, table, sample) for f in found]
    known_columns = _taken([table.column(g) for g in known], sample)
    if sample.population:
        both = _of_levels([[*known_columns, *c] for c in columns], table, sample)
        estimate = replace(both, V=both.V - _of_levels([known_columns], table, sample).V)
    else:
        estimate = given(sample, columns, known_columns, [f.name for f in found])
    kinds = [
        "group" if isinstance(f, Group) else c[0].kind for f, c in zip(found, columns, strict=True)
    ]
    sources = [Source(kind, _mark(c)) for kind, c in zip(kinds, columns, strict=True)]
    return estimate, sources
