"""Standard errors, intervals and the test, against Welch's test, resampling and simulation."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from firmlib import StreamingFirm, compare, firm, search
from firmlib._inference import brown_forsythe, cauchy


def two_levels(rng, n=400, difference=0.3):
    f = (rng.random(n) < 0.3).astype(float)
    return difference * f + rng.normal(size=n) * (1 + 2 * f), f[:, None]


@pytest.mark.parametrize("seed", range(5))
def test_for_two_levels_the_test_is_welchs(seed):
    s, X = two_levels(np.random.default_rng(seed))
    welch = stats.ttest_ind(s[X[:, 0] == 1], s[X[:, 0] == 0], equal_var=False)
    np.testing.assert_allclose(firm(s, X).pvalues, welch.pvalue, rtol=1e-10)


def test_for_equal_sizes_and_variances_the_statistic_is_that_of_the_analysis_of_variance():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=30)
    groups = [noise + 0.2 * k for k in range(5)]  # the same variance in every level
    w, m = np.full(5, 30.0), np.array([g.mean() for g in groups])
    u = np.full(5, noise.var(ddof=1))
    # all variances equal: both degrees of freedom are those of the plain F
    np.testing.assert_allclose(
        brown_forsythe(w, m - m.mean(), u, w), stats.f_oneway(*groups).pvalue, rtol=1e-10
    )


def test_pvalues_are_combined_by_cauchys_rule():
    p = np.array([[0.01, 0.2, 1e-200, 0.3], [0.04, np.nan, 0.9, 0.3]])
    together = cauchy(p)
    exact = stats.cauchy.sf(stats.cauchy.isf([0.01, 0.04]).mean())
    np.testing.assert_allclose(together, [exact, 0.2, 2e-200, 0.3], rtol=1e-9)


@pytest.mark.parametrize("levels", [3, 6])
def test_of_ordered_levels_merged_ones_are_tested_too(levels):
    rng = np.random.default_rng(1)
    f = rng.integers(0, levels, 200)
    s = 0.2 * f + rng.normal(size=200)
    halves = [s[f < levels / 2], s[f >= levels / 2]]
    if levels == 3:
        middle = (np.cumsum(np.bincount(f)) - np.bincount(f) / 2) / 200
        halves = [s[middle[f] < 0.5], s[middle[f] >= 0.5]]
    merged = [stats.ttest_ind(*halves, equal_var=False).pvalue]
    if levels == 6:
        middle = (np.cumsum(np.bincount(f)) - np.bincount(f) / 2) / 200
        quarter = (4 * middle).astype(int)[f]
        merged.append(_welch([s[quarter == k] for k in range(4)]))
    merged.append(_welch([s[f == k] for k in range(levels)]))
    t = np.mean(1 / np.tan(np.pi * np.array(merged)))
    np.testing.assert_allclose(firm(s, f[:, None]).pvalues, stats.cauchy.sf(t), rtol=1e-9)


def _welch(groups):
    w = np.array([len(g) for g in groups], dtype=float)
    m = np.array([g.mean() for g in groups]) - np.concatenate(groups).mean()
    return brown_forsythe(w, m, np.array([g.var(ddof=1) for g in groups]), w)


CASES = {
    "linear": lambda rng, X: X[:, 0],
    "noisy": lambda rng, X: X[:, 0] + 2 * rng.normal(size=len(X)),
    "curved": lambda rng, X: X[:, 0] ** 2 + X[:, 1],
    "levels": lambda rng, X: np.round(X[:, 0]) + rng.normal(size=len(X)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "case"),  # the slope of the curved one is 0, where the error is an upper bound
    sorted({*product(["auto", "slope"], CASES)} - {("slope", "curved")}),
)
def test_standard_error_is_the_spread_over_samples(case, method):
    rng = np.random.default_rng(1)
    found, errors = [], []
    for _ in range(300):
        X = rng.normal(size=(1000, 2))
        s = CASES[case](rng, X)
        if case == "levels":
            X = np.round(X)
        result = firm(s, X[:, :1], method=method, rows="sample")
        found.append(abs(result.importances[0]))
        errors.append(result.standard_error[0])
    np.testing.assert_allclose(np.mean(errors), np.std(found), rtol=0.15)


@pytest.mark.slow
def test_null_feature_is_rejected_as_often_as_promised_although_its_noise_varies():
    rng = np.random.default_rng(2)
    rejected = []
    for _ in range(600):
        X = rng.uniform(-np.pi, np.pi, (500, 3))
        s = np.sin(X[:, 0]) * (1 + 0.1 * X[:, 2] ** 4) + 7 * np.sin(X[:, 1]) ** 2
        rejected.append(firm(s, X, [2]).pvalues[0] < 0.05)
    assert 0.03 <= np.mean(rejected) <= 0.075


def test_intervals_are_signed_nested_and_hold_the_estimate():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    s = X[:, 0] - 2 * X[:, 1]
    wide, narrow = firm(s, X, confidence_level=0.99), firm(s, X, confidence_level=0.5)
    for result in (wide, narrow):
        assert (result.ci_low <= result.importances).all()
        assert (result.importances <= result.ci_high).all()
    assert wide.ci_high[1] < 0 < wide.ci_low[0]
    assert (wide.ci_low <= narrow.ci_low).all()
    assert (narrow.ci_high <= wide.ci_high).all()
    mirrored = firm(-s, X, confidence_level=0.99)
    np.testing.assert_allclose(mirrored.ci_low[:2], -wide.ci_high[:2], rtol=1e-10)
    np.testing.assert_allclose(mirrored.pvalues, wide.pvalues, rtol=1e-10)


def test_errors_scale_with_the_score_and_shrink_with_the_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1600, 1))
    s = X[:, 0] + rng.normal(size=1600)
    one, ten = firm(s, X), firm(10 * s, X)
    np.testing.assert_allclose(ten.standard_error, 10 * one.standard_error, rtol=1e-10)
    np.testing.assert_allclose(ten.ci_low, 10 * one.ci_low, rtol=1e-10)
    np.testing.assert_allclose(ten.pvalues, one.pvalues, rtol=1e-8)
    part = firm(s[:400], X[:400])
    np.testing.assert_allclose(part.standard_error / one.standard_error, 2, rtol=0.3)


def test_a_population_has_no_error():
    result = firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    np.testing.assert_array_equal(result.standard_error, 0)
    np.testing.assert_array_equal(result.ci_low, result.importances)
    np.testing.assert_array_equal(result.ci_high, result.importances)
    assert np.isnan(result.pvalues).all()
    assert not result.curves["x0"].standard_error.any()


@pytest.mark.parametrize("method", ["auto", "slope"])
@pytest.mark.parametrize("flat", ["feature", "score"])
def test_nothing_moves_without_a_doubt(flat, method):
    rng = np.random.default_rng(5)
    X, s = rng.normal(size=(50, 1)), rng.normal(size=50)
    X, s = (np.ones_like(X), s) if flat == "feature" else (X, np.ones_like(s))
    result = firm(s, X, method=method)
    for values in (result.importances, result.standard_error, result.ci_low, result.ci_high):
        np.testing.assert_array_equal(values, 0)
    np.testing.assert_array_equal(result.pvalues, 1)


def test_a_score_that_is_a_function_of_the_levels_has_no_noise():
    levels = np.repeat([0.0, 1.0, 2.0], [5, 10, 20])
    result = firm(levels**2, levels[:, None])
    assert result.pvalues[0] < 1e-20
    assert result.ci_low[0] < result.importances[0] < result.ci_high[0]  # p_b is estimated


@pytest.mark.parametrize("level", [0, 1, 1.5, np.nan, "95"])
def test_confidence_level_is_checked(level):
    X = np.random.default_rng(0).normal(size=(50, 2))
    result = firm(X[:, 0], X)
    calls = [
        lambda: firm(X[:, 0], X, confidence_level=level),
        lambda: StreamingFirm(confidence_level=level),
        lambda: search(X[:, 0], X, confidence_level=level),
        lambda: compare(result, result, confidence_level=level),
        lambda: result.compare(confidence_level=level),
        lambda: result.intervals(level),
        lambda: result.ranks(level),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"^confidence_level must be .* above 0 and below 1"):
            call()


def test_curve_errors_are_those_of_means():
    rng = np.random.default_rng(6)
    f = rng.integers(0, 3, 300)
    s = f + rng.normal(size=300) * (1 + f)
    curve = firm(s, f[:, None]).curves["x0"]
    expected = [stats.sem(s[f == k]) for k in range(3)]
    np.testing.assert_allclose(curve.standard_error, expected, rtol=1e-10)
