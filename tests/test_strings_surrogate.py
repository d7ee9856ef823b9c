"""POIMs of any model: the surrogate, and what is measured on the model itself."""

from itertools import product

import numpy as np
import pytest

from firmlib.strings import (
    DNA,
    Alphabet,
    Background,
    PositionalWeights,
    WDSClassifier,
    confirm,
    encode,
    fit_surrogate,
    motif_importance,
    poim,
    top_motifs,
)

SIX = Alphabet("ACDEFG")


def chain(alphabet, length, order, seed=0):
    rng = np.random.default_rng(seed)
    a = len(alphabet)
    initial = rng.dirichlet(np.full(a**order, 3.0)) if order else np.ones(1)
    return Background(initial, rng.dirichlet(np.full(a, 3.0), (length - order, a**order)), alphabet)


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
    all_x = np.array(list(product(range(4), repeat=length)), dtype=np.uint8)
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
        found = confirm(
            not_linear, pairs, background, 500, surrogate=surrogate, random_state=seed
        )
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


def test_two_motifs_far_apart_are_seen_only_by_measuring():
    def both(X):
        return 1.0 * ((X[:, 0] == 0) & (X[:, 11] == 0))

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


class WithWeights:
    weights_ = None


REFUSED = {
    "model with weights": (lambda u: poim(WithWeights(), 2), r"pass its weights, .*\.weights_"),
    "estimator": (lambda u: poim(object(), 2), r"fit_surrogate\(model.decision_function"),
    "no n": (lambda u: poim(not_linear, 2, u), r"weights is a function.*background and n"),
    "top_motifs": (lambda u: top_motifs(not_linear, 2, 1), "expected PositionalWeights"),
    "not callable": (lambda u: fit_surrogate(3, u, 100), "^score is a int; expected a function"),
    "shape": (
        lambda u: fit_surrogate(lambda X: X, u, 100),
        r"^the result of score must have 1 axes",
    ),
    "nan": (lambda u: fit_surrogate(lambda X: X[:, 0] * np.nan, u, 100), "must be finite"),
    "n": (lambda u: fit_surrogate(not_linear, u, 5), "^n must be an integer at least 10, got 5"),
    "degree": (lambda u: fit_surrogate(not_linear, u, 50, degree=8), "^degree must be .* 1 to 7"),
    "lists": (lambda u: confirm(not_linear, ["A"], u, 50), "^motifs must be Motif objects or"),
    "position": (lambda u: confirm(not_linear, [("A", 7)], u, 50), "^position must be .* 0 to 6"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Background.uniform(7))


def test_our_own_classifier_as_a_black_box():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 12)), np.arange(200) % 2
    X[y == 1, 4:7] = [2, 0, 3]
    model = WDSClassifier(3, normalize=False).fit(X, y)
    Q = poim(model.decision_function, 3, Background.uniform(12), n=8000, random_state=0)
    exact = poim(model.weights_, 3)
    assert np.corrcoef(Q.ravel(), exact.ravel())[0, 1] > 0.999
