"""Definitions 1 and 2: the conditional expected score q_f and the importance Q_f."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy import sparse, stats

from firmlib._checks import (
    check_array,
    check_memory,
    check_n_bins,
    check_number,
    check_option,
    check_weights,
)
from firmlib._groups import estimate_group
from firmlib._pairs import estimate_pairs
from firmlib.estimators import (
    METHODS,
    ROWS,
    Binned,
    ConditionalScore,
    Estimate,
    Estimates,
    Rows,
    estimate,
    summarize,
)
from firmlib.features import Column, Feature, Group, Pairs, column, column_index, column_names
from firmlib.scores import Score, as_score, class_scores, n_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from firmlib.display import FirmDisplay


@dataclass(frozen=True, eq=False)
class FirmResult:
    """Importances of several features for one score.

    Attributes
    ----------
    importances : ndarray of shape (m,)
        Q_f, signed by the direction in which the score moves with the feature; where it goes
        up and down alike, the sign says little.
    standard_error : ndarray of shape (m,)
        Of |Q_f|, by the influence function of its square (where Q_f drowns in noise, an upper
        bound); 0 for a population.
    ci_low, ci_high : ndarrays of shape (m,)
        Confidence interval of Q_f, signed as Q_f; it holds for features with Q_f != 0.
    pvalues : ndarray of shape (m,)
        Of the test that Q_f = 0, which allows the scores to vary more at some values of the
        feature than at others; nan for a population.
    variance : ndarray of shape (m,)
        The estimate of Var[q_f(f(X))] = Q_f^2; from a sample it can fall below 0, where
        the importance is 0.
    standardized : ndarray of shape (m,)
        Q_f / sd(s): comparable across machines, between -1 and 1 up to estimation error. Its
        square is the correlation ratio, and for independent inputs the first-order Sobol index.
    methods : tuple of str
        How each was estimated: "discrete", "binned", "slope" or, for groups, "boosted".
    feature_names : tuple of str
    curves : mapping of str to ConditionalScore
        q_f of each feature but groups.

    Examples
    --------
    >>> import firmlib
    >>> result = firmlib.firm([3, 0, 0, 5], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> result.to_frame()[["importance", "standardized"]].round(2)
             importance  standardized
    feature
    x0              0.5          0.24
    x1              0.5          0.24
    """

    importances: np.ndarray
    standard_error: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    pvalues: np.ndarray
    variance: np.ndarray
    standardized: np.ndarray
    methods: tuple[str, ...]
    feature_names: tuple[str, ...]
    curves: Mapping[str, ConditionalScore]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row a feature, the most important first."""
        frame = pd.DataFrame(
            {
                "importance": self.importances,
                "standard_error": self.standard_error,
                "ci_low": self.ci_low,
                "ci_high": self.ci_high,
                "pvalue": self.pvalues,
                "standardized": self.standardized,
                "variance": self.variance,
                "method": self.methods,
            },
            index=pd.Index(self.feature_names, name="feature"),
        )
        return frame.iloc[np.argsort(-np.abs(self.importances), kind="stable")]

    def plot(self, ax: Any = None, *, n: int = 30) -> FirmDisplay:
        """Draw the `n` largest importances as bars with their intervals, the largest on top."""
        from firmlib.display import FirmDisplay  # matplotlib is an extra

        return FirmDisplay.from_result(self).plot(ax=ax, n=n)

    def plot_curves(self, *, n: int = 12, columns: int = 4) -> Figure:
        """Draw q_f of the `n` most important features side by side."""
        from firmlib.display import plot_curves

        return plot_curves(self, n=n, columns=columns)

    def _repr_html_(self) -> str:
        """Show the largest importances as a table in a notebook."""
        frame, n = self.to_frame(), 20
        html = frame.head(n).to_html(float_format="{:.3g}".format, na_rep="", border=0)
        more = f"<p>and {len(frame) - n} more: see <code>to_frame()</code></p>"
        return html + more * (len(frame) > n)


def make_result(found: Estimates, sd: float, confidence_level: float) -> FirmResult:
    """From the variance of q_f and its error to Q_f with an interval."""
    names, methods, sign, variance, error, pvalues, noise, curves = found
    z = stats.norm.isf((1 - confidence_level) / 2)
    Q = np.sqrt(np.maximum(variance, 0))
    sign = np.where(Q > 0, sign, 1.0)
    floor = np.maximum(Q, np.sqrt(error))
    standard_error = np.divide(error, 2 * floor, out=np.zeros_like(error), where=floor > 0)
    low = sign * np.maximum(Q - z * standard_error, 0)
    # Q is normal if it is large, V if Q is small and there are many bins, and if there are two,
    # the difference of their means is.
    difference = np.sqrt(np.maximum(variance + noise, 0)) + z * np.sqrt(noise)
    ends = Q + z * standard_error, np.sqrt(np.maximum(variance + z * error, 0)), difference
    high = sign * np.max(ends, axis=0)
    importances = sign * Q + 0.0
    return FirmResult(
        importances=importances,
        standard_error=standard_error,
        ci_low=np.minimum(low, high) + 0.0,
        ci_high=np.maximum(low, high) + 0.0,
        pvalues=pvalues,
        variance=variance,
        standardized=importances / sd if sd > 0 else np.zeros_like(importances),
        methods=tuple(methods),
        feature_names=tuple(names),
        curves=curves,
    )


def check_names(names: Sequence[str], feature_names: Sequence[str] | None) -> list[str]:
    """Return the features' names, or those to use instead, all different."""
    if isinstance(feature_names, str):
        raise ValueError(f"feature_names={feature_names!r} must be a sequence of names")
    if feature_names is not None:
        if len(feature_names) != len(names):
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {len(names)} features"
            )
        names = feature_names
    names = list(map(str, names))
    [(name, count)] = Counter(names).most_common(1)
    if count > 1:
        raise ValueError(f"feature names must differ, got {name!r} {count} times")
    return names


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
    feature_names: Sequence[str] | None = None,
    standardize: bool = False,
    confidence_level: float = 0.95,
    n_jobs: int | None = None,
) -> FirmResult:
    """Feature importance ranking measure, Q_f = sd of q_f(f(X)), eq. (8).

    How far, in units of the score, does the expected score move with the feature? Nothing is
    refitted or permuted: one pass of predictions serves all features, and a feature that moves
    together with those the machine uses has its share of their effect.

    Parameters
    ----------
    score : fitted estimator, callable X -> (n,), or array of shape (n,)
        The score s; see `firmlib.scores.as_score`. Labels count as scores.
    X : array, sparse matrix or data frame of shape (n, d)
        Rows from the distribution of the inputs.
    features : optional
        None for all columns; columns by name or position; callables X -> (n,), such as those
        of `firmlib.features`; a dict of name to column, callable or array (n,); or feature
        values themselves, (n,) or a table (n, m). They need not be known to the machine. A list
        of columns in a dict is a group, ``{"size": ["radius", "area"]}``, with the importance
        sd of E[s | all of them] (see `firmlib._groups`); `firmlib.features.Pairs` stands for all
        pairs of columns.
    method : {"auto", "discrete", "binned", "slope"}
        "discrete" takes the mean score on each level of the feature, "binned" in about sqrt(n)
        bins of equal frequency (finer at the ends) that never split ties. "auto" is "discrete"
        where a feature has at most about sqrt(n) levels and "binned" elsewhere. "slope" is the
        paper's linear regression: the slope of s on f times sd(f), and no more than the linear
        part of Q_f.
    rows : {"auto", "sample", "population"}
        What the rows are. As a "sample" they stand for a larger population: the variance of the
        means overstates that of q_f, and is corrected (by a U-statistic); weights count how
        often a row was seen. As a "population" the rows *are* the distribution (a truth table,
        all sequences, a product grid) and the variance of the means is Q_f^2 itself; weights
        are probabilities, up to scale. "auto" is "population" for method="discrete" and
        "sample" otherwise. The slope is the same for both.
    response_method, target
        What an estimator is asked, and for which class; see `firmlib.scores.as_score`.
    n_bins : int or "auto"
        Number of bins, and the largest number of levels that "auto" calls discrete.
    sample_weight : array of shape (n,), optional
        A weight k is the same as the row k times.
    feature_names : sequence of str, optional
        Names to use instead; pairs keep theirs.
    standardize : bool
        Divide the score by its standard deviation first; to the intervals that counts as known.
    confidence_level : float
        Of the intervals.
    n_jobs : int, optional
        Threads over the features; the answer does not depend on it.

    Returns
    -------
    FirmResult

    References
    ----------
    A. Zien, N. Krämer, S. Sonnenburg, G. Rätsch. The feature importance ranking measure.
    ECML/PKDD 2009.

    Examples
    --------
    The machine reads x0 alone; x1 is its noisy copy and x2 has nothing to do with it.

    >>> import firmlib
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(2000, 3))
    >>> X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    >>> firmlib.firm(lambda X: 2 * X[:, 0], X).importances.round(1)
    array([2. , 1.6, 0. ])

    >>> table = firmlib.firm(lambda X: 2 * X[:, 0], X).to_frame()
    >>> table[["ci_low", "importance", "ci_high", "pvalue"]].round(2)
             ci_low  importance  ci_high  pvalue
    feature
    x0         1.95        2.01     2.07    0.00
    x1         1.54        1.62     1.69    0.00
    x2         0.00        0.00     0.14    0.98

    The rows of a truth table are the distribution, not a sample of it.

    >>> table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> labels = [-1, 1, 1, 1]  # x0 or x1
    >>> firmlib.firm(labels, table, method="discrete").importances
    array([0.5, 0.5])
    """
    X, s, w, keep, options = _prepare(
        score, X, method, rows, response_method, target, n_bins, sample_weight
    )
    check_number("confidence_level", confidence_level, 0, 1, above=True)
    data = Rows.of(s, w)
    plug_in = options["kind"] == "population" or method == "slope"
    sd = np.sqrt(data.wrr.sum() / (w.sum() - (not plug_in)))
    if standardize and sd > 0:
        data, sd = Rows.of(s / sd, w), 1.0
    if isinstance(features, Pairs):
        if feature_names is not None:
            raise ValueError("feature_names is not for pairs, which have names of their own")
        pairs = _binary_pairs(data, X, keep, features, options["kind"])
        if pairs is not None:
            return make_result(pairs, sd, confidence_level)
        features = features.features(X)
    names, functions = zip(*_named_features(X, features), strict=True)
    names = check_names(names, feature_names)
    estimates = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_one)(data, X, keep, *f, options) for f in zip(names, functions, strict=True)
    )
    binned = [e for e in estimates if isinstance(e, Binned)]
    summaries = iter(summarize(binned, data.mean, options["kind"]))
    estimates = [next(summaries) if isinstance(e, Binned) else e for e in estimates]
    return make_result(Estimates.of(names, estimates), sd, confidence_level)


def firm_by_class(
    estimator: Any,
    X: Any,
    features: Any = None,
    *,
    response_method: str = "auto",
    **options: Any,
) -> pd.DataFrame:
    """Importances for the score of every class, from one pass of predictions.

    Parameters
    ----------
    estimator : fitted classifier
    X, features, response_method, **options
        As for `firm`.

    Returns
    -------
    DataFrame
        A row a feature, a column a class; the feature that matters most to any class first.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> kind = np.where(X[:, 0] > 1, "b", np.where(X[:, 1] > 0, "c", "a"))
    >>> machine = LogisticRegression().fit(X, kind)
    >>> firmlib.firm_by_class(machine, X, standardize=True).round(1).T
    feature   x0   x1
    a       -0.7 -0.7
    b        1.0  0.0
    c       -0.7  0.7
    """
    scores = class_scores(estimator, X, response_method=response_method)
    results = {label: firm(s, X, features, **options) for label, s in scores.items()}
    names = next(iter(results.values())).feature_names
    index = pd.Index(names, name="feature")
    frame = pd.DataFrame({k: result.importances for k, result in results.items()}, index=index)
    return frame.iloc[np.argsort(-frame.abs().max(axis=1).to_numpy(), kind="stable")]


def conditional_expected_score(
    score: Score,
    X: Any,
    feature: Column | Feature | ArrayLike,
    *,
    method: str = "auto",
    rows: str = "auto",
    response_method: str = "auto",
    target: Any = None,
    n_bins: int | str = "auto",
    sample_weight: ArrayLike | None = None,
) -> ConditionalScore:
    """Conditional expected score q_f(t) = E[s(X) | f(X) = t], eq. (7).

    Parameters
    ----------
    feature : column name or position, callable X -> (n,), or array of shape (n,)
    score, X, method, rows, response_method, target, n_bins, sample_weight
        As for `firm`.

    Returns
    -------
    ConditionalScore
        With the values ``t``, the curve ``q``, the probabilities ``p`` and the rows ``n``.

    Examples
    --------
    >>> import firmlib
    >>> die = np.arange(1, 7).reshape(-1, 1)
    >>> curve = firmlib.conditional_expected_score(
    ...     lambda X: X[:, 0], die, lambda X: X[:, 0] % 2, method="discrete"
    ... )
    >>> curve.t, curve.q  # mean of the even faces, of the odd ones
    (array([0., 1.]), array([4., 3.]))
    """
    X, s, w, keep, options = _prepare(
        score, X, method, rows, response_method, target, n_bins, sample_weight
    )
    if isinstance(feature, str | int | np.integer):
        f = column(X, feature)
    elif callable(feature):
        f = feature(X)
    else:
        f = feature
    f = check_array("feature", f, 1, (n_rows("X", X),))
    data = Rows.of(s, w)
    found = _one(data, X, keep, "feature", lambda _: f, options)
    if isinstance(found, Binned):
        [found] = summarize([found], data.mean, options["kind"])
    return found.curve


def _prepare(
    score: Score,
    X: Any,
    method: str,
    rows: str,
    response_method: str,
    target: Any,
    n_bins: int | str,
    sample_weight: ArrayLike | None,
) -> tuple[Any, np.ndarray, np.ndarray, slice | np.ndarray, dict]:
    check_option("method", method, METHODS)
    check_option("rows", rows, ROWS)
    check_n_bins(n_bins)
    n_rows("X", X)
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    s = as_score(score, X, response_method=response_method, target=target)
    if np.abs(s).max() > 1e150:
        raise ValueError(f"score={np.abs(s).max():.3g} overflows when squared; rescale the scores")
    w = check_weights("sample_weight", sample_weight, len(s))
    if rows == "auto":
        rows = "population" if method == "discrete" else "sample"
    if rows == "sample" and method != "slope" and w.sum() <= 1:
        raise ValueError(
            f"sample_weight sums to {w.sum():g}, but in a sample it counts rows and must exceed 1; "
            "for probabilities use rows='population'"
        )
    keep = slice(None) if w.all() else w > 0  # rows without weight do not count
    return X, s[keep], w[keep], keep, {"method": method, "kind": rows, "n_bins": n_bins}


def _one(
    rows: Rows, X: Any, keep: slice | np.ndarray, name: str, f: Feature, options: dict
) -> Binned | Estimate:
    ndim = 2 if isinstance(f, Group) else 1
    values = check_array(f"feature {name!r}", f(X), ndim, (n_rows("X", X), None)[:ndim])[keep]
    try:
        if isinstance(f, Group):
            return _group(rows, values, options["kind"])
        return estimate(rows, values, **options)
    except ValueError as error:
        raise ValueError(f"feature {name!r}: {error}") from error


def _group(rows: Rows, F: np.ndarray, kind: str) -> Estimate:
    if kind == "population":  # every combination of values is a level
        _, level = np.unique(F, axis=0, return_inverse=True)
        found = estimate(rows, level.astype(float), method="discrete", kind=kind, n_bins="auto")
        return summarize([found], rows.mean, kind)[0]._replace(curve=None, sign=1.0)
    return estimate_group(rows, F)


def _binary_pairs(
    rows: Rows, X: Any, keep: slice | np.ndarray, pairs: Pairs, kind: str
) -> Estimates | None:
    indices = pairs.indices(X)
    check_memory("the table of pairs", (len(indices), len(indices), 12))
    check_memory("X as a dense table", (n_rows("X", X), len(indices)))
    table = np.column_stack([column(X, j) for j in indices])[keep]
    names = [column_names(X)[j] for j in indices]
    return estimate_pairs(rows, table, names, pairs.kind, kind)


def _named_features(X: Any, features: Any) -> list[tuple[str, Feature]]:
    """Return (name, function X -> (n,)) for whatever `firm` accepts as features."""
    n = n_rows("X", X)
    X = X.tocsc() if sparse.issparse(X) else X  # columns are taken from it one by one
    if features is None:
        features = range(len(column_names(X)))
    elif isinstance(features, str | int | np.integer) or callable(features):
        features = [features]
    elif hasattr(features, "dtype") and np.ndim(features) == 1 and _is_float(features):
        features = {str(getattr(features, "name", None) or "f0"): features}
    if isinstance(features, list | tuple) and any(isinstance(f, list | tuple) for f in features):
        n_rows("features", features)  # a list of rows, which must have one length
    if isinstance(features, Mapping):
        pairs = [(str(name), _function(f, X)) for name, f in features.items()]
    elif hasattr(features, "columns") or sparse.issparse(features) or np.ndim(features) == 2:
        table = features if hasattr(features, "shape") else np.asarray(features)
        if table.shape[0] != n:
            raise ValueError(f"features has {table.shape[0]} rows, but X has {n}")
        names = column_names(table)
        if not hasattr(features, "columns"):
            names = [f"f{j}" for j in range(len(names))]
        pairs = [(name, _column_of(table, j, "features")) for j, name in enumerate(names)]
    elif np.ndim(features) == 1:
        pairs = [(_name(f, X), _function(f, X)) for f in features]
    else:
        raise ValueError(
            f"features={features!r} must be columns, callables, a dict of them or a table (n, m)"
        )
    if not pairs:
        raise ValueError("features is empty; expected at least one")
    return pairs


def _is_float(values: ArrayLike) -> bool:
    return np.asarray(values).dtype.kind == "f"


def _function(f: Column | Callable | ArrayLike, X: Any) -> Feature:
    if callable(f):
        return f
    if _is_group(f, n_rows("X", X)):
        return Group(tuple(f))
    return _column_of(X, f) if np.ndim(f) == 0 else lambda _: f


def _is_group(f: Any, n: int) -> bool:
    """Whether f is a list of columns rather than one of values."""
    if not isinstance(f, list | tuple) or not f:
        return False
    positions = all(isinstance(j, int | np.integer) and not isinstance(j, bool) for j in f)
    return all(isinstance(j, str) for j in f) or (positions and len(f) != n)


def _column_of(table: Any, j: Column, name: str = "X") -> Feature:
    return lambda _: column(table, j, name)


def _name(f: Column | Callable, X: Any) -> str:
    if callable(f):
        return getattr(f, "__name__", repr(f))
    return column_names(X)[column_index(X, f)]
