"""All classes, or all outputs, of a model: a result for each, from one pass of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firmlib._checks import short
from firmlib._sources import is_source
from firmlib._table import Table
from firmlib.measure import firm
from firmlib.result import FirmResult
from firmlib.scores import Score, respond_all

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["FirmByClass", "firm_by_class"]


class FirmByClass(Mapping[Any, FirmResult]):
    """Importances of several features for the score of every class.

    ``results["setosa"]`` is the `FirmResult` of one class, with all that belongs to it:
    intervals, tests, curves; ``len(results)`` is the number of classes, and a loop runs over
    their names.

    Parameters
    ----------
    results : mapping of class to FirmResult

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> results = firmlib.firm_by_class(lambda X: X @ [[2, 0], [1, 1]], X)
    >>> results[1].feature_names[np.argmax(results[1].importances)]
    'x1'
    >>> results.to_frame()[["class", "importance", "ci_low", "ci_high"]].round(1)
             class  importance  ci_low  ci_high
    feature
    x0           0         2.0     1.9      2.1
    x1           0         0.9     0.8      1.1
    x1           1         1.0     0.9      1.0
    x0           1        -0.0    -0.2      0.0
    """

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
        return frame.iloc[np.argsort(-frame.abs().max(axis=1).to_numpy(), kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per class and feature, the class in its first column."""
        import pandas as pd

        frames = [result.to_frame() for result in self.values()]
        for target, frame in zip(self, frames, strict=True):
            frame.insert(0, "class", [target] * len(frame))
        return pd.concat(frames)

    def plot(self, *, n: int = 15, columns: int = 3) -> Figure:
        """Draw the importances as bars, a panel for each class, with the same features in all.

        Parameters
        ----------
        n : int, default 15
            How many features: those that matter most to any class.
        columns : int, default 3
            How many panels in a row.
        """
        from firmlib.display import plot_by_class  # matplotlib is an extra

        return plot_by_class(self, n=n, columns=columns)

    def _head(self) -> str:
        [first, *_] = self._results.values()
        size = f"{len(self)} classes, {len(first)} features, {first.n} rows"
        return f"{size}, score: {first.response}, importances"

    def __repr__(self) -> str:
        lines = self.importances.head(10).to_string(float_format="{:.3g}".format)
        return f"FirmByClass: {self._head()}:\n{lines}"

    def _repr_html_(self) -> str:
        """Show the largest importances as a table in a notebook."""
        table = self.importances.head(20)
        return f"<p>{self._head()}</p>" + table.to_html(float_format="{:.3g}".format, border=0)


def firm_by_class(
    estimator: Score,
    X: Any,
    features: Any = None,
    *,
    response_method: str = "auto",
    **options: Any,
) -> FirmByClass:
    """`firm` for the score of every class or output, from one pass of predictions.

    Parameters
    ----------
    estimator : fitted estimator, callable X -> (n, k), or array of shape (n, k)
        A classifier, a clusterer, or whatever has several outputs; or labels. See
        `firmlib.scores.class_scores`.
    X : array, sparse matrix or data frame of shape (n, d)
    features : columns, callables, dict or table, default None
        As for `firm`.
    response_method : str, default "auto"
        As for `firm`.
    **options
        As for `firm`, but for `target`: all of them are looked at.

    Returns
    -------
    FirmByClass
        A mapping from each class to its `FirmResult`; of outputs, from 0, 1, ...; of a classifier
        with several outputs, from (output, class).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> kind = np.where(X[:, 0] > 1, "b", np.where(X[:, 1] > 0, "c", "a"))
    >>> model = LogisticRegression().fit(X, kind)
    >>> results = firmlib.firm_by_class(model, X, standardize=True)
    >>> results.importances.round(1).T
    feature   x0   x1
    a       -0.7 -0.7
    b        1.0  0.0
    c       -0.7  0.7
    >>> results["c"].pvalues.max() < 0.001
    np.True_
    """
    if "target" in options:
        raise ValueError(f"target={options['target']!r} is for one class; expected firm for it")
    if is_source(X):
        raise ValueError(
            "X of rows that come in parts: expected a table in memory; use firm with target=, "
            "class by class"
        )
    table = Table.of(X)
    found = respond_all(estimator, table, response_method=response_method)
    return FirmByClass({each.target: firm(each, table, features, **options) for each in found})
