"""The paper's toy data: the formula parser against Python, the Gaussians against their moments."""

from itertools import product

import numpy as np
import pytest

from firmlib.datasets import PAPER_FORMULA, boolean_table, two_gaussians


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
        ("x1 and 1 or 0", lambda a, b, c: a),
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
        ({"formula": "y"}, "uses y"),
        ({"formula": "x1 + x2"}, "uses 'x1 \\+ x2'"),
        ({"formula": "__import__('os').system('true')"}, 'uses "__import__'),
        ({"formula": "x1 & 2"}, "uses '2'"),
        ({"formula": "x1 if x2 else x3"}, "uses 'x1 if x2 else x3'"),
        ({"formula": "x1 &"}, "is no Boolean formula"),
        ({"formula": ""}, "is no Boolean formula"),
        ({"formula": "(" * 500 + "x1" + ")" * 500}, "is no Boolean formula"),
        ({"n_variables": 0}, "n_variables must be .* from 1 to 10, got 0"),
        ({"n_variables": 11}, "got 11"),
        ({"n_variables": 2.0}, r"n_variables=2.0 must be an integer"),
        ({"coding": "binary"}, "coding='binary' is unknown; expected one of"),
    ],
)
def test_bad_formulas(arguments, message):
    with pytest.raises(ValueError, match=message):
        boolean_table(**arguments)


def test_two_gaussians_have_the_moments_asked_for():
    shift, cov = np.array([1.0, 2.0, 0.0]), np.array([[1, 0, 0], [0, 2, 0.5], [0, 0.5, 1]])
    X, y = two_gaussians(40_001, shift=shift, cov=cov, random_state=0)
    assert [(y == -1).sum(), (y == 1).sum()] == [20_001, 20_000]
    for label in (-1, 1):
        part = X[y == label]
        error = np.sqrt(np.diag(cov) / len(part))
        assert (np.abs(part.mean(axis=0) - label * shift / 2) < 4 * error).all()
        np.testing.assert_allclose(np.cov(part.T), cov, atol=0.08)
    again, _ = two_gaussians(40_001, shift=shift, cov=cov, random_state=0)
    np.testing.assert_array_equal(X, again)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be a finite number from 4, got 1"),
        ({"shift": [[1.0]]}, "shift must have 1 axes"),
        ({"cov": np.eye(2)}, r"cov has shape \(2, 2\), expected \(3, 3\)"),
    ],
)
def test_bad_gaussians(arguments, message):
    with pytest.raises(ValueError, match=message):
        two_gaussians(**arguments)
