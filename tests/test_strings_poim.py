"""Backgrounds and POIMs, against the definition: sums over all 4^L sequences."""

from itertools import product

import numpy as np
import pytest
from conftest import BACKGROUNDS, all_sequences, random_background

from firmlib import firm
from firmlib.binary import firm_from_poim
from firmlib.strings import top_motifs
from firmlib.strings import weights as weights_module
from firmlib.strings.alphabet import windows
from firmlib.strings.background import Background
from firmlib.strings.poim import poim
from firmlib.strings.weights import PositionalWeights


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


def test_probabilities_that_round_up_are_no_error():
    """A letter that is certain after several steps has probability 1, not 1 + 2e-16."""
    for seed in range(20):
        background = random_background(np.random.default_rng(seed), 3, 14, zeros=True)
        assert background.probabilities(1).max() <= 1
        poim(PositionalWeights.from_dict({("AC", 3): 1.0}, 14), 1, background, scale="firm")


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


# Backgrounds


def random_chain(rng, order, length):
    """A chain with the same transitions everywhere."""
    initial, rows = rng.dirichlet(np.ones(4**order)), rng.dirichlet(np.ones(4), size=4**order)
    return Background.markov(initial, rows, length)


def by_hand(background, x):
    """Pr(X = x) as a product of one number a letter."""
    D = background.order
    number = {c: i for i, c in enumerate(product(range(4), repeat=D))}
    p = background.initial[number[tuple(x[:D])]]
    for j in range(len(x) - D):
        p *= background.transition[j, number[tuple(x[j : j + D])], x[j + D]]
    return p


CHAINS = {
    "uniform": lambda rng: Background.uniform(5),
    "product": lambda rng: Background.product(rng.dirichlet(np.ones(4), size=5)),
    "markov": lambda rng: random_chain(rng, 2, 5),
    **{f"order {D}": lambda rng, D=D: random_background(rng, D, 5) for D in range(5)},
}


@pytest.mark.parametrize("name", CHAINS)
def test_probabilities_are_sums_over_all_sequences(name):
    background = CHAINS[name](np.random.default_rng(1))
    X = all_sequences(5)
    p = np.array([by_hand(background, x) for x in X])
    np.testing.assert_allclose(p.sum(), 1, rtol=1e-12)
    for k in range(1, 6):
        code = windows(X, k)
        expected = [np.bincount(code[:, j], p, minlength=4**k) for j in range(6 - k)]
        np.testing.assert_allclose(background.probabilities(k), expected, rtol=1e-12, atol=1e-16)
        Z = np.random.default_rng(2).integers(0, 4, (20, k))
        few = background.motif_probabilities(Z)
        assert few.shape == (20, 6 - k)
        np.testing.assert_allclose(few.T, np.array(expected)[:, windows(Z, k)[:, 0]], rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_sample_and_fit_are_inverse(order):
    truth = random_chain(np.random.default_rng(5), order, 12)
    X = truth.sample(40_000, random_state=0)
    assert X.shape == (40_000, 12)
    assert X.dtype == np.uint8
    np.testing.assert_array_equal(X, truth.sample(40_000, random_state=0))
    fitted = Background.fit(X, order)
    assert fitted.order == order
    np.testing.assert_allclose(fitted.initial, truth.initial, atol=0.015)
    seen = truth.contexts.sum(axis=0) > 0.1  # contexts that occur often enough to be learnt
    np.testing.assert_allclose(fitted.transition[0][seen], truth.transition[0][seen], atol=0.03)


def test_fit_counts():
    background = Background.fit(["AAC", "CAC"], 1, pseudo_count=0.5)
    np.testing.assert_allclose(background.initial, [1.5 / 4, 1.5 / 4, 0.5 / 4, 0.5 / 4])
    np.testing.assert_allclose(background.transition[0, 0], [1.5 / 5, 2.5 / 5, 0.5 / 5, 0.5 / 5])
    np.testing.assert_allclose(background.transition[0, 2], [0.25] * 4)
    background = Background.fit(["AAC", "CAC"], 1, pseudo_count=0)
    np.testing.assert_allclose(background.transition[0, 0], [1 / 3, 2 / 3, 0, 0])
    np.testing.assert_allclose(background.transition[0, 3], [0.25] * 4)  # never seen


def test_letters_by_position():
    X = random_chain(np.random.default_rng(1), 1, 6).sample(400, 0)
    X[:, 3] = 2
    for order in (0, 1):
        background = Background.fit(X, order, positional=True)
        np.testing.assert_allclose(background.probabilities(1)[3], [0, 0, 1, 0])
        counts = np.array([np.bincount(column, minlength=4) for column in X.T])
        expected = (counts + 1) / (len(X) + 4)
        varies = [0, 1, 2, 4, 5]
        tolerance = {"rtol": 1e-12} if order == 0 else {"atol": 0.03}
        np.testing.assert_allclose(
            background.probabilities(1)[varies], expected[varies], **tolerance
        )
    again = Background.fit(["ANG"] * 5 + ["CNT"] * 5, 0, positional=True, unknown="average")
    np.testing.assert_allclose(again.probabilities(1)[0], [6 / 14, 6 / 14, 1 / 14, 1 / 14])


def test_a_constant_column_is_named_once_where_a_homogeneous_chain_is_fitted():
    X = np.random.default_rng(0).integers(0, 4, (50, 6))
    X[:, 3] = 2
    message = r"the same letter in column 3 \(G\), but .* pass positional=True"
    with pytest.warns(UserWarning, match=message) as caught:
        background = Background.fit(X, 1)
    assert [warning.filename for warning in caught] == [__file__]
    w = PositionalWeights.from_dict({("GA", 3): 1.0}, 6)
    assert top_motifs(w, 2, 1, background)[0].word == "GA"  # without another warning
    known = Background.fit(X, 1, positional=True)
    assert top_motifs(w, 2, 1, known)[0].word.endswith("A")
    np.testing.assert_allclose(poim(w, 1, known)[3], 0, atol=1e-12)
