"""The kernel against the loops of its definition, its invariances, and K·v against K."""

import numpy as np
import pytest
from conftest import kernel_by_definition
from hypothesis import given
from hypothesis import strategies as st

from firmlib.strings import kernel
from firmlib.strings.alphabet import encode
from firmlib.strings.kernel import wds_diagonal, wds_kernel
from firmlib.strings.matvec import WDSOperator

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
    expected = kernel_by_definition(X, Y, degree, shift, "rase")
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
@pytest.mark.parametrize("shift", [0, 1, 2, 5, 24])
def test_positive_semi_definite(shift, shift_weights):
    X = random_codes(np.random.default_rng(shift), 60, 25, 0.5)
    X[:25] = 0
    X[np.arange(25), np.arange(25)] = 1  # one letter that wanders: sees the shifts alone
    for normalize in (True, False):
        K = wds_kernel(X, degree=3, shift=shift, shift_weights=shift_weights, normalize=normalize)
        assert np.linalg.eigvalsh(K)[0] > -1e-10
    t = np.linspace(0, np.pi, 2001)
    for S in range(1, 80):
        s = np.arange(1, S + 1)
        delta = 1 / (2 * (s + 1)) if shift_weights == "rase" else 1 / (2 * s)
        assert (1 + 2 * np.cos(np.outer(t, s)) @ delta).min() > -1e-12


@st.composite
def kernels(draw):
    """Three sequences of one length and the parameters of a kernel on them."""
    length = draw(st.integers(1, 20))
    text = st.text("ACGT", min_size=length, max_size=length)
    few = st.text("AC", min_size=length, max_size=length)
    seqs = draw(st.lists(st.one_of(text, few), min_size=3, max_size=3))
    return seqs, {
        "degree": draw(st.integers(1, length)),
        "shift": draw(st.integers(0, length - 1)),
        "shift_weights": draw(st.sampled_from(["rase", "shogun"])),
    }


@given(kernels(), st.permutations("ACGT"))
def test_invariances(case, letters):
    seqs, options = case
    K = wds_kernel(seqs, **options)
    assert ((K >= 0) & (K <= 1 + 1e-12)).all()
    renamed = [s.translate(str.maketrans("ACGT", "".join(letters))) for s in seqs]
    np.testing.assert_array_equal(wds_kernel(renamed, **options), K)
    np.testing.assert_array_equal(wds_kernel([s[::-1] for s in seqs], **options), K)
    np.testing.assert_array_equal(wds_kernel(seqs[::-1], seqs, **options), K[::-1])
    for same in (np.array(seqs), [s.lower().encode() for s in seqs], encode(seqs)):
        np.testing.assert_array_equal(wds_kernel(same, **options), K)


@both_weights
@pytest.mark.parametrize(
    ("n", "length", "degree", "shift", "common"),
    [
        (300, 20, 4, 3, 0.25),  # every word of 4 letters is there
        (300, 40, 31, 39, 0.9),  # long common words, every shift
        (50, 70, 8, 10, 0.25),  # hardly a long word twice
        (200, 33, 31, 2, 1.0),  # all the same
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
        operator = WDSOperator(X, **options, normalize=normalize)
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
