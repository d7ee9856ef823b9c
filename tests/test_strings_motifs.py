"""Motifs, against POIMs that hold all words; searches, against sorting all words; pictures."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import BACKGROUNDS, all_sequences, random_background
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from firmlib.strings import weights as weights_module
from firmlib.strings.alphabet import encode, index_word, windows
from firmlib.strings.background import Background
from firmlib.strings.display import plot_importance_along, plot_logo, plot_poim
from firmlib.strings.motifs import importance_along, letter_contributions, motif_importance
from firmlib.strings.poim import max_by_length, motif_rank, poim
from firmlib.strings.search import top_motifs
from firmlib.strings.weights import PositionalWeights


def random_weights(rng, L, degree, shift, n=8):
    X, a = rng.integers(0, 4, (n, L)), rng.normal(size=n)
    return PositionalWeights.from_dual(X, a, degree=degree, shift=shift)


@pytest.mark.parametrize("name", BACKGROUNDS)
@pytest.mark.usefixtures("storage")
def test_motif_importance_is_an_entry_of_the_poim(name):
    rng = np.random.default_rng(1)
    L = 7
    background = BACKGROUNDS[name](rng, L)
    for degree, shift in ((1, 0), (3, 2), (5, 0), (7, 2)):
        w = random_weights(rng, L, degree, shift)
        for k in range(1, L + 1):
            Z = rng.integers(0, 4, (30, k))
            Z[:8] = np.random.default_rng(1).integers(0, 4, (8, L))[:, :k]
            for scale in ("poim", "firm"):
                expected = poim(w, k, background, scale=scale)[:, windows(Z, k)[:, 0]].T
                Q = motif_importance(w, Z, background, scale=scale)
                assert Q.shape == (30, L - k + 1)
                np.testing.assert_allclose(Q, expected, rtol=1e-10, atol=1e-12)


def test_long_motifs_by_the_law_of_total_expectation():
    rng = np.random.default_rng(3)
    w = random_weights(rng, 30, 22, 3, n=30)
    background = random_background(rng, 1, 30)
    z = rng.integers(0, 4, 20)
    longer = np.column_stack([np.tile(z, (4, 1)), np.arange(4)])
    Q = motif_importance(w, longer, background)
    mean = (background.transition[19:, z[-1]] * Q.T).sum(axis=1)
    np.testing.assert_allclose(mean, motif_importance(w, [z], background)[0, :-1], rtol=1e-9)


# The best motifs


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_top_motifs_are_those_of_sorting_all(name, monkeypatch):
    """For words up to the degree, and for longer ones by exact gains."""
    rng = np.random.default_rng(4)
    background = BACKGROUNDS[name](rng, 8)
    for most, degree in product((0, 2**25), (1, 2, 4, 7)):
        monkeypatch.setattr(weights_module, "DENSE_ENTRIES", most)
        w = random_weights(rng, 8, degree, shift=degree % 3)
        for k, n in ((1, 3), (4, 1), (6, 12), (7, 5)):
            Q = poim(w, k, background)
            p = (background or Background.uniform(8)).probabilities(k)
            expected = np.sort(Q[p > 0])[::-1][:n]
            found = top_motifs(w, k, n, background, merge=False)
            motifs, positions, importances, _ = zip(*found, strict=True)
            np.testing.assert_allclose(importances, expected, rtol=1e-9, atol=1e-11)
            assert len(set(zip(motifs, positions, strict=True))) == len(expected)
            exact = Q[list(positions), windows(encode(motifs), k)[:, 0]]
            np.testing.assert_allclose(importances, exact, rtol=1e-9, atol=1e-11)


def test_top_motifs_far_past_memory():
    """GATTACA twice, nine letters apart: what lies between does not matter, but nothing is better.

    Single weights make the answer known without a table of 4^23 words.
    """
    w = PositionalWeights.from_dict(
        {("GATTACA", 20): 1.0, ("GATTACA", 36): 1.0, ("A", 30): 0.25, ("CCC", 31): 0.125}, 70
    )
    (motif, position, importance, _), *_ = top_motifs(w, 23, 3)
    assert position == 20
    assert motif.startswith("GATTACA")
    assert motif.endswith("GATTACA")
    assert motif[10:14] == "ACCC"
    mean = 2 / 4**7 + 0.25 / 4 + 0.125 / 64
    assert importance == pytest.approx(2 + 0.25 + 0.125 - mean, rel=1e-12)


def test_top_motifs_are_the_same_again_and_ties_go_by_position():
    w = PositionalWeights.from_dict({("AC", i): 1.0 for i in range(10)}, 11)
    first = top_motifs(w, 2, 10, merge=False)
    assert repr(first) == repr(top_motifs(w, 2, 10, merge=False))
    assert [motif for motif, *_ in first] == ["AC"] * 10
    inner = [position for _, position, value, _ in first if np.isclose(value, first[0][2])]
    assert inner == sorted(inner)


def test_impossible_motifs_are_left_out():
    background = Background.product([[0.5, 0.5, 0, 0]] * 5)
    w = PositionalWeights.from_dict({("GGG", 1): 100.0, ("AC", 2): 1.0}, 5)
    found = top_motifs(w, 3, 500, background, merge=False)
    assert len(found) == 3 * 8
    assert all(set(motif) <= set("AC") for motif, *_ in found)


# Neighbours and letters


def test_importance_along_takes_all_neighbours():
    rng = np.random.default_rng(7)
    w = random_weights(rng, 9, 4, 1)
    Q = poim(w, 3, scale="firm")
    z = encode(["GAT"])[0]
    distance = (all_sequences(3) != z).sum(axis=1)
    table = importance_along(Q, "gat")
    np.testing.assert_array_equal(table["position"], np.arange(7))
    np.testing.assert_allclose(table["motif"], Q[:, distance == 0][:, 0], atol=1e-13)
    for r in (1, 2):
        mean = Q[:, distance == r].mean(axis=1)
        np.testing.assert_allclose(table[f"distance {r}"], mean, atol=1e-13)
    null = Q[:, distance == 3]
    np.testing.assert_allclose(table["null mean"], null.mean(axis=1), atol=1e-13)
    np.testing.assert_allclose(table["null sd"], null.std(axis=1), atol=1e-13)


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_letter_contributions(name):
    rng = np.random.default_rng(9)
    w, background = random_weights(rng, 6, 4, 1), BACKGROUNDS[name](rng, 6)
    heights = letter_contributions(w, "CCA", 2, background)
    Q = poim(w, 3, background)[2].reshape(4, 4, 4)
    p = (background or Background.uniform(6)).probabilities(3)[2].reshape(4, 4, 4)
    for t, where in enumerate(((slice(None), 1, 0), (1, slice(None), 0), (1, 1, slice(None)))):
        if p[where].sum() > 0:
            mean = p[where] @ Q[where] / p[where].sum()
            expected = np.where(p[where] > 0, Q[where] - mean, 0)
            np.testing.assert_allclose(heights.iloc[t], expected, atol=1e-12)


@pytest.mark.parametrize("scale", ["poim", "firm"])
@pytest.mark.parametrize("max_k", [1, 2, 5])
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.usefixtures("storage")
def test_max_by_length(scale, max_k, background):
    rng = np.random.default_rng(12)
    w, chain = random_weights(rng, 12, 4, 1), BACKGROUNDS[background](rng, 12)
    table = max_by_length(w, max_k, chain, scale=scale)
    assert table.shape == (max_k, 12)
    for k, row in table.iterrows():
        expected = np.abs(poim(w, k, chain, scale=scale)).max(axis=1)
        expected = np.append(expected, np.full(k - 1, np.nan))
        np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-14)


# Pictures


@given(
    hnp.arrays(int, st.tuples(st.integers(1, 4), st.just(16)), elements=st.integers(-2, 2)),
    st.integers(0, 15),
    st.sampled_from([1.0, 1e-7, 1e9, 1 / 3]),
)
def test_motif_rank_is_scipys_max_rank(table, code, unit):
    ranks = rankdata(-table.sum(axis=0), method="max")
    motif = index_word([code], 2)[0]
    assert motif_rank(table * unit, motif) == ranks[code]
    assert motif_rank(table * unit, motif.lower(), slice(0, 1)) == rankdata(-table[0], "max")[code]


def test_pictures_draw_into_given_axes():
    w = random_weights(np.random.default_rng(10), 15, 4, 1)
    figure, axes = plt.subplots(2, 2)
    draws = (
        lambda ax: plot_importance_along(w.dense(2), "GA", ax=ax),
        lambda ax: plot_poim(poim(w, 2), ax=ax),
        lambda ax: plot_poim(poim(w, 3), ax=ax),
        lambda ax: plot_logo(w, "GATTACA", 2, ax=ax),
    )
    for draw, ax in zip(draws, axes.flat, strict=True):
        assert draw(ax) is ax
        assert ax.get_xlabel() == "position"
    figure.canvas.draw()


def test_the_logo_has_a_letter_for_each_contribution():
    w = PositionalWeights.from_dict({("CG", 1): 4.0}, 5)
    ax = plot_logo(w, "CGA", 1)
    assert len(ax.patches) == 2 * 4  # the last letter adds nothing
    tops = sorted(patch.get_path().get_extents().y1 for patch in ax.patches)
    np.testing.assert_allclose(tops[-2:], 3, atol=1e-6)
    bottoms = min(patch.get_path().get_extents().y0 for patch in ax.patches)
    np.testing.assert_allclose(bottoms, -3, atol=1e-6)
