"""Bins found on a grid, against those found by sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmlib import _bins, firm
from firmlib._bins import Bins, find_bins

N = 6000
OPTIONS = {"method": "auto", "rows": "sample", "n_bins": "auto"}
FEATURES = {
    "normal": lambda rng: rng.normal(size=N),
    "far away": lambda rng: 1e9 + rng.normal(size=N),
    "uniform": lambda rng: rng.random(N),
    "log-normal": lambda rng: np.exp(3 * rng.normal(size=N)),
    "Cauchy": lambda rng: rng.standard_cauchy(N),
    "outlier": lambda rng: np.r_[rng.normal(size=N - 1), 1e12],
    "many levels": lambda rng: rng.integers(0, 1000, N).astype(float),
    "many zeros": lambda rng: rng.normal(size=N) * (rng.random(N) < 0.3),
    "few levels": lambda rng: rng.integers(0, 7, N) / 10,
    "few far levels": lambda rng: 10.0 ** rng.integers(-8, 9, N),
    "two levels": lambda rng: (rng.random(N) < 0.01).astype(float),
    "tiny": lambda rng: 1e-310 * rng.random(N),
    "huge": lambda rng: 1e300 * rng.normal(size=N),
}


@pytest.mark.parametrize("name", FEATURES)
def test_bins_are_intervals_of_about_equal_frequency_that_never_split_ties(name):
    f = FEATURES[name](np.random.default_rng(0))
    bins, index = find_bins(f, np.ones(N), **OPTIONS)
    order = np.argsort(f)
    assert (np.diff(index[order]) >= 0).all()
    assert (np.diff(index[order])[np.diff(f[order]) == 0] == 0).all()
    np.testing.assert_array_equal(bins.index(f), index)
    n, levels = np.bincount(index), np.unique(f, return_counts=True)[1]
    if len(levels) <= 77:
        assert bins.method == "discrete"
        np.testing.assert_array_equal(n, levels)
    else:
        assert bins.method == "binned"
        assert n[n > 0].max() <= 1.5 * N / 77 + levels.max()
        assert np.count_nonzero(n) <= 77 + 2 * 4  # the outermost of 78 rows are halved 4 times
        assert n[0] < 10 or n[0] == levels[0]


@pytest.mark.parametrize("name", FEATURES)
def test_bins_on_a_grid_say_the_same_as_sorted_ones(name, monkeypatch):
    rng = np.random.default_rng(1)
    f = FEATURES[name](rng)
    rank = np.argsort(np.argsort(f)) / N
    s = rank**2 + 0.3 * rng.normal(size=N)
    quick = firm(s, f[:, None])
    monkeypatch.setattr(_bins, "LARGE", N + 1)
    exact = firm(s, f[:, None])
    assert quick.methods == exact.methods
    np.testing.assert_allclose(quick.importances, exact.importances, rtol=0.005)
    np.testing.assert_allclose(quick.standard_error, exact.standard_error, rtol=0.05)
    if quick.methods == ("discrete",):
        np.testing.assert_allclose(quick.importances, exact.importances, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100), st.floats(-100, 100))
def test_unit_and_order_of_rows_hardly_matter(seed, unit, shift):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=4096)
    s = np.sin(f) + 0.1 * rng.normal(size=4096)
    one = firm(s, f[:, None])
    mixed = rng.permutation(4096)
    other = firm(s[mixed], (unit * f[mixed] + shift)[:, None])
    # rounding may push a row across an edge of a cell
    np.testing.assert_allclose(other.importances, one.importances, rtol=2e-3)


def test_values_beyond_the_ends_go_to_the_last_bin():
    f = np.random.default_rng(2).normal(size=N)
    bins, index = find_bins(f, np.ones(N), **OPTIONS)
    np.testing.assert_array_equal(bins.index(np.array([-1e9, 1e9])), [0, index.max()])
    levels = Bins(np.array([0.0, 1.0]), "discrete")
    np.testing.assert_array_equal(levels.index(np.array([-5.0, 0.5, 9.0])), [0, 0, 1])


@pytest.mark.parametrize("n", [100, 3000])
def test_integer_weights_are_repetitions_on_the_grid_too(n):
    rng = np.random.default_rng(3)
    f, w = np.exp(rng.normal(size=n)), rng.integers(1, 4, n)
    s = f + rng.normal(size=n)
    weighted = firm(s, f[:, None], sample_weight=w, n_bins=30)
    repeated = firm(np.repeat(s, w), np.repeat(f, w)[:, None], n_bins=30)
    for name in ("importances", "standard_error", "ci_low", "ci_high"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeated, name), rtol=0.02 if n > 100 else 1e-9
        )


def test_values_that_overflow_are_refused():
    f = np.linspace(1e307, 1e308, 500)
    with pytest.raises(
        ValueError, match=r"feature 'x0': values such as 1e\+308 overflow when summed"
    ):
        firm(np.arange(500.0), f[:, None])


def test_outermost_bins_are_halved_down_to_four_rows():
    f = np.random.default_rng(4).permutation(1024).astype(float)
    _, index = find_bins(f, np.ones(1024), **OPTIONS)
    n = np.bincount(index)
    np.testing.assert_array_equal(n[:5], [4, 4, 8, 16, 32])
    np.testing.assert_array_equal(n, n[::-1])
    assert (n[4:-4] == 32).all()
    few, _ = find_bins(f, np.ones(1024), **(OPTIONS | {"n_bins": 8}))
    np.testing.assert_array_equal(few.first, np.arange(0, 1024, 128))  # as asked for


def test_tails_are_not_flattened():
    rng = np.random.default_rng(5)
    ratios = [
        firm(x[:, 0] ** 2, x).variance[0] / 2
        for x in (rng.normal(size=(4000, 1)) for _ in range(50))
    ]
    assert abs(np.mean(ratios) - 1) < 0.03
