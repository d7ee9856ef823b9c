"""How much of a ranking is the model's luck? Importances over refits of the model."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib._rows import units
from firmlib._table import Table
from firmlib.measure import firm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["stability"]

_FITS = 20


def stability(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    features: Any = None,
    *,
    cv: Any = None,
    groups: ArrayLike | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Importances of a model that is fitted anew to parts of the rows, on all rows each time.

    The spread of |Q_f| over the fits comes from the model, the standard error of each from the
    rows; the total adds both.

    Parameters
    ----------
    estimator : scikit-learn estimator
        Cloned for each fit.
    X : array, sparse matrix or data frame of shape (n, d)
    y : array of shape (n,)
    features : columns, callables, dict or table, default None
        As for `firm`.
    cv : int or scikit-learn splitter, default None
        Which rows to fit: the training parts of ``cv.split(X, y, groups)``, two or more. By
        default 20 random halves, whose models vary about as those of all rows under new data do.
    groups : array of shape (n,), default None
        The unit that each row belongs to, as for `firm`. By default and with an integer `cv`, all
        rows of a unit are fitted, or none of them.
    **options
        As for `firm`; ``standardize=True`` makes fits comparable whose scores have other units.

    Returns
    -------
    DataFrame
        One row per feature, the most important first: the mean of |Q_f| over the fits, with the
        sign of the mean of Q_f, and its standard deviation from "rows", "model" and in "total".

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
    from sklearn.utils import _safe_indexing

    if isinstance(estimator, type) or not all(hasattr(estimator, a) for a in ("fit", "get_params")):
        raise ValueError(
            f"estimator={getattr(estimator, '__name__', type(estimator).__name__)} must be an "
            "estimator of scikit-learn, which is fitted anew; of other scores use firm"
        )
    unit = None if groups is None else units(groups, Table.of(X), slice(None))[1]
    y, options = np.asarray(y), options | {"groups": unit, "keep": False}
    parts = list(_splitter(cv, estimator, y, unit).split(X, y, unit))
    if len(parts) < 2:
        raise ValueError(f"cv={cv!r} makes {len(parts)} fits; expected at least 2")
    results = []
    for train, _ in parts:
        model: Any = clone(estimator)
        model.fit(_safe_indexing(X, train), y[train])
        results.append(firm(model, X, features, **options))
    Q = np.array([result.importances for result in results])
    sign = np.where(Q.mean(axis=0) < 0, -1, 1)
    rows = np.sqrt(np.mean([result.standard_error**2 for result in results], axis=0))
    spread = np.abs(Q).std(axis=0, ddof=1)
    columns = {"importance": sign * np.abs(Q).mean(axis=0), "rows": rows, "model": spread}
    frame = pd.DataFrame(columns | {"total": np.hypot(rows, spread)})
    frame.index = pd.Index(results[0].feature_names, name="feature")
    return frame.iloc[np.argsort(-frame["importance"].abs().to_numpy(), kind="stable")]


def _splitter(cv: Any, estimator: Any, y: np.ndarray, unit: np.ndarray | None) -> Any:
    """Return what says which rows are fitted, of whole units where rows belong together."""
    from sklearn.base import is_classifier
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit, ShuffleSplit, check_cv

    if cv is None:
        halves = ShuffleSplit if unit is None else GroupShuffleSplit
        return halves(_FITS, train_size=0.5, random_state=0)
    if unit is not None and isinstance(cv, Integral):
        return GroupKFold(int(cv))
    return check_cv(cv, y, classifier=is_classifier(estimator))
