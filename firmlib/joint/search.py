"""The feature that nobody named: among all conjunctions of conditions, those that matter most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations, islice
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from firmlib.estimation.rows import rows_of
from firmlib.features import check_names
from firmlib.measure import firm
from firmlib.result import FirmResult
from firmlib.scores import Score, respond
from firmlib.tables.checks import check_integer, check_memory, check_number
from firmlib.tables.columns import Column
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

__all__ = ["SearchResult", "search"]

_LEAST = 20  # searched rows in which a rule must hold, and fail
_LEVELS = 32  # of a category that are looked at, the most frequent ones
_CUTS = 9  # thresholds of a column, at tenths of the rows
_POOL = 2000  # rules from which different ones are chosen
_SECONDS, _SPEED, _START = 60, 3e9, 1e-4  # at most; rules times rows in a second; to begin with


def search(
    score: Score,
    X: Any,
    *,
    order: int = 2,
    n: int = 10,
    distinct: float = 0.8,
    sample_weight: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    categorical: Sequence[Any] | None = None,
    response_method: str = "auto",
    target: Any = None,
    random_state: int = 0,
) -> SearchResult:
    """Find the conjunctions of up to `order` conditions with the largest importance.

    A condition says that a number lies above or below a threshold (tenths of the rows), that a
    category has a level, or that a value is missing. A random half of the rows is searched
    exhaustively, in less than a minute; importances come from the other half, because the best of
    many rules looks too good on the rows where it was found.

    A rule must hold in 20 of the searched rows, and fail in as many; it must beat each rule without
    one of its conditions by a standard error. At most `n` rules are returned, no two with the same
    columns and relations (>, ≤, =, ≠) or indicators correlated by more than `distinct`.
    `sample_weight`, `groups`, `categorical`, `response_method` and `target` are as for
    `firmlib.firm`; rows of one unit stay in one half.

    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = lambda X: (X[:, 0] > 0.5) & (X[:, 2] < 0)
    >>> firmlib.search(model, X, n=1).to_frame()[["importance", "searched", "covered"]].round(2)
                                importance  searched  covered
    feature
    x0 > 0.481 ∧ x2 ≤ -0.00029        0.34      0.35     0.15
    """
    check_integer("order", order, 1)
    check_integer("n", n, 1)
    check_number("distinct", distinct, 0, 1)
    table = Table.of(X).with_categorical(categorical)
    check_names(table.names)
    response = respond(score, table, response_method=response_method, target=target)
    rows = rows_of(response.values, table, sample_weight, groups)
    check_memory("the table of conditions", (2 * _CUTS * table.width, rows.n), 1)
    columns = [(name, table.column(j).take(rows.keep)) for j, name in enumerate(table.names)]
    families = [family for name, column in columns for family in _families(name, column)]
    names = np.array([name for some, _ in families for name in some])
    holds = np.array([row for _, some in families for row in some]).reshape(-1, rows.n)

    unit = np.arange(rows.n) if rows.unit is None else rows.unit
    units = int(unit.max()) + 1
    if rows.unit is not None and units < 4:
        raise ValueError(f"groups has {units} units; expected at least 4, for two halves")
    seen = (np.random.default_rng(random_state).permutation(units) < units / 2)[unit]
    p = rows.w[seen] / rows.w[seen].sum()
    r = rows.s[seen] - p @ rows.s[seen]
    sd = r.std() or 1.0
    some = best([some[:, seen] for _, some in families], r / sd, p, order)
    rules = [*islice(different(some, holds[:, seen], r / sd, p, distinct), n)]
    if not rules:
        none = f"no rule of up to {order} conditions that matters holds in {_LEAST} searched rows"
        raise ValueError(f"{none}; expected a score and columns that vary, or more rows")
    met = np.array([holds[rule].all(axis=0) for rule in rules])
    result = firm(
        response._replace(values=rows.s),
        1.0 * met.T,
        feature_names=[" ∧ ".join(names[rule]) for rule in rules],
        sample_weight=rows.w * ~seen,
        groups=rows.unit,
    )
    searched = importance(met[:, seen], np.ones(len(p)), r, p)
    return SearchResult(**vars(result), searched=searched, covered=met @ rows.w / rows.w.sum())


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SearchResult(FirmResult):
    """Rules found by `search`: a `FirmResult` from rows that the search did not use.

    `searched` is Q on the searched rows, which is too large because the rule is the best of many;
    `covered` is the share of all rows in which the rule holds.
    """

    searched: np.ndarray
    covered: np.ndarray

    _columns = f"importances searched covered {FirmResult._columns.removeprefix('importances')}"


def _families(name: str, column: Column) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield conditions on a column with the same relation: names, and who meets each (k, n)."""
    f, number = column.values, column.kind == "number"
    missing = np.isnan(f)
    levels, count = np.unique(f[~missing], return_counts=True)
    if missing.any() and len(levels):
        yield [f"{name} missing"], missing[None]
        yield [f"{name} known"], ~missing[None]
    if len(levels) < 2:
        return
    if column.kind == "nominal" or len(levels) == 2:
        at = levels[np.argsort(-count, kind="stable")][:_LEVELS]
        relations = [("=", np.equal), ("≠", np.not_equal)][: len(levels) - 1]
    else:
        of = f[~missing] if len(levels) > _CUTS + 1 else levels
        at = np.quantile(of, np.arange(1, _CUTS + 1) / (_CUTS + 1), method="inverted_cdf")
        at = np.unique(np.minimum(at, levels[-2]))  # some value must lie above
        short = np.array([float(f"{t:.3g}") for t in at])
        at = short if number and (np.diff(short, append=levels[-1]) > 0).all() else at
        relations = [(">", np.greater), ("≤", np.less_equal)]
    words = pd.Series(column.shown(at)).astype(str)  # dates without hours, if none has any
    words = words.str.removesuffix(".0") if number else words
    for sign, compare in relations:
        yield [f"{name} {sign} {word}" for word in words], compare(f, at[:, None])


def importance(A: np.ndarray, B: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return Q = |sum_C p r| / sqrt(P (1 - P)), P = sum_C p (eq. 10), of each C = A and B.

    The rows of A (k, n) and B (m, n) or (n,) are sets.
    """
    P, S = ((A * a) @ B.T for a in (p, p * r))
    return np.abs(S) / np.sqrt(np.maximum(P * (1 - P), 1e-12))


def best(families: Sequence[np.ndarray], r: np.ndarray, p: np.ndarray, order: int) -> list[list]:
    """Return the best rule of each set of families (k, n) of conditions, by falling Q.

    A rule is a list of its conditions, numbered through all families.
    """
    sizes, n = [len(family) for family in families], len(r)
    rules, sets = comb(sum(sizes), order), comb(len(families), order)
    if (seconds := rules * n / _SPEED + sets * _START) > _SECONDS:
        raise ValueError(
            f"{rules:.3g} rules of {order} conditions on {n} rows would take {seconds / 60:.0f} "
            f"minutes; expected at most one: search fewer columns, or up to order={order - 1}"
        )
    start, found = np.cumsum(sizes) - sizes, []
    depths = (combinations(range(len(families)), depth) for depth in range(1, order + 1))
    for some in progress([*chain.from_iterable(depths)], "rules"):
        *before, B = (families[k] for k in some)
        A = reduce(lambda A, B: (A[:, None] & B).reshape(-1, n), before, np.ones((1, n), bool))
        rows = (1.0 * A) @ B.T
        Q = importance(A, B, r, p) * (rows >= _LEAST) * (rows <= n - _LEAST)
        at = start[[*some]] + np.unravel_index(Q.argmax(), [sizes[k] for k in some])
        found.append((-round(Q.max(), 9), len(some), at.tolist()))
    return [rule for Q, _, rule in sorted(found)[:_POOL] if Q < 0]


def different(
    rules: Sequence[list], holds: np.ndarray, r: np.ndarray, p: np.ndarray, distinct: float
) -> Iterator[list]:
    """Yield rules that differ, and beat those without one of their conditions."""
    kept = []
    for rule in rules:
        parts = combinations(rule, len(rule) - 1)
        sets = np.array([holds[[*some]].all(axis=0) for some in (rule, *parts)])
        Q, A = importance(sets, np.ones(len(p)), r, p), sets[0]
        P = p @ A
        noise = sum(np.cov(r[B], aweights=p[B], ddof=0) / B.sum() for B in (A, ~A))
        z = (A - P) * np.sqrt(p / (P * (1 - P)))
        alike = max((abs(z @ other) for other in kept), default=0)
        if Q[0] > Q[1:].max() + np.sqrt(P * (1 - P) * noise) and alike <= distinct * (1 - 1e-9):
            kept.append(z)
            yield rule
