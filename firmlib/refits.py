"""How much of a ranking is the model's luck? Importances over refits of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib.measure import firm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["stability"]


def stability(
    estimator: Any, X: Any, y: ArrayLike, features: Any = None, *, cv: Any = None, **options: Any
) -> pd.DataFrame:
    """Importances of a model that is fitted anew to parts of the rows, on all rows each time.

    The spread over the fits comes from the model, the standard error of each from the rows; the
    total adds both.

    Parameters
    ----------
    estimator : scikit-learn estimator
        Cloned for each fit.
    X : array, sparse matrix or data frame of shape (n, d)
    y : array of shape (n,)
    features : columns, callables, dict or table, default None
        As for `firm`.
    cv : int or scikit-learn splitter, default None
        Which rows to fit: the training parts of ``cv.split(X, y)``. By default 20 random halves,
        whose models vary about as those of all rows under new data do.
    **options
        As for `firm`; ``standardize=True`` makes fits comparable whose scores have other units.

    Returns
    -------
    DataFrame
        One row per feature, the most important first: the mean importance over the fits, and its
        standard deviation from "rows", "model" and in "total".

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> import firmlib
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> firmlib.stability(Ridge(), X, y).round(2)
             importance  rows  model  total
    feature
    x0             0.95  0.04   0.04   0.06
    x1             0.06  0.06   0.06   0.09
    """
    import pandas as pd
    from sklearn.base import clone
    from sklearn.model_selection import ShuffleSplit, check_cv
    from sklearn.utils import _safe_indexing

    cv = ShuffleSplit(20, train_size=0.5, random_state=0) if cv is None else check_cv(cv, y)
    y, results = np.asarray(y), []
    for train, _ in cv.split(X, y):
        model: Any = clone(estimator)
        model.fit(_safe_indexing(X, train), y[train])
        results.append(firm(model, X, features, keep=False, **options))
    Q = np.array([result.importances for result in results])
    rows = np.sqrt(np.mean([result.standard_error**2 for result in results], axis=0))
    spread = Q.std(axis=0, ddof=1)
    columns = {"importance": Q.mean(axis=0), "rows": rows, "model": spread}
    frame = pd.DataFrame(columns | {"total": np.hypot(rows, spread)})
    frame.index = pd.Index(results[0].feature_names, name="feature")
    return frame.iloc[np.argsort(-frame["importance"].abs().to_numpy(), kind="stable")]
