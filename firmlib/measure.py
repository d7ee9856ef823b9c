"""Definitions 1 and 2: the conditional expected score q_f and the importance Q_f."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib import joint
from firmlib.curves import ConditionalScore
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, rows_of
from firmlib.estimation.scan import How, scan
from firmlib.estimation.sums import Source, fold_totals, total_variance
from firmlib.features import (
    Group,
    Pairs,
    Place,
    exclude,
    is_place,
    resolve,
)
from firmlib.result import FirmResult
from firmlib.scores import Response, Score, respond
from firmlib.tables.checks import (
    check_confidence_level,
    check_integer,
    check_n_bins,
    check_names,
    check_option,
)
from firmlib.tables.sources import is_source
from firmlib.tables.table import Table

__all__ = ["conditional_expected_score", "firm"]

METHODS, ROWS, MISSING = ("auto", "slope"), ("sample", "population"), ("level", "drop", "raise")


def firm(
    score: Score,
    X: Any,
    features: Any = None,
    *,
    sample_weight: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    given: Place | Sequence[Place] | None = None,
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
    One pass of predictions is enough for all features. A feature that is correlated with features
    the model uses shares their effect.

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), array of shape (n,), or torch module
        The score s, or labels; see `firmlib.scores.as_score`.
    X : array, sparse matrix or data frame of shape (n, d)
        Rows from the distribution of the inputs: numbers, categories, dates. A dask collection, a
        polars LazyFrame, a `pyarrow.dataset` or a path to Parquet files is read in one pass, by
        `StreamingFirm`.
    features : columns, callables, dict or table, default None
        Names or positions of columns; callables X -> (n,), such as those in `firmlib.features`; a
        table (n, m) of values; or a dict from names to any of these, in which a list of columns is
        a group. `features.Pairs` selects pairs, `features.exclude` all other columns, None all.
    sample_weight : array of shape (n,) or column, default None
        Survey weights, whose scale does not matter. For counts, use `numpy.repeat` on the rows.
    groups : array of shape (n,) or column, default None
        The unit (patient, day, gene) of each row. Errors treat units, not rows, as independent.
    given : column or list of columns, default None
        Known columns g. The importance is then sqrt(E Var(E[s | f, g] | g)), estimated by
        cross-fitting: how much the expected score still varies with f once g is known. There are
        no curves.
    categorical : list of columns, default None
        Columns of numbers to treat as nominal. Text and categories always are.
    missing : {"level", "drop", "raise"}, default "level"
        Missing values of a feature form a level of their own, are dropped for this feature, or
        raise an error. Missing scores and infinite values always raise an error.
    rows : {"sample", "population"}, default "sample"
        For a sample, a U-statistic removes the bias due to noise in the conditional means. A
        "population", such as a truth table, *is* the distribution: every value is a bin, and
        weights are probabilities up to scale.
    method : {"auto", "slope"}, default "auto"
        "auto" uses the mean score of each level or, for numbers with many values, of about sqrt(n)
        bins by rank, refined where finer bins differ significantly. "slope" is the paper's linear
        regression, |slope| sd(f), over the rows where f is known.
    n_bins : int or "auto", default "auto"
        A fixed number of bins of equal rank.
    response_method, target : default "auto", None
        Method of the estimator, and its class or output; see `firmlib.scores.as_score`.
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

    The rows of a truth table are the distribution, not a sample.

    >>> table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> labels = [-1, 1, 1, 1]  # x0 or x1
    >>> firmlib.firm(labels, table, rows="population").importances
    array([0.5, 0.5])
    """
    check_options(method, rows, missing, n_bins, confidence_level)
    if is_source(X):
        from firmlib.streaming import StreamingFirm  # imports this module

        if given is not None or isinstance(features, Pairs):
            raise ValueError("given and Pairs need all rows in memory, but X comes in chunks")
        stream = StreamingFirm(
            features,
            categorical=categorical,
            missing=missing,
            rows=rows,
            method=method,
            n_bins=n_bins,
            response_method=response_method,
            target=target,
            feature_names=feature_names,
            confidence_level=confidence_level,
        )
        return stream.fit(X, score, sample_weight=sample_weight, groups=groups).result()
    table = Table.of(X).with_categorical(categorical)
    response = respond(score, table, response_method=response_method, target=target)
    sample = rows_of(response.values, table, sample_weight, groups, population=rows == "population")
    bins = None if n_bins == "auto" else check_integer("n_bins", n_bins, 2, sample.n)
    known = () if given is None else check_given(given, table)
    if isinstance(features, Pairs):
        return _of_pairs(features, table, sample, response, known, feature_names, confidence_level)
    features = exclude(*known) if known and features is None else features
    found = resolve(features, table)
    names = check_names([f.name for f in found], feature_names)
    if known:
        estimate, sources = joint.adds_to(found, table, sample, known, missing)
    else:
        single = [f for f in found if not isinstance(f, Group)]
        how = How(bins, missing, method == "slope")
        estimate, sources = scan(single, table, sample, how, every=features is None)
        if len(single) < len(found):
            estimate, sources = joint.with_groups(found, table, sample, estimate, sources, missing)
    return result_of(estimate, sources, names, sample, response, known, confidence_level)


def check_options(
    method: str, rows: str, missing: str, n_bins: int | str, confidence_level: float
) -> None:
    """Check the options that `firm` and `StreamingFirm` share."""
    check_option("method", method, METHODS)
    check_option("rows", rows, ROWS)
    check_option("missing", missing, MISSING)
    check_n_bins(n_bins)
    check_confidence_level(confidence_level)


def result_of(
    estimate: Estimate,
    sources: Sequence[Source],
    names: Sequence[str],
    sample: Rows,
    response: Response,
    given: tuple[str, ...],
    confidence_level: float,
    **fields: Any,
) -> FirmResult:
    """Return the result for the rows of a table."""
    units = sample.unit is not None
    return FirmResult(
        estimate=estimate,
        feature_names=tuple(names),
        sources=tuple(sources),
        n=sample.n,
        rows="population" if sample.population else "sample",
        total=total_variance(fold_totals(sample), sample.population, units),
        response=response.method,
        target=response.target,
        given=given,
        confidence_level=confidence_level,
        notes=estimate.notes(names) if isinstance(estimate, joint.Learned) else (),
        **fields,
    )


def _of_pairs(
    pairs: Pairs,
    table: Table,
    sample: Rows,
    response: Response,
    known: tuple[str, ...],
    feature_names: Sequence[str] | None,
    confidence_level: float,
) -> FirmResult:
    """Return the importances of all pairs of columns or features."""
    if known or feature_names is not None:
        raise ValueError("given and feature_names cannot be combined with Pairs; omit them")
    estimate, names, unexplained = joint.pairs(pairs, table, sample)
    sources = [Source("pair", mark=float(sample.n))] * len(names)
    return result_of(
        estimate, sources, names, sample, response, (), confidence_level, unexplained=unexplained
    )


def check_given(given: Any, table: Table) -> tuple[str, ...]:
    """Return the names of the given columns."""
    some = [given] if is_place(given) else given
    if not isinstance(some, Sequence | np.ndarray) or any(map(callable, some)):
        raise ValueError(
            f"given={given!r} must be names or positions of columns of X; to use a function of "
            "columns, add it to X as a column"
        )
    names = [table.names[table.place(j)] for j in some]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"given={given!r} must name one or more columns of X, each only once")
    return tuple(names)


def conditional_expected_score(
    score: Score,
    X: Any,
    feature: Place | Callable[[Any], np.ndarray] | ArrayLike,
    **options: Any,
) -> ConditionalScore:
    """The conditional expected score q_f(t) = E[s(X) | f(X) = t], Definition 1.

    Parameters
    ----------
    feature : column, callable, or array of shape (n,)
    score, X, **options
        As for `firm`.

    Examples
    --------
    >>> import firmlib
    >>> table = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> curve = firmlib.conditional_expected_score([0, 0, 0, 1], table, 0, rows="population")
    >>> curve.t, curve.q
    (array([0., 1.]), array([0. , 0.5]))
    """
    one = feature if callable(feature) or isinstance(feature, str | int | np.integer) else None
    result = firm(score, X, {"f": feature} if one is None else [feature], **options)
    [curve] = result.curves.values()
    return curve
