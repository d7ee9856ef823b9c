"""Sequences as a whole: kernel, machine, weights and POIMs against brute force."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from conftest import kernel_by_definition

from firmlib.binary import firm_from_poim
from firmlib.datasets import gattaca
from firmlib.strings import (
    Background,
    PositionalWeights,
    WDSClassifier,
    decode,
    encode,
    motif_importance,
    poim,
    top_motifs,
    wds_diagonal,
    wds_kernel,
)

L = 6
ALL = np.array(list(product(range(4), repeat=L)), dtype=np.uint8)


@pytest.mark.parametrize("shift_weights", ["rase", "shogun"])
@pytest.mark.parametrize(
    ("length", "degree", "shift"), [(9, 1, 0), (9, 4, 3), (70, 8, 10), (9, 9, 8)]
)
def test_kernel_and_its_diagonal(length, degree, shift, shift_weights):
    rng = np.random.default_rng(length + degree)
    X, Y = (rng.integers(0, 2, size=(n, length), dtype=np.uint8) for n in (4, 3))
    options = {"degree": degree, "shift": shift, "shift_weights": shift_weights}
    expected = kernel_by_definition(X, Y, degree, shift, shift_weights)
    np.testing.assert_allclose(wds_kernel(X, Y, normalize=False, **options), expected, rtol=1e-12)
    K = wds_kernel(X, normalize=False, **options)
    np.testing.assert_allclose(K, wds_kernel(X, X, normalize=False, **options), rtol=1e-12)
    np.testing.assert_allclose(wds_diagonal(X, **options), np.diag(K), rtol=1e-12)
    scale = np.sqrt(np.diag(K))
    np.testing.assert_allclose(wds_kernel(X, **options), K / np.outer(scale, scale), rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_machine_and_its_weights_give_the_scores_of_the_kernel_expansion(loss):
    X, y = gattaca(300, random_state=0)
    test, _ = gattaca(50, random_state=1)
    options = {"degree": 6, "shift": 4}
    machine = WDSClassifier(**options, loss=loss).fit(decode(X), y)
    K = wds_kernel(test, machine.support_vectors_, **options)
    expansion = K @ np.ravel(machine.dual_coef_) + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(test), expansion, atol=1e-10)
    unfolded = machine.weights_.score(test) / np.sqrt(wds_diagonal(test, **options))
    np.testing.assert_allclose(unfolded + machine.intercept_, expansion, atol=1e-10)
    assert machine.score(X, y) > 0.9


def test_squared_hinge_minimizes_its_objective():
    X, y = gattaca(120, random_state=2)
    options, C = {"degree": 5, "shift": 2}, 0.7
    machine = WDSClassifier(**options, C=C, loss="squared_hinge", tol=1e-8).fit(X, y)
    K = wds_kernel(X, **options)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.ravel(machine.dual_coef_)
    margin = np.maximum(0, 1 - y * (K @ alpha + machine.intercept_))
    # Stationary in the span of K and in b: alpha_i = 2 C y_i margin_i, and they sum to 0.
    np.testing.assert_allclose(alpha, 2 * C * y * margin, atol=1e-6)
    assert abs(alpha.sum()) < 1e-6


def backgrounds():
    rng = np.random.default_rng(7)
    yield "uniform", Background.uniform(L)
    yield "product", Background.product(rng.dirichlet(np.ones(4), size=L))
    for order in (0, 1, 2, 3):
        initial = rng.dirichlet(np.ones(4**order))
        transition = rng.dirichlet(np.ones(4), size=4**order)
        yield f"markov {order}", Background.markov(initial, transition, L)


@cache
def probabilities(background):
    """Of all sequences, letter by letter from the definition of a Markov chain."""
    p = background.motif_probabilities(ALL)[:, 0]
    assert abs(p.sum() - 1) < 1e-12
    return p


@pytest.mark.parametrize(("name", "background"), list(backgrounds()), ids=lambda v: str(v)[:9])
@pytest.mark.parametrize(("degree", "shift"), [(1, 0), (3, 0), (3, 2), (6, 1)])
def test_poim_and_motifs_by_enumeration(name, background, degree, shift):
    rng = np.random.default_rng(degree)
    X = rng.integers(4, size=(5, L), dtype=np.uint8)
    weights = PositionalWeights.from_dual(X, rng.normal(size=5), degree=degree, shift=shift)
    s, p = weights.score(ALL), probabilities(background)
    for k in range(1, L + 1):
        Q, F = poim(weights, k, background), poim(weights, k, background, scale="firm")
        for j in range(L - k + 1):
            code = ALL[:, j : j + k].astype(int) @ 4 ** np.arange(k)[::-1]
            pz = np.bincount(code, p, 4**k)
            expected = np.bincount(code, p * s, 4**k) / pz - p @ s
            np.testing.assert_allclose(Q[j], expected, atol=1e-10)
            np.testing.assert_allclose(F[j], firm_from_poim(expected, pz), atol=1e-10)
        motifs = rng.integers(4, size=(3, k), dtype=np.uint8)
        codes = motifs.astype(int) @ 4 ** np.arange(k)[::-1]
        np.testing.assert_allclose(
            motif_importance(weights, decode(motifs), background), Q[:, codes].T, atol=1e-10
        )


@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize("length", [3, 5])
def test_top_motifs_are_the_best_of_all(degree, length):
    rng = np.random.default_rng(degree)
    X = rng.integers(4, size=(6, L), dtype=np.uint8)
    weights = PositionalWeights.from_dual(X, rng.normal(size=6), degree=degree, shift=1)
    for background in (None, Background.product(rng.dirichlet(np.ones(4), size=L))):
        found = top_motifs(weights, length, 8, background, merge=False)
        Q = poim(weights, length, background)
        np.testing.assert_allclose([f[2] for f in found], np.sort(Q.ravel())[::-1][:8], atol=1e-10)
        for motif, position, importance, _ in found:
            code = int(encode([motif])[0].astype(int) @ 4 ** np.arange(length)[::-1])
            np.testing.assert_allclose(Q[position, code], importance, atol=1e-10)
