"""Estimation from a sample: the U-statistic, its lack of bias, and bins of equal frequency."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from firmlib import conditional_expected_score, firm


def u_statistic(s, groups):
    """Mean of s_i s_j over pairs within groups (weighted by size) minus that over all pairs."""
    within = 0.0
    for group in set(groups):
        rows = [i for i in range(len(s)) if groups[i] == group]
        pairs = [s[i] * s[j] for i, j in permutations(rows, 2)]
        within += len(rows) / len(s) * sum(pairs) / len(pairs)
    pairs = [s[i] * s[j] for i, j in permutations(range(len(s)), 2)]
    return within - sum(pairs) / len(pairs)


@pytest.mark.parametrize("seed", range(5))
def test_discrete_sample_is_the_u_statistic(seed):
    rng = np.random.default_rng(seed)
    f = rng.permutation(np.repeat([-2.0, 0.5, 1.0, 7.0], [2, 3, 11, 8]))
    s = rng.normal(size=24) + 0.5 * f
    result = firm(s, f[:, None], method="discrete", rows="sample")
    np.testing.assert_allclose(result.variance, u_statistic(s, f), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_binned_sample_is_the_u_statistic(seed):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=60)
    s = rng.normal(size=60) + f**2
    result = firm(s, f[:, None], n_bins=6)
    assert result.methods == ("binned",)
    bins = pd.qcut(f, 6, labels=False)
    line = gated_line(s, f, bins)
    expected = u_statistic(s, bins) + (1 - result.pvalues) * line
    np.testing.assert_allclose(result.variance, expected, rtol=1e-10, atol=1e-12)
    held_back = result.estimate.unbiased - result.variance
    np.testing.assert_allclose(held_back, result.pvalues * line, rtol=1e-10, atol=1e-12)


def gated_line(s, f, bins):
    """What lines within bins of eight rows or more explain, as far as it stands out."""
    c, noise = [], []
    for k in range(bins.max() + 1):
        x, y, p = f[bins == k], s[bins == k], np.mean(bins == k)
        left = np.polyfit(x, y, 1, full=True)[1][0] / (len(y) - 2)
        c.append(p * (y.var(ddof=1) - left))
        noise.append(2 * (p * y.var(ddof=1) / (len(y) - 2)) ** 2)
    total = sum(c)
    t = max(total / np.linalg.norm(c), total / (2 * np.sqrt(sum(noise))))
    return total * max(0, 1 - 2 / t**2) if total > 0 else 0.0


def levels_and_scores(rng, n, p, q, sd):
    level = rng.choice(len(p), size=n, p=p)
    return level[:, None], np.take(q, level) + np.take(sd, level) * rng.normal(size=n)


UNBIASED = {  # Pr(level), q(level), sd of the score given the level
    "null": ([0.5, 0.3, 0.2], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
    "null, uneven": ([0.6, 0.2, 0.1, 0.05, 0.05], [0.0] * 5, [1.0] * 5),  # lone rows are common
    "effect": ([0.5, 0.3, 0.2], [0.0, 1.0, -1.0], [1.0, 1.0, 1.0]),
    "weak effect": ([0.4, 0.4, 0.2], [0.0, 0.2, 0.4], [2.0, 2.0, 2.0]),
    "uneven noise": ([0.5, 0.5], [0.0, 0.5], [0.5, 3.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q", "sd"), UNBIASED.values(), ids=UNBIASED.keys())
def test_sample_variance_is_unbiased_and_the_plug_in_is_not(p, q, sd):
    rng = np.random.default_rng(7)
    truth = np.dot(p, np.square(q)) - np.dot(p, q) ** 2
    unbiased, plug_in = [], []
    for _ in range(2000):
        table, s = levels_and_scores(rng, 30, p, q, sd)
        unbiased.append(firm(s, table, method="discrete", rows="sample").variance[0])
        plug_in.append(firm(s, table, method="discrete", rows="population").variance[0])
    standard_error = np.std(unbiased, ddof=1) / np.sqrt(len(unbiased))
    assert abs(np.mean(unbiased) - truth) < 4 * standard_error
    standard_error = np.std(plug_in, ddof=1) / np.sqrt(len(plug_in))
    assert np.mean(plug_in) - truth > 4 * standard_error


@pytest.mark.slow
def test_binned_noise_averages_to_zero():
    rng = np.random.default_rng(8)
    variance = [
        firm(*rng.normal(size=(1, 50)), rng.normal(size=(50, 1))).variance[0] for _ in range(1000)
    ]
    assert abs(np.mean(variance)) < 4 * np.std(variance, ddof=1) / np.sqrt(1000)


def standard_error(s, q):
    """Of an efficient estimate of Var q: psi = 2 (s - mu)(q - mu) - (q - mu)^2 - V."""
    psi = 2 * (s - s.mean()) * (q - q.mean()) - (q - q.mean()) ** 2
    return psi.std() / np.sqrt(len(s))


@pytest.mark.parametrize("n", [1_000, 10_000, 100_000])
def test_binned_converges_for_a_gaussian_linear_score(n):
    """s = w x0 and Corr(x0, x1) = rho: q_1(t) = rho w t and Q_1 = rho w."""
    rng = np.random.default_rng(9)
    rho, w = -0.6, 2.5
    X = rng.multivariate_normal([1, -3], [[1, rho], [rho, 1]], size=n)
    s = w * X[:, 0]
    result = firm(s, X, method="binned")
    for j, slope in enumerate([w, rho * w]):
        error = result.variance[j] - slope**2
        assert abs(error) < 4 * standard_error(s, slope * X[:, j])
    assert result.importances[0] > 0 > result.importances[1]


@pytest.mark.parametrize("n", [1_000, 10_000, 100_000])
def test_binned_converges_for_a_square(n):
    """s = x0^2: q_0 = s has variance 2; given x1, E[x0^2 | x1] = rho^2 x1^2 + const."""
    rng = np.random.default_rng(10)
    rho = 0.8
    X = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n)
    s = X[:, 0] ** 2
    result = firm(s, X, method="binned")
    for j, curvature in enumerate([1, rho**2]):
        error = result.variance[j] - 2 * curvature**2
        assert abs(error) < 4 * standard_error(s, curvature * X[:, j] ** 2)
    slope = firm(s, X, method="slope").importances
    assert np.abs(slope).max() < 4 * np.sqrt(10 / n)  # Var[x (x^2 - 1)] = 10: no linear part


# Bins


def bins_of(f, **options):
    """Return how many rows each bin has."""
    s = np.arange(len(f))
    curve = conditional_expected_score(s, np.reshape(f, (-1, 1)), 0, method="binned", **options)
    return curve.n


@pytest.mark.parametrize(
    ("n", "n_bins", "expected"),
    [
        (100, 10, [10] * 10),
        (100, "auto", [10] * 10),
        (99, "auto", [11] * 9),  # isqrt(99) = 9
        (12, 3, [4, 4, 4]),
        (10, 10, [1] * 10),
    ],
)
def test_bins_have_equal_frequency(n, n_bins, expected):
    f = np.random.default_rng(0).permutation(n)
    np.testing.assert_array_equal(bins_of(f, n_bins=n_bins, rows="population"), expected)


@pytest.mark.parametrize("n", [7, 23, 101, 1000])
@pytest.mark.parametrize("n_bins", [2, 3, 5, 7])
def test_bins_differ_by_at_most_one_row(n, n_bins):
    counts = bins_of(np.random.default_rng(0).normal(size=n), n_bins=n_bins, rows="population")
    assert len(counts) == n_bins
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize("seed", range(10))
def test_ties_are_never_split(seed):
    """Every bin is a run of whole levels: its count is a sum of consecutive level counts."""
    rng = np.random.default_rng(seed)
    f = rng.geometric(0.2, size=200) + 0.0
    edges = np.r_[0, np.cumsum(bins_of(f, n_bins=6))]
    runs = np.r_[0, np.cumsum(np.unique(f, return_counts=True)[1])]
    assert set(edges) <= set(runs)
    assert len(edges) <= 7


@pytest.mark.parametrize(("counts", "expected"), [([4, 5, 1], [4, 6]), ([1, 5, 4], [6, 4])])
def test_a_level_across_an_edge_goes_where_its_middle_lies(counts, expected):
    f = np.repeat([0.0, 1.0, 2.0], counts)
    np.testing.assert_array_equal(bins_of(f, n_bins=2), expected)


def test_a_level_larger_than_a_bin_keeps_its_own():
    f = np.r_[np.zeros(50), np.arange(1, 51)]
    assert bins_of(f, n_bins=10)[0] == 50


def test_bins_of_weighted_rows_have_equal_weight():
    f = np.arange(12.0)
    weights = [3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3]  # 16 rows in 4 bins
    np.testing.assert_array_equal(bins_of(f, n_bins=4, sample_weight=weights), [4, 4, 4, 4])


def test_bins_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    f, s = rng.normal(size=50), rng.normal(size=50)
    order = rng.permutation(50)
    np.testing.assert_allclose(
        firm(s[order], f[order, None], n_bins=5).variance,
        firm(s, f[:, None], n_bins=5).variance,
        rtol=1e-10,
    )


# Rows that are alone in their level


def test_lone_rows_borrow_the_pooled_variance():
    """By hand: v_b of levels with pairs; the lone row gets their pooled variance."""
    s = np.array([1.0, 3.0, 2.0, 5.0, 8.0, 20.0])
    f = np.array([0, 0, 1, 1, 1, 2])
    v0, v1 = s[:2].var(ddof=1), s[2:5].var(ddof=1)
    pooled = (v0 + 2 * v1) / 3
    between = sum(np.mean(f == t) * (s[f == t].mean() - s.mean()) ** 2 for t in (0, 1, 2))
    expected = between - (v0 + v1 + pooled - s.var(ddof=1)) / 6
    result = firm(s, f[:, None], method="discrete", rows="sample")
    np.testing.assert_allclose(result.variance, expected, rtol=1e-12)


def test_only_lone_rows_cannot_be_told_from_noise():
    with pytest.raises(ValueError, match=r"feature 'x0': a sample needs two rows in some level"):
        firm([1.0, 2.0, 4.0], [[1], [2], [3]], method="discrete", rows="sample")


def test_two_groups_by_hand():
    """s = 0, 1 | 3, 5: pairs within give 0 and 15, all pairs 2 (0+0+0+3+5+15) / 12."""
    pairs = [a * b for a, b in combinations([0, 1, 3, 5], 2)]
    expected = (0 + 15) / 2 - np.mean(pairs)
    result = firm([0, 1, 3, 5], [[0], [0], [1], [1]], method="discrete", rows="sample")
    np.testing.assert_allclose(result.variance, [expected], rtol=1e-12)
