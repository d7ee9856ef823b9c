"""Definitions 1 and 2: the conditional expected score q_f and the importance Q_f."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib import joint
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, rows_of
from firmlib.estimation.scan import scan
from firmlib.estimation.sums import Source, fold_totals, total_variance
from firmlib.features import (
    Feature,
    Group,
    Pairs,
    Place,
    check_given,
    check_names,
    exclude,
    resolve,
)
from firmlib.result import ConditionalScore, FirmResult
from firmlib.scores import Response, Score, respond, respond_all
from firmlib.tables.checks import (
    check_confidence_level,
    check_integer,
    check_n_bins,
    check_option,
    short,
)
from firmlib.tables.columns import Column
from firmlib.tables.sources import is_source
from firmlib.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["FirmByClass", "conditional_expected_score", "firm", "firm_by_class"]

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

    How far, in units of the score, does the expected score move with the feature? Nothing is
    refitted or permuted: one pass of predictions serves all features, and a feature that is
    correlated with those the model uses shares their effect.

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), array of shape (n,), or torch module
        The score s; see `firmlib.scores.as_score`. Labels count as scores.
    X : array, sparse matrix or data frame of shape (n, d)
        Rows from the distribution of the inputs: numbers, categories, dates. The model gets them as
        they are. A dask collection, a polars LazyFrame, a `pyarrow.dataset` or a path of Parquet
        files is read in one pass, by `StreamingFirm`.
    features : columns, callables, dict or table, default None
        Names and positions are columns; a callable X -> (n,), such as those of `firmlib.features`,
        is a feature; a dict names features, and a list of columns in it is a group with the
        importance sd of E[s | all of them]; ready values come as a table (n, m) or as arrays in a
        dict. `features.Pairs` stands for all pairs, `features.exclude` for all other columns. None
        means all columns. The model need not use them.
    sample_weight : array of shape (n,) or column, default None
        Survey weights: how much of the population a row stands for. Their scale does not matter.
        For counts, repeat the rows with `numpy.repeat`.
    groups : array of shape (n,) or column, default None
        The unit (patient, day, gene) of each row. Errors then count units, and pairs of rows of one
        unit are not used.
    given : column or list of columns, default None
        What is known already. Importances then say what a feature adds: how much the expected score
        still varies with f (as a standard deviation) once these columns are known,
        sqrt(E Var(E[s | f, g] | g)). It is learnt by cross-fitting; there are no curves.
    categorical : list of columns, default None
        Columns whose numbers are names of nominal levels. Words and categories are levels anyway.
    missing : {"level", "drop", "raise"}, default "level"
        Missing values of a feature are a level of their own; or each feature uses the rows that
        have it; or they raise an error. Missing scores and infinite values always raise an error.
    rows : {"sample", "population"}, default "sample"
        A sample stands for a larger population: the noise of the conditional means is subtracted
        (by a U-statistic). As a "population" the rows *are* the distribution, such as a truth
        table: every value is a bin, and weights are probabilities up to scale.
    method : {"auto", "slope"}, default "auto"
        "auto" takes the mean score of each level or, of numbers with many values, in nested bins
        by rank, about sqrt(n) and finer ones in so far as they stand out. "slope" is the paper's
        linear regression, |slope| sd(f): the linear part of Q_f, in rows where f is known.
    n_bins : int or "auto", default "auto"
        This many bins of equal rank, and no finer ones.
    response_method, target : default "auto", None
        What an estimator is asked, for which class or output; see `firmlib.scores.as_score`.
    feature_names : sequence of str, default None
        Names to use instead; pairs keep theirs.
    confidence_level : float, default 0.95

    Returns
    -------
    FirmResult

    References
    ----------
    A. Zien, N. Krämer, S. Sonnenburg, G. Rätsch. The feature importance ranking measure.
    ECML/PKDD 2009.

    Examples
    --------
    The model uses only x0; x1 is its noisy copy and x2 has nothing to do with it.

    >>> import firmlib
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(2000, 3))
    >>> X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    >>> result = firmlib.firm(lambda X: 2 * X[:, 0], X)
    >>> result.to_frame()[["ci_low", "importance", "ci_high", "pvalue"]].round(1)
             ci_low  importance  ci_high  pvalue
    feature
    x0          1.9         2.0      2.1     0.0
    x1          1.5         1.6      1.7     0.0
    x2          0.0         0.0      0.2     0.5

    The rows of a truth table are the distribution, not a sample of it.

    >>> table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> labels = [-1, 1, 1, 1]  # x0 or x1
    >>> firmlib.firm(labels, table, rows="population").importances
    array([0.5, 0.5])
    """
    check_options(method, rows, missing, n_bins, confidence_level)
    if is_source(X):
        from firmlib.streaming import StreamingFirm  # which rests on this module

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
        estimate, sources = _given(found, table, sample, known)
    else:
        single = [f for f in found if not isinstance(f, Group)]
        estimate, sources = scan(
            single,
            table,
            sample,
            slope=method == "slope",
            n_bins=bins,
            missing=missing,
            every=features is None,
        )
        if len(single) < len(found):
            estimate, sources = _with_groups(found, table, sample, estimate, sources)
    return result_of(estimate, sources, names, sample, response, known, confidence_level)


def check_options(
    method: str, rows: str, missing: str, n_bins: int | str, confidence_level: float
) -> None:
    """Raise unless the options that `firm` and `StreamingFirm` share are known."""
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
    totals = fold_totals(sample.s - sample.centre, sample.w, sample.fold)
    return FirmResult(
        estimate=estimate,
        feature_names=tuple(names),
        sources=tuple(sources),
        n=sample.n,
        rows="population" if sample.population else "sample",
        centre=sample.centre,
        total=total_variance(totals, sample.population, sample.unit is not None),
        response=response.method,
        target=response.target,
        given=given,
        confidence_level=confidence_level,
        notes=estimate.notes(names) if isinstance(estimate, joint.Learned) else (),
        **fields,
    )


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


def _mark(columns: Sequence[Column]) -> float:
    """Return a number that is the same for the same columns of the same rows."""
    place = np.sin(1.0 + np.arange(len(columns[0].values)))
    return float(sum(np.nan_to_num(c.values) @ place for c in columns))


def _with_groups(
    found: Sequence[Feature | Group],
    table: Table,
    sample: Rows,
    estimate: Estimate,
    sources: Sequence[Source],
) -> tuple[Estimate, list[Source]]:
    """Return estimates of single features and of groups of columns in the order of `found`."""
    is_group = np.array([isinstance(f, Group) for f in found])
    columns = [_columns(f, table, sample) for f in found if isinstance(f, Group)]
    if sample.population:  # every combination is a level
        joined = scan([Feature("group", partial(_combined, c)) for c in columns], table, sample)[0]
    else:
        joined = joint.group(sample, columns)
    both = Estimate.concatenate([estimate, joined])
    every = [*sources, *(Source("group", _mark(c)) for c in columns)]
    order = np.argsort(np.argsort(is_group, kind="stable"))
    return both.taken(order), [every[i] for i in order]


def _given(
    found: Sequence[Feature | Group], table: Table, sample: Rows, known: tuple[str, ...]
) -> tuple[Estimate, list[Source]]:
    """Return what features add to the columns that are known."""
    if sample.population:
        raise ValueError("given is learnt from a sample; expected rows='sample'")
    for f in found:
        if f.name in known:
            raise ValueError(f"feature {f.name!r} is also in given=; remove it from one of them")
    columns = [_columns(f, table, sample) for f in found]
    known_columns = _taken([table.column(g) for g in known], sample)
    estimate = joint.given(sample, columns, known_columns, [f.name for f in found])
    kinds = ["group" if isinstance(f, Group) else c[0].kind for f, c in zip(found, columns, strict=True)]
    sources = [Source(kind, _mark(c)) for kind, c in zip(kinds, columns, strict=True)]
    return estimate, sources


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
        raise ValueError("given and feature_names are not for pairs; expected neither")
    estimate, names, unexplained = joint.pairs(pairs, table, sample)
    sources = [Source("pair", mark=float(sample.n))] * len(names)
    return result_of(
        estimate, sources, names, sample, response, (), confidence_level, unexplained=unexplained
    )


def conditional_expected_score(
    score: Score,
    X: Any,
    feature: Place | Callable[[Any], np.ndarray] | ArrayLike,
    **options: Any,
) -> ConditionalScore:
    """The conditional expected score q_f(t) = E[s(X) | f(X) = t], Definition 1.

    Parameters
    ----------
    score, X
        As for `firm`.
    feature : column, callable, or array of shape (n,)
    **options
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


class FirmByClass(Mapping[Any, FirmResult]):
    """Importances for the score of every class: a mapping from each class to its `FirmResult`."""

    def __init__(self, results: Mapping[Any, FirmResult]) -> None:
        self._results = dict(results)

    def __getitem__(self, target: Any) -> FirmResult:
        if target not in self._results:
            raise KeyError(f"class={target!r} is unknown; expected one of {short(list(self), 8)}")
        return self._results[target]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def importances(self) -> pd.DataFrame:
        """One row per feature, one column per class; what matters most to any class first."""
        import pandas as pd

        [first, *_] = self._results.values()
        index = pd.Index(first.feature_names, name="feature")
        frame = pd.DataFrame({k: result.importances for k, result in self.items()}, index=index)
        return frame.iloc[np.argsort(-frame.max(axis=1).to_numpy(), kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per class and feature, the class in its first column."""
        import pandas as pd

        frames = [result.to_frame() for result in self.values()]
        for target, frame in zip(self, frames, strict=True):
            frame.insert(0, "class", [target] * len(frame))
        return pd.concat(frames)

    def plot(self, *, n: int = 15, columns: int = 3) -> Figure:
        """Draw a panel for each class with the n features that matter most to any class."""
        from firmlib.display import plot_by_class  # matplotlib is an extra

        return plot_by_class(self, n=n, columns=columns)

    def __repr__(self) -> str:
        [first, *_] = self._results.values()
        head = f"{len(self)} classes, {len(first)} features, {first.n} rows, importances:"
        return f"FirmByClass: {head}\n{self.importances.head(10).to_string(float_format='{:.3g}'.format)}"


def firm_by_class(
    estimator: Score, X: Any, features: Any = None, *, response_method: str = "auto", **options: Any
) -> FirmByClass:
    """`firm` for the score of every class or output, from one pass of predictions.

    Parameters
    ----------
    estimator : fitted estimator, callable X -> (n, k), or array of shape (n, k)
        A classifier, a clusterer, or whatever has several outputs; or labels. See
        `firmlib.scores.class_scores`.
    X, features, response_method, **options
        As for `firm`, except for `target`.

    Returns
    -------
    FirmByClass
        A mapping from each class to its result; of outputs, from 0, 1, ...; of a classifier with
        several outputs, from (output, class).

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> results = firmlib.firm_by_class(lambda X: X @ [[2, 0], [1, 1]], X)
    >>> results[1].feature_names[np.argmax(results[1].importances)]
    'x1'
    >>> results.importances.round(1)
               0    1
    feature
    x0       2.0  0.0
    x1       1.0  1.0
    """
    if "target" in options:
        raise ValueError(f"target={options['target']!r} is for one class; expected firm for it")
    if is_source(X):
        raise ValueError("X comes in chunks; expected a table in memory, or firm for each target")
    table = Table.of(X)
    found = respond_all(estimator, table, response_method=response_method)
    return FirmByClass({each.target: firm(each, table, features, **options) for each in found})
