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
from scipy import sparse

from firmlib._checks import check_array, check_option, check_weights
from firmlib.estimators import METHODS, ROWS, ConditionalScore, estimate
from firmlib.features import Column, Feature, column, column_index, column_names
from firmlib.scores import Score, as_score, n_rows

if TYPE_CHECKING:
    from firmlib.display import FirmDisplay


@dataclass(frozen=True, eq=False)
class FirmResult:
    """Importances of several features for one score.

    Attributes
    ----------
    importances : ndarray of shape (m,)
        Q_f, signed by the direction in which the score moves with the feature; where it goes
        up and down alike, the sign says little.
    standardized : ndarray of shape (m,)
        Q_f / sd(s): comparable across machines, between -1 and 1 up to estimation error.
    variance : ndarray of shape (m,)
        The estimate of Var[q_f(f(X))] = Q_f^2; from a sample it can fall below 0, where
        the importance is 0.
    methods : tuple of str
        How each was estimated: "discrete", "binned" or "slope".
    feature_names : tuple of str
    curves : dict of str to ConditionalScore
        q_f of each feature.
    """

    importances: np.ndarray
    standardized: np.ndarray
    variance: np.ndarray
    methods: tuple[str, ...]
    feature_names: tuple[str, ...]
    curves: dict[str, ConditionalScore]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row a feature, the most important first."""
        frame = pd.DataFrame(
            {
                "importance": self.importances,
                "standardized": self.standardized,
                "variance": self.variance,
                "method": self.methods,
            },
            index=pd.Index(self.feature_names, name="feature"),
        )
        return frame.iloc[np.argsort(-np.abs(self.importances), kind="stable")]

    def plot(self, ax: Any = None) -> FirmDisplay:
        """Draw the importances as bars, the most important on top."""
        from firmlib.display import FirmDisplay  # matplotlib is an extra

        return FirmDisplay.from_result(self).plot(ax=ax)


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
        values themselves, (n,) or a table (n, m). They need not be known to the machine.
    method : {"auto", "discrete", "binned", "slope"}
        "discrete" takes the mean score on each level of the feature, "binned" in about sqrt(n)
        bins of equal frequency that never split ties. "auto" is "discrete" where a feature has
        at most about sqrt(n) levels and "binned" elsewhere. "slope" is the paper's linear
        regression: the slope of s on f times sd(f), and no more than the linear part of Q_f.
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
        Names to use instead.
    standardize : bool
        Divide the score by its standard deviation first.
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

    The rows of a truth table are the distribution, not a sample of it.

    >>> table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> labels = [-1, 1, 1, 1]  # x0 or x1
    >>> firmlib.firm(labels, table, method="discrete").importances
    array([0.5, 0.5])
    """
    X, s, w, options = _prepare(
        score, X, method, rows, response_method, target, n_bins, sample_weight
    )
    sd = 0.0
    if np.ptp(s[w > 0]) > 0:
        plug_in = options["rows"] == "population" or method == "slope"
        sd = np.sqrt(w @ (s - w @ s / w.sum()) ** 2 / (w.sum() - (not plug_in)))
    if standardize and sd > 0:
        s, sd = s / sd, 1.0
    functions = _named_features(X, features, feature_names)
    estimates = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_one)(s, X, name, f, w, options) for name, f in functions.items()
    )
    variance = np.array([e.curve.variance for e in estimates])
    sign = np.array([e.sign for e in estimates])
    importances = np.where(variance > 0, sign * np.sqrt(np.maximum(variance, 0)), 0.0)
    return FirmResult(
        importances=importances,
        standardized=importances / sd if sd > 0 else np.zeros_like(importances),
        variance=variance,
        methods=tuple(e.curve.method for e in estimates),
        feature_names=tuple(functions),
        curves={name: e.curve for name, e in zip(functions, estimates, strict=True)},
    )


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
    X, s, w, options = _prepare(
        score, X, method, rows, response_method, target, n_bins, sample_weight
    )
    if isinstance(feature, str | int | np.integer):
        f = column(X, feature)
    elif callable(feature):
        f = feature(X)
    else:
        f = feature
    return _one(s, X, "feature", lambda X: f, w, options).curve


def _prepare(
    score: Score,
    X: Any,
    method: str,
    rows: str,
    response_method: str,
    target: Any,
    n_bins: int | str,
    sample_weight: ArrayLike | None,
) -> tuple[Any, np.ndarray, np.ndarray, dict]:
    check_option("method", method, METHODS)
    check_option("rows", rows, ROWS)
    whole = isinstance(n_bins, int | np.integer) and not isinstance(n_bins, bool)
    if n_bins != "auto" and not (whole and n_bins >= 2):
        raise ValueError(f"n_bins={n_bins!r} must be 'auto' or an integer of at least 2")
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
    return X, s, w, {"method": method, "rows": rows, "n_bins": n_bins}


def _one(s: np.ndarray, X: Any, name: str, f: Feature, w: np.ndarray, options: dict) -> Any:
    values = check_array(f"feature {name!r}", f(X), 1, (len(s),))
    try:
        return estimate(s, values, w, **options)
    except ValueError as error:
        raise ValueError(f"feature {name!r}: {error}") from error


def _named_features(
    X: Any, features: Any, feature_names: Sequence[str] | None
) -> dict[str, Feature]:
    """Return name -> function X -> (n,) for whatever `firm` accepts as features."""
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
    if isinstance(feature_names, str):
        raise ValueError(f"feature_names={feature_names!r} must be a sequence of names")
    names = [name for name, _ in pairs] if feature_names is None else list(map(str, feature_names))
    if len(names) != len(pairs):
        raise ValueError(f"feature_names has {len(names)} names for {len(pairs)} features")
    [(name, count)] = Counter(names).most_common(1)
    if count > 1:
        raise ValueError(f"feature names must differ, got {name!r} {count} times")
    return dict(zip(names, (f for _, f in pairs), strict=True))


def _is_float(values: ArrayLike) -> bool:
    return np.asarray(values).dtype.kind == "f"


def _function(f: Column | Callable | ArrayLike, X: Any) -> Feature:
    if callable(f):
        return f
    return _column_of(X, f) if np.ndim(f) == 0 else lambda _: f


def _column_of(table: Any, j: Column, name: str = "X") -> Feature:
    return lambda _: column(table, j, name)


def _name(f: Column | Callable, X: Any) -> str:
    if callable(f):
        return getattr(f, "__name__", repr(f))
    return column_names(X)[column_index(X, f)]
