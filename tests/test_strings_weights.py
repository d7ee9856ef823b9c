"""Unfolded weights, against the kernel expansion and against sums over substrings."""

import numpy as np
import pytest

from firmlib.strings import weights as module
from firmlib.strings.alphabet import decode
from firmlib.strings.kernel import wds_kernel
from firmlib.strings.weights import PositionalWeights
from firmlib.strings.words import word_index

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


def test_from_dict_adds_up_what_differs_only_in_case():
    w = PositionalWeights.from_dict({("ac", 1): 1.0, ("AC", 1): 2.0}, 4)
    np.testing.assert_array_equal(w.score(["GACG", "ACGG"]), [3, 0])


def test_the_tables_cannot_be_changed_from_outside():
    w = PositionalWeights.from_dual(["ACGT"] * 9, np.ones(9), degree=2)
    w.dense(2)[:] = 7
    assert w.dense(2).max() == 3


SEQS = ["ACGTA", "CCGTA"]
W = PositionalWeights.from_dual(SEQS, [1, -1], degree=3)
BAD = {
    "X letters": (
        lambda: PositionalWeights.from_dual(["ACN"], [1], degree=1),
        r"^X\[0\] has 'N' at position 2",
    ),
    "X lengths": (
        lambda: PositionalWeights.from_dual(["ACG", "AC"], [1, 1], degree=1),
        r"^X\[1\] has length 2",
    ),
    "dual_coef short": (
        lambda: PositionalWeights.from_dual(SEQS, [1], degree=1),
        r"^dual_coef has shape \(1,\), expected \(2,\)",
    ),
    "dual_coef nan": (
        lambda: PositionalWeights.from_dual(SEQS, [1, np.nan], degree=1),
        "^dual_coef must be finite",
    ),
    "degree 0": (lambda: PositionalWeights.from_dual(SEQS, [1, 1], degree=0), "^degree must be"),
    "degree past the end": (
        lambda: PositionalWeights.from_dual(SEQS, [1, 1], degree=6),
        "^degree must be an integer from 1 to 5",
    ),
    "shift": (
        lambda: PositionalWeights.from_dual(SEQS, [1, 1], degree=1, shift=-1),
        "^shift must be an integer from 0",
    ),
    "shift_weights": (
        lambda: PositionalWeights.from_dual(SEQS, [1, 1], degree=1, shift_weights="oqo"),
        "^shift_weights='oqo' is unknown",
    ),
    "intercept": (
        lambda: PositionalWeights.from_dual(SEQS, [1, 1], degree=1, intercept=np.inf),
        "^intercept must be a finite number",
    ),
    "dict empty": (lambda: PositionalWeights.from_dict({}, 5), "^weights is empty"),
    "dict key": (
        lambda: PositionalWeights.from_dict({"ACG": 1.0}, 5),
        r"^weights has the key 'ACG', expected \(word, position\)",
    ),
    "dict word": (
        lambda: PositionalWeights.from_dict({("AX", 0): 1.0}, 5),
        r"^weights\[0\] has 'X' at position 1",
    ),
    "dict word too long": (
        lambda: PositionalWeights.from_dict({("ACGTAC", 0): 1.0}, 5),
        "^the length of 'ACGTAC' must be an integer from 1 to 5, got 6",
    ),
    "dict position": (
        lambda: PositionalWeights.from_dict({("AC", 4): 1.0}, 5),
        "^the position of 'AC' must be an integer from 0 to 3, got 4",
    ),
    "dict value": (
        lambda: PositionalWeights.from_dict({("AC", 0): np.nan}, 5),
        "^weights must be finite",
    ),
    "tables empty": (lambda: PositionalWeights.from_tables({}), "^tables is empty"),
    "tables k": (
        lambda: PositionalWeights.from_tables({13: np.zeros((1, 4))}),
        "^k must be an integer from 1 to 12, got 13",
    ),
    "tables shape": (
        lambda: PositionalWeights.from_tables({1: np.zeros((5, 4)), 2: np.zeros((3, 16))}),
        r"^tables\[1\] has shape \(5, 4\), expected \(4, 4\)",
    ),
    "dense 13": (lambda: W.dense(13), "^k must be an integer from 1 to 5, got 13"),
    "dense too much": (
        lambda: PositionalWeights.from_dict({("A", 0): 1.0}, 500).dense(12),
        "^the table of weights .* GiB",
    ),
    "score length": (
        lambda: W.score(["ACGT"]),
        "^X has sequences of length 4, expected 5",
    ),
    "score one string": (lambda: W.score("ACGTA"), "^X='ACGTA' is a single sequence"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
