"""POIMs of any model: the surrogate, and what is measured on the model itself."""

import sys
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import Tensor, all_sequences, random_background

from firmlib.strings import (
    DNA,
    Alphabet,
    Background,
    PositionalWeights,
    confirm,
    decode,
    encode,
    fit_surrogate,
    motif_importance,
    poim,
    search,
    to_meme,
    top_motifs,
)

SIX = Alphabet("ACDEFG")


def chain(alphabet, length, order, seed=0):
    return random_background(np.random.default_rng(seed), order, length, alphabet)


def linear_model(alphabet, length, seed=0):
    rng = np.random.default_rng(seed)
    a = len(alphabet)
    tables = {k: rng.normal(size=(length - k + 1, a**k)) for k in (1, 2)}
    return PositionalWeights.from_tables(tables, alphabet=alphabet)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("alphabet", [DNA, SIX], ids=["DNA", "six letters"])
def test_a_model_of_words_has_its_exact_poim(alphabet, order):
    background, model = chain(alphabet, 8, order), linear_model(alphabet, 8)
    surrogate = fit_surrogate(model.score, background, 6000, degree=2, random_state=0)
    assert surrogate.r2 > 0.999
    exact, Q = poim(model, 2, background), poim(surrogate, 2, background)
    p = background.probabilities(2)
    error = np.sqrt((p * (Q - exact) ** 2).sum() / (p * exact**2).sum())
    assert error < 0.02
    assert surrogate.positional
    assert "a surrogate with R² 1.000" in repr(surrogate)
    assert repr(model) == "PositionalWeights(length=8, degree=2)"


def not_linear(X):
    first = (X[:, 1] == 2) & (X[:, 2] == 0)
    last = (X[:, 5] == 1) & (X[:, 6] == 3)
    return np.tanh(1.0 * first + 2.0 * last + 3.0 * (first & last)) + 0.1 * (X[:, 3] == 1)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_confirm_covers_what_enumeration_gives(order):
    length = 7
    background = chain(DNA, length, order, seed=order)
    all_x = all_sequences(length)
    p, s = background.motif_probabilities(all_x)[:, 0], not_linear(all_x)
    motifs = ["GA", "CT", "GANNCT", "R", "CTA", "GAC"]
    positions = [1, 5, 1, 3, 4, 1]
    pairs = list(zip(motifs, positions, strict=True))
    exact = []
    for motif, j in zip(motifs, positions, strict=True):
        z = encode([motif], unknown="average")[0]
        match = DNA.members[z][np.arange(len(z)), all_x[:, j : j + len(z)]].all(axis=1)
        exact.append(p[match] @ s[match] / p[match].sum() - p @ s)
    surrogate = fit_surrogate(not_linear, background, 3000, degree=2, random_state=0)
    z = []
    for seed in range(20):
        found = confirm(not_linear, pairs, background, 500, surrogate=surrogate, random_state=seed)
        z.append((found["measured"] - exact) / found["standard_error"])
    assert np.mean(np.abs(z) < 2) > 0.9  # .954 if normal; seeds, not motifs, are independent
    assert np.mean(np.abs(z) < 3) > 0.98
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(20)
    assert 0.5 < np.std(z) < 1.2
    plain = confirm(not_linear, pairs, background, 500, random_state=0)
    assert plain["surrogate"].isna().all()
    better = found["standard_error"].to_numpy() / plain["standard_error"].to_numpy()
    assert better.max() <= 1.1
    assert better.min() < 0.8
    known = motif_importance(surrogate, ["GA"], background)[0, 1]
    assert found["surrogate"][0] == pytest.approx(known)


def both(X):
    """Two letters far apart."""
    return 1.0 * ((X[:, 0] == 0) & (X[:, 11] == 0))


def test_two_motifs_far_apart_are_seen_only_by_measuring():
    background = Background.uniform(12)
    with pytest.warns(UserWarning, match=r"explains only \d+% of the variance .*R² 0.4"):
        surrogate = fit_surrogate(both, background, 4000, degree=3, random_state=0)
    with pytest.warns(UserWarning, match=r"importances are those of a surrogate with R² 0.4"):
        top_motifs(surrogate, 2, 1)
    motif = "A" + 10 * "N" + "A"
    found = confirm(both, [(motif, 0)], background, 500, surrogate=surrogate, random_state=0)
    assert found["measured"][0] == pytest.approx(15 / 16, abs=4 * found["standard_error"][0])
    assert found["surrogate"][0] < 0.6


def test_constant_models_and_batches():
    background = Background.uniform(5)
    surrogate = fit_surrogate(lambda X: np.ones(len(X)), background, 100, random_state=0)
    assert np.isnan(surrogate.r2)
    np.testing.assert_allclose(poim(surrogate, 2), 0, atol=1e-12)
    sizes = []

    def score(X):
        sizes.append(len(X))
        assert X.dtype == np.uint8
        return X[:, 0] * 1.0

    fit_surrogate(score, background, 25, degree=1, batch_size=10, random_state=0)
    assert sizes == [10, 10, 5]


# Motifs that may stand anywhere

FLOATING = ("GATAAG", "CACGTG", "TTGCGC")


def anywhere(X):
    """How many of three motifs occur, on either strand, as a network with max pooling sees them."""
    found = np.zeros(len(X))
    for word in encode(FLOATING):
        for z in (word, 3 - word[::-1]):
            match = (np.lib.stride_tricks.sliding_window_view(X, 6, axis=1) == z).sum(axis=2)
            found += match.max(axis=1) >= 5
    return np.tanh(found)


@pytest.fixture(scope="module")
def floating():
    background = Background.uniform(40)
    options = {"positional": False, "reverse_complement": True, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_surrogate(anywhere, background, 20_000, **options), background


@pytest.mark.filterwarnings("ignore:these importances")
def test_floating_motifs_are_found_without_positions(floating):
    surrogate, background = floating
    assert not surrogate.positional
    motifs = top_motifs(surrogate, 6, 10, background)
    words = encode([motif.word for motif in motifs])
    for z in encode(FLOATING):
        near = [search.copies_of(words, y, 2).any() for y in (z, 3 - z[::-1])]
        assert any(near), decode([z])
    assert all(motif.position is None for motif in motifs)
    assert "words at any position" in repr(surrogate)
    assert "anywhere" in repr(motifs)
    found = confirm(anywhere, motifs[:3], background, 400, surrogate=surrogate, random_state=0)
    assert (found["measured"] > 5 * found["standard_error"]).all()
    assert np.allclose(motifs[0].pwm.sum(axis=1), 1)
    text = to_meme(motifs, background=background)
    assert f"MOTIF {motifs[0].word} importance=" in text


@pytest.mark.filterwarnings("ignore:these importances")
def test_the_best_floating_words_are_those_of_the_mean_over_positions(floating):
    surrogate, background = floating
    for k in (4, 7):
        found = top_motifs(surrogate, k, 6, background, merge=False)
        Q = np.sort(poim(surrogate, k, background).mean(axis=0))[::-1]
        assert found[0].importance == pytest.approx(Q[0])
        for motif in found:
            exact = motif_importance(surrogate, [motif.word], background).mean()
            assert motif.importance == pytest.approx(exact)
            assert np.isclose(Q[:12], exact).any()


def test_auto_takes_what_predicts_better(floating):
    _, background = floating
    options = {"random_state": 0, "reverse_complement": True}
    assert not fit_surrogate(anywhere, background, 4000, **options).positional
    fixed = fit_surrogate(not_linear, Background.uniform(7), 3000, random_state=0)
    assert fixed.positional


def test_both_strands_have_one_weight():
    background = Background.uniform(9)
    rng = np.random.default_rng(0)
    w = rng.normal(size=64)
    for positional in (False, True):
        s = PositionalWeights(9, {3: np.broadcast_to(w, (7, 64))}).score
        options = {"positional": positional, "degree": 3, "reverse_complement": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = fit_surrogate(s, background, 2000, random_state=0, **options)
        X = background.sample(50, 1)
        np.testing.assert_allclose(fitted.score(X), fitted.score(3 - X[:, ::-1]), atol=1e-9)


def test_an_error_is_never_zero():
    def pair(X):
        return 10.0 * ((X[:, 0] == 0) & (X[:, 20:28] == 1).all(axis=1))

    background = Background.uniform(30)
    together = "A" + 19 * "N" + 8 * "C"
    found = confirm(pair, [("A", 0), (together, 0)], background, 300, random_state=0)
    assert found["measured"].tolist() == [0, 10]
    np.testing.assert_allclose(found["standard_error"], [1.5 * 10 / 300, 10 / 300], rtol=0.01)
    with pytest.warns(UserWarning, match="the score is the same for all 600 sequences"):
        found = confirm(pair, [("A", 0)], background, 300, random_state=0)
    assert found[["measured", "standard_error"]].isna().all(axis=None)


def test_merging_lists_a_motif_once():
    model = {("GATTACA", j): 5.0 - abs(j - 10) / 3 for j in range(4, 17)}
    weights = PositionalWeights.from_dict({**model, ("CCGCC", 30): 3.0}, 40)
    plain = top_motifs(weights, 7, 10, merge=False)
    assert {motif.word for motif in plain[:8]} == {"GATTACA"}
    merged = top_motifs(weights, 7, 2)
    assert [motif.word == "GATTACA" for motif in merged] == [True, False]
    assert "CCGCC" in merged[1].word
    assert merged[0].position == plain[0].position == 10
    np.testing.assert_array_equal(merged[0].pwm.argmax(axis=1), encode(["GATTACA"])[0])
    both = PositionalWeights.from_dual(["AAGATTACAA"], [1.0], degree=6, reverse_complement=True)
    assert len(top_motifs(both, 8, 1)) == 1


def test_the_pwm_is_made_of_the_importance_of_changed_letters():
    weights = PositionalWeights.from_dict({("GAT", 3): 1.0, ("GA", 3): 0.5, ("TT", 5): 0.25}, 9)
    [motif] = top_motifs(weights, 3, 1)
    for t, row in enumerate(motif.pwm):
        words = [motif.word[:t] + b + motif.word[t + 1 :] for b in "ACGT"]
        ratio = motif_importance(weights, words)[:, motif.position] / motif.importance
        np.testing.assert_allclose(
            row, np.clip(ratio, 0, 1) ** 3 / np.sum(np.clip(ratio, 0, 1) ** 3)
        )


class Network:
    """As much of a torch module as is needed: the letter G at position 0."""

    training = True

    def parameters(self):
        return iter(())

    def eval(self):
        self.training = False

    def train(self, mode):
        self.training = mode

    def __call__(self, letters):
        assert not self.training
        assert letters.shape[1:] == (4, 6)
        return Tensor(letters[:, 2, :1])


def test_a_torch_module_as_score(monkeypatch):
    torch = SimpleNamespace(
        nn=SimpleNamespace(Module=Network),
        no_grad=nullcontext,
        zeros=lambda n: n,
        from_numpy=lambda letters: SimpleNamespace(to=lambda like: letters),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    network = Network()
    surrogate = fit_surrogate(network, Background.uniform(6), 500, degree=1, random_state=0)
    assert surrogate.r2 > 0.99
    assert network.training


def test_the_poim_of_a_callable_warns_of_a_low_r2_once():
    with pytest.warns(UserWarning, match=r"explains only 4\d% .*R² 0\.4") as caught:
        poim(both, 2, Background.uniform(12), n=4000, random_state=0)
    assert [warning.filename for warning in caught] == [__file__]
