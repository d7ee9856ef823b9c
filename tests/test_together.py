"""Columns that are summed up together give the numbers of each alone."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from firmlib import _data, firm
from firmlib._together import SMALL


def alone(scores, features, **options):
    return [None] * len(features)


def assert_the_same(s, X, **options):
    together = firm(s, X, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_data, "tally_by_rank", alone)
        expected = firm(s, X, **options)
    assert together.methods == expected.methods
    for name in together.estimate.__dataclass_fields__:
        a, b = (getattr(result.estimate, name) for result in (together, expected))
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14, err_msg=name)
    for name in together.curves:
        a, b = together.curves[name], expected.curves[name]
        np.testing.assert_array_equal(a.t, b.t)
        np.testing.assert_array_equal(a.n, b.n)
        np.testing.assert_allclose(a.q, b.q, rtol=1e-12, atol=1e-12)


def table(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 12))
    return rng.normal(size=n) + z[:, 0], pd.DataFrame(
        {f"z{j}": z[:, j] for j in range(12)}
        | {
            "far": 1e9 + z[:, 0],
            "one tie": np.where(np.arange(n) < 2, 0.0, z[:, 1]),
            "zeros of two signs": np.where(np.arange(n) < 2, [0.0, -0.0] * (n // 2), z[:, 1]),
            "missing": np.where(z[:, 2] > 1, np.nan, z[:, 3]),
            "constant": np.ones(n),
            "whole": rng.permutation(n),
            "huge": 1e300 * z[:, 4],
            "tiny": 1e-300 * z[:, 5],
            "words": rng.choice(list("abc"), n),
            "days": pd.Timestamp("2020") + pd.to_timedelta(rng.permutation(n), "D"),
        }
    )


@given(
    st.integers(4, 150).map(lambda half: 2 * half),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["auto", "binned", "discrete"]),
    st.sampled_from(["auto", 2, 5, 40]),
    st.sampled_from([None, 1.0, 2.0, "count", "sampling", "zeros"]),
    st.sampled_from(["level", "drop"]),
)
def test_any_table(n, seed, method, n_bins, weights, missing):
    weight = {"count": 1 + np.arange(n) % 3, "sampling": np.linspace(0.5, 2, n)}
    weight |= {None: None, "zeros": np.arange(n) % 4 > 0}
    w = np.full(n, weights) if isinstance(weights, float) else weight[weights]
    s, X = table(n, seed)
    options = {"method": method, "n_bins": n_bins, "sample_weight": w, "missing": missing}
    try:
        assert_the_same(s, X, **options)
    except ValueError as error:  # of both
        assert "two rows" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "options",
    [
        {"rows": "population"},
        {"standardize": True},
        {"groups": np.arange(400) // 2},
        {"n_jobs": 2},
        {"sample_weight": np.full(400, 1 / 3)},
        {"sample_weight": np.full(400, 1 / 3), "weight_type": "count"},
        {"features": {"pair": ["z0", "z1"], "z2": "z2", "z3": "z3"}},
        {"categorical": ["one tie"]},
        {"method": "slope", "missing": "drop", "features": ["z0", "z1", "missing"]},
    ],
    ids=", ".join,
)
def test_options(options):
    assert_the_same(*table(400, 0), **options)


@pytest.mark.parametrize("n", [SMALL, SMALL + 1])
def test_many_columns(n):
    X = np.random.default_rng(0).normal(size=(n, 70))
    assert_the_same(X[:, 0] ** 2, X)
    assert_the_same(X[:, 0] ** 2, np.asfortranarray(X))
    assert_the_same(X[:, 0] ** 2, sp.csr_array(np.where(X > 1, X, 0)))


def test_columns_that_overflow_together_but_not_alone():
    X = 5e305 * np.random.default_rng(0).uniform(0.9, 1, size=(300, 20))
    assert_the_same(X[:, 0] / 1e305, X)


def test_a_column_that_overflows_is_named():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:, 1] = np.linspace(1e307, 1e308, 300)
    with pytest.raises(ValueError, match="feature 'x1': values such as 1e\\+308 overflow"):
        firm(X[:, 0], X)


def test_bins_of_one_row_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="feature 'x0': a sample needs two rows"):
        firm(X[:, 0], X, method="binned", n_bins=30)
