"""All pairs by matrix products, against one pair at a time."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from firmlib import firm
from firmlib.features import Pairs

NAMES = ("importances", "standard_error", "ci_low", "ci_high", "pvalues", "variance")


def same(fast, slow):
    assert fast.feature_names == slow.feature_names
    assert fast.methods == slow.methods
    for name in NAMES:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-7, atol=1e-9)
    for name in fast.feature_names:
        one, other = fast.curves[name], slow.curves[name]
        for part in ("t", "q", "p", "n", "standard_error"):
            # the root of what rounding leaves of a variance of 0
            atol = 1e-6 if part == "standard_error" else 1e-9
            np.testing.assert_allclose(getattr(one, part), getattr(other, part), atol=atol)


@pytest.mark.parametrize("rows", ["sample", "population"])
@pytest.mark.parametrize("values", [(0, 1), (-1, 1), (2, 5)])
@pytest.mark.parametrize("kind", ["product", "conjunction", "xor"])
def test_matrix_products_equal_one_pair_at_a_time(kind, values, rows):
    rng = np.random.default_rng(0)
    bits = rng.random((300, 5)) < [0.5, 0.2, 0.7, 0.5, 0.05]
    X = np.where(bits, values[1], values[0])
    s = 2.0 * (bits[:, 0] ^ bits[:, 1]) - bits[:, 2] + rng.normal(size=300)
    options = {"rows": rows, "sample_weight": rng.integers(0, 4, 300)}
    pairs = Pairs(kind)
    same(firm(s, X, pairs, **options), firm(s, X, pairs.features(X), **options))


def test_a_constant_column_is_no_obstacle():
    X = np.random.default_rng(1).integers(0, 2, (50, 3))
    X[:, 1] = 1
    s = X[:, 0] * 1.0
    result = firm(s, X, Pairs("product"))
    assert result.importances[0] == pytest.approx(firm(s, X, [0]).importances[0])
    assert not firm(s, X, Pairs("product", [1, 2])).importances.any()


def test_frames_sparse_matrices_and_some_columns():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.integers(0, 2, (80, 4)), columns=list("abcd"))
    s = rng.normal(size=80)
    result = firm(s, X, Pairs("conjunction", ["a", "c"]))
    assert result.feature_names == ("a=0 ∧ c=0", "a=0 ∧ c=1", "a=1 ∧ c=0", "a=1 ∧ c=1")
    dense, thin = (firm(s, M, Pairs("xor")) for M in (X.to_numpy(), sparse.csr_array(X)))
    np.testing.assert_array_equal(dense.importances, thin.importances)
    assert dense.feature_names[0] == "x0 ⊕ x1"


def test_products_of_numbers():
    X = np.random.default_rng(3).normal(size=(500, 3))
    result = firm(X[:, 0] * X[:, 2], X, Pairs("product"))
    assert result.to_frame().index[0] == "x0·x2"


def test_a_hundred_thousand_pairs():
    rng = np.random.default_rng(4)
    X = rng.choice([-1, 1], (400, 450))
    result = firm(X[:, 3] * X[:, 77] + 0.5 * rng.normal(size=400), X, Pairs("product"))
    assert len(result.importances) == len(result.curves) == 450 * 449 // 2
    assert result.to_frame().index[0] == "x3·x77"
    assert 0.03 < np.mean(result.pvalues < 0.05) < 0.07
    curve = result.curves["x3·x77"]
    np.testing.assert_array_equal(curve.t, [-1, 1])
    assert curve.q[0] < -0.8 < 0.8 < curve.q[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: Pairs("sum"), r"kind='sum' is unknown; expected one of \['product'"),
        (lambda X: firm(X[:, 0], X, Pairs("xor", [1])), r"columns=\[1\] must be two different"),
        (lambda X: firm(X[:, 0], X, Pairs("xor", [1, 1])), r"columns=\[1, 1\] must be two"),
        (lambda X: firm(X[:, 0], X, Pairs("xor", ["z", 1])), r"feature 'z' is no column of X"),
        (
            lambda X: firm(X[:, 0], X, Pairs("xor"), feature_names=["a"] * 3),
            "feature_names is not for pairs",
        ),
        (
            lambda X: firm(X[:, 0], X, Pairs("conjunction")),
            r"'x0' must have two values, got .*; make it binary",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(5).normal(size=(30, 3)))
