"""Definitions 1 and 2: the conditional expected score q_f and the importance Q_f."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_confidence_level
from firmlib._curves import ConditionalScore, Curves
from firmlib._data import Data, describe
from firmlib._paired import Kept
from firmlib._resolve import check_given, check_names, resolve
from firmlib._sources import is_source
from firmlib.features import Pairs, Place
from firmlib.result import FirmResult, make_result
from firmlib.scores import Score
from firmlib.streaming import StreamingFirm

_FIRST_ROWS = 100_000  # that the bins of a source are found from

__all__ = ["conditional_expected_score", "firm"]


def firm(
    score: Score,
    X: Any,
    features: Any = None,
    *,
    method: str = "auto",
    rows: str = "auto",
    response_method: str = "auto",
    target: Any = None,
    n_bins: int | str = "auto",
    sample_weight: ArrayLike | None = None,
    categorical: Sequence[Place] | None = None,
    missing: str = "level",
    weight_type: str = "auto",
    groups: ArrayLike | None = None,
    given: Place | Sequence[Place] | None = None,
    feature_names: Sequence[str] | None = None,
    standardize: bool = False,
    confidence_level: float = 0.95,
    keep: bool = True,
    n_jobs: int | None = None,
) -> FirmResult:
    """Feature importance ranking measure, Q_f = sd of q_f(f(X)), eq. (8).

    How far, in units of the score, does the expected score move with the feature? Nothing is
    refitted or permuted: one pass of predictions serves all features, and a feature that moves
    together with those the model uses has its share of their effect.

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), or array of shape (n,)
        The score s; see `firmlib.scores.as_score`. Labels count as scores. They differ by
        1e-30 to 1e30 (of a population 1e-150 to 1e150), or not at all.
    X : array, sparse matrix or data frame of shape (n, d)
        Rows from the distribution of the inputs, of numbers, categories and dates. The model gets
        them as they are. Also a dask array or data frame, a polars LazyFrame, a `pyarrow.dataset`
        or a path of Parquet files, in one pass by `StreamingFirm`, which see.
    features : columns, callables, dict or table, default None
        Strings and integers are columns; a callable X -> (n,), such as those of
        `firmlib.features`, is a feature; a dict names features, and a list of columns in it is a
        group, ``{"size": ["radius", "area"]}``, with the importance sd of E[s | all of them];
        ready values come as a table (n, m), or as arrays under a name in a dict.
        `firmlib.features.Pairs` stands for all pairs. None means all columns. Features need not
        be known to the model.
    method : {"auto", "discrete", "binned", "slope"}, default "auto"
        "discrete" takes the mean score on each level of the feature, "binned" in about sqrt(n)
        bins of equal frequency (finer at the ends) that never split ties. "auto" is "discrete"
        where a feature has at most about sqrt(n) levels and "binned" elsewhere. "slope" is the
        paper's linear regression: the slope of s on f times sd(f), and no more than the linear
        part of Q_f.
    rows : {"auto", "sample", "population"}, default "auto"
        What the rows are. As a "sample" they stand for a larger population: the variance of the
        means overstates that of q_f, and is corrected (by a U-statistic). As a "population" the
        rows *are* the distribution (a truth table, all sequences, a product grid) and the
        variance of the means is Q_f^2 itself; weights are probabilities, up to scale. "auto" is
        "sample".
    response_method : str, default "auto"
        What an estimator is asked; see `firmlib.scores.as_score`.
    target : label or column, default None
        The class or output that is meant; see `firmlib.scores.as_score`.
    n_bins : int or "auto", default "auto"
        Number of bins, and the largest number of levels that "auto" calls discrete.
    sample_weight : array of shape (n,), default None
        By default all are 1; see `weight_type`. In a row with weight 0 features may hold
        anything; its score must be a number all the same.
    categorical : list of columns, default None
        Columns whose numbers are names of levels, such as codes; words and the categories of a
        frame are levels anyway. Every level is a bin, and a category without order has no
        direction: its importance is not negative.
    missing : {"level", "drop", "raise"}, default "level"
        What becomes of missing values (nan, None, NA, null, NaT) of a feature: a level of its
        own, apart from all others; or each feature is looked at in the rows that have it, which
        asks another question; or an error. Missing scores are always one, and so are infinite
        values.
    weight_type : {"auto", "count", "sampling"}, default "auto"
        What weights mean in a sample. As a "count", a weight k is the same as the row k times:
        exactly, but for bins of fewer than 2048 rows that stand for more and of rows in `groups`,
        which come out otherwise, and for several columns in one model (a group of columns, more
        than two `given`), which sees a row once, with its weight.
        As those of "sampling" (survey, inverse probability) they say how much of the population
        a row stands for, their scale does not matter, and pairs of rows are compared, not pairs
        of counts. "auto" is "count" where all are whole numbers below 2^53; the result records it.
    groups : array of shape (n,), default None
        The unit (patient, day, gene) that each row belongs to, by any label but a missing one; by
        default every row is one. Errors and tests then count units, and pairs of rows of one unit
        are not used, nor are pairs of those copies of a row that its weight counts.
    given : column or list of columns, default None
        What is known already. Importances then say what a feature adds: the sd of what the
        expected score still moves with f once these columns are known,
        sqrt(E Var(E[s | f, g] | g)) = sqrt(V_{f,g} - V_g). One or two columns are put into cells;
        more, groups of columns, and `groups` of rows are learnt, cross-fitted. By default all
        other columns are the features. Such a result has no curves.
    feature_names : sequence of str, default None
        Names to use instead; pairs keep theirs.
    standardize : bool, default False
        Divide the score by its standard deviation first; errors and intervals know that it is
        estimated. Those of groups of columns do not, and are too wide where these explain nearly
        all of the score, which also covers what their models miss.
    confidence_level : float, default 0.95
        Of the intervals, above 0 and below 1.
    keep : bool, default True
        Whether the result keeps X (not a copy) and the scores, which `compare` and `ranks` need.
    n_jobs : int, default None
        Threads over the features, one by default; the answer does not depend on it.

    Returns
    -------
    FirmResult

    References
    ----------
    A. Zien, N. Krämer, S. Sonnenburg, G. Rätsch. The feature importance ranking measure.
    ECML/PKDD 2009.

    Examples
    --------
    The model reads x0 alone; x1 is its noisy copy and x2 has nothing to do with it.

    >>> import firmlib
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(2000, 3))
    >>> X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    >>> result = firmlib.firm(lambda X: 2 * X[:, 0], X)
    >>> result.to_frame()[["ci_low", "importance", "ci_high", "pvalue"]].round(2)
             ci_low  importance  ci_high  pvalue
    feature
    x0         1.96        2.01     2.08    0.00
    x1         1.55        1.62     1.69    0.00
    x2         0.00        0.00     0.14    0.93

    Given x0, nothing is left of its copy.

    >>> result = firmlib.firm(lambda X: 2 * X[:, 0], X, given=[0])
    >>> dict(zip(result.feature_names, result.importances.tolist()))
    {'x1': 0.0, 'x2': 0.0}

    The rows of a truth table are the distribution, not a sample of it.

    >>> table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> labels = [-1, 1, 1, 1]  # x0 or x1
    >>> firmlib.firm(labels, table, rows="population").importances
    array([0.5, 0.5])
    """
    check_confidence_level(confidence_level)
    if is_source(X):
        if sample_weight is not None:
            raise ValueError("sample_weight of rows that come in parts: use StreamingFirm")
        if groups is not None:
            raise ValueError(
                "groups of rows that come in parts: expected StreamingFirm(keep=True) with chunks "
                "that hold whole units, or all rows at once"
            )
        if given is not None:
            raise ValueError("given, with rows that come in parts, needs all rows at once")
        stream = StreamingFirm(
            n_bins=n_bins,
            feature_names=feature_names,
            method=method,
            rows=rows,
            confidence_level=confidence_level,
            features=features,
            categorical=categorical,
            missing=missing,
            standardize=standardize,
            response_method=response_method,
            target=target,
            first_rows=_FIRST_ROWS,
        )
        return stream.fit(score, X).result()
    data = Data.of(
        score,
        X,
        method=method,
        rows=rows,
        response_method=response_method,
        target=target,
        n_bins=n_bins,
        sample_weight=sample_weight,
        categorical=categorical,
        missing=missing,
        weight_type=weight_type,
        groups=groups,
    )
    sd = data.scores.sd("population" if method == "slope" else data.rows)
    if standardize and sd > 0:
        data, sd = data.divided(sd), 1.0
    pairs = kept = None
    known = () if given is None else check_given(given, data.table)
    if known and isinstance(features, Pairs):
        raise ValueError(f"given={known} is not for pairs; expected other features")
    if known and features is None:
        features = [name for name in data.table.names if name not in known]
    if isinstance(features, Pairs):
        if feature_names is not None:
            raise ValueError("feature_names is not for pairs, which have names of their own")
        if features.kind != "interaction":
            pairs = data.estimate_pairs(features)
            features = features.features(data.table) if pairs is None else None
    if isinstance(features, Pairs):
        names, found, methods = data.estimate_interactions(features)
        sources = [None] * len(names)
        kinds, shares = zip(*map(describe, sources), strict=True)
    elif pairs is not None:
        names, found, sources = pairs
        methods, kinds = ["discrete"] * len(names), ["number"] * len(names)
        shares = np.zeros(len(names))
    else:
        names, functions = zip(*resolve(features, data.table), strict=True)
        names = check_names(names, feature_names)
        if known:
            found, told = data.estimate_given(names, functions, known)
            (methods, kinds, shares), sources = zip(*told, strict=True), [None] * len(names)
        else:
            found, sources, methods = data.estimate(names, functions, n_jobs)
            kinds, shares = zip(*map(describe, sources), strict=True)
            kept = Kept(data, functions, sources) if keep else None
    return make_result(
        found,
        sd,
        confidence_level,
        methods=tuple(methods),
        kinds=tuple(kinds),
        missing=np.array(shares),
        feature_names=tuple(names),
        curves=Curves(names, sources, data.scores.mean, data.rows, data.weight),
        n=len(data.scores.r),
        rows=data.rows,
        weight_type="count" if data.scores.parts.ww is None else "sampling",
        response=data.response.method,
        target=data.response.target,
        given=known,
        kept=kept,
    )


def conditional_expected_score(
    score: Score,
    X: Any,
    feature: Place | Callable[[Any], np.ndarray] | ArrayLike,
    *,
    method: str = "auto",
    rows: str = "auto",
    response_method: str = "auto",
    target: Any = None,
    n_bins: int | str = "auto",
    sample_weight: ArrayLike | None = None,
    categorical: Sequence[Place] | None = None,
    missing: str = "level",
) -> ConditionalScore:
    """Conditional expected score q_f(t) = E[s(X) | f(X) = t], eq. (7).

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), or array of shape (n,)
    X : array, sparse matrix or data frame of shape (n, d)
    feature : column name or position, callable X -> (n,), or array of shape (n,)
    method : {"auto", "discrete", "binned", "slope"}, default "auto"
        This and what follows as for `firm`.
    rows : {"auto", "sample", "population"}, default "auto"
    response_method : str, default "auto"
    target : label or column, default None
    n_bins : int or "auto", default "auto"
    sample_weight : array of shape (n,), default None
    categorical : list of columns, default None
    missing : {"level", "drop", "raise"}, default "level"

    Returns
    -------
    ConditionalScore
        With the values ``t``, the curve ``q``, the probabilities ``p`` and the rows ``n``.

    Examples
    --------
    >>> import firmlib
    >>> die = np.arange(1, 7).reshape(-1, 1)
    >>> curve = firmlib.conditional_expected_score(
    ...     lambda X: X[:, 0], die, lambda X: X[:, 0] % 2, rows="population"
    ... )
    >>> curve.t, curve.q  # mean of the even faces, of the odd ones
    (array([0., 1.]), array([4., 3.]))
    """
    data = Data.of(
        score,
        X,
        method=method,
        rows=rows,
        response_method=response_method,
        target=target,
        n_bins=n_bins,
        sample_weight=sample_weight,
        categorical=categorical,
        missing=missing,
    )
    if isinstance(feature, str | int | np.integer) or callable(feature):
        values = feature
    else:
        values = feature if hasattr(feature, "__array__") else np.asarray(feature)
        data.table.check_rows("feature", feature)
    [(_, f)] = resolve({"feature": values}, data.table)
    _, [source], _ = data.estimate(["feature"], [f], None)
    assert source is not None  # one feature, not a group
    return ConditionalScore.of(source, data.scores.mean, data.rows, data.weight)
