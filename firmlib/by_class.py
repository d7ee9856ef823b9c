"""One result for each class or output of a model, from one pass of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firmlib.measure import firm
from firmlib.result import FirmResult
from firmlib.scores import Score, respond_all
from firmlib.tables.checks import short
from firmlib.tables.sources import is_source
from firmlib.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["FirmByClass", "firm_by_class"]


class FirmByClass(Mapping[Any, FirmResult]):
    """A mapping from each class to the `FirmResult` of its score.

    Examples
    --------
    >>> import firmlib
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> results = firmlib.firm_by_class(X, X, rows="population")
    >>> results[0].importances
    array([0.5, 0. ])
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
        """One row per feature, one column per class, sorted by the largest importance."""
        import pandas as pd

        [first, *_] = self._results.values()
        index = pd.Index(first.feature_names, name="feature")
        frame = pd.DataFrame({k: result.importances for k, result in self.items()}, index=index)
        return frame.iloc[np.argsort(-frame.max(axis=1).to_numpy(), kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class and feature, with the class in the first column."""
        import pandas as pd

        frames = [result.to_frame() for result in self.values()]
        for target, frame in zip(self, frames, strict=True):
            frame.insert(0, "class", [target] * len(frame))
        return pd.concat(frames)

    def plot(self, *, n: int = 15, columns: int = 3) -> Figure:
        """Draw one panel per class with the n features of the largest importances."""
        from firmlib.display import plot_by_class  # matplotlib is an extra

        return plot_by_class(self, n=n, columns=columns)

    def __repr__(self) -> str:
        [first, *_] = self._results.values()
        head = f"{len(self)} classes, {len(first)} features, {first.n} rows, importances:"
        lines = self.importances.head(10).to_string(float_format="{:.3g}".format)
        return f"FirmByClass: {head}\n{lines}"


def firm_by_class(
    estimator: Score, X: Any, features: Any = None, *, response_method: str = "auto", **options: Any
) -> FirmByClass:
    """`firm` for the score of every class or output, from one pass of predictions.

    Parameters
    ----------
    estimator : fitted estimator, callable X -> (n, k), or array of shape (n, k)
        A classifier, a clusterer, any model with several outputs, or labels; see
        `firmlib.scores.class_scores`. Outputs have the keys 0, 1, ..., and a classifier with
        several outputs has the keys (output, class).
    X, features, response_method, **options
        As for `firm`, except for `target`.

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
    x1       0.9  1.0
    """
    if "target" in options:
        raise ValueError(f"target={options['target']!r} selects one class; use firm instead")
    if is_source(X):
        raise ValueError("X comes in chunks; pass a table in memory, or call firm for each target")
    table = Table.of(X)
    found = respond_all(estimator, table, response_method=response_method)
    return FirmByClass({each.target: firm(each, table, features, **options) for each in found})
