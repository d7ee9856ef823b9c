"""Bins, V, its leave-outs, tests, intervals and comparisons, against brute force and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from firmlib import firm
from firmlib.estimation.bins import Axes
from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows, rows_of
from firmlib.estimation.variance import cauchy
from firmlib.tables.table import Table

N = 3000
FEATURES = {
    "normal": lambda rng: rng.normal(size=N),
    "far away": lambda rng: 1e9 + rng.normal(size=N),
    "log-normal": lambda rng: np.exp(3 * rng.normal(size=N)),
    "Cauchy": lambda rng: rng.standard_cauchy(N),
    "outlier": lambda rng: np.r_[rng.normal(size=N - 1), 1e12],
    "many levels": lambda rng: rng.integers(0, 1000, N).astype(float),
    "many zeros": lambda rng: rng.normal(size=N) * (rng.random(N) < 0.3),
    "many ties below": lambda rng: np.maximum(rng.normal(size=N), 0.5),
    "few levels": lambda rng: rng.integers(0, 7, N) / 10,
    "few far levels": lambda rng: 10.0 ** rng.integers(-8, 9, N),
    "two levels": lambda rng: (rng.random(N) < 0.01).astype(float),
    "constant": lambda rng: np.full(N, 0.1),
    "missing": lambda rng: np.where(rng.random(N) < 0.3, np.nan, rng.normal(size=N)),
    "tiny": lambda rng: 1e-310 * rng.random(N),
    "huge": lambda rng: 1e300 * rng.normal(size=N),
}

# Bins


@pytest.mark.parametrize("n_bins", [None, 2, 7, 100])
@pytest.mark.parametrize("name", FEATURES)
def test_bins_are_intervals_that_never_split_ties(name, n_bins):
    f = FEATURES[name](np.random.default_rng(0))
    axes = Axes.of(f[None], N, n_bins)
    slot = axes.find(f[None])[0]
    known = ~np.isnan(f)
    assert (slot[~known] == axes.slots).all()
    order = np.argsort(f[known], kind="stable")
    value, place = f[known][order], slot[known][order]
    assert ((place >= 0) & (place < axes.slots)).all()
    assert (np.diff(place) >= 0).all()
    assert (np.diff(place)[np.diff(value) == 0] == 0).all()
    levels = len(np.unique(value))
    if levels <= (n_bins or 30):
        assert len(np.unique(place)) == levels  # each level has a bin
    if not n_bins:
        halves = np.unique(place // (axes.slots // 2), return_counts=True)[1]
        largest_tie = np.unique(value, return_counts=True)[1].max()
        if levels > 100:
            assert abs(halves[0] - len(value) / 2) <= largest_tie + 0.02 * N


@pytest.mark.parametrize("n", [40, 1000, 30_000])
@pytest.mark.parametrize("k", [2, 3, 10, 16, 37])
def test_n_bins_are_bins_of_equal_rank(n, k):
    f = np.exp(3 * np.random.default_rng(k).normal(size=n))
    counts = firm(f, f[:, None], n_bins=k).curves["x0"].n
    assert len(counts) == k
    assert np.ptp(counts) <= (1 if n <= 1000 else 0.05 * n / k + 6 * np.sqrt(n / k))


def test_values_beyond_the_ends_are_in_the_last_bins():
    f = np.random.default_rng(2).normal(size=N)
    axes = Axes.of(f[None], N)
    beyond, ends = (axes.find(np.array([a])) for a in ([-1e300, 1e300], [f.min(), f.max()]))
    assert beyond[0, 0] <= ends[0, 0]
    assert beyond[0, 1] == ends[0, 1] < axes.slots


def test_tails_are_not_flattened():
    rng = np.random.default_rng(5)
    V = [firm(x[:, 0] ** 2, x).variance[0] for x in (rng.normal(size=(4000, 1)) for _ in range(30))]
    assert abs(np.mean(V) / 2 - 1) < 0.03


# V and its leave-outs


def by_pairs(r, f, w, unit):
    """The U-statistic over all pairs of rows of different units."""
    pair = np.multiply.outer(w, w) * (unit[:, None] != unit)
    product = pair * np.multiply.outer(r, r)

    def square(rows):
        return product[np.ix_(rows, rows)].sum() / pair[np.ix_(rows, rows)].sum()

    levels = [np.flatnonzero(f == k) for k in np.unique(f)]
    return sum(w[k].sum() / w.sum() * square(k) for k in levels) - square(np.arange(len(r)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["rows", "weights", "units", "units and weights"])
def test_V_of_levels_is_a_mean_over_pairs(seed, kind):
    """Of rows in different folds if they belong to units: a unit is in one fold."""
    rng = np.random.default_rng(seed)
    f, w, unit = rng.integers(0, 3, 60), np.ones(60), np.arange(60)
    s, options = f + rng.normal(size=60), {}
    if "weights" in kind:
        options["sample_weight"] = w = rng.exponential(size=60)
    if "units" in kind:
        options["groups"] = rng.integers(0, 15, 60)
        unit = rows_of(s, Table.of(f[:, None]), groups=options["groups"]).fold
        assert pd.Series(unit).groupby(options["groups"]).nunique().max() == 1
    expected = by_pairs(s - np.average(s, weights=w), f, w, unit)
    for more in ({}, {"categorical": [0]}, {"n_bins": 3}):
        found = firm(s, f[:, None], **options, **more)
        np.testing.assert_allclose(found.variance, expected, rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("units", [False, True])
def test_psi_is_how_V_moves_without_a_fold(weighted, units):
    rng = np.random.default_rng(6)
    f, w = rng.integers(0, 3, 200), rng.exponential(size=200) if weighted else np.ones(200)
    s, groups = f + rng.normal(size=200), np.arange(200) // 2 if units else None
    rows = rows_of(s, Table.of(f[:, None]), w, groups)
    every = s - np.average(s, weights=w), f, w, rows.fold if units else np.arange(200)
    without = [by_pairs(*(a[rows.fold != g] for a in every)) for g in range(rows.G)]
    share = np.bincount(rows.fold, w, rows.G) / w.sum()
    V = by_pairs(*every)
    psi = (V - np.array(without)) * (1 - share)
    psi = (psi - share * psi.sum()) / np.sqrt(1 - (share**2).sum())
    found = firm(s, f[:, None], sample_weight=w, groups=groups, categorical=[0]).estimate
    np.testing.assert_allclose(found.psi[:, 0], psi, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.J, (psi**2).sum(), rtol=1e-9)


def test_the_error_of_a_mean_of_rows_is_that_of_the_folds():
    rng = np.random.default_rng(7)
    fold, w, value = rng.integers(0, 32, 500), rng.exponential(size=500), rng.normal(size=500) + 1
    found = Estimate.of_rows(value, Rows(value, w, fold))
    mean = np.average(value, weights=w)
    W, S = np.bincount(fold, w, 32), np.bincount(fold, w * value, 32)
    share = W / W.sum()
    variance = (share**2 * (S / W - mean) ** 2).sum() / (1 - (share**2).sum())
    np.testing.assert_allclose([found.V[0], found.J[0]], [mean, variance], rtol=1e-10)
    two = Estimate.of_rows(np.column_stack([value, -value]), Rows(value, w, fold))
    np.testing.assert_allclose(two.V, [mean, -mean])
    np.testing.assert_allclose(two.pvalue[0] + two.pvalue[1], 1)
    assert found.pvalue[0] < 1e-6


def test_folds_have_every_row_and_do_not_know_the_score():
    table, rng = Table.of(np.zeros((1000, 1))), np.random.default_rng(0)
    one, two = (rows_of(rng.normal(size=1000), table) for _ in range(2))
    np.testing.assert_array_equal(one.fold, two.fold)
    assert np.ptp(np.bincount(one.fold, minlength=one.G)) <= 2
    for period in (2, 7, 32, 64):  # rows with a period are in all folds
        assert len(np.unique(one.fold[::period])) >= min(one.G, 1000 // period) // 2


# The test


@pytest.mark.parametrize("seed", range(3))
def test_for_two_levels_the_test_is_welchs(seed):
    rng = np.random.default_rng(seed)
    f = rng.random(400) < 0.3
    s = 0.3 * f + rng.normal(size=400) * (1 + 2 * f)
    welch = stats.ttest_ind(s[f], s[~f], equal_var=False).pvalue
    found = firm(s, f[:, None]).pvalues[0]
    V = firm(s, f[:, None]).variance[0]
    np.testing.assert_allclose(found, welch if V > 0 else max(welch, 0.5), rtol=1e-9)


def test_for_equal_sizes_and_variances_the_test_is_the_analysis_of_variance():
    noise = np.random.default_rng(0).normal(size=30)
    s, f = np.concatenate([noise + 0.25 * k for k in range(5)]), np.repeat(np.arange(5), 30)
    found = firm(s, f[:, None], categorical=[0])
    assert found.variance[0] > 0
    np.testing.assert_allclose(found.pvalues, stats.f_oneway(*s.reshape(5, 30)).pvalue, rtol=1e-9)


def test_pvalues_are_combined_by_cauchys_rule():
    p = np.array([[0.01, 0.2, 1e-200, 0.3], [0.04, np.nan, 0.9, 0.3]])
    exact = stats.cauchy.sf(stats.cauchy.isf([0.01, 0.04]).mean())
    np.testing.assert_allclose(cauchy(p), [exact, 0.2, 2e-200, 0.3], rtol=1e-9)


@pytest.mark.parametrize("kind", ["rows", "weights", "units", "noise that varies", "levels"])
def test_null_features_are_rejected_as_often_as_promised(kind):
    rng, rejected = np.random.default_rng(2), []
    for _ in range(60):
        X, s, options = rng.normal(size=(200, 5)), rng.normal(size=200), {}
        if kind == "weights":
            options["sample_weight"] = rng.exponential(size=200)
        elif kind == "units":
            unit = options["groups"] = np.repeat(np.arange(40), 5)
            X, s = X[unit], s[unit] + 0.5 * rng.normal(size=200)
        elif kind == "levels":
            X, options["categorical"] = rng.integers(0, 12, (200, 5)), range(5)
        elif kind == "noise that varies":
            s = s * (1 + X[:, 0] ** 2)
        rejected.append(firm(s, X, **options).pvalues < 0.05)
    assert np.mean(rejected) <= 0.085  # 300 tests, though not independent
    assert np.mean(rejected) >= 0.01


# Intervals and errors


def test_ends_of_the_interval_solve_its_equation():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 3))
    result = firm(X @ [2, 1, 0.5] + rng.normal(size=300), X, confidence_level=0.9)
    estimate = result.estimate
    J, fourth = estimate.J, (estimate.psi**4).sum(axis=0)
    df = np.clip(2 * J**2 / (fourth - J**2 / 32), 3, 31)  # Satterthwaite
    for end in (result.ci_low, result.ci_high):
        V = end**2
        t = np.abs(estimate.V - V) / np.sqrt(estimate.slope * V + estimate.noise[0])
        np.testing.assert_allclose(t[end > 0], stats.t.ppf(0.95, df)[end > 0], rtol=1e-9)


def normal(rng, n):
    X = rng.normal(size=(n, 2))
    return X, X @ [1, 0.5] + rng.normal(size=n)


def curved(rng, n):
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] ** 2 + 0.5 * X[:, 1]


def levels(rng, n):
    X = rng.integers(0, 4, (n, 2))
    return X, X @ [1, 0.5] / np.sqrt(1.25) + rng.normal(size=n)


CASES = {  # population, Q of both features, options
    "normal": (normal, [1, 0.5], {}),
    "slope": (normal, [1, 0.5], {"method": "slope"}),
    "curved": (curved, [2**0.5, 0.5], {}),
    "levels": (levels, [1, 0.5], {}),
    "nominal": (levels, [1, 0.5], {"categorical": [0, 1]}),
    "standardized": (normal, [2 / 3, 1 / 3], "standardize"),
    "weights": (normal, [1, 0.5], {"sample_weight": np.linspace(0.5, 2, 400)}),
    "units": (normal, [1, 0.5], {"groups": np.arange(400) // 4}),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_are_the_spread_over_samples_and_intervals_cover(case):
    """Of both importances and of their difference, in 60 samples."""
    draw, truth, options = CASES[case]
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        X, s = draw(rng, 400)
        result = firm(s, X, **({} if options == "standardize" else options))
        result = result.standardize() if options == "standardize" else result
        table = result.compare("x0", "x1").iloc[0]
        rows = [result.importances, result.standard_error, result.ci_low, result.ci_high]
        found.append([*np.transpose(rows), table.iloc[:4]])
    Q, error, low, high = np.moveaxis(np.array(found), 2, 0)
    truth = np.array([*truth, truth[0] - truth[1]])
    assert (np.abs(Q.mean(axis=0) - truth) < 0.8 * Q.std(axis=0)).all()  # bins hide a little
    np.testing.assert_allclose(error.mean(axis=0), Q.std(axis=0), rtol=0.3)
    assert ((low <= truth) & (truth <= high)).mean(axis=0).min() >= 0.85  # 3.5 errors below 0.95


def test_the_error_of_a_difference_is_its_spread_where_importances_differ():
    """Q is 1.41 and 0.5: what holds for equal importances does not do."""
    rng, found = np.random.default_rng(1), []
    for _ in range(200):
        X, s = curved(rng, 400)
        found.append(firm(s, X).compare("x0", "x1")[["difference", "standard_error"]].iloc[0])
    difference, error = np.transpose(found)
    np.testing.assert_allclose(error.mean(), difference.std(), rtol=0.15)


@pytest.mark.parametrize("kind", ["rows", "weights", "units"])
def test_equal_importances_are_rarely_told_apart_and_ranks_cover(kind):
    rng, told, covered = np.random.default_rng(4), 0, 0
    for _ in range(60):
        X = rng.normal(size=(300, 4))
        X[:, 1] = 0.5 * X[:, 0] + np.sqrt(0.75) * X[:, 1]
        options = {"weights": {"sample_weight": rng.exponential(size=300)}}
        options["units"] = {"groups": np.arange(300) // 5}
        result = firm(X @ [1, 1, 0.7, 0] + rng.normal(size=300), X, **options.get(kind, {}))
        told += result.compare("x0", "x1")["pvalue"].iloc[0] < 0.05
        ranks = result.ranks()
        best, worst = ranks["best"], ranks["worst"]
        covered += best["x0"] == 1 == best["x1"] and best["x2"] <= 3 <= worst["x2"]
    assert told <= 9  # 3 expected
    assert covered >= 52


def test_heavy_tails_are_noted_and_harmless_lines_are_not():
    rng, found = np.random.default_rng(12), []
    for _ in range(40):
        X, noise = rng.normal(size=(200, 2)), rng.normal(size=200)
        wild, tame = np.exp(2 * X[:, 0]) + noise, X[:, 0] + noise
        found.append([firm(s, X).heavy_tails[0] for s in (wild, tame)])
    wild, tame = np.mean(found, axis=0)
    assert wild > 0.6
    assert tame < 0.1


def test_a_score_that_is_a_function_of_the_levels_has_no_noise():
    level = np.repeat([0.0, 1.0, 2.0], [5, 10, 20])
    result = firm(level**2, level[:, None])
    assert result.pvalues[0] < 1e-20
    assert result.ci_low[0] < result.importances[0] < result.ci_high[0]  # p_b is estimated
