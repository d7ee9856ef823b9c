"""Given and groups: what columns tell of the score, and what they add to others.

With e_A = r - E[r | x_A], learnt from other rows (cross-fitting),

    group   Var(E[s | F])                     = mean of r^2 - e_F^2
    given   Var(E[s | F, g]) - Var(E[s | g])  = mean of e_g^2 - e_{F,g}^2

A model is a smooth trend (splines of each column and products of two columns, by ridge regression)
plus boosted trees for what it leaves, fitted to all parts of the rows but the one to predict.
Where all columns have few levels, and in a population, both come from cells instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from firmlib.estimation.jackknife import TINY, Estimate, degrees
from firmlib.estimation.rows import Rows
from firmlib.estimation.scan import read, scan
from firmlib.estimation.sums import How
from firmlib.estimation.variance import Source
from firmlib.features import Feature, Group
from firmlib.joint.interactions import BEYOND_FIRST, contrast, nothing
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

MIN_ROWS, FEW_ROWS = 100, 1000
ROWS_PER_CELL, MOST_CELLS = 10, 1000
FEW_LEVELS = 12  # of a column of numbers in cells
STILL_LEARNING = 0.05  # a gain to mention
PARTS = 5  # of the rows, each predicted from the others
LEVELS = 30  # of a nominal column, the most frequent ones
KNOTS = 6, 14, 40  # of a column's spline; what predicts best is used
TREES: Any = {"max_iter": 50, "learning_rate": 0.15, "max_leaf_nodes": 15, "early_stopping": False}
RIDGES = np.logspace(-3, 3, 7)  # of which one is chosen by leaving out each row
MOST_PRODUCTS = 600  # beyond, products of two columns cost more than they tell


def adds_to(
    found: Mapping[str, Feature | Group], table: Table, sample: Rows, known: Sequence[Any], how: How
) -> tuple[Estimate, list[Source], tuple[str, ...]]:
    """Return Var(E[s | F, known]) - Var(E[s | known]) for each feature or group F, and notes."""
    _check_apart(found.values(), known)
    alone = {name: f for name, f in found.items() if isinstance(f, Feature) and not known}
    single, sources = scan([*alone.values()], table, sample, how)
    each = {name: (single.taken(np.array([k])), sources[k]) for k, name in enumerate(alone)}
    given = [column for f in known for column in _columns(f, table, sample, how)]
    gains, silent, memory = {}, [], {}
    others = [(name, f) for name, f in found.items() if name not in each]
    for name, feature in progress(others, "features"):
        F = _columns(feature, table, sample, how)
        mark = np.sin(1.0 + np.arange(sample.n)) @ np.nansum([c.values for c in F], axis=0)
        there = np.all([~np.isnan(c.values) | (how.missing != "drop") for c in F + given], axis=0)
        f, g = ([c.take(there) for c in some] for some in (F, given))
        rows, one = sample.taken(there), nothing(sample)
        X, G = design(f, rows.n), design(g, rows.n)
        if not rows.population and _follows(X, G):
            silent.append(name)
        elif (rows.s == rows.s[:1]).all():
            pass
        elif rows.population or _few(rows, f + g):
            one = contrast(rows, rows.r, _cells(rows, g), _cells(rows, f), BEYOND_FIRST)
        else:
            one, gains[name] = _of_models(rows, X, G, memory.setdefault(there.tobytes(), {}))
        each[name] = one, Source("group" if isinstance(feature, Group) else F[0].kind, float(mark))
    if silent:
        why = "constant, missing, a new level in nearly every row, or linear in the given columns"
        warn(f"importance 0 for {short(silent)}: {why}")
    if gains and sample.n < FEW_ROWS:
        small = f"importances may be too small; expected at least {FEW_ROWS}"
        warn(f"{sample.n} rows are few to learn several columns from, so {small}")
    grow = [f"{name} (by {100 * g:.0f} %)" for name, g in gains.items() if g > STILL_LEARNING]
    notes = (f"with twice the rows, V would still grow for {', '.join(grow)}",) if grow else ()
    estimates, sources = zip(*(each[name] for name in found), strict=True)
    return Estimate.concatenate(estimates), [*sources], notes


def _check_apart(found: Iterable[Any], known: Sequence[Any]) -> None:
    """Raise if a name or a column is known twice, or both known and in a feature."""
    taken: set[Any] = set()
    for f in (*known, *found):
        if taken & {f.name, *f.places}:
            raise ValueError(f"feature {f.name!r} is in given= already; remove one of them")
        taken |= {f.name, *f.places} if f in known else set()


def _columns(f: Any, table: Table, sample: Rows, how: How) -> list[Column]:
    """Return the columns of a feature in the rows that count."""
    parts = [Feature(f.name, Table.column, j) for j in f.places] or [f]
    return [read(part, table, sample, how) for part in parts]


def _follows(X: np.ndarray, G: np.ndarray) -> bool:
    """Return whether the columns X of a design are a linear function of G, if there are any."""
    G = np.column_stack([G, np.ones(len(G))])
    return bool(np.abs(X - G @ np.linalg.lstsq(G, X)[0]).max(initial=0) < 1e-9)


def _cells(rows: Rows, columns: Sequence[Column]) -> np.ndarray:
    """Return the number of the cell of each row, of those that the values of columns make."""
    keys = [np.zeros(rows.n), *(column.values for column in columns)]
    return pd.Series(rows.s).groupby(keys, dropna=False).ngroup().to_numpy()


def _few(rows: Rows, columns: Sequence[Column]) -> bool:
    """Return whether columns have few values, and their cells enough rows."""
    few = all(c.kind == "nominal" or len(np.unique(c.values)) <= FEW_LEVELS for c in columns)
    return few and _cells(rows, columns).max() < min(rows.n / ROWS_PER_CELL, MOST_CELLS)


def _of_models(rows: Rows, X: np.ndarray, G: np.ndarray, memory: dict) -> tuple[Estimate, float]:
    """Measure by models of the columns X and G; return also the share of V that doubling rows adds.

    What models of G alone predict is kept in `memory`, by the number of columns.

    The test is the projected covariance measure (Lundborg et al., 2024). Without an effect, two
    rows in different parts count twice, each in the model of the other, so the variance doubles.
    The test is Student's, as few units estimate it badly.
    What e_g^2 clearly falls by when the rows double might be mistaken for an effect, so it counts
    as error. An effect that clearly grew from half of the rows to all is taken to grow by as much
    again; the growth counts as error, too.
    """
    if rows.n < MIN_ROWS:
        raise ValueError(f"{rows.n} rows; expected at least {MIN_ROWS} to learn several columns")
    width = X.shape[1] + G.shape[1]
    own = rows.fold % PARTS, np.arange(rows.n)  # the model that did not see a row
    if X.shape[1] <= FEW_LEVELS:
        X = np.column_stack([f - fitted(rows, G, f, width)[own] for f in X.T])
    m_g = memory.get(width) or [fitted(rows, G, rows.r, width, every) for every in (1, 2)]
    m = [fitted(rows, np.column_stack([X, G]), rows.r, width, every) for every in (1, 2)]
    memory[width] = m_g
    e_g, e = (np.array([rows.r - every[own] for every in models]) for models in (m_g, m))
    d = m[0] - m_g[0]
    effect = e_g[0] * (d - fitted(rows, G, d, width))[own]
    all_rows, half = e_g**2 - e**2
    parts = [effect, e_g[1] ** 2 - e_g[0] ** 2, all_rows, all_rows - half]
    means = Estimate.of_rows(np.column_stack(parts), rows)
    (effect, falls, V, growth), errors = means.V, np.sqrt(means.J)
    learning = max(falls - errors[1], 0)
    z = effect / (np.sqrt(2 * (errors[0] ** 2 + learning**2)) + TINY)
    units = np.count_nonzero(means.psi[:, 0])  # of them, or of folds
    df = max(min(degrees(means.psi)[0], units - 1) - 1, 1)  # one less, as scores are centred
    pvalue = special.stdtr(df, -z)
    grows = float((2 * errors[2:] < means.V[2:]).all())
    growth, psi = grows * growth, means.psi @ np.array([[0], [0], [1], [grows]])
    J = (psi**2).sum() + growth**2
    psi *= np.sqrt(J / max((psi**2).sum(), TINY))
    noise = np.array([[J], [0], [0]])
    one = Estimate(np.array([V + growth]), noise, np.array([pvalue]), psi)
    return one, min(growth / max(V, TINY), 1.0)


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
            w, target = rows.w[seen] if len(rows.parts) > 3 else None, r[k, seen] / sd
            tried: Any = [(RidgeCV(RIDGES).fit(Z[seen], target, w), Z) for Z in bases]
            ridge, Z = max(tried, key=lambda one: one[0].best_score_)
            room = 0.25 * np.ptp(target)  # rare values may lie far out
            trend = np.clip(ridge.predict(Z), target.min() - room, target.max() + room)
            trees: Any = HistGradientBoostingRegressor(random_state=0, **TREES)
            trees.fit(ranks[seen], target - trend[seen], w)
            m[:, k] = sd * trend, sd * trees.predict(ranks)
    trend, trees = m[:, part, at]
    share = rows.w @ ((r[part, at] - trend) * trees) / max(rows.w @ trees**2, 1e-300)
    return m[0] + np.clip(share, 0, 1) * m[1]


def _basis(F: np.ndarray, knots: int, products: bool) -> np.ndarray:
    """Return columns, cubic splines of them, and products of two columns."""
    from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

    Z = np.clip((F - F.mean(axis=0)) / np.maximum(F.std(axis=0), 1e-300), -8, 8)
    ranks = np.quantile(F, np.linspace(0.005, 0.995, knots), axis=0)
    at = (ranks + np.linspace(ranks[0], ranks[-1], knots)) / 2  # between ranks and equal steps
    wavy = np.array([len(np.unique(x)) > 2 for x in F.T]) & (at[0] < at[-1])
    parts = [PolynomialFeatures(1 + products, include_bias=False).fit_transform(Z)]
    if wavy.any():
        splines: Any = SplineTransformer(knots=at[:, wavy], extrapolation="constant")
        parts.append(splines.fit_transform(F[:, wavy]))
    return np.column_stack(parts)
