"""How much of a ranking is chance in fitting the model? Importances over refits."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from firmlib.measure import firm
from firmlib.tables.checks import check_shape, is_integer
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

__all__ = ["stability"]


def stability(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    features: Any = None,
    *,
    cv: Any = None,
    groups: ArrayLike | str | None = None,
    standardize: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Importances of a model refitted to subsets of the rows, each evaluated on all rows.

    Returns a frame with a row per feature, the most important first: the mean of Q_f over the fits,
    and its standard deviation from the "rows", from the "model" (the spread over the fits) and in
    "total".

    `features`, `groups` and `options` are as for `firmlib.firm`. Each training part of
    ``cv.split(X, y, groups)`` is fitted. By default, `cv` makes 20 random halves, whose models vary
    about as models of all rows vary with new data; they, and an integer `cv`, keep units together.
    With `standardize`, each fit's importances are divided by the sd of its scores.

    >>> from sklearn.linear_model import Ridge
    >>> import firmlib
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> firmlib.stability(Ridge(), X, y).round(2)
             importance  rows  model  total
    feature
    x0             0.96  0.03   0.04   0.05
    x1             0.04  0.11   0.05   0.12
    """
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit, ShuffleSplit, check_cv
    from sklearn.utils import _safe_indexing

    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ValueError(f"estimator={estimator!r} must be a scikit-learn estimator to fit again")
    table = Table.of(X)
    table.check_rows("y", y)
    y = np.asarray(y)
    check_shape("y", y.shape[:1], (table.n,))
    unit = None if groups is None else table.vector("groups", groups).values
    if cv is None:
        halves = ShuffleSplit if unit is None else GroupShuffleSplit
        cv = halves(20, train_size=0.5, random_state=0)
    elif unit is not None and is_integer(cv):
        cv = GroupKFold(cv)
    splitter: Any = check_cv(cv, y, classifier=is_classifier(estimator))
    parts, results = [train for train, _ in splitter.split(X, y, unit)], []
    if len(parts) < 2:
        raise ValueError(f"cv={cv!r} makes {len(parts)} fits; expected at least 2")
    for train in progress(parts, "fits"):
        model: Any = clone(estimator)
        model.fit(_safe_indexing(X, train), y[train])
        one = firm(model, X, features, groups=groups, **options)
        results.append(one.standardize() if standardize else one)
    Q = np.array([result.importances for result in results])
    rows = np.sqrt(np.mean([result.standard_error**2 for result in results], axis=0))
    columns = {"importance": Q.mean(axis=0), "rows": rows, "model": Q.std(axis=0, ddof=1)}
    columns["total"] = np.hypot(rows, columns["model"])
    frame = pd.DataFrame(columns, pd.Index(results[0], name="feature"))
    return frame.sort_values("importance", ascending=False, kind="stable")
