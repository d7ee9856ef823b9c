"""POIMs, against the definition: sums over all 4^L sequences, and samples of long ones."""

from itertools import product

import numpy as np
import pytest
from conftest import random_chain

from firmlib import firm
from firmlib.binary import firm_from_poim
from firmlib.strings import weights as weights_module
from firmlib.strings.alphabet import windows
from firmlib.strings.background import Background
from firmlib.strings.poim import poim
from firmlib.strings.weights import PositionalWeights


def random_product(rng, length, zeros=False):
    probs = rng.dirichlet(np.ones(4), size=length)
    if zeros:
        probs[::2] = [0, 0.5, 0.5, 0]
        probs[1] = [0, 0, 1, 0]
    return Background.product(probs)


BACKGROUNDS = {
    "uniform": lambda rng, L: None,
    "product": random_product,
    "product with zeros": lambda rng, L: random_product(rng, L, zeros=True),
    **{f"order {D}": lambda rng, L, D=D: random_chain(rng, D, L) for D in range(4)},
    **{
        f"order {D} with zeros": lambda rng, L, D=D: random_chain(rng, D, L, zeros=True)
        for D in (1, 2, 3)
    },
}


def all_sequences(L):
    return np.array(list(product(range(4), repeat=L)), dtype=np.uint8)


def definition(score, X, p, k):
    """E[s | X[j:j+k] = z] - E[s] for all z and j; 0 where z is impossible."""
    Q = np.zeros((X.shape[1] - k + 1, 4**k))
    for j, code in enumerate(windows(X, k).T):
        here = np.bincount(code, p, minlength=4**k)
        total = np.bincount(code, p * score, minlength=4**k)
        Q[j, here > 0] = total[here > 0] / here[here > 0] - p @ score
    return Q


@pytest.mark.parametrize(
    ("shift", "entries"),
    [(0, 2**25), (0, 0), (1, 300), (4, 2**25), (4, 0)],
    ids=["tables", "sequences", "shift 1, either", "shift 4, tables", "shift 4, sequences"],
)
@pytest.mark.parametrize("name", BACKGROUNDS)
def test_poim_is_the_definition_for_every_k_and_degree(name, shift, entries, monkeypatch):
    monkeypatch.setattr(weights_module, "DENSE_ENTRIES", entries)
    rng = np.random.default_rng(sum(map(ord, name)))
    L = 5
    background = BACKGROUNDS[name](rng, L)
    X = all_sequences(L)
    p = (background or Background.uniform(L)).motif_probabilities(X)[:, 0]
    for degree in range(1, L + 1):
        seqs, a = rng.integers(0, 4, (8, L)), rng.normal(size=8)
        w = PositionalWeights.from_dual(seqs, a, degree=degree, shift=shift, intercept=3)
        score = w.score(X)
        for k in range(1, L + 1):
            Q = poim(w, k, background)
            assert Q.shape == (L - k + 1, 4**k)
            np.testing.assert_allclose(Q, definition(score, X, p, k), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", BACKGROUNDS)
@pytest.mark.parametrize("degree", [3, 12, 22])
def test_centred_and_consistent_at_length_40(name, degree):
    """The mean of Q' over the words is 0, and over a last or first letter it is that of k - 1."""
    rng = np.random.default_rng(degree)
    background = BACKGROUNDS[name](rng, 40) or Background.uniform(40)
    w = PositionalWeights.from_dual(
        rng.integers(0, 4, (50, 40)), rng.normal(size=50), degree=degree, shift=2
    )
    longer = None
    for k in (6, 5, 4, 3, 2, 1):
        Q, p = poim(w, k, background), background.probabilities(k)
        np.testing.assert_allclose((p * Q).sum(axis=1), 0, atol=1e-12)
        if longer is not None:
            mean = longer.reshape(len(longer), -1, 4).sum(axis=2)
            np.testing.assert_allclose(mean, (p * Q)[:-1], rtol=1e-9, atol=1e-14)
            mean = longer.reshape(len(longer), 4, -1).sum(axis=1)
            np.testing.assert_allclose(mean, (p * Q)[1:], rtol=1e-9, atol=1e-14)
        longer = p * Q


def test_a_table_and_sequences_give_the_same_at_degree_20(monkeypatch):
    rng = np.random.default_rng(20)
    X, a = rng.integers(0, 4, (30, 25)), rng.normal(size=30)
    background = random_chain(rng, 1, 25)
    for entries in (0, 10**4, 2**25):
        monkeypatch.setattr(weights_module, "DENSE_ENTRIES", entries)
        w = PositionalWeights.from_dual(X, a, degree=20, shift=5)
        Q = poim(w, 5, background)
        if entries == 0:
            first = Q
        np.testing.assert_allclose(Q, first, rtol=1e-10, atol=1e-13)


# The scale of FIRM


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_firm_scale_is_the_measure_on_indicators(name):
    rng = np.random.default_rng(3)
    L = 4
    background = BACKGROUNDS[name](rng, L) or Background.uniform(L)
    X = all_sequences(L)
    p = background.motif_probabilities(X)[:, 0]
    w = PositionalWeights.from_dual(rng.integers(0, 4, (9, L)), rng.normal(size=9), degree=3)
    X, p = X[p > 0], p[p > 0]
    for k in (1, 2, 3):
        Q = poim(w, k, background, scale="firm")
        np.testing.assert_allclose(
            Q, firm_from_poim(poim(w, k, background), background.probabilities(k)), atol=1e-14
        )
        varies = np.argwhere((background.probabilities(k) > 0) & (background.probabilities(k) < 1))
        varies = varies[rng.permutation(len(varies))[:25]]
        indicators = windows(X, k)[:, varies[:, 0]] == varies[:, 1]
        result = firm(w.score(X), X, indicators.astype(float), rows="population", sample_weight=p)
        np.testing.assert_allclose(Q[*varies.T], result.signed, rtol=1e-9, atol=1e-12)


def test_certain_and_impossible_words_are_not_important():
    background = Background.product([[0, 1, 0, 0], [0.5, 0.5, 0, 0]])
    w = PositionalWeights.from_dict({("C", 0): 5.0, ("T", 1): 7.0, ("CA", 0): 1.0}, 2)
    np.testing.assert_allclose(poim(w, 1, background), [[0, 0, 0, 0], [0.5, -0.5, 0, 0]])
    firm_scale = poim(w, 1, background, scale="firm")
    np.testing.assert_allclose(firm_scale, [[0, 0, 0, 0], [0.5, -0.5, 0, 0]])
