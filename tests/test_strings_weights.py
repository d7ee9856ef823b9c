"""Unfolded weights, against the kernel expansion and against sums over substrings."""

import numpy as np
import pytest

from firmlib.strings import weights as module
from firmlib.strings.alphabet import decode, word_index
from firmlib.strings.kernel import wds_kernel
from firmlib.strings.weights import PositionalWeights

STORAGE = {"tables": 2**25, "half": 500, "pieces": 0}


@pytest.fixture(params=STORAGE)
def storage(request, monkeypatch):
    monkeypatch.setattr(module, "DENSE_ENTRIES", STORAGE[request.param])


def by_hand(X, a, degree, delta):
    """w as a dict, from the definition, word by word."""
    w, L = {}, len(X[0])
    for x, coefficient in zip(X, a, strict=True):
        for d in range(1, degree + 1):
            beta = 2 * (degree - d + 1) / (degree * (degree + 1))
            for start in range(L - d + 1):
                for s in range(1 - len(delta), len(delta)):
                    if 0 <= start + s <= L - d:
                        key = x[start : start + d], start + s
                        w[key] = w.get(key, 0) + coefficient * beta * delta[abs(s)]
    return w


@pytest.mark.parametrize("shift", [0, 1, 4])
@pytest.mark.parametrize("shift_weights", ["rase", "shogun"])
@pytest.mark.usefixtures("storage")
def test_from_dual_is_the_definition(shift, shift_weights):
    rng = np.random.default_rng(0)
    X, a = decode(rng.integers(0, 4, (5, 9))), rng.normal(size=5)
    delta = [1.0]
    for s in range(1, shift + 1):
        delta.append(1 / (2 * s) if shift_weights == "shogun" else 1 / (2 * (s + 1)))
    w = PositionalWeights.from_dual(
        X, a, degree=7, shift=shift, shift_weights=shift_weights, intercept=0.5
    )
    expected = by_hand(X, a, 7, delta)
    assert (w.degree, w.length, w.intercept) == (7, 9, 0.5)
    for k in range(1, 8):
        table = np.zeros((10 - k, 4**k))
        for (word, position), value in expected.items():
            if len(word) == k:
                table[position, word_index([word])[0]] = value
        np.testing.assert_allclose(w.dense(k), table, rtol=1e-12, atol=1e-14)
    assert not w.dense(8).any()
    Y = decode(rng.integers(0, 4, (20, 9))) + X
    scores = [0.5 + sum(v for (y, p), v in expected.items() if x[p : p + len(y)] == y) for x in Y]
    np.testing.assert_allclose(w.score(Y), scores, rtol=1e-12, atol=1e-13)
    single = PositionalWeights.from_dict(expected, 9, intercept=0.5)
    np.testing.assert_allclose(single.score(Y), scores, rtol=1e-12, atol=1e-13)
    tables = PositionalWeights.from_tables({k: w.dense(k) for k in range(1, 8)}, intercept=0.5)
    np.testing.assert_allclose(tables.score(Y), scores, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("degree", "shift"), [(1, 0), (8, 10), (20, 3), (31, 0)])
def test_score_is_the_kernel_expansion(degree, shift):
    rng = np.random.default_rng(1)
    X, a = rng.integers(0, 4, (200, 60)), rng.normal(size=200)
    X[50:60, 7:45] = X[0, 5:43]  # long words in common, at a shift
    w = PositionalWeights.from_dual(X, a, degree=degree, shift=shift)
    Y = np.vstack([X[:60], rng.integers(0, 4, (40, 60))])
    K = wds_kernel(Y, X, degree=degree, shift=shift, normalize=False)
    np.testing.assert_allclose(w.score(Y), K @ a, rtol=1e-10, atol=1e-10)


def test_zero_coefficients_do_not_matter():
    X = np.random.default_rng(2).integers(0, 4, (6, 8))
    a = np.array([1.0, 0, -2, 0, 0, 3])
    some = PositionalWeights.from_dual(X[a != 0], a[a != 0], degree=4)
    np.testing.assert_allclose(PositionalWeights.from_dual(X, a, degree=4).dense(3), some.dense(3))
    none = PositionalWeights.from_dual(X, np.zeros(6), degree=4, intercept=1)
    np.testing.assert_array_equal(none.score(X), np.ones(6))
    assert none.degree == 4
    assert not none.dense(4).any()
