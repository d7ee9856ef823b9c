"""The paper's toy data: the formula parser against Python, the Gaussians against their moments."""

from itertools import product

import numpy as np
import pytest

from firmlib.datasets import PAPER_FORMULA, boolean_table, gattaca, two_gaussians
from firmlib.strings import encode


@pytest.mark.parametrize(
    ("formula", "function"),
    [
        (PAPER_FORMULA, lambda a, b, c: a or (not a and not b)),
        ("x1 ∨ (¬x1 ∧ ¬x2)", lambda a, b, c: a or not b),
        ("x1 ^ x2 ^ x3", lambda a, b, c: (a + b + c) % 2),
        ("x1 ⊕ x2", lambda a, b, c: a != b),
        ("x1 | x2 & x3", lambda a, b, c: a or (b and c)),
        ("not x1 and x2 or x3", lambda a, b, c: (not a and b) or c),
        ("!x3 & 1", lambda a, b, c: not c),
        ("0", lambda a, b, c: False),
    ],
)
def test_truth_table(formula, function):
    X, y = boolean_table(formula)
    assert X.tolist() == [list(map(float, row)) for row in product([0, 1], repeat=3)]
    assert y.tolist() == [1 if function(*row) else -1 for row in product([0, 1], repeat=3)]


def test_coding_and_size():
    X, y = boolean_table("x1", 10, coding="+-")
    assert X.shape == (1024, 10)
    assert set(np.unique(X)) == {-1.0, 1.0}
    np.testing.assert_array_equal(X[:, 0], y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formula": "x4"}, r"formula='x4' uses x4, expected only x1, x2, x3"),
        ({"formula": "x1 + x2"}, "uses 'x1 \\+ x2'"),
        ({"formula": "__import__('os').system('true')"}, 'uses "__import__'),
        ({"formula": "x1 & 2"}, "uses '2'"),
        ({"formula": "x1 &"}, "is not a Boolean formula"),
        ({"formula": "(" * 500 + "x1" + ")" * 500}, "is not a Boolean formula"),
        ({"n_variables": 11}, "got 11"),
        ({"coding": "binary"}, "coding='binary' is unknown; expected one of"),
    ],
)
def test_bad_formulas(arguments, message):
    with pytest.raises(ValueError, match=message):
        boolean_table(**arguments)


def test_two_gaussians_have_the_moments_asked_for():
    shift = np.array([1.0, 2.0, 0.0])
    X, y = two_gaussians(40_001, shift=shift, random_state=0)
    assert [(y == -1).sum(), (y == 1).sum()] == [20_001, 20_000]
    for label in (-1, 1):
        part = X[y == label]
        error = 1 / np.sqrt(len(part))
        assert (np.abs(part.mean(axis=0) - label * shift / 2) < 4 * error).all()
        np.testing.assert_allclose(np.cov(part.T), np.eye(3), atol=0.04)
    again, _ = two_gaussians(40_001, shift=shift, random_state=0)
    np.testing.assert_array_equal(X, again)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be an integer at least 4, got 1"),
        ({"shift": [[1.0]]}, "shift must have 1 axis"),
    ],
)
def test_bad_gaussians(arguments, message):
    with pytest.raises(ValueError, match=message):
        two_gaussians(**arguments)


def occurrences(X, motif):
    windows = np.lib.stride_tricks.sliding_window_view(X, len(motif), axis=1)
    return (windows == encode([motif])).sum(axis=2)


def test_gattaca_plants_the_motif_where_and_as_often_as_the_paper_says():
    X, y = gattaca(20_000, random_state=0)
    assert X.shape == (20_000, 70)
    assert X.dtype == np.uint8
    matches = occurrences(X[y == 1], "GATTACA")
    best, position = matches.max(axis=1), matches.argmax(axis=1)
    unchanged = (best == 7).mean()
    by_chance = 64 * 4.0**-7
    assert abs(unchanged - 0.25 - by_chance) < 4 * np.sqrt(0.25 * 0.75 / 10_000)
    sure = position[best == 7]
    assert abs(sure.mean() - 35) < 4 * 7 / np.sqrt(len(sure))
    quartiles = np.percentile(sure, [25, 75])  # hardly moved by the few that occur by chance
    assert abs(np.diff(quartiles)[0] - 2 * 0.6745 * 7) < 1
    assert (best >= 6).mean() > 0.999
    frequencies = np.bincount(X[y == -1].ravel(), minlength=4) / X[y == -1].size
    np.testing.assert_allclose(frequencies, 0.25, atol=4 * 0.5 / np.sqrt(X[y == -1].size))
    assert occurrences(X[y == -1], "GATTACA").max(axis=1).mean() < 5.5


def test_gattaca_unseen_never_shows_the_motif():
    X, y = gattaca(3000, unseen=True, random_state=1)
    assert occurrences(X, "GATTACA").max() == 6
    assert (occurrences(X[y == 1], "GATTACA").max(axis=1) == 6).all()


def test_gattaca_background_and_mutations():
    X, y = gattaca(
        4000, background=[0.4, 0.1, 0.1, 0.4], mutations=3, motif="CCCCC", random_state=2
    )
    frequencies = np.bincount(X[y == -1].ravel(), minlength=4) / X[y == -1].size
    np.testing.assert_allclose(frequencies, [0.4, 0.1, 0.1, 0.4], atol=0.005)
    assert (occurrences(X[y == 1], "CCCCC").max(axis=1) >= 2).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be an integer at least 2, got 1"),
        ({"length": 5, "center": 0}, "length must be an integer at least 7, got 5"),
        ({"motif": "GATTNCA"}, "motif='GATTNCA' must be a string of A, C, G and T"),
        ({"mutations": 8}, "mutations must be an integer from 0 to 7, got 8"),
        ({"mutations": 0, "unseen": True}, "mutations must be an integer from 1 to 7, got 0"),
        ({"center": 65}, "center must be a finite number from 0 to 63, got 65"),
        ({"sd": -1}, "sd must be a finite number from 0, got -1"),
        (
            {"motif": "A", "unseen": True},
            "motif='A' occurs by chance too often for unseen=True: 5000 of 5000 sequences",
        ),
        (
            {"motif": "AAA", "unseen": True, "background": [1, 0, 0, 0]},
            "motif='AAA' occurs by chance too often",
        ),
        ({"background": [0.5, 0.5]}, r"background has shape \(2,\), expected \(4,\)"),
        ({"background": [0.5, 0.5, 0.5, -0.5]}, "must be four probabilities that sum to 1"),
    ],
)
def test_bad_gattaca(arguments, message):
    with pytest.raises(ValueError, match=message):
        gattaca(**arguments)
