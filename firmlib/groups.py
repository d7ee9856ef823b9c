"""Several columns as one feature: sd of E[s(X) | X_G], where bins would need too many rows.

E[s | X_G] is regressed on the columns of the group: a quadratic trend by ridge regression, then
boosted trees on what that leaves, each row predicted by machines that did not see it. With m the
prediction,

    V = mean of 2 (s - mu)(m - mu) - (m - mu)^2 = Var(s) - mean of (s - m)^2,

where an error of m counts only in its square: V is too low by E[(m - E[s | X_G])^2] and never too
high but for noise. So it is honest about what can be learnt from the rows at hand: a group of one
column scores less than the column by itself, and a rough or high-dimensional E[s | X_G] with few
rows is underestimated. From about a thousand rows and up to a handful of columns the loss is a
few per cent of Var(s); compare with more rows to see whether it matters.
"""

import numpy as np
from scipy import stats
from scipy.optimize import nnls
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from firmlib.estimators import Rows

FOLDS = 5


def estimate_group(rows: Rows, F: np.ndarray) -> tuple[float, float, float]:
    """Var(E[s | F]), its standard error, and the p-value of 0, from rows and their values (n, k).

    The test asks whether the out-of-fold predictions correlate with the score.
    """
    r, w, W = rows.r, rows.w, rows.w.sum()
    if len(F) < 5 * FOLDS:
        raise ValueError(f"a group needs at least {5 * FOLDS} rows, got {len(F)}")
    if not r.any() or (F[0] == F).all():
        return 0.0, 0.0, 1.0
    parts = _out_of_fold(rows, F)
    parts -= w @ parts / W
    # How far each part is to be believed: trees that only follow noise are turned down.
    root = np.sqrt(w)
    trust, _ = nnls(root[:, None] * parts, root * r)
    m = parts @ trust
    psi = 2 * r * m - m**2
    variance = w @ psi / W
    error = np.sqrt(w @ (psi - variance) ** 2) / W
    product = r * parts.sum(axis=1)
    noise = np.sqrt(w @ product**2)
    pvalue = stats.norm.sf(w @ product / noise) if noise > 0 else 1.0
    return float(variance), float(error), float(pvalue)


def _out_of_fold(rows: Rows, F: np.ndarray) -> np.ndarray:
    """The trend and what the trees add to it, at each row learnt from the other folds."""
    parts = np.zeros((len(F), 2))
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(F):
        r, weight = rows.r[train], rows.w[train]
        trend = make_pipeline(
            StandardScaler(), PolynomialFeatures(2), RidgeCV(np.logspace(-3, 3, 7))
        )
        trend.fit(F[train], r, ridgecv__sample_weight=weight)
        rest = HistGradientBoostingRegressor(max_leaf_nodes=15, random_state=0)
        rest.fit(F[train], r - trend.predict(F[train]), sample_weight=weight)
        parts[test] = np.column_stack([trend.predict(F[test]), rest.predict(F[test])])
    return parts
