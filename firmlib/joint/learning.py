"""Cross-fitting: what columns predict of the scores of rows that the model did not see.

A model is a smooth trend (splines of each column and products of two columns, by ridge regression)
plus boosted trees for what the trend leaves. It is fitted to all folds of rows but some and
predicts the rest; a second one, fitted to half as many rows, shows how far learning has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from firmlib.estimation.rows import Rows
from firmlib.tables.columns import Column

PARTS = 5  # of the rows, each predicted from the others
LEVELS = 30  # of a nominal column, the most frequent ones
KNOTS = 6, 14, 40  # of a column's spline; what predicts best is used
WAVY = 10  # values above which a column gets a spline
TREES, RATE = 50, 0.15
RIDGES = np.logspace(-3, 3, 7)
MOST_PRODUCTS = 3000  # five times: beyond, products of two columns cost more than they tell

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
    unit = np.arange(rows.n) if rows.unit is None else rows.unit
    size = int(unit.max()) + 1
    knots = [k for k in KNOTS if k * width <= size / 4] or [4]
    products = 5 * width * (width + 1) <= min(size, MOST_PRODUCTS)
    part, half = rows.fold % PARTS, rows.fold // PARTS % 2 == 0
    left, sd = [], r.std()  # trees round to single precision
    trees = _ranks(F) if rows.weighted else F
    for used in [np.ones(rows.n, bool), half][: 1 + halves]:
        m = np.zeros((2, rows.n))
        with threadpool_limits(1):
            for k in range(PARTS):
                seen, test = used & (part != k), part == k
                if seen.any() and test.any():
                    some = F[seen], trees[seen], r[seen] / sd, rows.w[seen], unit[seen]
                    m[:, test] = sd * _learn(*some, knots, products)(F[test], trees[test])
        share = rows.w @ ((r - m[0]) * m[1]) / max(rows.w @ m[1] ** 2, 1e-300)
        left.append(r - m[0] - np.clip(share, 0, 1) * m[1])
    return np.array(left)


def _ranks(F: np.ndarray) -> np.ndarray:
    """Return bins of equal rank: trees take them as they are, and weighted quantiles are slow."""
    cuts = np.quantile(F, np.arange(1, 255) / 255, axis=0)
    return np.column_stack([c.searchsorted(f) for c, f in zip(cuts.T, F.T, strict=True)]) * 1.0


def _learn(
    F: np.ndarray,
    ranks: np.ndarray,
    r: np.ndarray,
    w: np.ndarray,
    unit: np.ndarray,
    knots: list[int],
    products: bool,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a model: its trend, and boosted trees on what the trend leaves."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes long to import

    trend = min((_trend(F, r, w, unit, k, products) for k in knots), key=lambda found: found[0])[1]
    options: Any = {"early_stopping": False, "max_leaf_nodes": 15, "random_state": 0}
    trees: Any = HistGradientBoostingRegressor(max_iter=TREES, learning_rate=RATE, **options)
    trees.fit(ranks, r - trend(F), sample_weight=None if w.min() == w.max() else w)
    return lambda F, ranks: np.array([trend(F), trees.predict(ranks)])


def _trend(
    F: np.ndarray, r: np.ndarray, w: np.ndarray, unit: np.ndarray, knots: int, products: bool
) -> tuple[float, Predict]:
    """Ridge regression on splines and products, with the ridge that predicts each unit best.

    A unit u of m rows is predicted from the others: its mean residual is divided by 1 - g, where g
    is the sum of the smoother over the rows of u, over m. Return also the mean of these squares.
    """
    terms = _terms(F, knots, products)
    Z, root = terms(F), np.sqrt(w)
    centre, level = np.average(Z, axis=0, weights=w), np.average(r, weights=w)
    A, b = root[:, None] * (Z - centre), root * (r - level)
    squares, axes = np.linalg.eigh(A.T @ A)
    A = A @ axes
    shrink, slopes = 1 / (np.maximum(squares, 0) + RIDGES[:, None]), b @ A
    left, unit = b[:, None] - A @ (shrink * slopes).T, np.unique(unit, return_inverse=True)[1]
    rows = np.arange(len(unit))
    members = sparse.csr_array((np.ones(len(unit)), (unit, rows)))  # (units, rows)
    size = members.sum(axis=1)[:, None]
    own = (members @ A) ** 2 @ shrink.T / size + (members @ w)[:, None] / w.sum()
    own = np.minimum(own, 0.95)
    errors = ((left + (members @ left / size * own / (1 - own))[unit]) ** 2).mean(axis=0)
    slopes = axes @ (shrink[np.argmin(errors)] * slopes)
    room = 0.25 * np.ptp(r)  # the trend may not run away where rows are few
    low, high = r.min() - room, r.max() + room
    return errors.min(), lambda F: np.clip(level + (terms(F) - centre) @ slopes, low, high)


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
