"""Cross-fitting: what columns predict of the scores of rows that the model did not see.

A model is a smooth trend (splines of each column and products of two columns, by ridge regression)
plus boosted trees for what the trend leaves. It is fitted to all folds of rows but some and
predicts the rest; a second one, fitted to half as many rows, shows how far learning has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from firmlib.estimation.rows import Rows
from firmlib.tables.columns import Column

PARTS = 5  # of the rows, each predicted from the others
LEVELS = 30  # of a nominal column, the most frequent ones
KNOTS = 6, 14, 40  # of a column's spline; what predicts best is used
WAVY = 10  # values above which a column gets a spline
TREES, RATE = 50, 0.15
RIDGES = np.logspace(-3, 3, 7)

Predict = Callable[[np.ndarray], np.ndarray]


def design(columns: Sequence[Column], n: int) -> np.ndarray:
    """Return columns as numbers (n, k): indicators of nominal levels and of missing values."""
    parts: list[np.ndarray] = []
    for column in columns:
        f = column.dense(n)
        missing = np.isnan(f)
        if column.kind == "nominal":
            levels, count = np.unique(f[~missing], return_counts=True)
            levels = levels[np.argsort(-count, kind="stable")][:LEVELS]
            levels = levels[: 1 if len(levels) == 2 and not missing.any() else None]
            parts += [(f == t).astype(float) for t in levels]
        elif not missing.all():
            f = np.where(missing, f[~missing].mean(), f)
            f = f / max(np.abs(f).max(), 1e-300)  # so that squares neither overflow nor vanish
            parts.append((f - f.mean()) / (f.std() or 1.0))
        parts.append(missing.astype(float))
    parts = [f for f in parts if np.ptp(f) > 0]
    return np.column_stack(parts) if parts else np.zeros((n, 0))


def unseen(rows: Rows, F: np.ndarray, r: np.ndarray, width: int, halves: bool = True) -> np.ndarray:
    """Return what is left of r in rows that models from other rows, and from half of them, predict.

    Models that are compared have the same `width`, on which the number of knots depends. The trees
    count as far as they predict what the trend leaves, so that they add little noise.
    """
    if not F.shape[1] or not r.any():
        return np.array([r] * (1 + halves))
    knots = [k for k in KNOTS if k * width <= rows.n / 4] or [4]
    products = 5 * width * (width + 1) <= rows.n
    part, half = rows.fold % PARTS, rows.fold // PARTS % 2 == 0
    left, unit = [], r.std()  # trees round to single precision
    for used in [np.ones(rows.n, bool), half][: 1 + halves]:
        m = np.zeros((2, rows.n))
        with threadpool_limits(1):
            for k in range(PARTS):
                seen, test = used & (part != k), part == k
                if seen.any() and test.any():
                    model = _learn(F[seen], r[seen] / unit, rows.w[seen], knots, products)
                    m[:, test] = unit * model(F[test])
        share = rows.w @ ((r - m[0]) * m[1]) / max(rows.w @ m[1] ** 2, 1e-300)
        left.append(r - m[0] - np.clip(share, 0, 1) * m[1])
    return np.array(left)


def _learn(
    F: np.ndarray, r: np.ndarray, w: np.ndarray, knots: list[int], products: bool
) -> Predict:
    """Return a model: its trend, and boosted trees on what the trend leaves.

    The trend has the ridge and the number of knots that predict each row best from the others.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes long to import
    from sklearn.linear_model import RidgeCV

    every = [_terms(F, k, products) for k in knots]
    fits: list[Any] = [RidgeCV(RIDGES).fit(terms(F), r, sample_weight=w) for terms in every]
    ridge, terms = max(zip(fits, every, strict=True), key=lambda fit: fit[0].best_score_)
    room = 0.25 * np.ptp(r)  # it may not run away where rows are few
    low, high = r.min() - room, r.max() + room

    def trend(F: np.ndarray) -> np.ndarray:
        return np.clip(ridge.predict(terms(F)), low, high)

    options: Any = {"early_stopping": False, "max_leaf_nodes": 15, "random_state": 0}
    trees: Any = HistGradientBoostingRegressor(max_iter=TREES, learning_rate=RATE, **options)
    trees.fit(F, r - trend(F), sample_weight=None if w.min() == w.max() else w)
    return lambda F: np.array([trend(F), trees.predict(F)])


def _terms(F: np.ndarray, knots: int, products: bool) -> Predict:
    """Return a function that gives columns, cubic splines of them, and products of two."""
    from sklearn.preprocessing import SplineTransformer

    mean, sd = F.mean(axis=0), np.maximum(F.std(axis=0), 1e-300)
    ranks = np.quantile(F, np.linspace(0.005, 0.995, knots), axis=0)
    at = (ranks + np.linspace(ranks[0], ranks[-1], knots)) / 2  # between ranks and equal steps
    many = np.array([len(np.unique(x[:2000])) > WAVY for x in F.T])
    wavy = many & (np.diff(at, axis=0) > 0).all(axis=0)
    splines: Any = SplineTransformer(
        3, knots=at[:, wavy], extrapolation="constant", include_bias=False
    )
    if wavy.any():
        splines.fit(F[:, wavy])

    def terms(F: np.ndarray) -> np.ndarray:
        Z = np.clip((F - mean) / sd, -8, 8)
        parts = [Z, splines.transform(F[:, wavy])] if wavy.any() else [Z]
        if products:
            parts += [Z[:, [j]] * Z[:, j:] for j in range(Z.shape[1])]
        return np.column_stack(parts)

    return terms
