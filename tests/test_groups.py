"""Groups of columns, against closed forms and enumeration."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from firmlib import firm
from firmlib._groups import TREND_RIDGES, _trend
from firmlib.features import Group

CORRELATION = np.full((4, 4), 0.3) + 0.7 * np.eye(4)
CORRELATION[0, 1] = CORRELATION[1, 0] = 0.9
WEIGHTS = np.array([1.0, 1.0, 0.0, 0.5])


def normal_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(4), CORRELATION, n)
    return pd.DataFrame(X, columns=list("abcd")), X @ WEIGHTS


def joint_importance(group):
    """sd of E[w'X | X_G] for normal X."""
    j = ["abcd".index(name) for name in group]
    covariance = CORRELATION[j] @ WEIGHTS
    return np.sqrt(covariance @ np.linalg.solve(CORRELATION[np.ix_(j, j)], covariance))


@pytest.mark.parametrize("group", ["ab", "bc", "cd", "abcd"])
def test_linear_score_of_normal_inputs(group):
    X, s = normal_rows(2000)
    result = firm(s, X, {"group": list(group)})
    truth = joint_importance(group)
    np.testing.assert_allclose(result.importances, truth, rtol=0.06)
    assert result.ci_low[0] <= truth <= result.ci_high[0]
    assert result.pvalues[0] < 1e-6
    assert result.methods == ("boosted",)
    assert not result.curves


def test_ishigami_pairs_with_an_interaction():
    rng = np.random.default_rng(1)
    X = rng.uniform(-np.pi, np.pi, (3000, 3))
    s = np.sin(X[:, 0]) * (1 + 0.1 * X[:, 2] ** 4) + 7 * np.sin(X[:, 1]) ** 2
    result = firm(s, X, {"x0": 0, "x2": 2, "x0 and x2": [0, 2]})
    alone = (1 + np.pi**4 / 50) ** 2 / 2
    both = alone + 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    np.testing.assert_allclose(result.variance[2], both, rtol=0.1)
    assert result.importances[1] < 0.3  # nothing by itself
    assert set(result.curves) == {"x0", "x2"}


@pytest.mark.slow
def test_a_group_that_tells_nothing():
    rng = np.random.default_rng(2)
    pvalues, variances = [], []
    for _ in range(12):
        X = rng.normal(size=(400, 3))
        result = firm(rng.normal(size=400), X, {"all": [0, 1, 2]})
        pvalues.append(result.pvalues[0])
        variances.append(result.variance[0])
    assert min(pvalues) > 0.001
    assert np.mean(pvalues) > 0.2
    np.testing.assert_allclose(np.mean(variances), 0, atol=0.03)  # of Var(s) = 1; neither sign


def test_of_a_population_every_combination_is_a_level():
    table = np.array(list(product([0, 1], repeat=3)))
    weight = np.arange(1.0, 9.0)
    s = table[:, 0] ^ table[:, 1]
    result = firm(
        s, table, {"pair": [0, 1], "other": [0, 2]}, rows="population", sample_weight=weight
    )
    p = weight / weight.sum()
    np.testing.assert_allclose(result.importances[0], np.sqrt(p @ s - (p @ s) ** 2), rtol=1e-12)
    q = [
        (p @ (s * hit)) / (p @ hit)
        for a, b in product([0, 1], repeat=2)
        if (hit := (table[:, 0] == a) & (table[:, 2] == b)).any()
    ]
    shares = [p @ ((table[:, 0] == a) & (table[:, 2] == b)) for a, b in product([0, 1], repeat=2)]
    expected = np.sqrt(np.dot(shares, np.square(q)) - np.dot(shares, q) ** 2)
    np.testing.assert_allclose(result.importances[1], expected, rtol=1e-12)


def test_columns_by_name_or_position_or_as_a_group():
    X, s = normal_rows(300)
    named = firm(s, X, {"g": ["a", "b"]}).variance
    np.testing.assert_array_equal(firm(s, X, {"g": [0, 1]}).variance, named)
    np.testing.assert_array_equal(firm(s, X, {"g": Group(("a", 1))}).variance, named)
    np.testing.assert_array_equal(firm(s, X.to_numpy(), {"g": (0, 1)}).variance, named)


def test_a_constant_group_and_a_constant_score():
    X, s = normal_rows(200)
    assert firm(s, X * 0, {"g": ["a", "b"]}).importances == [0]
    assert firm(s * 0, X, {"g": ["a", "b"]}).importances == [0]
    assert firm(s * 0, X, {"g": ["a", "b"]}).pvalues == [1]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"g": ["a", "nope"]}, r"feature 'nope' is no column of X"),
        ({"g": [0, 9]}, r"feature 9 is no column of X"),
    ],
)
def test_unknown_columns(features, message):
    X, s = normal_rows(200)
    with pytest.raises(ValueError, match=message):
        firm(s, X, features)


def test_too_few_rows():
    X, s = normal_rows(50)
    with pytest.raises(ValueError, match="feature 'g': a group of columns needs at least 100 rows"):
        firm(s, X, {"g": ["a", "b"]})


@pytest.mark.parametrize("columns", [1, 4, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_trend_is_what_ridge_cv_has(columns, weighted):
    rng = np.random.default_rng(columns)
    F = rng.normal(size=(120, columns))
    r = F[:, 0] + F[:, -1] ** 2 + rng.normal(size=120)
    w = rng.integers(0, 3, 120).astype(float) if weighted else np.ones(120)
    terms = PolynomialFeatures(2 if columns < 30 else 1)
    theirs = make_pipeline(StandardScaler(), terms, RidgeCV(TREND_RIDGES))
    theirs.fit(F, r, ridgecv__sample_weight=w)
    np.testing.assert_allclose(_trend(F, r, w)(F), theirs.predict(F), rtol=1e-9, atol=1e-9)
