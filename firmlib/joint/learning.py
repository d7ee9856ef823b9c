"""Cross-fitting: what columns predict of the scores of rows that the model did not see.

A model is a smooth trend (splines of each column and products of two columns, by ridge regression)
plus boosted trees for what it leaves, fitted to all parts of the rows but the one to predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from firmlib.estimation.rows import Rows
from firmlib.tables.columns import Column

PARTS = 5  # of the rows, each predicted from the others
LEVELS = 30  # of a nominal column, the most frequent ones
KNOTS = 6, 14, 40  # of a column's spline; what predicts best is used
TREES: Any = {"max_iter": 50, "learning_rate": 0.15, "max_leaf_nodes": 15, "random_state": 0}
TREES |= {"early_stopping": False}
RIDGES = np.logspace(-3, 3, 7)  # of which one is chosen by leaving out each row
MOST_PRODUCTS = 600  # beyond, products of two columns cost more than they tell


def design(columns: Sequence[Column], n: int) -> np.ndarray:
    """Return columns as numbers (n, k): indicators of nominal levels and of missing values."""
    parts: list[np.ndarray] = []
    for column in columns:
        f = column.values
        missing = np.isnan(f)
        if column.kind == "nominal":
            levels, count = np.unique(f[~missing], return_counts=True)
            two = len(levels) == 2 and not missing.any()
            order = np.argsort(-count, kind="stable")[: 1 if two else LEVELS]
            some = levels[order][count[order] > 1]  # one row alone tells nothing of others
            parts += [(f == t).astype(float) for t in some]
        elif not missing.all():
            f = np.where(missing, f[~missing].mean(), f)
            f = f / max(np.abs(f).max(), 1e-300)  # so that squares neither overflow nor vanish
            parts.append((f - f.mean()) / (f.std() or 1.0))
        parts.append(missing.astype(float))
    return np.column_stack([np.zeros((n, 0)), *(f for f in parts if (f != f[:1]).any())])


def fitted(rows: Rows, F: np.ndarray, r: np.ndarray, width: int, every: int = 1) -> np.ndarray:
    """Return predictions of r (PARTS, n) by models of which the k-th did not see part k.

    Each part may have scores of its own, r (PARTS, n). Models see all other rows, or every second
    fold of them. Their `width` gives the number of knots; those that are compared share it. Trees
    count as far as they predict what the trend leaves, so that they add little noise.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor  # these take long to import
    from sklearn.linear_model import RidgeCV

    r, sd = np.broadcast_to(r, (PARTS, rows.n)), r.std()
    m = np.zeros((2, PARTS, rows.n))
    if not F.shape[1] or not sd:
        return m[0]
    size = rows.n if rows.unit is None else int(rows.unit.max()) + 1
    products = width * (width + 1) <= min(size / 5, MOST_PRODUCTS)
    bases = [_basis(F, k, products) for k in KNOTS if k * width <= size / 4 or k == min(KNOTS)]
    ranks = np.floor(250 * rankdata(F, axis=0) / rows.n)  # bins for trees
    part, at = rows.fold % PARTS, np.arange(rows.n)
    with threadpool_limits(1):
        for k in range(PARTS):
            seen = (part != k) & (rows.fold // PARTS % every == 0)
            if not seen.any():  # few units
                continue
            w, target = rows.w[seen] if rows.weighted else None, r[k, seen] / sd
            tried: Any = [(RidgeCV(RIDGES).fit(Z[seen], target, w), Z) for Z in bases]
            ridge, Z = max(tried, key=lambda one: one[0].best_score_)
            room = 0.25 * np.ptp(target)  # rare values may lie far out
            trend = np.clip(ridge.predict(Z), target.min() - room, target.max() + room)
            trees: Any = HistGradientBoostingRegressor(**TREES).fit(
                ranks[seen], target - trend[seen], w
            )
            m[:, k] = sd * trend, sd * trees.predict(ranks)
    trend, trees = m[:, part, at]
    share = rows.w @ ((r[part, at] - trend) * trees) / max(rows.w @ trees**2, 1e-300)
    return m[0] + np.clip(share, 0, 1) * m[1]


def _basis(F: np.ndarray, knots: int, products: bool) -> np.ndarray:
    """Return columns, cubic splines of them, and products of two columns."""
    from sklearn.preprocessing import SplineTransformer

    Z = np.clip((F - F.mean(axis=0)) / np.maximum(F.std(axis=0), 1e-300), -8, 8)
    ranks = np.quantile(F, np.linspace(0.005, 0.995, knots), axis=0)
    at = (ranks + np.linspace(ranks[0], ranks[-1], knots)) / 2  # between ranks and equal steps
    wavy = np.array([len(np.unique(x)) > 2 for x in F.T]) & (at[0] < at[-1])
    parts = [Z]
    if wavy.any():
        splines: Any = SplineTransformer(knots=at[:, wavy], extrapolation="constant")
        parts.append(splines.fit_transform(F[:, wavy]))
    if products:
        parts += [Z[:, [j]] * Z[:, j:] for j in range(Z.shape[1])]
    return np.column_stack(parts)
