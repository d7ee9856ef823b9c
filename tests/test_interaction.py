"""What no sum of two curves explains: against least squares, closed forms, and its own null."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from firmlib import firm, plot_interactions
from firmlib.features import Pairs, threshold

INTERACTION = Pairs("interaction")


def by_least_squares(s, a, b, p):
    """The variance of E[s | a, b] minus its best sum of two functions, by dummy variables."""
    levels, cell = np.unique(np.column_stack([a, b]), axis=0, return_inverse=True)
    w = np.bincount(cell.ravel(), p)
    q = np.bincount(cell.ravel(), p * s) / w
    dummies = [levels[:, j][:, None] == np.unique(levels[:, j]) for j in (0, 1)]
    root = np.sqrt(w / w.sum())
    D = np.hstack(dummies) * root[:, None]
    return np.sum((root * q - D @ np.linalg.lstsq(D, root * q)[0]) ** 2)


def correlated(rng, n, rho):
    a, b, noise = rng.normal(size=(3, n))
    return np.column_stack([a, rho * a + np.sqrt(1 - rho**2) * b]), noise


@pytest.mark.parametrize("seed", range(5))
def test_of_a_population_it_is_least_squares_with_dummies(seed):
    rng = np.random.default_rng(seed)
    X = np.array(list(product(range(3), range(4), range(2))), dtype=float)
    p, s = rng.random(len(X)) * (rng.random(len(X)) < 0.8) + 1e-3, rng.normal(size=len(X))
    result = firm(s, X, INTERACTION, rows="population", sample_weight=p)
    assert result.feature_names == ("x0 × x1", "x0 × x2", "x1 × x2")
    truth = [by_least_squares(s, X[:, j], X[:, k], p) for j, k in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(result.variance, truth, atol=1e-9)


def test_of_samples_of_a_table_it_is_right_on_average():
    rng = np.random.default_rng(0)
    p = rng.random((3, 4)) + 0.1
    q = rng.normal(size=(3, 4))
    levels = np.array(list(product(range(3), range(4))), dtype=float)
    truth = by_least_squares(q.ravel(), *levels.T, p.ravel())
    found, inside = [], []
    for _ in range(300):
        cell = rng.choice(12, 200, p=p.ravel() / p.sum())
        s = q.ravel()[cell] + rng.normal(size=200) * (1 + levels[cell, 0])
        result = firm(s, levels[cell], INTERACTION)
        found.append(result.variance[0])
        inside.append(result.ci_low[0] ** 2 <= truth <= result.ci_high[0] ** 2)
    assert abs(np.mean(found) - truth) < 3 * np.std(found) / np.sqrt(300)
    assert np.mean(inside) > 0.9


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_of_a_product_of_normal_inputs_the_closed_form(rho):
    """Beyond x^2 + y^2 times 2 rho / (1 + rho^2), xy has the variance (1 - rho^2)^2 / (1 + rho^2).

    By Hermite polynomials: Var(xy) = 1 + rho^2, Cov(xy, x^2) = 2 rho, Corr(x^2, y^2) = rho^2.
    """
    X, noise = correlated(np.random.default_rng(0), 20_000, rho)
    result = firm(X[:, 0] * X[:, 1] + X[:, 0] + noise, X, INTERACTION)
    truth = (1 - rho**2) / np.sqrt(1 + rho**2)
    assert abs(result.importances[0] - truth) < 0.03 * truth + 2 * result.standard_error[0]


ADDITIVE = {
    "line": lambda a, b, noise: a + b,
    "curves": lambda a, b, noise: a**2 + np.sin(3 * b),
    "steps": lambda a, b, noise: (a > 0.3) + 2.0 * (b > 0),
    "noise": lambda a, b, noise: noise,
    "uneven noise": lambda a, b, noise: np.abs(a) * noise + b,
    "curves and noise": lambda a, b, noise: np.exp(a) + b + noise,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_an_additive_score_has_none_whether_inputs_are_correlated_or_not(name, rho):
    pvalues, z = [], []
    for seed in range(100):
        X, noise = correlated(np.random.default_rng(seed), 1000, rho)
        result = firm(ADDITIVE[name](*X.T, noise), X, INTERACTION)
        pvalues.append(result.pvalues[0])
        z.append(result.variance[0] / max(result.estimate.error[0], 1e-12))
    assert np.mean(np.array(pvalues) < 0.05) <= 0.12
    assert np.mean(np.array(z) > 3) <= 0.03


def test_the_product_of_a_sum_is_not_told_from_its_parts_but_this_is():
    X, _ = correlated(np.random.default_rng(0), 2000, 0.5)
    X = X + 5
    s = X.sum(axis=1)
    assert firm(s, X, Pairs("product")).standardized[0] > 0.98
    assert firm(s, X, INTERACTION).standardized[0] < 0.01


def test_of_ishigami_it_finds_the_one_pair():
    X = np.random.default_rng(0).uniform(-np.pi, np.pi, (10_000, 3))
    s = np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])
    result = firm(s, X, INTERACTION)
    truth = np.sqrt(0.01 * np.pi**8 * (1 / 18 - 1 / 50))
    told = result.pvalues_adjusted() < 0.05
    assert [n for n, one in zip(result.feature_names, told, strict=True) if one] == ["x0 × x2"]
    assert result["x0 × x2"]["ci_low"] < truth < result["x0 × x2"]["ci_high"]


def test_categories_missing_values_and_features():
    rng = np.random.default_rng(0)
    n = 4000
    X = pd.DataFrame({"dose": rng.normal(size=n), "site": rng.choice(list("abc"), n)})
    X["age"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    additive = X.dose + (X.site == "a") + X.age.fillna(2.0) + rng.normal(size=n)
    result = firm(additive.to_numpy(), X, INTERACTION)
    assert (result.pvalues > 0.01).all()
    s = additive + X.dose * (X.site == "b") + X.age.isna() * (X.site == "c")
    result = firm(s.to_numpy(), X, INTERACTION)
    assert result["dose × site"]["pvalue"] < 1e-6
    assert result["site × age"]["pvalue"] < 1e-6
    assert result["dose × age"]["pvalue"] > 0.01
    p = np.mean(X.site == "b")
    assert abs(result["dose × site"]["importance"] - np.sqrt(p * (1 - p))) < 0.05
    parts = Pairs("interaction", [threshold("dose", 0), "site"])
    assert firm(s.to_numpy(), X, parts).feature_names == ("dose>0 × site",)


def test_columns_that_are_constant_missing_or_of_very_different_size():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    X[:, 1], X[:, 2], X[:, 3] = np.nan, 3, np.exp(20 * X[:, 3])
    result = firm(X[:, 0] + rng.normal(size=800), X, INTERACTION)
    assert (result.pvalues > 0.01).all()
    np.testing.assert_array_equal(result.importances[[0, 1, 3, 4, 5]], 0)


def test_too_few_rows():
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert firm(X[:, 0], X, INTERACTION).importances[0] == 0
    with pytest.raises(ValueError, match="too few to tell an effect from noise"):
        firm([0, 1, 1, 0], [[0, 0], [0, 1], [1, 0], [1, 1]], INTERACTION)


def test_many_rare_levels_are_one():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"who": rng.integers(0, 400, 2000).astype(str), "dose": rng.normal(size=2000)})
    result = firm(X.dose.to_numpy() + rng.normal(size=2000), X, INTERACTION)
    assert result.pvalues[0] > 0.01


@pytest.mark.parametrize("sampling", [False, True])
def test_weights(sampling):
    rng = np.random.default_rng(1)
    X, noise = correlated(rng, 3000, 0.5)
    s = X[:, 0] * X[:, 1] + noise
    w = rng.integers(1, 4, 3000)
    if sampling:
        one, two = (firm(s, X, INTERACTION, sample_weight=w * c) for c in (0.5, 0.1))
        np.testing.assert_allclose(one.importances, two.importances)
        np.testing.assert_allclose(one.standard_error, two.standard_error)
    else:
        one = firm(s, X, INTERACTION, sample_weight=w)
        two = firm(np.repeat(s, w), np.repeat(X, w, axis=0), INTERACTION)
        np.testing.assert_allclose(one.importances, two.importances, rtol=1e-9)
        np.testing.assert_allclose(one.pvalues, two.pvalues, rtol=1e-6, atol=1e-12)


def test_the_unit_of_scores_and_columns_does_not_matter():
    X, noise = correlated(np.random.default_rng(2), 1000, 0.5)
    s = X[:, 0] * X[:, 1] + noise
    one = firm(s, X, INTERACTION)
    two = firm(1e6 * s + 5, X * [1e-8, 1e5] + [3, 0], INTERACTION)
    np.testing.assert_allclose(two.importances, 1e6 * one.importances, rtol=1e-6)
    np.testing.assert_allclose(two.pvalues, one.pvalues, rtol=1e-4)


def test_the_picture():
    X = np.random.default_rng(0).normal(size=(500, 4))
    result = firm(X[:, 0] * X[:, 3], X, INTERACTION)
    ax = plot_interactions(result)
    table = ax.images[0].get_array()
    assert np.unravel_index(np.nanargmax(table.filled(-1)), (4, 4)) == (0, 3)
    with pytest.raises(ValueError, match="Pairs\\('interaction'\\)"):
        plot_interactions(firm(X[:, 0], X))


X, _ = correlated(np.random.default_rng(0), 300, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "slope"}, "method='slope'"),
        ({"missing": "drop"}, "missing='drop'"),
        ({"groups": np.arange(300) // 3}, "with groups of rows: expected none"),
        ({"feature_names": ["a"]}, "feature_names is not for pairs"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        firm(X[:, 0], X, INTERACTION, **options)


def test_it_is_no_function_of_rows():
    with pytest.raises(ValueError, match="no function of the rows"):
        INTERACTION.features(X)
    holes = np.where(np.arange(600).reshape(300, 2) == 4, np.nan, X)
    with pytest.raises(ValueError, match="must not be missing"):
        firm(X[:, 0], holes, INTERACTION, missing="raise")
