"""The feature that nobody named: among all conjunctions of conditions, those that matter most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_confidence_level, check_integer, check_memory, check_number
from firmlib._columns import Scale
from firmlib._conjunctions import Conjunctions
from firmlib._data import Data
from firmlib._rows import check_weight_type
from firmlib._table import Table
from firmlib.features import Place
from firmlib.measure import firm
from firmlib.result import FirmResult
from firmlib.scores import Score

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from firmlib.display_discovery import RulesDisplay

__all__ = ["SearchResult", "search"]

_SMALLEST = 200  # rows that are worth splitting
_LEVELS = 32  # of a category that are looked at, the most frequent ones


def search(
    score: Score,
    X: Any,
    *,
    order: int = 2,
    n: int = 10,
    columns: Sequence[Place] | None = None,
    cuts: int = 9,
    min_rows: int = 20,
    distinct: float = 0.9,
    response_method: str = "auto",
    target: Any = None,
    sample_weight: ArrayLike | None = None,
    weight_type: str = "auto",
    categorical: Sequence[Place] | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
    progress: bool = False,
) -> SearchResult:
    """Find the conjunctions of up to `order` conditions with the largest absolute Q.

    Conditions are that a number lies above or below a quantile, that a category has a level, that
    a column is missing, and the negations. The rows are split at random. One half is searched,
    exactly, by branch and bound; importances, intervals and tests come from the other half, which
    the search has not seen: the best of many looks better than it is where it was found. For
    sequences, `firmlib.strings.top_motifs` searches all motifs in this way.

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), or array of shape (n,)
        As for `firm`.
    X : array, sparse matrix or data frame of shape (n, d)
        At least 200 rows.
    order : int, default 2
        The largest number of conditions in a rule.
    n : int, default 10
        How many rules; there are fewer where no more are worth it.
    columns : list of columns, default None
        Those that conditions are about; all by default.
    cuts : int, default 9
        Thresholds per column, at quantiles, rounded as they are shown; fewer where it has fewer
        values.
    min_rows : int, default 20
        Rows of the searched half that a rule must hold in, and must not hold in.
    distinct : float, default 0.9
        Rules whose indicator correlates more than this with that of a better one are left out;
        with 1, those that hold in the same rows alone.
    response_method : str, default "auto"
        This and what follows as for `firm`.
    target : label or column, default None
    sample_weight : array of shape (n,), default None
    weight_type : {"auto", "count", "sampling"}, default "auto"
    categorical : list of columns, default None
    groups : array of shape (n,), default None
        Rows of one unit stay in one half, too.
    confidence_level : float, default 0.95
    random_state : int, default 0
        Of the split.
    progress : bool, default False
        Whether to show a bar, for each number of conditions (needs tqdm).

    Returns
    -------
    SearchResult
        In the order of |Q| where they were found. A rule is left out if one that lacks one of
        its conditions is as good within its standard error.

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
    check_confidence_level(confidence_level)
    data = Data.of(
        score,
        X,
        method="auto",
        rows="sample",
        response_method=response_method,
        target=target,
        n_bins="auto",
        sample_weight=sample_weight,
        categorical=categorical,
        missing="level",
        weight_type=weight_type,
        groups=groups,
    )
    scores, table = data.scores, data.table
    weights = data.weight * scores.w
    sampling = check_weight_type(weight_type, weights, "sample", "auto") == "sampling"
    if len(scores.r) < _SMALLEST:
        raise ValueError(
            f"X has {len(scores.r)} rows with a weight; expected at least {_SMALLEST}, of which "
            "one half is searched and the other measures what was found"
        )
    if not scores.r.any():
        raise ValueError(f"score={scores.mean:g} is constant: there is nothing to search for")
    seen = _half(scores.unit, len(scores.r), random_state)
    places = range(table.width) if columns is None else [table.place(j) for j in columns]
    found = [one for j in places for one in _conditions(table, j, cuts)]
    if not found:
        raise ValueError("no column of X has two values: there is nothing to search")
    check_memory("the table of conditions", (len(scores.r), 4 * len(found)))
    names = [name for yes, no, _ in found for name in (yes, no)]
    holds = np.column_stack([part for *_, yes in found for part in (yes, ~yes)])
    inner = Conjunctions(
        holds[seen],
        scores.r[seen] - np.average(scores.r[seen], weights=scores.w[seen]),
        scores.w[seen],
        min_rows,
        progress=progress,
    )
    rules = inner.distinct(order, n, distinct)
    if not rules:
        raise ValueError(
            f"no rule of up to {order} conditions matters that holds in min_rows={min_rows} rows "
            "of the searched half, and fails in as many; expected fewer min_rows, or more rows"
        )
    met = np.column_stack([holds[:, list(rule)].all(axis=1) for rule in rules])
    result = firm(
        (scores.r + scores.mean)[~seen],
        met[~seen].astype(float),
        feature_names=[" ∧ ".join(names[i] for i in rule) for rule in rules],
        sample_weight=weights[~seen],
        weight_type="sampling" if sampling else "count",
        groups=None if scores.unit is None else scores.unit[~seen],
        confidence_level=confidence_level,
    )
    own = {f.name: getattr(result, f.name) for f in fields(result) if f.init}
    own |= {"response": data.response.method, "target": data.response.target}
    return SearchResult(
        **own,
        searched=np.array([inner.importance(rule) for rule in rules]),
        covered=scores.w @ met / scores.w.sum(),
    )


def _half(unit: np.ndarray | None, n: int, random_state: int) -> np.ndarray:
    """Return a random half of the rows, or of the units, as a mask of rows."""
    index = np.arange(n) if unit is None else unit
    units = int(index.max()) + 1
    return (np.random.default_rng(random_state).permutation(units) < units / 2)[index]


def _conditions(table: Table, j: int, cuts: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield conditions on a column: the name, that of its negation, and which rows meet it.

    Where values are missing, what does not lie above a threshold need not lie below.
    """
    column, name = table.column(j), table.names[j]
    f = column.dense(table.count)
    missing = np.isnan(f)
    levels, count = np.unique(f[~missing], return_counts=True)
    rest = " or missing" if missing.any() else ""
    if rest:
        yield f"{name} missing", f"{name} known", missing
    if len(levels) == 2 and not rest:
        no, yes = (_text(column.scale, t) for t in levels)
        yield f"{name} = {yes}", f"{name} = {no}", f == levels[1]
    elif column.scale.kind == "nominal" and len(levels) > 1:
        for t in levels[np.argsort(-count, kind="stable")][:_LEVELS]:
            text = _text(column.scale, t)
            yield f"{name} = {text}", f"{name} ≠ {text}", f == t
    else:
        for tau in _thresholds(f[~missing], levels, cuts, column.scale):
            text = _text(column.scale, tau)
            yield f"{name} > {text}", f"{name} ≤ {text}{rest}", f > tau
            if rest:
                yield f"{name} ≤ {text}", f"{name} > {text}{rest}", f <= tau


def _thresholds(f: np.ndarray, levels: np.ndarray, cuts: int, scale: Scale) -> np.ndarray:
    """Return values to compare with: all but the largest, or quantiles in as few digits as tell."""
    if len(levels) <= cuts + 1:
        return levels[:-1]
    shares = np.arange(1, cuts + 1) / (cuts + 1)
    exact = np.unique(np.quantile(f, shares, method="inverted_cdf"))
    exact = exact[exact < levels[-1]]
    if scale.kind != "number":
        return exact
    shorter = (np.array([float(f"{t:.{k}g}") for t in exact]) for k in (3, 4, 6, 9))
    return next((t for t in shorter if len(np.unique(t)) == len(t)), exact)


def _text(scale: Scale, t: float) -> str:
    """Return a value of a column as words, exactly."""
    shown = scale.shown(np.array([t]))[0]
    if scale.kind == "number":
        return f"{t:.17g}" if float(f"{t:.9g}") != t else f"{t:.9g}"
    if scale.kind not in ("date", "duration"):
        return str(shown)
    import pandas as pd

    moment = pd.Timestamp(shown) if scale.kind == "date" else pd.Timedelta(shown)
    return str(moment).removesuffix(" 00:00:00")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SearchResult(FirmResult):
    """Rules found by `search`, with importances from rows that the search has not seen.

    Attributes
    ----------
    searched : ndarray of shape (m,)
        Q of each rule on the rows where it was found: too large, being the best of many.
    covered : ndarray of shape (m,)
        The share of all rows that a rule holds in.

    The others are those of `FirmResult`.

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> result = firmlib.search(X[:, 0] * X[:, 1], X, n=2)
    >>> bool((abs(result.searched) > abs(result.importances)).all())
    True
    """

    searched: np.ndarray
    covered: np.ndarray

    def _frame(self, order: np.ndarray) -> pd.DataFrame:
        frame = super()._frame(order)
        frame.insert(1, "searched", self.searched[order])
        frame.insert(2, "covered", self.covered[order])
        return frame

    def plot(self, ax: Axes | None = None, *, n: int = 30) -> RulesDisplay:  # type: ignore[override]
        """Draw the rules with their intervals, where they were found, and the rows they cover.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; by default in a new figure.
        n : int, default 30
            How many.
        """
        from firmlib.display_discovery import RulesDisplay  # matplotlib is an extra

        return RulesDisplay(self).plot(ax, n=n)
