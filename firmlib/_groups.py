"""Several columns as one feature: sd of E[s(X) | X_G], where bins would need too many rows.

E[s | X_G] is learnt from the rows: a quadratic trend (of many columns a linear one) by ridge
regression, then boosted trees or, for up to five columns, a Gaussian kernel machine on what it
leaves, whichever predicts better. As in `firmlib._spread.spread` the square of q = E[s | X_G] is
estimated by the product of two estimates with independent noise: the rows are split into folds, and
for each fold two models, m and m', learn from two halves of the other rows. With centred scores and
a scale t,

    V = mean of t s (m + m') - t^2 m m',   t = mean of s (m + m') / 2 over that of m m'

(t between 1/2 and 2, and 1 unless m m' is clear of 0): models that shrink q too much are stretched.
With t = 1, E[V] = E[q^2] - E[(E[m | X_G] - q)(E[m' | X_G] - q)], so the noise of the models drops
out and only what they miss on average is left: a rough q that the rows cannot show. That makes V
too low, and the standard error does not know of it. Up to a handful of columns and from a thousand
rows on it is a few per cent for smooth q; with many columns, few rows or a q of high frequency it
is more. Compare with more rows to see.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import special
from scipy.spatial.distance import cdist
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from firmlib._inference import Estimate
from firmlib._scored import Scores

FOLDS = 5
MIN_ROWS = 100
FEW_COLUMNS = 5  # for which a kernel machine may do better than trees
CENTRES = 1000  # of its kernels
WIDTHS, RIDGES = (1, 2), (1e-3, 1e-2, 0.1)  # that it chooses from
TREND_RIDGES = np.logspace(-3, 3, 7)
SQUARES = 20  # columns up to which the trend has their products; of levels there are many more
BOLD = 1.3  # how far the test statistic spreads under no effect, because folds share models


def estimate_group(scores: Scores, F: np.ndarray, given: np.ndarray | None = None) -> Estimate:
    """Estimate Var(E[s | F]) from the values (n, k) of a group, with its error and a test.

    The test asks whether the models predict the scores of rows that they did not see. With values
    that are `given`, estimate what F adds to them, Var(E[s | F, given]) - Var(E[s | given]), by
    the difference of the influence functions, and test whether it exceeds 0.
    """
    if len(F) < MIN_ROWS:
        raise ValueError(f"a group of columns needs at least {MIN_ROWS} rows, got {len(F)}")
    if _flat(scores, F):
        return Estimate(variance=0.0, error=0.0, pvalue=1.0)
    w, W = scores.w, scores.w.sum()
    psi, both = influence(scores, F if given is None else np.column_stack([F, given]))
    if given is not None:
        psi = psi - influence(scores, given)[0]
    variance = w @ psi / W
    error = float(np.sqrt(scores.squares(psi - variance))) / W
    if given is None:
        z = (w @ both) / np.sqrt(scores.squares(both))
    else:
        z = variance / error if error else 0.0
    pvalue = float(special.ndtr(-z / BOLD))
    return Estimate(variance=float(variance), error=error, pvalue=pvalue, rest=error**2)


def _flat(scores: Scores, F: np.ndarray) -> bool:
    """Return whether the scores or the values are all alike."""
    return not scores.r.any() or not np.ptp(F, axis=0).any()


def influence(scores: Scores, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what each row adds to V, and how well both models together predict its score."""
    r, w = scores.r, scores.w / scores.w.mean()  # penalties of models are those of so many rows
    if _flat(scores, F):
        return np.zeros_like(r), np.zeros_like(r)
    m, other = np.zeros((2, len(F)))
    unit = np.arange(len(F)) if scores.unit is None else scores.unit
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(np.arange(unit.max() + 1)))
    with threadpool_limits(1):  # on a busy computer, threads that wait for each other cost most
        learn = None
        for train, test in splits:
            half = np.random.default_rng(0).permutation(len(train)) % 2 == 0
            rows = [np.flatnonzero(np.isin(unit, part)) for part in (train[half], train[~half])]
            test = np.flatnonzero(np.isin(unit, test))
            learn = learn or _best(F, r, w, rows[0], test)
            m[test], other[test] = (learn(F[part], r[part], w[part])(F[test]) for part in rows)
    both, product = r * (m + other), m * other
    scale = 1.0
    if scores.w @ product > 3 * np.sqrt(scores.squares(product)):
        scale = float(np.clip(w @ both / 2 / (w @ product), 0.5, 2))
    return scale * both - scale**2 * product, both


Predict = Callable[[np.ndarray], np.ndarray]
Learn = Callable[[np.ndarray, np.ndarray, np.ndarray], Predict]


def _best(F: np.ndarray, r: np.ndarray, w: np.ndarray, rows: np.ndarray, test: np.ndarray) -> Learn:
    """Return the learner that does best on some rows: trees, or for few columns a kernel."""
    if F.shape[1] > FEW_COLUMNS:
        return _trees
    learners: list[Learn] = [_trees]
    learners += [partial(_kernel, width=a, ridge=b) for a in WIDTHS for b in RIDGES]
    seen = F[rows], r[rows], w[rows]
    models = [_trees(*seen)]
    models += [model for a in WIDTHS for model in _kernels(*seen, width=a, ridges=RIDGES)]
    misses = [model(F[test]) - r[test] for model in models]
    return learners[int(np.argmin([w[test] @ miss**2 for miss in misses]))]


def _trend(F: np.ndarray, r: np.ndarray, w: np.ndarray) -> Predict:
    """Return a quadratic trend, or of many columns a linear one, with the ridge that does best.

    That is the one whose errors are least where each row is predicted from all others: row i's
    residual over 1 - h_i, h the diagonal of the smoother. As `RidgeCV`, in a fifth of its time.
    """
    degree = 2 if F.shape[1] <= SQUARES else 1
    terms = make_pipeline(StandardScaler(), PolynomialFeatures(degree, include_bias=False))
    Z: Any = terms.fit_transform(F)
    root, centre, level = np.sqrt(w), np.average(Z, axis=0, weights=w), np.average(r, weights=w)
    A, b = root[:, None] * (Z - centre), root * (r - level)
    squares, axes = np.linalg.eigh(A.T @ A)
    A = A @ axes
    shrink = 1 / (np.maximum(squares, 0) + TREND_RIDGES[:, None])
    fit, own = A @ (shrink * (b @ A)).T, A**2 @ shrink.T + (w / w.sum())[:, None]
    best = np.argmin((((b[:, None] - fit) / (1 - own)) ** 2).sum(axis=0))
    slopes = axes @ (shrink[best] * (b @ A))
    return lambda F: level + (terms.transform(F) - centre) @ slopes


def _trees(F: np.ndarray, r: np.ndarray, w: np.ndarray) -> Predict:
    """Return a trend and boosted trees on what it leaves."""
    trend = _trend(F, r, w)
    trees = HistGradientBoostingRegressor(max_leaf_nodes=15, random_state=0)
    alike = w.min() == w.max()  # weights that change nothing would take most of the time
    trees.fit(F, r - trend(F), sample_weight=None if alike else w)
    return lambda F: trend(F) + trees.predict(F)


def _kernel(F: np.ndarray, r: np.ndarray, w: np.ndarray, *, width: float, ridge: float) -> Predict:
    return _kernels(F, r, w, width=width, ridges=(ridge,))[0]


def _kernels(
    F: np.ndarray, r: np.ndarray, w: np.ndarray, *, width: float, ridges: Sequence[float]
) -> list[Predict]:
    """Return a trend and a Gaussian kernel machine on what it leaves, around some of the rows.

    One for each ridge: most of the work is the same for all.
    """
    trend, scaler = _trend(F, r, w), StandardScaler().fit(F)
    Z: Any = scaler.transform(F)
    centres = Z[np.random.default_rng(0).permutation(len(Z))[:CENTRES]]

    def kernel(A: Any) -> np.ndarray:
        return np.exp(-cdist(A, centres, "sqeuclidean") / (2 * width**2 * F.shape[1]))

    root, inner = np.sqrt(w), kernel(centres)
    K = root[:, None] * kernel(Z)  # K'K is symmetric: BLAS finds half of it
    squares, products = K.T @ K, K.T @ (root * (r - trend(F)))
    penalty = len(centres) * (inner + 1e-6 * np.eye(len(centres)))

    def machine(ridge: float) -> Predict:
        a = np.linalg.solve(squares + ridge * penalty, products)
        return lambda F: trend(F) + kernel(scaler.transform(F)) @ a

    return [machine(ridge) for ridge in ridges]
