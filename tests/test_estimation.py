"""Bins, V, tests, intervals and comparisons against brute force, other tests and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from firmlib import conditional_expected_score, firm

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


@pytest.mark.parametrize("n_bins", ["auto", 2, 7, 100])
@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.filterwarnings("ignore:importance 0:UserWarning")
def test_bins_are_intervals_that_never_split_ties(name, n_bins):
    """The counts cut the sorted rows, each cut lies between two values, the means are theirs."""
    f = FEATURES[name](np.random.default_rng(0))
    s = np.random.default_rng(1).normal(size=N)
    curve = conditional_expected_score(s, f[:, None], 0, n_bins=n_bins)
    order = np.argsort(f, kind="stable")  # missing values last
    cuts = np.cumsum(curve.n).astype(int)
    assert cuts[-1] == N
    before, after = f[order][cuts[:-1] - 1], f[order][cuts[:-1]]
    assert ((before < after) | np.isnan(after)).all()
    means = [part.mean() for part in np.split(s[order], cuts[:-1])]
    np.testing.assert_allclose(curve.q, means, rtol=1e-9, atol=1e-12)
    for t, part in zip(curve.t, np.split(f[order], cuts[:-1]), strict=True):
        assert part[0] <= t <= part[-1] or np.isnan(part).all()
    known = f[~np.isnan(f)]
    if len(np.unique(known)) <= (30 if n_bins == "auto" else n_bins):  # each level has a bin
        assert len(curve.n) == len(np.unique(known)) + np.isnan(f).any()


def test_tails_are_not_flattened():
    rng = np.random.default_rng(5)
    V = [firm(x[:, 0] ** 2, x).variance[0] for x in (rng.normal(size=(4000, 1)) for _ in range(30))]
    assert abs(np.mean(V) / 2 - 1) < 0.03


def test_a_heavy_level_at_either_end_has_the_same_bins():
    f = np.minimum(np.random.default_rng(6).normal(size=(400, 1)), 0.22)  # 4 in 10 are equal
    s = np.sin(3 * f[:, 0]) + 5 * np.random.default_rng(7).normal(size=400)
    for number in ("variance", "pvalues"):
        mine, turned = (getattr(firm(s, x), number) for x in (f, -f))
        np.testing.assert_allclose(mine, turned, rtol=1e-9)


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


@pytest.mark.parametrize("kind", ["rows", "weights", "whole weights", "units", "noise", "levels"])
def test_null_features_are_rejected_as_often_as_promised(kind):
    rng, rejected = np.random.default_rng(2), []
    for _ in range(60):
        X, s, options = rng.normal(size=(200, 5)), rng.normal(size=200), {}
        if kind == "weights":
            options["sample_weight"] = rng.exponential(size=200)
        elif kind == "whole weights":
            options["sample_weight"] = rng.integers(1, 100, 200)
        elif kind == "units":
            unit = options["groups"] = np.repeat(np.arange(40), 5)
            X, s = X[unit], s[unit] + 0.5 * rng.normal(size=200)
        elif kind == "levels":
            X, options["categorical"] = rng.integers(0, 12, (200, 5)), range(5)
        elif kind == "noise":
            s = s * (1 + X[:, 0] ** 2)
        rejected.append(firm(s, X, **options).pvalues < 0.05)
    assert np.mean(rejected) <= 0.085  # 300 tests, though not independent
    assert np.mean(rejected) >= 0.01


# Intervals and errors


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


def test_levels_far_apart_have_bins_of_their_own_in_a_long_table():
    rng = np.random.default_rng(5)
    x = rng.choice([*range(9), -0.0, 1e6, 3e9], 20_000)
    x[rng.random(len(x)) < 0.1] = np.nan
    s = np.sqrt(np.nan_to_num(x)) + rng.normal(size=len(x))
    curve = firm(s, x[:, None]).curves["x0"]
    means = pd.Series(s).groupby(x, dropna=False).mean()
    np.testing.assert_allclose(curve.t, means.index)
    np.testing.assert_allclose(curve.q, means, rtol=1e-9)
    code = rng.integers(0, 5, 9000)
    for levels in (10.0 ** (6 * np.arange(5)), np.array([0, 1e-9, 1, 1 + 1e-9, 2])):
        assert len(firm(np.sin(code), levels[code, None]).curves["x0"].n) == 5


def test_a_small_cluster_far_away_has_bins_of_its_own_in_a_long_table():
    rng = np.random.default_rng(0)
    n = 6000
    f = rng.normal(size=n)
    far = np.arange(n) < n // 25
    s = np.where(far, 10 * f, 0.0)
    f = np.where(far, 1e4 + f, f)
    found = [firm(s, x[:, None]).importances[0] for x in (f, stats.rankdata(f))]
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_long_tails_are_read_without_a_warning():
    f = np.exp(12 * np.random.default_rng(0).normal(size=(16_000, 1)))
    assert firm(np.log(f[:, 0]), f).importances[0] == pytest.approx(12, rel=0.03)


def test_slopes_are_exact_where_a_unit_has_all_that_varies():
    """Leaving it out leaves a constant feature, whose slope is 0, not the ratio of roundings."""
    rng = np.random.default_rng(2)
    unit = np.r_[np.zeros(600), rng.integers(1, 20, 400)]
    f = np.r_[rng.normal(size=600), np.full(400, 5.3)]
    s, w = f + rng.normal(size=1000), rng.random(1000)
    order = rng.permutation(1000)
    found = [
        firm(s[o], f[o, None], groups=unit[o], sample_weight=c * w[o], method="slope").ci_high[0]
        for o, c in ((slice(None), 1), (slice(None), 1e7), (order, 1))
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


# Errors


def test_standardized_importances_of_units_do_not_depend_on_the_mean_score():
    X, unit = np.random.default_rng(8).normal(size=(200, 1)), np.repeat(np.arange(10), 20)
    s = X[:, 0] + np.random.default_rng(9).exponential(size=10)[unit]
    a, b = (firm(score, X, groups=unit) for score in (s, s + 3))
    np.testing.assert_allclose(a.standardized, b.standardized, rtol=1e-9)


@pytest.mark.parametrize("kind", ["rows", "weights", "units"])
def test_errors_are_those_of_leaving_rows_or_units_out(kind):
    """The jackknife of V, with every row or unit in a fold of its own, from results without it.

    Its variance J counts that of equal means, rest, twice. For weights and units that differ, how
    V falls is expanded in the weight.
    """
    rng, unit = np.random.default_rng(4), np.repeat(np.arange(32), 6 if kind == "units" else 1)
    n = len(unit)
    level = rng.integers(0, 4, n)
    s = 3 * np.sin(2 * level) + rng.normal(size=n)
    w = rng.uniform(0.5, 1.5, n) if kind == "weights" else np.ones(n)
    if kind == "units":
        s += rng.normal(size=32)[unit]
    options = {"categorical": [0]}

    def measured(rows):
        more = {"groups": unit[rows]} if kind == "units" else {"sample_weight": w[rows]}
        return firm(s[rows], level[rows, None], **options, **more)

    whole = measured(np.arange(n))
    V = whole.variance[0]
    share = np.bincount(unit, w) / w.sum()
    without = [measured(np.flatnonzero(unit != k)).variance[0] for k in range(32)]
    psi = (V - np.array(without)) * (1 - share)
    psi -= share * psi.sum()
    J = (psi**2).sum() / (1 - (share**2).sum())
    cells = np.zeros((3, 4))
    for k in range(4):
        here = level == k
        W, S = (
            np.bincount(unit[here], a[here], 32) for a in (w, w * (s - np.average(s, weights=w)))
        )
        m = S.sum() / W.sum()
        e = ((S**2).sum() - m**2 * (W**2).sum()) / (W.sum() ** 2 - (W**2).sum())
        cells[:, k] = W.sum() / w.sum(), e, W.sum() ** 2 / (W**2).sum()
    p, e, effective = cells
    rest = (2 * p**2 * e**2 * (effective - 1) / (effective + 1)).sum()
    error = np.sqrt(J - rest) / (2 * np.sqrt(V))
    np.testing.assert_allclose(whole.standard_error, error, rtol=1e-9 if kind == "rows" else 0.05)


def test_errors_of_a_score_without_noise_are_the_spread_of_its_estimates():
    """The finest bins have two rows, and count."""
    found = []
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(200, 2))
        X[:, 1] = 0.98 * X[:, 0] + 0.2 * X[:, 1]
        result = firm(X[:, 0], X)
        apart = result.compare("x0", "x1")["standard_error"].iloc[0]
        found.append([*result.importances, *result.standard_error, apart])
    Q, error, apart = np.split(np.array(found), [2, 4], axis=1)
    assert (np.abs(error.mean(axis=0) / Q.std(axis=0) - 1) < 0.25).all()
    assert apart.mean() < 1.5 * np.diff(Q).std()


def test_one_row_with_nearly_all_weight_proves_nothing():
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        w = np.r_[1e4, np.ones(199)]
        result = firm(rng.normal(size=200), rng.normal(size=(200, 2)), sample_weight=w)
        rejected.append(result.pvalues < 0.05)
    assert np.mean(rejected) < 0.12


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("units", [False, True])
def test_two_or_three_rows_or_units_are_too_few_to_reject(n, units):
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng([n, seed])
        unit = np.arange(40) % n if units else np.arange(n)
        options = {"groups": unit} if units else {}
        result = firm(rng.normal(size=n)[unit], rng.normal(size=(n, 2))[unit], **options)
        rejected.append(result.pvalues < 0.05)
    assert np.mean(rejected) < 0.12


@pytest.mark.parametrize("turned", [False, True])
def test_the_curve_of_a_slope_of_ordered_levels_has_two_of_them(turned):
    code = np.r_[np.arange(12), np.zeros(30, int), np.full(170, 11)]
    code = 11 - code if turned else code
    month = pd.Categorical.from_codes(code, [f"{k:02}" for k in range(1, 13)], ordered=True)
    frame = pd.DataFrame({"month": month, "word": month.as_unordered()})
    with pytest.warns(UserWarning, match="nominal without a slope"):
        curves = firm(1.0 * code, frame, method="slope").curves
    assert list(curves) == ["month"]
    assert set(curves["month"].t) <= set(month)
