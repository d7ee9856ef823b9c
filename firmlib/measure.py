"""Definitions 1 and 2: the conditional expected score q_f and the importance Q_f."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import firmlib  # for what imports this module
from firmlib import joint
from firmlib.estimation.rows import Rows, rows_of
from firmlib.estimation.scan import scan
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import How
from firmlib.features import Group, Pairs, Place, check_names, resolve
from firmlib.result import ConditionalScore, FirmResult
from firmlib.scores import Score, respond, respond_all
from firmlib.tables.checks import check_integer, check_number, check_option
from firmlib.tables.sources import is_source
from firmlib.tables.table import Table

__all__ = ["FirmByClass", "conditional_expected_score", "firm", "firm_by_class"]


def firm(
    score: Score,
    X: Any,
    features: Any = None,
    *,
    sample_weight: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    given: Any = None,
    categorical: Sequence[Place] | None = None,
    missing: str = "level",
    rows: str = "sample",
    method: str = "auto",
    n_bins: int | str = "auto",
    response_method: str = "auto",
    target: Any = None,
    feature_names: Sequence[str] | None = None,
    confidence_level: float = 0.95,
) -> FirmResult:
    """Feature importance ranking measure, Q_f = sd of q_f(f(X)), eq. (8).

    Q_f is the standard deviation, in units of the score, of the expected score given the feature.
    A feature that is correlated with features the model uses shares their effect.

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), array of shape (n,), or torch module
        The score s, or labels; see `firmlib.scores.as_score`.
    X : array, sparse matrix or data frame of shape (n, d)
        Rows from the distribution of the inputs: numbers, categories, dates. `StreamingFirm` reads
        a dask collection, a polars LazyFrame, a `pyarrow.dataset` or a path to Parquet files.
    features : columns, callables, dict or table, default None
        Names or positions; callables X -> (n,), such as those in `firmlib.features`; a table (n, m)
        of values; or a dict from names to any of these, in which a list of columns is a group.
        `features.Pairs` selects pairs, `features.exclude` all other columns, None all.
    sample_weight : array of shape (n,) or column, default None
        Survey weights, whose scale does not matter. For counts, use `numpy.repeat` on the rows.
    groups : array of shape (n,) or column, default None
        The unit (patient, day, gene) of each row. Errors treat units, not rows, as independent.
    given : as features, default None
        Known features g: the importance is then sqrt(E Var(E[s | f, g] | g)), by cross-fitting.
    categorical : list of columns, default None
        Columns of numbers to treat as nominal. Text and categories always are.
    missing : {"level", "drop", "raise"}, default "level"
        Missing values of a feature form a level of their own, are dropped for this feature, or
        raise an error. Missing scores and infinite values always raise an error.
    rows : {"sample", "population"}, default "sample"
        In a sample, a U-statistic removes the bias of noisy conditional means. A "population", such
        as a truth table, *is* the distribution: weights are probabilities, every value is a bin.
    method : {"auto", "slope"}, default "auto"
        "auto" takes the mean score of each level or, of numbers, in about sqrt(n) bins by rank,
        finer where that is significant. "slope" is the paper's linear regression, |slope| sd(f).
    n_bins : int or "auto", default "auto"
        A fixed number of bins of equal rank.
    response_method, target : default "auto", None
        As for `firmlib.scores.as_score`.
    feature_names : sequence of str, default None
        Other names for the features, except for pairs.
    confidence_level : float, default 0.95

    Examples
    --------
    The model uses only x0; x1 is a noisy copy of x0, and x2 is independent of it.

    >>> import firmlib
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(2000, 3))
    >>> X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    >>> result = firmlib.firm(lambda X: 2 * X[:, 0], X)
    >>> result.to_frame()[["ci_low", "importance", "ci_high", "pvalue"]].round(1)
             ci_low  importance  ci_high  pvalue
    feature
    x0          2.0         2.0      2.1     0.0
    x1          1.5         1.6      1.7     0.0
    x2          0.0         0.0      0.2     0.9
    """
    how = as_how(method, rows, missing, n_bins, confidence_level)
    if is_source(X):
        if given is not None:
            raise ValueError(f"given={given!r} needs all rows in memory, but X comes in chunks")
        options: Any = {"categorical": categorical, "missing": missing, "rows": rows}
        options |= {"method": method, "n_bins": n_bins, "feature_names": feature_names}
        options |= {"response_method": response_method, "target": target}
        stream = firmlib.StreamingFirm(features, confidence_level=confidence_level, **options)
        return stream.fit(X, score, sample_weight=sample_weight, groups=groups).result()
    table = Table.of(X).with_categorical(categorical)
    response = respond(score, table, response_method=response_method, target=target)
    sample = rows_of(response.values, table, sample_weight, groups, population=rows == "population")
    known = () if given is None else resolve(given, table, "given feature")
    return FirmResult(
        **_estimate(features, table, sample, known, how, feature_names),
        rows=rows,
        total=Line.of(sample.s, sample).variance(rows, sample.unit is not None),
        response=response.method,
        target=response.target,
        confidence_level=confidence_level,
    )


def _estimate(
    features: Any, table: Table, sample: Rows, known: Sequence[Any], how: How, names: Any
) -> dict[str, Any]:
    """Return what a result says of these features: estimates, sources, names, notes and so on."""
    found, notes, pairs, unexplained = (), (), (), None
    crossed = features if isinstance(features, Pairs) and features.kind == "interaction" else None
    if crossed is None:
        own = {j for g in known for j in g.places}
        found = resolve(features, table)
        if features is None and own:
            found = [f for f in found if f.places[0] not in own]
        if not found:
            raise ValueError("given= has all columns; expected at least one other")
        names = check_names([f.name for f in found], names)
    elif known:
        raise ValueError("given= cannot be combined with interactions, only with other features")
    learned = crossed or known or any(isinstance(f, Group) for f in found)
    if learned and (how.slope or how.n_bins):
        option = "method='slope'" if how.slope else f"n_bins={how.n_bins}"
        raise ValueError(f"{option} is for single columns, not for given=, groups or interactions")
    if crossed is not None:
        estimate, sources, pairs, unexplained = joint.pairs(crossed, table, sample, how)
        names = check_names([" × ".join(pair) for pair in pairs], names)
    elif learned:
        each = dict(zip(names, found, strict=True))
        estimate, sources, notes = joint.adds_to(each, table, sample, known, how)
    else:
        estimate, sources = scan(found, table, sample, how)
    measured = {"estimate": estimate, "feature_names": tuple(names), "sources": tuple(sources)}
    measured |= {"given": tuple(g.name for g in known), "pairs": pairs, "n": sample.n}
    return {**measured, "notes": notes, "unexplained": unexplained}


def as_how(method: str, rows: str, missing: str, n_bins: Any, level: float) -> How:
    """Check the options that `firm` and `StreamingFirm` share; return how features are measured."""
    check_option("method", method, ("auto", "slope"))
    check_option("rows", rows, ("sample", "population"))
    check_option("missing", missing, ("level", "drop", "raise"))
    check_number("confidence_level", level, 0, 1, inside=True)
    bins = None if n_bins == "auto" else check_integer("n_bins", n_bins, 2)
    return How(bins, missing, method == "slope")


def conditional_expected_score(
    score: Score, X: Any, feature: Place | Callable | ArrayLike, **options: Any
) -> ConditionalScore:
    """The conditional expected score q_f(t) = E[s(X) | f(X) = t], Definition 1.

    `feature` is a column, a callable or an array of shape (n,); all else is as for `firm`, except
    that there is no curve for a group of columns or with `given`.

    >>> table = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> curve = conditional_expected_score([0, 0, 0, 1], table, 0, rows="population")
    >>> curve.t, curve.q
    (array([0., 1.]), array([0. , 0.5]))
    """
    if options.get("given") is not None:
        raise ValueError(f"given={options['given']!r} has no curve; expected None")
    if curves := [*firm(score, X, {"f": feature}, **options).curves.values()]:
        return curves[0]
    wanted = "expected one column, which is not nominal if method='slope'"
    raise ValueError(f"feature={feature!r} has no curve; {wanted}")


class FirmByClass(UserDict[Any, FirmResult]):
    """A dict from each class to the `FirmResult` of its score, as `firm_by_class` returns it."""

    @property
    def importances(self) -> pd.DataFrame:
        """One row per feature, one column per class, sorted by the largest importance."""
        frame = pd.DataFrame({k: pd.Series(r.importances, r._index) for k, r in self.items()})
        return frame.iloc[np.argsort(-frame.max(axis=1).to_numpy(), kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class and feature, with the class in the first column."""
        frame = pd.concat([result.to_frame() for result in self.values()])
        frame.insert(0, "class", [target for target, result in self.items() for _ in result])
        return frame

    def plot(self, **options: Any) -> Any:
        """Draw one panel per class, with the options of `firmlib.plot_by_class`."""
        return firmlib.plot_by_class(self, **options)

    def __repr__(self) -> str:
        table = self.importances.head(10).to_string(float_format="{:.3g}".format)
        return f"FirmByClass: {len(self)} classes, importances:\n{table}"


def firm_by_class(
    estimator: Score, X: Any, features: Any = None, *, response_method: str = "auto", **options: Any
) -> FirmByClass:
    """`firm` for the score of every class or output, from one pass of predictions.

    `estimator` is a classifier, a clusterer, any model with several outputs, a callable
    X -> (n, k), an array (n, k) or labels. The keys are classes, outputs 0, 1, ..., or pairs
    (output, class). `features`, `response_method` and other options but `target` are as for `firm`.

    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> firm_by_class(lambda X: X @ [[2, 0], [1, 1]], X).importances.round(1)
               0    1
    feature
    x0       2.0  0.0
    x1       0.9  1.0
    """
    if "target" in options:
        raise ValueError(f"target={options['target']!r} selects one class; use firm instead")
    if is_source(X):
        raise ValueError("X comes in chunks; pass a table in memory, or call firm for each target")
    table = Table.of(X)
    found = respond_all(estimator, table, response_method)
    return FirmByClass({each.target: firm(each, table, features, **options) for each in found})
