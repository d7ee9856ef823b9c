"""What a feature adds to columns that are known: closed forms, enumerated tables, its null."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from firmlib import FirmResult, firm
from firmlib.features import Pairs
from firmlib.features import product as times
from firmlib.normal import firm_linear

COV = np.array([[1, 0.8, 0.3, 0.2], [0.8, 1, 0.4, 0.1], [0.3, 0.4, 1, 0], [0.2, 0.1, 0, 1.0]])
WEIGHTS = np.array([1.0, 0.5, -1.0, 0.0])


def normal_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(4), COV, n)
    return X, X @ WEIGHTS, rng.normal(size=n)


def by_enumeration(s, f, g, p):
    """E Var(E[s | f, g] | g) over a table of rows with probabilities, by groupby."""
    table = pd.DataFrame({"f": f, "g": g, "p": p / p.sum(), "ps": p / p.sum() * s})
    cells = table.groupby(["g", "f"])[["p", "ps"]].sum()
    cells["q"] = cells.ps / cells.p
    V = 0.0
    for _, cell in cells.groupby("g"):
        V += cell.p.sum() * np.average(
            (cell.q - np.average(cell.q, weights=cell.p)) ** 2, weights=cell.p
        )
    return V


@pytest.mark.parametrize("given", [(0,), (1, 2), (0, 1, 2)])
def test_closed_form_by_regression(given):
    """Q given x_G is the covariance of the residuals of s and x_j over the sd of x_j's."""
    X, s, _ = normal_rows(200_000)
    G = np.column_stack([np.ones(len(X)), X[:, given]])
    rest = np.column_stack([X, s]) - G @ np.linalg.lstsq(G, np.column_stack([X, s]))[0]
    Q = np.cov(rest.T)[:4, 4] / np.maximum(rest[:, :4].std(axis=0), 1e-9)
    Q[list(given)] = 0
    np.testing.assert_allclose(firm_linear(WEIGHTS, COV, given=given), Q, atol=0.01)


def test_closed_form_given_all_others_is_the_total_sobol_index():
    variances = np.array([1.0, 4.0, 0.25])
    for j in range(3):
        given = [k for k in range(3) if k != j]
        Q = firm_linear([1, -2, 3], np.diag(variances), given=given)
        np.testing.assert_allclose(Q[j], [1, -2, 3][j] * np.sqrt(variances[j]))
    with pytest.raises(ValueError, match="given must be an integer from 0 to 2, got 5"):
        firm_linear([1, -2, 3], np.diag(variances), given=[5])


@pytest.mark.parametrize("given", [(0,), (3,), (1, 2), (2, 3)])
@pytest.mark.parametrize("noise", [0, 1])
def test_linear_score_of_normal_inputs(given, noise):
    X, s, z = normal_rows(10_000)
    result = firm(s + noise * z, X, given=given)
    others = [j for j in range(4) if j not in given]
    truth = firm_linear(WEIGHTS, COV, given=given)[others]
    assert result.given == tuple(f"x{j}" for j in given)
    assert result.feature_names == tuple(f"x{j}" for j in others)
    Q = np.where(result.pvalues < 0.05, result.importances, np.abs(result.importances))
    far = np.abs(Q - np.where(result.pvalues < 0.05, truth, np.abs(truth)))
    assert (far < 0.03 * np.abs(truth) + 3 * result.standard_error).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("many", [1, 2, 3])
def test_of_a_population_it_is_that_of_the_table(seed, many):
    rng = np.random.default_rng(seed)
    X = np.array(list(product(range(3), range(2), range(3), range(2))), dtype=float)
    p, s = rng.random(len(X)), rng.normal(size=len(X))
    given = list(range(1, 1 + many))
    result = firm(s, X, [0], given=given, rows="population", sample_weight=p)
    g = X[:, given] @ 10 ** np.arange(many)
    np.testing.assert_allclose(result.variance, by_enumeration(s, X[:, 0], g, p), atol=1e-12)
    both, alone = (
        firm(s, X, {"all": c}, rows="population", sample_weight=p).variance
        for c in ([0, *given], given)
    )
    np.testing.assert_allclose(result.variance, both - alone, atol=1e-12)


@pytest.mark.slow
def test_of_samples_of_a_table_it_is_right_on_average():
    rng = np.random.default_rng(0)
    levels = np.array(list(product(range(3), range(4))), dtype=float)
    p, q = rng.random(12) + 0.1, rng.normal(size=12)
    truth = by_enumeration(q, *levels.T, p)
    found, inside = [], []
    for _ in range(300):
        cell = rng.choice(12, 200, p=p / p.sum())
        s = q[cell] + rng.normal(size=200) * (1 + levels[cell, 0])
        result = firm(s, levels[cell], [0], given=[1])
        found.append(result.variance[0])
        inside.append(result.ci_low[0] ** 2 <= truth <= result.ci_high[0] ** 2)
    assert abs(np.mean(found) - truth) < 3 * np.std(found) / np.sqrt(300) + 0.01 * truth
    assert np.mean(inside) > 0.9


PROXIES = {
    "cause": lambda g, h, z: g,
    "cause and noise": lambda g, h, z: g + z,
    "waves": lambda g, h, z: np.sin(3 * g),
    "curve and noise": lambda g, h, z: g**2 + z,
    "uneven noise": lambda g, h, z: g + np.abs(g) * z,
    "two causes": lambda g, h, z: g * h + z,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "many"),  # of two causes both must be given
    sorted({*product(PROXIES, [1, 2])} - {("two causes", 1)}),
)
def test_a_proxy_adds_nothing_to_its_cause(name, many):
    pvalues, z_scores = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        f, g, h, z = rng.normal(size=(4, 1000))
        X = np.column_stack([0.8 * g + 0.6 * f, g, h])
        result = firm(PROXIES[name](g, h, z), X, [0], given=[1, 2][:many])
        pvalues.append(result.pvalues[0])
        z_scores.append(result.variance[0] / max(result.estimate.error[0], 1e-12))
    assert np.mean(np.array(pvalues) < 0.05) <= 0.12
    assert np.mean(np.array(z_scores) > 3) <= 0.03


def test_the_proxy_of_the_story():
    X, _, _ = normal_rows(5000)
    assert abs(firm(X[:, 0], X).importances[1] - 0.8) < 0.02
    assert firm(X[:, 0], X, [1], given=[0]).ci_high[0] < 0.02


def test_many_given_columns_groups_of_columns_and_of_rows_are_learnt():
    X, s, z = normal_rows(600)
    result = firm(s + 0.5 * z, X, [2], given=[0, 1, 3])
    truth = firm_linear(WEIGHTS, COV, given=[0, 1, 3])[2]
    assert result.methods == ("boosted",)
    assert result.ci_low[0] <= abs(truth) <= result.ci_high[0]
    result = firm(X[:, 0] + 0.5 * z, X, [1], given=[0, 2, 3])
    assert result.pvalues[0] > 0.01
    result = firm(s + 0.5 * z, X, {"both": [1, 2]}, given=[0])
    rest = COV - np.outer(COV[0], COV[0])
    truth = np.sqrt(WEIGHTS[1:3] @ rest[1:3, 1:3] @ WEIGHTS[1:3])
    assert abs(result.importances[0] - truth) < 0.1 * truth
    result = firm(s, X, [2], given=[0], groups=np.arange(600) // 3)
    assert result.methods == ("boosted",)


def test_categories_and_missing_values():
    rng = np.random.default_rng(0)
    n = 5000
    cause = rng.choice(list("abcd"), n)
    X = pd.DataFrame({"cause": cause, "proxy": np.where(rng.random(n) < 0.8, cause, "a")})
    X["age"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    X["old"] = X.age.fillna(0) + rng.normal(size=n)
    effect = pd.Series(cause).map({"a": 0, "b": 1, "c": -1, "d": 2}).to_numpy()
    s = effect + np.where(X.age.isna(), 1.0, X.age) + rng.normal(size=n)
    alone, beyond = firm(s, X), firm(s, X, given="cause")
    assert alone["proxy"]["importance"] > 0.8
    assert beyond["proxy"]["pvalue"] > 0.01
    assert beyond.feature_names == ("proxy", "age", "old")
    assert (
        abs(beyond["age"]["importance"] - np.sqrt(np.var(np.where(X.age.isna(), 1, X.age)))) < 0.05
    )
    assert abs(beyond["age"]["missing"] - X.age.isna().mean()) < 1e-9
    assert firm(s, X, given=["age", "cause"])["old"]["pvalue"] > 0.01
    assert beyond.kinds == ("nominal", "number", "number")


def test_signs_weights_and_units():
    X, s, z = normal_rows(3000)
    assert firm(-X[:, 1] + z, X, [1], given=[0]).importances[0] < 0
    w = np.random.default_rng(0).random(3000)
    one, two = (firm(s + z, X, [1], given=[0], sample_weight=c * w) for c in (1, 10))
    np.testing.assert_allclose(one.importances, two.importances)
    one = firm(s + z, X, [1], given=[0])
    two = firm(1e6 * (s + z) + 3, X * [1e-8, 1e5, 1, 1] + [3, 0, 0, 0], [1], given=[0])
    np.testing.assert_allclose(two.importances, 1e6 * one.importances, rtol=1e-6)
    halves = firm(s + z, X, [1], given=[0], standardize=True)
    np.testing.assert_allclose(halves.importances, one.standardized, rtol=1e-6)


def test_weights_of_sampling_neither_add_to_an_importance_nor_reject_too_often():
    pvalues, importances = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(1000, 3)), rng.exponential(size=1000)
        s = X[:, 0] + rng.normal(size=1000)
        pvalues += list(firm(s, X, given=0, sample_weight=w).pvalues)
        s = X @ [1, 1, 0.5]
        importances.append(firm(s, X, [2], given=0, sample_weight=w).importances[0])
    assert np.mean(np.array(pvalues) < 0.05) < 0.1
    assert abs(np.mean(importances) - 0.5) < 0.04


def test_json_and_picture():
    X, s, _ = normal_rows(500)
    result = firm(s, X, given="x0")
    assert FirmResult.from_json(result.to_json()).given == ("x0",)
    assert result.plot().ax_.get_xlabel().endswith("given x0")


X, S, _ = normal_rows(300)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: firm(S, X, [1], given=[1]), "feature 'x1' is 'x1', which is given"),
        (lambda: firm(S, X, {"age": 1}, given=[1]), "feature 'age' is 'x1', which is given"),
        (lambda: firm(S, X, {"both": [1, 2]}, given=[1]), "feature 'both' is 'x1', which is given"),
        (lambda: firm(S, X, given=[]), "given=[] must be one or more columns of X"),
        (lambda: firm(S, X, given=[1, 1]), "given=[1, 1] must be one or more columns of X"),
        (lambda: firm(S, X, given=["age"]), "'age' is no column of X"),
        (lambda: firm(S, X, given=[1], method="slope"), "given with method='slope'"),
        (lambda: firm(S, X, given=[1], missing="drop"), "missing='drop'"),
        (lambda: firm(S, X, Pairs("xor"), given=[1]), "is not for pairs"),
        (lambda: firm(S, X[:, :1], given=[0]), "features is empty"),
        (lambda: firm(S[:5], X[:5], given=[0]), "too few to tell an effect from noise"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_what_is_constant_or_missing_adds_nothing_and_tells_nothing():
    holes = X.copy()
    holes[:, 2], holes[:, 3] = 7, np.nan
    for given in ([2], [3], [2, 3]):
        result = firm(S, holes, [0], given=given)
        assert abs(result.importances[0] - firm(S, X, [0]).importances[0]) < 0.1
    assert firm(S, holes, [2, 3], given=[0]).pvalues.tolist() == [1, 1]


def test_a_constant_score_and_any_function_of_the_columns():
    assert firm(np.ones(300), X, given=[0]).importances.tolist() == [0, 0, 0]
    result = firm(X[:, 1] * X[:, 2], X, [times(1, 2)], given=[0])
    assert result.ci_low[0] > 0.5


def test_nothing_is_added_by_a_constant_feature_or_to_constant_scores():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"p{i}" for i in range(20)], "k": 1.0, "b": rng.integers(0, 2, 20)})
    s = rng.normal(size=20)
    for found in (
        firm(s, X, ["k"], given="id"),
        firm(np.ones(20), X, ["b"], given="id"),
        firm(s[:6], X[:6], Pairs("interaction", ["k", "b"])),
    ):
        assert found.importances.tolist() == [0.0]
        assert found.ci_high.tolist() == [0.0]
        assert found.pvalues.tolist() == [1.0]
