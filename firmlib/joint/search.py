"""The feature that nobody named: among all conjunctions of conditions, those that matter most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.rows import rows_of
from firmlib.joint.rules import Rules
from firmlib.measure import firm
from firmlib.result import FirmResult
from firmlib.scores import Score, respond
from firmlib.tables.checks import check_integer, check_memory, check_number
from firmlib.tables.columns import Column
from firmlib.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SearchResult", "search"]

_MOST = 10**10  # combinations of columns
_SMALLEST = 200  # rows that are worth splitting
_LEVELS = 32  # of a category that are looked at, the most frequent ones


def search(
    score: Score,
    X: Any,
    *,
    order: int = 2,
    n: int = 10,
    columns: Sequence[Any] | None = None,
    cuts: int = 9,
    min_rows: int = 20,
    distinct: float = 0.8,
    sample_weight: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    categorical: Sequence[Any] | None = None,
    response_method: str = "auto",
    target: Any = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
    progress: bool = False,
) -> SearchResult:
    """Find the conjunctions of up to `order` conditions with the largest importance.

    A condition says that a number lies above or below a quantile, that a category has a level, or
    that a value is missing. One random half of the rows is searched exactly, by branch and bound;
    importances come from the other half, since the best of many rules looks better than it is where
    it was found. A rule must beat each rule that lacks one of its conditions by its standard error.

    Parameters
    ----------
    score, X
        As for `firmlib.firm`; at least 200 rows.
    order : int, default 2
        The largest number of conditions in a rule.
    n : int, default 10
        How many rules to return, if so many matter.
    columns : list of columns, default None
        The columns that conditions use; all by default.
    cuts : int, default 9
        Thresholds per column.
    min_rows : int, default 20
        Rows of the searched half in which a rule must hold, and must fail.
    distinct : float, default 0.8
        Rules whose indicator correlates more than this with that of a better one are left out. Of
        rules with the same columns and directions, only the one with the best thresholds is kept.
    sample_weight, groups, categorical, response_method, target, confidence_level
        As for `firmlib.firm`; rows of one unit stay in one half.
    random_state : int, default 0
        For the split.
    progress : bool, default False
        Whether to show a bar for each number of conditions (if tqdm is installed).

    Returns
    -------
    SearchResult

    Examples
    --------
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
    check_integer("cuts", cuts, 1)
    check_integer("min_rows", min_rows, 2)
    check_number("distinct", distinct, 0, 1, above=True)
    table = Table.of(X).with_categorical(categorical)
    response = respond(score, table, response_method=response_method, target=target)
    rows = rows_of(response.values, table, sample_weight, groups)
    if rows.n < _SMALLEST:
        raise ValueError(
            f"X has {rows.n} rows with a weight; expected at least {_SMALLEST}, of which one half "
            "is searched and the other measures what was found"
        )
    if not np.ptp(rows.s):
        raise ValueError(f"score={rows.mean:g} is constant: there is nothing to search for")
    places = range(table.width) if columns is None else [table.place(j) for j in columns]
    if (many := comb(len(places), order)) > _MOST:
        raise ValueError(
            f"order={order} of {len(places)} columns are {many:.3g} combinations, more than a "
            f"minute can search; expected at most {_MOST:.0e}: fewer columns, or a lower order"
        )
    check_memory("the table of conditions", (rows.n, 20 * max(cuts, 2) * len(places)), 1)
    read = ((table.names[j], table.column(j).take(rows.keep)) for j in places)
    found = [one for name, column in read for one in _conditions(name, column, rows.n, cuts)]
    if not found:
        raise ValueError("no column of X has two values: there is nothing to search")
    names = [name for yes, no, *_ in found for name in (yes, no)]
    holds = np.column_stack([part for *_, yes in found for part in (yes, ~yes)])
    seen = _half(rows.unit, rows.n, random_state)
    centre = np.average(rows.s[seen], weights=rows.w[seen])
    inner = Rules(holds[seen], _families(found), rows.s[seen] - centre, rows.w[seen], min_rows)
    rules = inner.different(order, n, distinct, progress)
    if not rules:
        raise ValueError(
            f"no rule of up to {order} conditions matters that holds in min_rows={min_rows} rows "
            "of the searched half, and fails in as many; expected fewer min_rows, or more rows"
        )
    met = np.column_stack([holds[:, list(rule)].all(axis=1) for rule in rules]).astype(float)
    result = firm(
        rows.s[~seen],
        met[~seen],
        feature_names=[" ∧ ".join(names[i] for i in rule) for rule in rules],
        sample_weight=rows.w[~seen],
        groups=None if rows.unit is None else rows.unit[~seen],
        confidence_level=confidence_level,
    )
    own = {f.name: getattr(result, f.name) for f in fields(result) if f.init}
    own |= {"response": response.method, "target": response.target}
    searched = np.array([inner.importance(rule) for rule in rules])
    return SearchResult(**own, searched=searched, covered=rows.w @ met / rows.w.sum())


def _half(unit: np.ndarray | None, n: int, random_state: int) -> np.ndarray:
    """Return a random half of the rows, or of the units, as a mask of rows."""
    index = np.arange(n) if unit is None else unit
    units = int(index.max()) + 1
    return (np.random.default_rng(random_state).permutation(units) < units / 2)[index]


def _families(found: Sequence[tuple[str, str, str, np.ndarray]]) -> np.ndarray:
    """Number the families of all conditions and their negations."""
    names = [name for _, _, family, _ in found for name in (f"{family}+", f"{family}-")]
    return np.unique(names, return_inverse=True)[1]


def _conditions(
    name: str, column: Column, n: int, cuts: int
) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Yield conditions on a column: its name, that of its negation, its family, rows that meet it.

    Where values are missing, a value that does not lie above a threshold need not lie below it.
    """
    f = column.dense(n)
    missing = np.isnan(f)
    levels, count = np.unique(f[~missing], return_counts=True)
    rest = " or missing" if missing.any() else ""
    if rest and len(levels):
        yield f"{name} missing", f"{name} known", f"{name} missing", missing
    if len(levels) == 2 and not rest:
        no, yes = (_text(column, t) for t in levels)
        yield f"{name} = {yes}", f"{name} = {no}", name, f == levels[1]
    elif column.kind == "nominal" and len(levels) > 1:
        for t in levels[np.argsort(-count, kind="stable")][:_LEVELS]:
            text = _text(column, t)
            yield f"{name} = {text}", f"{name} ≠ {text}", f"{name} = {text}", f == t
    else:
        for tau in _thresholds(f[~missing], levels, cuts, column):
            text = _text(column, tau)
            yield f"{name} > {text}", f"{name} ≤ {text}{rest}", f"{name} >", f > tau
            if rest:
                yield f"{name} ≤ {text}", f"{name} > {text}{rest}", f"{name} ≤", f <= tau


def _thresholds(f: np.ndarray, levels: np.ndarray, cuts: int, column: Column) -> np.ndarray:
    """Return all levels but the largest, or quantiles in as few digits as tell them apart."""
    if len(levels) <= cuts + 1:
        return levels[:-1]
    shares = np.arange(1, cuts + 1) / (cuts + 1)
    exact = np.unique(np.quantile(f, shares, method="inverted_cdf"))
    exact = exact[exact < levels[-1]]
    if column.kind != "number":
        return exact
    shorter = (np.array([float(f"{t:.{k}g}") for t in exact]) for k in (3, 4, 6, 9))
    return next((t for t in shorter if len(np.unique(t)) == len(t)), exact)


def _text(column: Column, t: float) -> str:
    """Return a value of a column as words, exactly."""
    if column.kind == "number":
        return f"{t:.17g}" if float(f"{t:.9g}") != t else f"{t:.9g}"
    shown = column.shown(np.array([t]))[0]
    if column.kind not in ("date", "duration"):
        return str(shown)
    import pandas as pd

    moment = pd.Timestamp(shown) if column.kind == "date" else pd.Timedelta(shown)
    return str(moment).removesuffix(" 00:00:00")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SearchResult(FirmResult):
    """Rules found by `search`, with importances from rows that the search has not seen.

    `searched` is Q of each rule where it was found, too large as the best of many; `covered` is the
    share of all rows in which it holds. The rest is as in `FirmResult`.

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> firmlib.search(X[:, 0] > 0, X, order=1, n=1).covered.round(1)
    array([0.5])
    """

    searched: np.ndarray
    covered: np.ndarray

    def _frame(self, order: np.ndarray) -> pd.DataFrame:
        frame = super()._frame(order)
        frame.insert(1, "searched", self.searched[order])
        frame.insert(2, "covered", self.covered[order])
        return frame
