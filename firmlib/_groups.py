"""Several columns as one feature: sd of E[s(X) | X_G], where bins would need too many rows.

E[s | X_G] is learnt from the rows: a quadratic trend by ridge regression, then boosted trees on
what it leaves. As in `firmlib._moments.spread` the square of q = E[s | X_G] is estimated by the
product of two estimates with independent noise: the rows are split into folds, and for each fold
two models, m and m', learn from two halves of the other rows. With centred scores,

    V = mean of s (m + m') - m m',   E[V] = E[q^2] - E[(E[m | X_G] - q)(E[m' | X_G] - q)],

so the noise of the models drops out and only what they miss on average is left: a rough q that
the rows cannot show. That makes V too low, and the standard error does not know of it. Up to a
handful of columns and from a thousand rows on it is a few per cent for smooth q; with many
columns, few rows or a q of high frequency it is more. Compare with more rows to see.
"""

from collections.abc import Callable

import numpy as np
from scipy import special
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from firmlib._inference import Estimate
from firmlib._moments import Scores

FOLDS = 5
MIN_ROWS = 100


def estimate_group(scores: Scores, F: np.ndarray) -> Estimate:
    """Estimate Var(E[s | F]) from the values (n, k) of a group, with its error and a test.

    The test asks whether the models predict the scores of rows that they did not see.
    """
    r, w = scores.r, scores.w
    if len(F) < MIN_ROWS:
        raise ValueError(f"a group of columns needs at least {MIN_ROWS} rows, got {len(F)}")
    if not r.any() or not np.ptp(F, axis=0).any():
        return Estimate(variance=0.0, error=0.0, pvalue=1.0)
    m, other = np.zeros((2, len(F)))
    with threadpool_limits(1):  # on a busy computer, threads that wait for each other cost most
        for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(F):
            half = np.random.default_rng(0).permutation(len(train)) % 2 == 0
            m[test] = _learn(F, r, w, train[half])(F[test])
            other[test] = _learn(F, r, w, train[~half])(F[test])
    W = w.sum()
    gain = r * (m + other)
    psi = gain - m * other
    variance = w @ psi / W
    squares = scores.squares(psi - variance)
    pvalue = float(special.ndtr(-(w @ gain) / np.sqrt(scores.squares(gain))))
    error = float(np.sqrt(squares)) / W
    return Estimate(variance=float(variance), error=error, pvalue=pvalue, rest=error**2)


def _learn(
    F: np.ndarray, r: np.ndarray, w: np.ndarray, rows: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return E[r | F] as learnt from some of the rows."""
    F, r, w = F[rows], r[rows], w[rows]
    trend = make_pipeline(StandardScaler(), PolynomialFeatures(2), RidgeCV(np.logspace(-3, 3, 7)))
    trend.fit(F, r, ridgecv__sample_weight=w)
    trees = HistGradientBoostingRegressor(max_leaf_nodes=15, random_state=0)
    trees.fit(F, r - trend.predict(F), sample_weight=w)
    return lambda F: trend.predict(F) + trees.predict(F)
