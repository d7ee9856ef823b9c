"""Markov backgrounds, against products of conditional probabilities over all sequences."""

from itertools import product

import numpy as np
import pytest
from conftest import random_chain

from firmlib.strings import PositionalWeights, poim, top_motifs
from firmlib.strings.alphabet import windows
from firmlib.strings.background import Background


def by_hand(background, x):
    """Pr(X = x) as a product of one number a letter."""
    D = background.order
    number = {c: i for i, c in enumerate(product(range(4), repeat=D))}
    p = background.initial[number[tuple(x[:D])]]
    for j in range(len(x) - D):
        p *= background.transition[j, number[tuple(x[j : j + D])], x[j + D]]
    return p


BACKGROUNDS = {
    "uniform": lambda rng: Background.uniform(5),
    "product": lambda rng: Background.product(rng.dirichlet(np.ones(4), size=5)),
    **{f"order {D}": lambda rng, D=D: random_chain(rng, D, 5) for D in range(5)},
}


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_probabilities_are_sums_over_all_sequences(name):
    background = BACKGROUNDS[name](np.random.default_rng(1))
    X = np.array(list(product(range(4), repeat=5)))
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


def test_a_chain_is_not_taken_for_stationary():
    background = Background.markov([1, 0, 0, 0], [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]], 3)
    np.testing.assert_array_equal(
        background.probabilities(1), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]
    )
    assert background.has_zeros
    assert not Background.uniform(3).has_zeros


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


def test_sample_has_the_marginals():
    background = Background.product(np.random.default_rng(6).dirichlet(np.ones(4), size=7))
    X = background.sample(50_000, np.random.RandomState(1))
    frequency = np.eye(4)[X].mean(axis=0)
    np.testing.assert_allclose(frequency, background.probabilities(1), atol=0.01)


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
