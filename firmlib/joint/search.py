"""The feature that nobody named: among all conjunctions of conditions, those that matter most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.rows import rows_of
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
_BATCH = 256  # sets that are grown together
_POOLS = 20, 200  # rules for each that is asked for, from which different ones are chosen
_SECONDS, _SPEED = 60, 1e10  # how long a search may take, and additions in a second
_ROUNDING = 1e-12

Rule = tuple[int, ...]  # its conditions


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
) -> SearchResult:
    """Find the conjunctions of up to `order` conditions with the largest importance.

    A condition says that a number lies above or below a quantile, that a category has a level, or
    that a value is missing. One random half of the rows is searched exactly, by branch and bound;
    importances come from the other half, since the best of many rules looks better than it is where
    it was found. A rule must beat each rule that lacks one of its conditions by its standard error.

    Parameters
    ----------
    score, X, sample_weight, groups, categorical, response_method, target, confidence_level
        As for `firmlib.firm`; at least 200 rows. Rows of one unit stay in one half.
    order : int, default 2
        The largest number of conditions in a rule.
    n : int, default 10
        How many rules to return, if so many matter.
    columns : list of columns, default None
        The columns that conditions use; all by default.
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
    for name, value in {"order": order, "n": n, "cuts": cuts}.items():
        check_integer(name, value, 1)
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
    names, families, masks = zip(*found, strict=True)
    holds, family = np.column_stack(masks), np.unique(families, return_inverse=True)[1]
    seen = _half(np.arange(rows.n) if rows.unit is None else rows.unit, random_state)
    centre = np.average(rows.s[seen], weights=rows.w[seen])
    inner = Rules(holds[seen], family, rows.s[seen] - centre, rows.w[seen], min_rows)
    rules = inner.different(order, n, distinct)
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


def _half(unit: np.ndarray, random_state: int) -> np.ndarray:
    """Return a random half of the units, as a mask of rows."""
    units = int(unit.max()) + 1
    return (np.random.default_rng(random_state).permutation(units) < units / 2)[unit]


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
    if len(levels) == 2:
        for t in levels[::-1]:
            text = f"{name} = {_text(column, t)}"
            yield text, text, f == t
    elif column.kind == "nominal" and len(levels) > 1:
        for t in levels[np.argsort(-count, kind="stable")][:_LEVELS]:
            for sign, met in (("=", f == t), ("≠", f != t)):
                text = f"{name} {sign} {_text(column, t)}"
                yield text, text, met
    elif len(levels) > 1:
        for t in _thresholds(f[~missing], levels, cuts, column):
            for sign, met in ((">", f > t), ("≤", f <= t)):
                yield f"{name} {sign} {_text(column, t)}", f"{name} {sign}", met


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
    if column.kind in ("date", "duration"):
        import pandas as pd

        shown = pd.Timestamp(shown) if column.kind == "date" else pd.Timedelta(shown)
    return str(shown).removesuffix(" 00:00:00")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SearchResult(FirmResult):
    """Rules found by `search`: a `FirmResult` from rows that the search has not seen.

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


@dataclass(frozen=True)
class Rules:
    """Conditions and the rows they are searched in.

    With r the centred scores and W the sum of the weights, the importance of a set A of rows is

        Q(A) = |sum_A w r| / (W sqrt(p (1 - p))),   p = sum_A w / W   (eq. 10),

    so two sums over A are enough, and those of many sets with each condition added are two matrix
    products. With w r^2 summed as well, they bound what a subset of A can reach: by Cauchy and
    Schwarz Q(A')^2 (1 - p') <= sum_A' w r^2 / W over the rows of one sign, and p' <= p. Sets that
    cannot beat the worst rule kept are not grown.

    holds (n, m): rows that meet each condition.
    family (m,): the same for thresholds of one column and direction.
    r, w (n,): centred scores and weights. A rule must hold, and fail, in `min_rows` rows.
    """

    holds: np.ndarray
    family: np.ndarray
    r: np.ndarray
    w: np.ndarray
    min_rows: int

    def where(self, rule: Rule) -> np.ndarray:
        """Return which rows meet a rule."""
        return np.asarray(self.holds[:, list(rule)].all(axis=1))

    def importance(self, rule: Rule) -> float:
        """Return Q of a rule."""
        A = self.where(rule)
        return float(self._Q(self.w[A].sum(), (self.w * self.r)[A].sum()))

    def _Q(self, w: np.ndarray, wr: np.ndarray) -> np.ndarray:
        both = w * (self.w.sum() - w)
        some = both > _ROUNDING * self.w.sum() ** 2
        return np.where(some, np.abs(wr) / np.sqrt(np.where(some, both, 1.0)), 0.0)

    def best(self, order: int, n: int) -> list[Rule]:
        """Return the best rule of each set of families, the `n` best of them, by falling Q."""
        values, rules, worst = np.zeros(0), np.zeros((0, order), int), 0.0
        sets, met = np.zeros((1, 0), int), self.holds.astype(float)
        for depth in range(order):
            self._check_work(len(sets), depth + 1)
            grown, bounds = [np.zeros((0, depth + 1), int)], [np.zeros(0)]
            for start in range(0, len(sets), _BATCH):
                some = sets[start : start + _BATCH]
                Q, bound = self._grow(some, met)
                new = np.arange(len(self.family)) > some.max(axis=1, initial=-1)[:, None]
                i, j = np.nonzero(new & (worst < Q))  # each set once
                found = np.full((len(i), order), -1)
                found[:, :depth], found[:, depth] = some[i], j
                values, rules = np.append(values, Q[i, j]), np.vstack([rules, found])
                size = values / max(values.max(initial=0.0), 1e-300)
                ranked = np.argsort(-size.round(9), kind="stable")  # of equal ones the shorter
                families = np.sort(np.append(self.family, -1)[rules[ranked]], axis=1)
                first = np.sort(np.unique(families, axis=0, return_index=True)[1])[:n]
                values, rules = values[ranked[first]], rules[ranked[first]]
                worst = values[-1] if len(values) == n else 0.0
                i, j = np.nonzero(new & (worst < bound))
                grown.append(np.column_stack([some[i], j]))
                bounds.append(bound[i, j])
            sets = np.vstack(grown)[np.concatenate(bounds) > worst]
        return [tuple(int(i) for i in rule if i >= 0) for rule in rules]

    def _grow(self, sets: np.ndarray, met: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Q of sets with each condition added, and the bounds of what may follow."""
        masks = self.holds[:, sets].all(axis=2).T.astype(float)
        wr, n, W = self.w * self.r, len(self.w), self.w.sum()

        def sums(a: np.ndarray) -> np.ndarray:
            return (masks * a) @ met

        w, rows = sums(self.w), masks @ met
        enough = rows > self.min_rows - 0.5
        Q = np.where(enough & (rows < n - self.min_rows + 0.5), self._Q(w, sums(wr)), 0.0)
        up, down = (sums(wr * side(self.r, 0)) for side in (np.maximum, np.minimum))
        squares = np.maximum(np.maximum(up, down), 0) / np.maximum(W - w, _ROUNDING * W)
        return Q, np.where(enough, np.sqrt(squares) * (1 + 1e-9), 0.0)

    def _check_work(self, sets: int, order: int) -> None:
        n, m = self.holds.shape
        seconds = sets * m * n * 4 / _SPEED
        if seconds > _SECONDS:
            raise ValueError(
                f"{sets * m:.3g} rules of {order} conditions on {n} rows would take about "
                f"{seconds / 60:.0f} minutes; expected at most one: search fewer columns, with "
                f"fewer cuts, or up to order={order - 1}"
            )

    def different(self, order: int, n: int, distinct: float) -> list[Rule]:
        """Return up to n rules that beat their parts, without those that nearly coincide."""
        kept: list[Rule] = []
        for pool in _POOLS:
            rules, kept = self.best(order, pool * n), []
            indicators = np.zeros((0, len(self.w)))
            for rule in rules:
                A, W = self.where(rule), self.w.sum()
                p = self.w[A].sum() / W
                z = (A - p) * np.sqrt(self.w / (W * p * (1 - p)))
                apart = np.abs(indicators @ z).max(initial=0) <= distinct * (1 - 1e-9)
                if len(kept) < n and apart and self._needed(rule, A, p):
                    kept.append(rule)
                    indicators = np.vstack([indicators, z])
            if len(kept) == n or len(rules) < pool * n:
                break
        return kept

    def _needed(self, rule: Rule, A: np.ndarray, p: float) -> bool:
        """Whether a rule beats each rule that lacks one of its conditions by its standard error."""
        noise = 0.0
        for part in (A, ~A):
            w, r = self.w[part], self.r[part]
            noise += np.average((r - np.average(r, weights=w)) ** 2, weights=w) / len(w)
        shorter = [rule[:i] + rule[i + 1 :] for i in range(len(rule))] if len(rule) > 1 else []
        best = max(map(self.importance, shorter), default=0.0)
        return self.importance(rule) > best + np.sqrt(noise * p * (1 - p))
