"""The feature that nobody named: among all conjunctions of conditions, those that matter most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from firmlib.estimation.rows import rows_of
from firmlib.measure import firm
from firmlib.result import FirmResult
from firmlib.scores import Score, respond
from firmlib.tables.checks import check_integer, check_memory, check_number
from firmlib.tables.columns import Column
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

__all__ = ["SearchResult", "search"]

_SMALLEST = 200  # rows that are worth splitting
_LEVELS = 32  # of a category that are looked at, the most frequent ones
_BATCH = 256  # sets that are grown together
_POOL = 200  # rules for each that is asked for, from which different ones are chosen
_SECONDS, _SPEED = 60, 3e9  # how long a search may take, and rules times rows in a second

Rule = list[int]  # its conditions


def search(
    score: Score,
    X: Any,
    *,
    order: int = 2,
    n: int = 10,
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
) -> SearchResult:
    """Find the conjunctions of up to `order` conditions with the largest importance.

    A condition says that a number lies above or below a quantile, that a category has a level, or
    that a value is missing. One random half of the rows is searched exhaustively; importances come
    from the other half, since the best of many rules looks better than it is where it was found.
    A rule must beat each rule that lacks one of its conditions by its standard error. A search
    that would take more than a minute raises an error with the number of rules.

    Parameters
    ----------
    score, X, sample_weight, groups, categorical, response_method, target, confidence_level
        As for `firmlib.firm`; at least 200 rows. Rows of one unit stay in one half.
    order, n : int, default 2 and 10
        The largest number of conditions in a rule; how many rules to return, if so many matter.
    cuts : int, default 9
        Thresholds per column.
    min_rows : int, default 20
        Rows of the searched half in which a rule must hold, and in which it must fail.
    distinct : float, default 0.8
        Rules whose indicator correlates more than this with that of a better one are left out. Of
        rules with the same columns and directions, only the one with the best thresholds is kept.
    random_state : int, default 0
        For the split.

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
    for name, value in {"order": order, "n": n, "cuts": cuts, "min_rows": min_rows}.items():
        check_integer(name, value, 1)
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
    check_memory("the table of conditions", (2 * max(cuts, 2) * table.width, rows.n), 1)
    columns = ((name, table.column(j).take(rows.keep)) for j, name in enumerate(table.names))
    found = [one for name, column in columns for one in _conditions(name, column, rows.n, cuts)]
    if not found:
        raise ValueError("no column of X has two values: there is nothing to search")
    names, families, holds = map(np.array, zip(*found, strict=True))
    unit = np.arange(rows.n) if rows.unit is None else rows.unit
    units = int(unit.max()) + 1
    seen = (np.random.default_rng(random_state).permutation(units) < units / 2)[unit]
    p = rows.w[seen] / rows.w[seen].sum()
    r = rows.s[seen] - p @ rows.s[seen]
    sd = np.std(r) or 1.0
    r /= sd
    rules = best(holds[:, seen], families, r, p, order, min_rows, _POOL * n)
    rules = different(rules, holds[:, seen], r, p, n, distinct)
    if not rules:
        raise ValueError(
            f"no rule of up to {order} conditions matters that holds in min_rows={min_rows} rows "
            "of the searched half, and fails in as many; expected fewer min_rows, or more rows"
        )
    met = np.array([holds[rule].all(axis=0) for rule in rules], dtype=float)
    result = firm(
        rows.s[~seen],
        met[:, ~seen].T,
        feature_names=[" ∧ ".join(names[rule]) for rule in rules],
        sample_weight=rows.w[~seen],
        groups=None if rows.unit is None else rows.unit[~seen],
        confidence_level=confidence_level,
    )
    own = {f.name: getattr(result, f.name) for f in fields(result) if f.init}
    own |= {"response": response.method, "target": response.target}
    searched = sd * np.array([importance(holds[:, seen], rule, r, p) for rule in rules])
    return SearchResult(**own, searched=searched, covered=met @ rows.w / rows.w.sum())


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SearchResult(FirmResult):
    """Rules found by `search`: a `FirmResult` from rows that the search has not seen.

    `searched` is Q of each rule where it was found, too large as the best of many; `covered` is the
    share of all rows in which it holds.
    """

    searched: np.ndarray
    covered: np.ndarray

    def _frame(self, order: np.ndarray) -> pd.DataFrame:
        frame = super()._frame(order)
        frame.insert(1, "searched", self.searched[order])
        frame.insert(2, "covered", self.covered[order])
        return frame


def _conditions(
    name: str, column: Column, n: int, cuts: int
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield conditions on a column: a name, a family, and the rows that meet it.

    Thresholds of one direction are a family. A missing value is neither above nor below them.
    """
    f = column.dense(n)
    missing = np.isnan(f)
    levels, count = np.unique(f[~missing], return_counts=True)
    if missing.any() and len(levels):
        yield f"{name} missing", f"{name} missing", missing
        yield f"{name} known", f"{name} known", ~missing
    if len(levels) < 2:
        return
    if len(levels) == 2:
        some, signs = levels[::-1], {"=": np.equal}
    elif column.kind == "nominal":
        some = levels[np.argsort(-count, kind="stable")][:_LEVELS]
        signs = {"=": np.equal, "≠": np.not_equal}
    else:
        share = np.arange(1, cuts + 1) / (cuts + 1)
        some = np.unique(np.quantile(f[~missing], share, method="inverted_cdf"))
        some = levels[:-1] if len(levels) <= cuts + 1 else some[some < levels[-1]]
        short = np.array([float(f"{t:.3g}") for t in some])
        exact = column.kind != "number" or len(np.unique(short)) < len(some)
        some, signs = some if exact else short, {">": np.greater, "≤": np.less_equal}
    for t in some:
        word = pd.Series(column.shown(np.array([t]))).iloc[0]  # dates as pandas prints them
        if column.kind == "number":
            word = f"{t:g}" if float(f"{t:g}") == t else repr(float(t))
        for sign, compare in signs.items():
            text = f"{name} {sign} {word}".removesuffix(" 00:00:00")
            yield text, f"{name} {sign}" if sign in ">≤" else text, compare(f, t)


def importance(holds: np.ndarray, rule: Rule, r: np.ndarray, p: np.ndarray) -> float:
    """Return Q = |sum_A p r| / sqrt(P (1 - P)), P = sum_A p (eq. 10), A the rows that meet a rule.

    r are centred scores, and p are weights as shares.
    """
    A = holds[rule].all(axis=0)
    return float(_Q(p @ A, (p * r) @ A))


def _Q(P: np.ndarray, S: np.ndarray) -> np.ndarray:
    return np.abs(S) / np.sqrt(np.maximum(P * (1 - P), 1e-12))


def best(
    holds: np.ndarray,
    families: np.ndarray,
    r: np.ndarray,
    p: np.ndarray,
    order: int,
    min_rows: int,
    size: int,
) -> list[Rule]:
    """Return the best rule of each set of families, the `size` best of them, by falling Q.

    `holds` (m, n) are the rows that meet each condition. The sums over many rules with each
    condition added are matrix products, in single precision.
    """
    m, n = holds.shape
    if (seconds := comb(m, order) * n / _SPEED) > _SECONDS:
        raise ValueError(
            f"{comb(m, order):.3g} rules of {order} conditions on {n} rows would take about "
            f"{seconds / 60:.0f} minutes; expected at most one: search fewer columns, with fewer "
            f"cuts, or up to order={order - 1}"
        )
    met, terms = holds.T.astype(np.float32), np.array([np.ones(n), p, p * r], np.float32)
    kept: dict[tuple[str, ...], tuple[float, Rule]] = {}
    worst, sets = 0.0, np.zeros((1, 0), int)
    for depth in range(1, order + 1):
        grown = [np.zeros((0, depth), int)]
        for start in progress(range(0, len(sets), _BATCH), f"rules of {depth} conditions"):
            some = sets[start : start + _BATCH]
            masks = holds[some].all(axis=1)
            rows, P, S = ((masks * a) @ met for a in terms)
            later = np.arange(m) > some.max(axis=1, initial=-1)[:, None]
            enough = later & (rows > min_rows - 0.5)
            Q = np.where(enough & (rows < n - min_rows + 0.5), _Q(P, S), 0)
            for i, j in np.argwhere(worst < Q).tolist():
                rule = [*some[i].tolist(), j]
                key = tuple(sorted(families[rule]))
                kept[key] = max(kept.get(key, (0.0, [])), (float(Q[i, j]), rule))
            if len(kept) > size:
                kept = dict(sorted(kept.items(), key=lambda item: -item[1][0])[:size])
                worst = min(kept.values())[0]
            which, added = np.nonzero(enough & (depth < order))
            grown.append(np.column_stack([some[which], added]))
        sets = np.concatenate(grown)
    rules = sorted(rule for _, rule in kept.values())
    return sorted(rules, key=lambda rule: (-round(importance(holds, rule, r, p), 9), len(rule)))


def different(
    rules: Sequence[Rule], holds: np.ndarray, r: np.ndarray, p: np.ndarray, n: int, distinct: float
) -> list[Rule]:
    """Return up to n rules that beat their parts, without those that nearly coincide.

    A rule beats its parts if Q exceeds that of each rule without one of its conditions by its
    standard error, sqrt(P (1 - P) (Var(r | A) / n_A + Var(r | not A) / n_not_A)).
    """
    kept: list[Rule] = []
    indicators = np.zeros((0, len(r)))
    for rule in rules:
        A = holds[rule].all(axis=0)
        P = p @ A
        noise = sum(np.cov(r[B], aweights=p[B], ddof=0) / B.sum() for B in (A, ~A))
        parts = [list(part) for part in combinations(rule, len(rule) - 1) if part]
        least = max((importance(holds, part, r, p) for part in parts), default=0.0)
        beats = importance(holds, rule, r, p) > least + np.sqrt(P * (1 - P) * noise)
        z = (A - P) * np.sqrt(p / (P * (1 - P)))
        if beats and np.abs(indicators @ z).max(initial=0) <= distinct * (1 - 1e-9):
            kept.append(rule)
            indicators = np.vstack([indicators, z])
        if len(kept) == n:
            break
    return kept
