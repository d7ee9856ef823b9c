"""Closed forms for binary features, against enumeration of everything that can happen."""

from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest

from firmlib import features, firm
from firmlib.binary import firm_binary, firm_conjunctions, firm_empirical, firm_from_poim


def definition(s, f, p):
    """Signed Q of an indicator f: +-sd of E[s | f], by sums over all outcomes."""
    p = np.asarray(p) / np.sum(p)
    s, f = np.asarray(s, dtype=float), np.asarray(f)
    mean = sum(p * s)
    variance, q = 0.0, {}
    for value in (0, 1):
        here = sum(p[f == value])
        if here > 0:
            q[value] = sum(p[f == value] * s[f == value]) / here
            variance += here * (q[value] - mean) ** 2
    return sqrt(variance) * (1 if q.get(1, mean) >= q.get(0, mean) else -1)


# One binary feature


@pytest.mark.parametrize("p_a", [0, 0.01, 0.5, 0.7, 1])
def test_firm_binary_is_the_definition(p_a):
    q_a, q_b = 3.0, -1.5
    mean = p_a * q_a + (1 - p_a) * q_b
    sd = sqrt(p_a * (q_a - mean) ** 2 + (1 - p_a) * (q_b - mean) ** 2)
    np.testing.assert_allclose(firm_binary(q_a, q_b, p_a), sd, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(firm_binary(q_b, q_a, p_a), -sd, rtol=1e-12, atol=1e-15)


# Uniform {-1, +1}^d

CUBE = np.array(list(product([-1, 1], repeat=5)))
WEIGHTS = np.array([1.5, -2.0, 0.25, 0.0, 3.0])
SCORE = CUBE @ WEIGHTS + 0.7


def conjunctions(order):
    """All ways to give `order` of 5 variables a value."""
    for js in combinations(range(5), order):
        for signs in product([-1, 1], repeat=order):
            yield dict(zip(js, signs, strict=True))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_conjunctions_of_uniform_inputs(order):
    """Q = sum_j v_j w_j sqrt(p / (1 - p)), p = 2^-k (Section 2.4.1)."""
    chosen = list(conjunctions(order))
    by_table = firm(SCORE, CUBE, [features.conjunction(c) for c in chosen], rows="population")
    expected = [
        definition(SCORE, [all(x[j] == v for j, v in c.items()) for x in CUBE], np.ones(32))
        for c in chosen
    ]
    np.testing.assert_allclose(by_table.signed, expected, rtol=1e-12, atol=1e-14)
    Q = [sum(v * WEIGHTS[j] for j, v in c.items()) / sqrt(2**order - 1) for c in chosen]
    np.testing.assert_allclose(Q, expected, rtol=1e-12, atol=1e-14)


# Empirical distribution of +-1 rows


def test_firm_empirical(rng):
    X = np.where(rng.random((50, 4)) < [0.3, 0.9, 0.2, 0.6], 1, -1)
    X[:, 3] = np.where(rng.random(50) < 0.8, X[:, 0], X[:, 3])  # correlated, and unbalanced
    w = np.array([1.0, -2.0, 0.5, 3.0])
    Q = firm_empirical(w, X)
    expected = [definition(X @ w, X[:, j] == 1, np.ones(50)) for j in range(4)]
    assert X.sum(axis=0).all()  # no column is balanced
    np.testing.assert_allclose(Q, expected, rtol=1e-12, atol=1e-14)
    by_rows = firm(X @ w, X, rows="population")
    np.testing.assert_allclose(Q, by_rows.signed, rtol=1e-12, atol=1e-14)


# All pairs of literals


@pytest.mark.parametrize("coding", [(0, 1), (2.5, 7.25)])
def test_firm_conjunctions(rng, coding):
    bits = (rng.random((40, 4)) < [0.5, 0.8, 0.3, 0.5]).astype(int)
    X = np.take(coding, bits)
    s = rng.normal(size=40) + bits[:, 0] * bits[:, 1]
    Q = firm_conjunctions(s, X)
    assert Q.shape == (4, 4, 2, 2)
    for j, k, a, b in product(range(4), range(4), range(2), range(2)):
        if j == k and a != b:
            assert Q[j, k, a, b] == 0  # x_j and not x_j: never true
            continue
        conjunction = features.conjunction({j: coding[a], k: coding[b]})
        holds = (bits[:, j] == a) & (bits[:, k] == b)
        expected = definition(s, holds, np.ones(40))
        np.testing.assert_allclose(Q[j, k, a, b], expected, rtol=1e-10, atol=1e-14)
        result = firm(s, X, conjunction, rows="population")
        np.testing.assert_allclose(result.signed[0], expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("n", [5, 6, 7, 10, 49, 1000])
def test_what_is_always_or_never_true_has_importance_exactly_zero(rng, n):
    X = (rng.random((n, 3)) < 0.5).astype(int)
    X[:2, 1] = 0, 1
    X[:, 0], X[:, 2] = 1, 0
    assert not firm_empirical([0.1, 0.2, 0.3], 2 * X - 1)[::2].any()
    Q = firm_conjunctions(rng.normal(size=n), X)
    assert not Q[0, 0].any()  # always (1, 1) and never
    assert not Q[2, 2].any()
    assert not Q[0, 2].any()  # x0 = 1 and x2 = 0 always
    assert Q[0, 1, 1, 1] != 0
    np.testing.assert_allclose(Q[0, 1, 1], np.diag(Q[1, 1]), rtol=1e-12)


# POIMs


def test_firm_from_poim_is_the_definition(rng):
    s, p = rng.normal(size=64), rng.dirichlet(np.ones(64))
    for some in (1, 20, 63):
        occurs = np.arange(64) < some
        poim = p[occurs] @ s[occurs] / p[occurs].sum() - p @ s
        Q = firm_from_poim(poim, p[occurs].sum())
        np.testing.assert_allclose(Q, definition(s, occurs, p), rtol=1e-10)


def test_firm_from_poim_where_a_string_is_impossible_or_certain():
    np.testing.assert_array_equal(firm_from_poim([5.0, 0.0, 2.0], [0.0, 1.0, 0.5]), [0, 0, 2])
