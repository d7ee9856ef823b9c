"""The kernel and unfolded weights against the loops of their definition, and K·v against K."""

import numpy as np
import pytest
from conftest import kernel_by_definition

from firmlib.strings import kernel
from firmlib.strings.alphabet import decode, word_index
from firmlib.strings.kernel import check_kernel, wds_diagonal, wds_kernel
from firmlib.strings.matvec import WDSOperator
from firmlib.strings.weights import PositionalWeights

both_weights = pytest.mark.parametrize("shift_weights", ["rase", "shogun"])


def random_codes(rng, n, length, common=0.25):
    """Sequences with many A if `common` is large: long matches."""
    rest = (1 - common) / 3
    return rng.choice(4, (n, length), p=[common, rest, rest, rest])


@both_weights
@pytest.mark.parametrize("degree", range(1, 8))
@pytest.mark.parametrize("shift", range(7))
def test_every_degree_and_shift(degree, shift, shift_weights):
    rng = np.random.default_rng(10 * degree + shift)
    X, Y = random_codes(rng, 4, 7, 0.6), random_codes(rng, 3, 7, 0.6)
    options = {"degree": degree, "shift": shift, "shift_weights": shift_weights}
    expected = kernel_by_definition(X, Y, degree, shift, shift_weights)
    K = wds_kernel(X, Y, **options, normalize=False)
    np.testing.assert_allclose(K, expected, rtol=1e-12)
    kx = np.diag(kernel_by_definition(X, X, degree, shift, shift_weights))
    ky = np.diag(kernel_by_definition(Y, Y, degree, shift, shift_weights))
    np.testing.assert_allclose(wds_diagonal(X, **options), kx, rtol=1e-12)
    np.testing.assert_allclose(
        wds_kernel(X, Y, **options), expected / np.sqrt(np.outer(kx, ky)), rtol=1e-12
    )


@pytest.mark.parametrize("common", [0.25, 0.9, 1.0])
@pytest.mark.parametrize("degree", [1, 2, 8, 30, 31])
@pytest.mark.parametrize("length", [63, 64, 65, 66, 94, 98, 121, 122, 127, 128, 129, 193])
def test_across_the_borders_of_machine_words(length, degree, common):
    rng = np.random.default_rng(length + degree)
    X, Y = random_codes(rng, 2, length, common), random_codes(rng, 1, length, common)
    shift = int(rng.integers(1, 6))
    expected = kernel_by_definition(X, Y, degree, shift)
    K = wds_kernel(X, Y, degree=degree, shift=shift, normalize=False)
    np.testing.assert_allclose(K, expected, rtol=1e-12)


@pytest.mark.parametrize("common", [0.25, 0.9])
def test_symmetric_equals_the_full_matrix_across_tiles(common):
    X = random_codes(np.random.default_rng(4), 600, 12, common)
    K = wds_kernel(X, degree=5, shift=3)
    np.testing.assert_array_equal(K, wds_kernel(X, X.copy(), degree=5, shift=3))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1)
    rows, columns = [0, 63, 64, 255, 256, 599], [1, 64, 255, 256, 511, 512]
    expected = wds_kernel(X[rows], X[columns], degree=5, shift=3)
    np.testing.assert_array_equal(K[np.ix_(rows, columns)], expected)


@both_weights
@pytest.mark.parametrize(
    ("n", "length", "degree", "shift", "common"),
    [
        (300, 40, 31, 39, 0.9),  # long common words, every shift
        (50, 70, 8, 10, 0.25),  # hardly a long word twice
        (1, 9, 9, 8, 0.5),
        (520, 40, 5, 20, 0.25),  # all words are kept, and mixed in several steps
        (500, 12, 12, 3, 0.5),  # all of up to 4 letters, those found of more
    ],
)
def test_larger_products_without_the_matrix(n, length, degree, shift, common, shift_weights):
    rng = np.random.default_rng(n)
    X, v = random_codes(rng, n, length, common), rng.normal(size=n)
    options = {"degree": degree, "shift": shift, "shift_weights": shift_weights}
    for normalize in (True, False):
        K = wds_kernel(X, **options, normalize=normalize)
        operator = WDSOperator(*check_kernel(X, **options, normalize=normalize))
        assert operator.shape == K.shape
        np.testing.assert_allclose(operator @ v, K @ v, rtol=1e-10, atol=1e-12 * n)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("degree", [1, 3, 8, 31])
def test_the_compiled_loop_gives_the_same_matrix(degree, both, monkeypatch):
    pytest.importorskip("numba")
    X = random_codes(np.random.default_rng(degree), 300, 70, 0.5)
    X[0, 5] = 4
    options = {"degree": degree, "shift": 3, "unknown": "average", "reverse_complement": both}
    found = []
    for worth in (0, np.inf):
        monkeypatch.setattr(kernel, "_WORTH", worth)
        found.append((wds_kernel(X, **options), wds_kernel(X, X[:20], **options)))
    for fast, slow in zip(*found, strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-13)


# Unfolded weights


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
