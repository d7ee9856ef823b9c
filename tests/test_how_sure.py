"""Weights of sampling, rows that belong together, differences and ranks, many features."""

from copy import deepcopy
from itertools import product
from pickle import dumps, loads

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

import firmlib
from firmlib import StreamingFirm, features, firm
from firmlib._inference import Estimate
from firmlib._paired import differences, known
from firmlib.features import Pairs


def by_pairs(s, f, w, unit):
    """The U-statistic over all pairs of rows of different units, one by one."""
    r = s - np.average(s, weights=w)

    def square(rows):
        pairs = [(i, j) for i, j in product(rows, repeat=2) if unit[i] != unit[j]]
        top = sum(w[i] * w[j] * r[i] * r[j] for i, j in pairs)
        return top / sum(w[i] * w[j] for i, j in pairs)

    levels = [np.flatnonzero(f == k) for k in np.unique(f)]
    return sum(w[k].sum() / w.sum() * square(k) for k in levels) - square(range(len(s)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["sampling", "units", "units and weights"])
def test_pairs_of_rows_of_different_units(seed, kind):
    rng = np.random.default_rng(seed)
    f, unit = rng.integers(0, 3, 40), np.arange(40)
    s, w = f + rng.normal(size=40), np.ones(40)
    if kind != "units":
        w = rng.exponential(size=40)
    if kind != "sampling":
        unit = rng.integers(0, 10, 40)
    found = firm(s, f[:, None], sample_weight=w, groups=unit)
    np.testing.assert_allclose(found.variance, by_pairs(s, f, w, unit), rtol=1e-10)


@settings(deadline=None, max_examples=20)
@given(scale=st.sampled_from([0.3, 1e-6, 1e9, 1e-200, 1e200]), seed=st.integers(0, 99))
def test_the_scale_of_weights_of_sampling_does_not_matter(scale, seed):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 2)), rng.exponential(size=60)
    s = X[:, 0] + rng.normal(size=60)
    one, other = (firm(s, X, sample_weight=v, weight_type="sampling") for v in (w, scale * w))
    for name in ("variance", "standard_error", "pvalues", "ci_high"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.curves["x0"].n, scale * one.curves["x0"].n)
    assert firm(s, X, sample_weight=1e200 * w).weight_type == "sampling"


@pytest.mark.parametrize("scale", [1e-29, 1e29])
def test_scores_of_extreme_scale(scale):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 2))
    s = X[:, 0] + rng.normal(size=300)
    unit = np.arange(300) // 2
    for options in ({}, {"groups": unit}, {"given": 1}, {"sample_weight": rng.random(300)}):
        one, other = firm(s, X, **options), firm(scale * s, X, **options)
        np.testing.assert_allclose(other.pvalues, one.pvalues, rtol=1e-6)
        for name in ("importances", "standard_error", "ci_low", "ci_high"):
            found, wanted = getattr(other, name) / scale, getattr(one, name)
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)
    assert (firm(np.full(300, scale), X).importances == 0).all()


@pytest.mark.parametrize("kind", ["xor", "sampled xor", "given", "interaction"])
def test_errors_know_that_the_sd_is_estimated(kind):
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        options = {"features": Pairs("interaction")}
        X, z = rng.normal(size=(400, 2)), rng.normal(size=400)
        s = X[:, 0] * X[:, 1] + 0.1 * z
        if "xor" in kind:
            options = {"features": Pairs("xor")}
            X = (X > 0.5).astype(float)
            s = (X[:, 0] != X[:, 1]) + 0.1 * z
        elif kind == "given":
            options, s = {"given": 0}, X @ [0.2, 1] + 0.3 * z
        if "sampled" in kind:
            options["sample_weight"] = rng.random(400)
        result = firm(s, X, standardize=True, **options)
        found.append([abs(result.importances[0]), result.standard_error[0]])
    Q, error = np.transpose(found)
    assert 0.7 < error.mean() / Q.std() < 1.4


def test_equal_weights_of_sampling_are_no_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    s = X[:, 0] + rng.normal(size=300)
    one, other = firm(s, X), firm(s, X, sample_weight=np.full(300, 0.25))
    assert (one.weight_type, other.weight_type) == ("count", "sampling")
    for name in ("variance", "standard_error", "pvalues"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-10)


def test_units_of_one_row_are_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    s = X[:, 0] + rng.normal(size=200)
    one, other = firm(s, X), firm(s, X, groups=[f"row {i}" for i in range(200)])
    np.testing.assert_array_equal(other.ci_high, one.ci_high)


def test_copies_of_a_row_are_one_unit():
    rng = np.random.default_rng(5)
    X, w, unit = rng.integers(0, 4, (300, 1)), rng.integers(1, 6, 300), np.arange(300)
    s, copies = rng.normal(size=300), np.repeat(unit, w)
    one = firm(s, X, sample_weight=w, groups=unit)
    other = firm(s[copies], X[copies], groups=unit[copies])
    for name in ("variance", "standard_error", "pvalues", "ci_high"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"given": 0}, {"given": [0, 1]}])
def test_a_count_is_a_repetition(options):
    rng = np.random.default_rng(9)
    X, w = rng.normal(size=(400, 3)), rng.integers(1, 6, 400)
    s, copies = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400), np.repeat(np.arange(400), w)
    one = firm(s, X, sample_weight=w, **options)
    other = firm(s[copies], X[copies], **options)
    for name in ("importances", "standard_error", "pvalues", "ci_high"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


def test_many_rows_are_many_counts():
    rng = np.random.default_rng(10)
    x, w = rng.normal(size=(30_000, 1)), np.full(30_000, 2)
    s = x[:, 0] ** 2 + rng.normal(size=30_000)
    twice = firm(np.repeat(s, 2), np.repeat(x, 2, axis=0)).variance
    np.testing.assert_allclose(firm(s, x, sample_weight=w).variance, twice, rtol=1e-12)
    stream = StreamingFirm(first_rows=30_000).partial_fit(x, s, w)
    np.testing.assert_allclose(stream.result().variance, twice, rtol=1e-12)


def test_the_scale_of_weights_does_not_matter_to_a_group():
    rng = np.random.default_rng(11)
    X, w = rng.normal(size=(200, 2)), rng.exponential(size=200)
    s = X.sum(axis=1) + rng.normal(size=200)
    one, other = (firm(s, X, {"g": [0, 1]}, sample_weight=c * w).variance for c in (1, 1e-3))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_units_are_told_by_labels_of_any_kind():
    rng = np.random.default_rng(6)
    X, s, unit = rng.normal(size=(60, 2)), rng.normal(size=60), np.arange(60) // 2
    mixed = [str(u // 2) if u % 2 else u // 2 for u in unit.tolist()]
    days = np.datetime64("2020-01-01") + unit
    for labels in (mixed, np.array(mixed, object), days, pd.Series(unit).astype("category")):
        found = firm(s, X, groups=labels)
        np.testing.assert_allclose(found.ci_high, firm(s, X, groups=unit).ci_high, rtol=1e-9)


@pytest.mark.parametrize("kind", ["nan", "None", "NaT", "NA"])
def test_units_must_be_known(kind):
    X, s, w = np.arange(20.0).reshape(10, 2), np.arange(10.0), np.ones(10)
    labels = {
        "nan": np.arange(10.0),
        "None": np.array([f"unit {i}" for i in range(10)], object),
        "NaT": np.datetime64("2020-01-01") + np.arange(10),
        "NA": pd.Series(range(10), dtype="Int64"),
    }[kind]
    labels[[4, 7]] = {"nan": np.nan, "NaT": np.datetime64("NaT")}.get(kind)
    with pytest.raises(ValueError, match=r"groups must not be missing, got 2 .* first at row 4"):
        firm(s, X, groups=labels)
    with pytest.raises(ValueError, match=r"groups must not be missing, got 2 .* first at row 4"):
        StreamingFirm(keep=True).partial_fit(X, s, groups=labels)
    w[[4, 7]] = 0
    firm(s, X, groups=labels, sample_weight=w)


@pytest.mark.slow
def test_sampled_weights_and_units_keep_the_size_of_the_test():
    rng, rejected = np.random.default_rng(2), np.zeros(3)
    for _ in range(200):
        unit = np.repeat(np.arange(40), 5)
        u = rng.normal(size=(40, 2))[unit]
        s, X = u[:, 0] + rng.normal(size=200) / 2, u[:, 1:]
        rejected[0] += firm(s, X, groups=unit).pvalues[0] < 0.05
        rejected[1] += firm(s, X).pvalues[0] < 0.05
        w, noise = rng.exponential(size=200), rng.normal(size=(200, 2))
        rejected[2] += firm(noise[:, 0], noise[:, 1:], sample_weight=w).pvalues[0] < 0.05
    assert rejected[0] <= 20  # of 10 expected
    assert rejected[1] > 150  # what it would be without
    assert rejected[2] <= 20


def test_a_stream_has_weights_of_sampling_too():
    rng = np.random.default_rng(3)
    f, w = rng.integers(0, 4, (400, 1)), rng.exponential(size=400)
    s = f[:, 0] + rng.normal(size=400)
    stream = StreamingFirm(first_rows=100)
    for part in np.split(np.arange(400), 8):
        stream.partial_fit(f[part], s[part], w[part])
    found, batch = stream.result(), firm(s, f, sample_weight=w)
    assert found.weight_type == "sampling"
    for name in ("variance", "standard_error", "pvalues", "ci_low"):
        np.testing.assert_allclose(getattr(found, name), getattr(batch, name), rtol=1e-9)


def correlated(rng, n=300):
    X = rng.normal(size=(n, 4))
    X[:, 1] = 0.5 * X[:, 0] + np.sqrt(0.75) * X[:, 1]
    return X, X @ [1, 1, 0.7, 0] + rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "sampling", "units"])
def test_differences_keep_their_size_and_ranks_cover(kind):
    rng, told, covered = np.random.default_rng(4), 0, 0
    for _ in range(200):
        X, s = correlated(rng)
        options = {"sampling": {"sample_weight": rng.exponential(size=300)}}
        options["units"] = {"groups": np.arange(300) // 5}
        result = firm(s, X, **options.get(kind, {}))
        told += result.compare("x0", "x1").pvalue.iloc[0] < 0.05
        ranks = result.ranks()
        best, worst = ranks["best"], ranks["worst"]
        covered += best["x0"] == 1 == best["x1"] and best["x2"] <= 3 <= worst["x2"]
    assert told <= 22  # of 10 expected
    assert covered >= 180


def test_a_difference_is_surer_than_two_intervals():
    X, s = correlated(np.random.default_rng(5), 1000)
    result = firm(s, X)
    alone = np.hypot(*result.standard_error[:2])
    together = result.compare("x0", "x1").iloc[0]
    assert together["standard_error"] < 0.8 * alone
    both = result.compare("x1", "x0").iloc[0]
    np.testing.assert_allclose(both["difference"], -together["difference"], rtol=1e-12)
    assert len(result.compare()) == 6
    frame = result.ranks()
    assert ((frame["best"] <= frame["rank"]) & (frame["rank"] <= frame["worst"])).all()


@pytest.mark.slow
def test_the_error_of_a_difference_is_its_spread_over_samples():
    rng, found, errors = np.random.default_rng(6), [], []
    for _ in range(200):
        X, s = correlated(rng)
        row = firm(s, X).compare("x0", "x2").iloc[0]
        found.append(row["difference"])
        errors.append(row["standard_error"])
    np.testing.assert_allclose(np.mean(errors), np.std(found), rtol=0.15)


UNLIKE = {  # of two features: columns and their weights; noise, options
    "binary": ("bits", [3, 0.5], 0.0, {}),
    "without effect": ("normal", [1, 0], 1.0, {}),
    "standardized": ("normal", [1, 0.5], 0.3, {"standardize": True}),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_intervals_of_differences_cover_where_importances_differ(kind):
    columns, weights, noise, options = UNLIKE[kind]
    rng, found, covered = np.random.default_rng(18), [], 0
    truth = (weights[0] - weights[1]) / (np.linalg.norm([*weights, noise]) if options else 1)
    for _ in range(100):
        X = rng.normal(size=(300, 2))
        X = np.sign(X) if columns == "bits" else X
        row = firm(X @ weights + noise * rng.normal(size=300), X, **options).compare("x0", "x1")
        found.append(row[["difference", "standard_error"]].to_numpy()[0])
        covered += row["ci_low"].iloc[0] <= truth <= row["ci_high"].iloc[0]
    differences, errors = np.array(found).T
    np.testing.assert_allclose(errors.mean(), differences.std(), rtol=0.25)
    assert covered >= 89  # two standard errors below 95


def test_rows_of_the_same_table_are_paired_only_if_they_are_the_same():
    rng = np.random.default_rng(19)
    X, s = correlated(rng, 600)
    half = np.arange(600) < 300
    one, two, all_of_it = (firm(s, X, sample_weight=w) for w in (half * 1, ~half * 1, None))
    unit = np.arange(600) // 2
    pd.testing.assert_frame_equal(
        firmlib.compare(one, two), firmlib.compare(one, two, paired=False)
    )
    in_pairs = firm(s, X, groups=unit), firm(s**2, X, groups=unit[::-1])
    for a, b in ((one, all_of_it), in_pairs):
        with pytest.raises(ValueError, match="neither paired nor independent"):
            firmlib.compare(a, b)
        with pytest.raises(ValueError, match="paired=True needs"):
            firmlib.compare(a, b, paired=True)


def test_two_models_on_the_same_rows_and_two_samples():
    rng = np.random.default_rng(7)
    X, s = correlated(rng, 500)
    one, two = firm(s, X), firm(s + 0.05 * rng.normal(size=500), X)
    same, apart = firmlib.compare(one, two), firmlib.compare(one, two, paired=False)
    assert (same["standard_error"] < 0.5 * apart["standard_error"])[:3].all()
    Y, t = correlated(rng, 500)
    assert (firmlib.compare(one, firm(t, Y))["pvalue"] > 0.001).all()
    with pytest.raises(ValueError, match="other has the features"):
        firmlib.compare(one, firm(t, Y, feature_names=["a", "b", "c", "d"]))


def test_what_keeps_no_rows_says_so():
    X, s = correlated(np.random.default_rng(8))
    for result in (firm(s, X, keep=False), StreamingFirm().partial_fit(X, s).result()):
        with pytest.raises(ValueError, match="the result keeps no rows"):
            result.ranks()
        with pytest.raises(ValueError, match="the result keeps no rows"):
            result.to_frame(ranks=True)
    few = StreamingFirm(keep=True).partial_fit(X[:24], s[:24]).result()
    with pytest.raises(ValueError, match="comparisons of a stream need at least 25 rows"):
        few.ranks()
    X[0, 1] = np.nan
    group = firm(s, X, {"a": 0, "b": 1, "g": [1, 2]}, missing="drop")
    for name in ("b", "g"):
        with pytest.raises(ValueError, match=f"feature {name!r} cannot be compared"):
            group.compare("a", name)


def test_groups_of_columns_are_compared_by_what_each_row_adds():
    rng = np.random.default_rng(30)
    X = rng.normal(size=(300, 3))
    s = X[:, 0] * X[:, 1] + 2 * X[:, 2] + 0.5 * rng.normal(size=300)
    result = firm(s, X, {"a": 0, "c": 2, "ab": [0, 1], "ba": [1, 0], "same": [0, 1]})
    one = result.compare("ab", "c").iloc[0]
    Q = dict(zip(result.feature_names, result.importances, strict=True))
    assert one["difference"] == pytest.approx(Q["ab"] - Q["c"])
    assert one["pvalue"] < 0.001  # sd 1 and 2
    apart = np.hypot(*result.standard_error[[2, 1]])  # as if they did not move together
    assert 0.3 * apart < one["standard_error"] < apart
    same = result.compare("ab", "same").iloc[0]
    assert (same["difference"], same["standard_error"], same["pvalue"]) == (0, 0, 1)
    assert result.compare("ab", "ba")["pvalue"].iloc[0] > 0.01  # what is rounded is no difference
    assert result.ranks().loc["c", "worst"] == 1
    flat = firm(np.zeros(300), X, {"a": 0, "ab": [0, 1]})
    assert flat.compare("a", "ab")["pvalue"].iloc[0] == 1


@pytest.mark.parametrize(("gap", "pvalue"), [(5e-12, 1), (1e-7, 0)])
def test_what_equations_leave_as_rounding_is_no_difference(gap, pvalue):
    V, exact = np.array([1.3]), {"error": np.zeros(1), "pvalue": np.zeros(1)}
    one, other = (known(Estimate(variance=v, **exact), 0.95) for v in (V, V * (1 + gap)))
    assert differences(one, other, np.zeros(1), 0.0, 0.95)["pvalue"] == pvalue


GROUPS = {
    "a column": ([0, 1], 2, lambda X: 0.7 * X[:, 0] + 0.7 * X[:, 1] + np.sqrt(0.98) * X[:, 2]),
    "a product": ([0, 1], 2, lambda X: X[:, 0] * X[:, 1] + X[:, 2]),
    "a group": ([0, 1], [2, 3], lambda X: X[:, 0] * X[:, 1] + 0.8 * X[:, 2] + 0.6 * X[:, 3]),
    "a part of it": ([0, 1], 0, lambda X: X[:, 0]),
    "nothing": ([0, 1], 2, lambda X: 0 * X[:, 0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROUPS)
def test_differences_of_groups_keep_their_size(kind):
    a, b, curve = GROUPS[kind]
    rng, pvalues = np.random.default_rng(31), []
    for _ in range(50):
        X = rng.normal(size=(300, 4))
        result = firm(curve(X) + rng.normal(size=300), X, {"a": a, "b": b})
        pvalues.append(result.compare("a", "b")["pvalue"].iloc[0])
    assert np.mean(np.array(pvalues) < 0.05) <= 0.16  # five of 100, and 3.6 standard errors


def stream_of(X, s, parts=7, **options):
    stream = StreamingFirm(first_rows=100, keep=True, **options)
    for rows in np.array_split(np.arange(len(s)), parts):
        stream.partial_fit(X[rows], s[rows])
    return stream


def left_out(X, s, bins):
    """V of a stream without every 25th row, from the first, the second, ... on."""
    kept = [np.arange(len(s)) % 25 != k for k in range(25)]
    parts = [StreamingFirm(bins=bins).partial_fit(X[rows], s[rows]) for rows in kept]
    return np.array([part.result().variance for part in parts])


def test_a_stream_is_compared_by_leaving_out_groups_of_rows():
    X, s = correlated(np.random.default_rng(15), 1000)
    X[:, 3] = np.round(2 * X[:, 3])  # levels, of which some come late
    stream = stream_of(X, s)
    V = left_out(X, s, stream.bins)
    result = stream.result()
    found = result.compare("x0", "x2").iloc[0]
    error = np.sqrt(24 / 25 * ((V[:, 0] - V[:, 2] - (V[:, 0] - V[:, 2]).mean()) ** 2).sum())
    se = result.standard_error[[0, 2]]
    together = np.corrcoef(V[:, [0, 2]].T) * np.outer(se, se)
    expected = np.sqrt([1, -1] @ together @ [1, -1])
    np.testing.assert_allclose(found["standard_error"], expected, rtol=1e-8)
    p = 2 * stats.t.sf(abs(result.variance[0] - result.variance[2]) / error, 24)
    np.testing.assert_allclose(found["pvalue"], p, rtol=1e-6)
    whole = firm(s, X).compare("x0", "x2").iloc[0]
    np.testing.assert_allclose(found["standard_error"], whole["standard_error"], rtol=0.5)


@pytest.mark.parametrize("waiting", [False, True])
def test_parts_of_a_stream_that_are_compared_merge(waiting):
    X, s = correlated(np.random.default_rng(16), 1000)
    one = StreamingFirm(keep=True, first_rows=5000 if waiting else 100)
    one.partial_fit(X[:500], s[:500])
    other = StreamingFirm(keep=True, bins=None if waiting else one.bins, first_rows=5000)
    other.partial_fit(X[500:], s[500:])
    together = StreamingFirm(keep=True, bins=None if waiting else one.bins, first_rows=5000)
    expected = together.partial_fit(X, s).result().compare()
    np.testing.assert_allclose(one.merge(other).result().compare(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="other has keep=False, expected True"):
        one.merge(StreamingFirm().partial_fit(X, s))


def test_two_streams_over_the_same_rows_can_be_paired():
    rng = np.random.default_rng(17)
    X, s = correlated(rng, 1000)
    one, two = (stream_of(X, t).result() for t in (s, s + 0.05 * rng.normal(size=1000)))
    same, apart = firmlib.compare(one, two, paired=True), firmlib.compare(one, two)
    assert (same["standard_error"] < 0.5 * apart["standard_error"])[:3].all()
    with pytest.raises(ValueError, match="paired=True needs units of both alike"):
        firmlib.compare(one, firm(s, X), paired=True)


def in_units(rng, n_units=100, size=5):
    """Rows of units that share their noise; x0 varies within them, the null x1 does not."""
    unit = np.repeat(np.arange(n_units), size)
    u = rng.normal(size=(n_units, 2))[unit]
    X = np.column_stack([rng.normal(size=len(unit)), u[:, 1]])
    return X, X[:, 0] + u[:, 0], unit


def stream_of_units(X, s, unit, **options):
    stream = StreamingFirm(keep=True, **options)
    for some in np.array_split(np.unique(unit), 4):
        rows = np.isin(unit, some)
        stream.partial_fit(X[rows], s[rows], groups=[f"unit {u}" for u in unit[rows]])
    return stream


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("first_rows", [10, 10_000])
def test_a_stream_of_units_has_the_variance_of_the_batch(first_rows, weights):
    rng = np.random.default_rng(24)
    X, s, unit = in_units(rng)
    X = np.round(X)  # levels, so that the bins are the same
    w = rng.exponential(size=len(s)) if weights else np.ones(len(s))
    stream = StreamingFirm(keep=True, first_rows=first_rows, method="discrete")
    for rows in np.split(np.arange(len(s)), 4):
        stream.partial_fit(X[rows], s[rows], w[rows], groups=unit[rows])
    batch = firm(s, X, sample_weight=w, groups=unit, method="discrete")
    found = stream.result()
    np.testing.assert_allclose(found.variance, batch.variance, rtol=1e-9)
    np.testing.assert_allclose(found.standard_error[0], batch.standard_error[0], rtol=0.4)
    assert found.estimate.wobble[0] == pytest.approx(1 / 24)
    assert found.compare("x0", "x1").pvalue.iloc[0] < 0.01


def test_parts_of_a_stream_of_units_merge():
    X, s, unit = in_units(np.random.default_rng(25))
    whole = stream_of_units(X, s, unit, first_rows=100)
    left, right = (
        stream_of_units(X[rows], s[rows], unit[rows], bins=whole.bins)
        for rows in (unit < 50, unit >= 50)
    )
    together = left.merge(right).result()
    np.testing.assert_allclose(together.variance, whole.result().variance, rtol=1e-9)
    alone = StreamingFirm(keep=True, bins=whole.bins).partial_fit(X, s)
    with pytest.raises(ValueError, match="groups came with some of the rows"):
        left.merge(alone)


def test_a_stream_needs_25_units_and_counts_them_over_chunks():
    X, s, _ = in_units(np.random.default_rng(27))
    stream, ten = StreamingFirm(keep=True, first_rows=2), np.arange(250) % 10
    X, s = np.resize(X, (1000, X.shape[1])), np.resize(s, 1000)
    stream.partial_fit(X[:250], s[:250], groups=ten)
    with pytest.raises(ValueError, match="with groups need at least 25 units in a part, got 10"):
        stream.result()
    for k in (1, 2, 3):
        rows = slice(250 * k, 250 * k + 250)
        stream.partial_fit(X[rows], s[rows], groups=ten + 10 * k)
    assert (stream.result().standard_error > 0).all()


def test_units_of_a_stream_that_cannot_be_told_are_refused():
    import dask.array as da

    X, s, unit = in_units(np.random.default_rng(26))
    stream = StreamingFirm(keep=True).partial_fit(X[:203], s[:203], groups=unit[:203])
    before = stream.result().variance
    with pytest.raises(ValueError, match="groups=40 was in the chunk before, too"):
        stream.partial_fit(X[203:], s[203:], groups=unit[203:])
    np.testing.assert_array_equal(stream.result().variance, before)
    with pytest.raises(ValueError, match="groups came with some of the rows"):
        stream.partial_fit(X[203:], s[203:]).result()
    with pytest.raises(ValueError, match="groups of a stream need keep=True"):
        StreamingFirm().partial_fit(X, s, groups=unit)
    with pytest.raises(ValueError, match="missing='drop'"):
        StreamingFirm(keep=True, missing="drop").partial_fit(X, s, groups=unit)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)|groups has 3"):
        StreamingFirm(keep=True).partial_fit(X, s, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="groups need chunks in memory"):
        StreamingFirm(keep=True).partial_fit(da.from_array(X), s, groups=unit)


@pytest.mark.slow
def test_a_stream_of_units_keeps_the_size_of_the_test_and_covers():
    rng, rejected, covered = np.random.default_rng(27), 0, 0
    for _ in range(200):
        result = stream_of_units(*in_units(rng), first_rows=200).result()
        rejected += result.pvalues[1] < 0.05
        covered += result.ci_low[0] <= 1 <= result.ci_high[0]
    assert rejected <= 20  # of 10 expected
    assert covered >= 180  # of 190 expected


@pytest.mark.slow
def test_differences_of_streams_keep_their_size():
    rng, told = np.random.default_rng(18), 0
    for _ in range(200):
        X, s = correlated(rng)
        told += stream_of(X, s, 2).result().compare("x0", "x1").pvalue.iloc[0] < 0.05
    assert told <= 20  # of 10 expected


def test_ranks_are_columns_and_brackets_when_asked_for():
    X, s = correlated(np.random.default_rng(19))
    result = firm(s, X, confidence_level=0.9)
    table = result.to_frame(ranks=True)
    assert list(table.columns[-3:]) == ["rank", "best", "worst"]
    np.testing.assert_array_equal(table[["rank", "best", "worst"]], result.ranks(0.9))
    assert "rank" not in result.to_frame()
    drawn = result.plot(ranks=True, n=3)
    beside = next(ax for ax in drawn.figure_.axes if ax is not drawn.ax_)
    (bracket,) = beside.collections
    ends = np.array([path[:, 0] for path in bracket.get_segments()])
    np.testing.assert_array_equal(ends, table[["best", "worst"]].head(3))
    heights = [path[0, 1] for path in bracket.get_segments()]
    bars = [bar.get_y() + bar.get_height() / 2 for bar in drawn.ax_.patches]
    np.testing.assert_allclose(heights, bars[::-1])
    assert [label.get_text() for label in drawn.ax_.get_yticklabels()] == list(table.index[2::-1])


@pytest.mark.parametrize("kind", ["sample", "population", "stream", "heavy"])
def test_a_report_is_one_file(tmp_path, kind):
    X, s = correlated(np.random.default_rng(20))
    said = "The data allow each feature"
    if kind == "heavy":
        result, said = firm(np.exp(3 * X[:, 0]), X), "Fewer than ten rows decide"
    elif kind == "stream":
        result, said = StreamingFirm().partial_fit(X, s).result(), "How sure the order is remains"
    elif kind == "population":
        result, said = (
            firm(s[:30], X[:30], rows="population"),
            "The rows are the whole distribution",
        )
    else:
        result = firm(s, X, feature_names=["<a>", "b", "c", "d"])
    path = tmp_path / "out.html"
    path.write_text("older")
    result.report(path)
    page = path.read_text()
    assert said in page
    assert page.count("<img ") == page.count("data:image/png;base64,") == 2
    assert page.count("<tr>") >= len(result)
    assert "<a>" not in page
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]


def test_too_many_features_for_ranks_are_refused_before_memory_is_taken(tmp_path, monkeypatch):
    X = np.random.default_rng(33).normal(size=(30, 100))
    result = firm(X[:, 0], X)
    monkeypatch.setattr("firmlib._checks.MEMORY_LIMIT", 10**5)
    for call in (result.ranks, result.compare, lambda: result.to_frame(ranks=True)):
        with pytest.raises(ValueError, match=r"all pairs of features, of shape \(100, 100, 16\)"):
            call()
    path = tmp_path / "out.html"
    result.report(path)
    assert "How sure the order is remains open: what is compared" in path.read_text()


def test_units_whose_feature_is_constant_are_tested_in_merged_bins():
    """A trend over units stands out as it does in one row per unit, the mean of the unit."""
    rng = np.random.default_rng(21)
    unit = np.repeat(np.arange(100), 4)
    f = rng.normal(size=100)
    mean = 0.3 * f + rng.normal(size=100)
    found = firm(mean[unit], f[unit][:, None], groups=unit)
    np.testing.assert_allclose(found.pvalues, firm(mean, f[:, None]).pvalues, rtol=1e-8)


def test_bins_are_as_many_as_units_allow():
    rng = np.random.default_rng(22)
    unit = np.repeat(np.arange(40), 10)
    X = np.column_stack([rng.normal(size=400), rng.normal(size=40)[unit]])
    result = firm(X[:, 0] + rng.normal(size=400), X, groups=unit)
    free, bound = (len(result.curves[name].t) for name in ("x0", "x1"))
    assert free >= 15  # of sqrt(400)
    assert bound == 6  # sqrt(40)


def test_curves_say_what_importances_do_if_rows_share_units():
    """Bins that share units are not merged for the test, which decides what a line counts."""
    rng = np.random.default_rng(25)
    unit = np.repeat(np.arange(80), 5)
    f = rng.random(400)
    s = np.sin(20 * np.pi * f) + rng.normal(size=80)[unit]
    result = firm(s, f[:, None], groups=unit)
    assert result.estimate.held_back > 1e-4
    np.testing.assert_allclose(result.curves["x0"].variance, result.variance, rtol=1e-9)


def test_few_units_make_intervals_wider():
    """With the degrees of freedom 2 (sum of squares)^2 / sum of fourth powers, as t quantiles."""
    rng = np.random.default_rng(23)
    unit = np.repeat(np.arange(10), 20)
    x = rng.normal(size=200)
    s = x + rng.normal(size=10)[unit]
    estimate = firm(s, x[:, None], groups=unit).estimate
    assert 1 / 20 <= estimate.wobble[0] <= 1 / 2
    low, high = estimate.interval(0.95)
    from dataclasses import replace

    narrow = replace(estimate, wobble=np.zeros(1)).interval(0.95)
    assert low < narrow[0]
    assert high > narrow[1]


def test_pvalues_adjusted_and_simultaneous_intervals():
    X, s = correlated(np.random.default_rng(9))
    result = firm(s, X)
    p = result.pvalues
    np.testing.assert_allclose(
        result.pvalues_adjusted("bh"), stats.false_discovery_control(p), rtol=1e-12
    )
    holm, worst = np.empty(4), 0.0
    for rank, j in enumerate(np.argsort(p)):
        worst = max(worst, (4 - rank) * p[j])
        holm[j] = min(worst, 1)
    np.testing.assert_allclose(result.pvalues_adjusted(), holm, rtol=1e-12)
    single, all_of_them = result.intervals(), result.intervals(simultaneous=True)
    np.testing.assert_allclose(single["ci_high"], np.abs(result.ci_high), rtol=1e-12)
    np.testing.assert_allclose(
        all_of_them["ci_high"], result.intervals(1 - 0.05 / 4)["ci_high"], rtol=1e-12
    )


def test_where_the_test_does_not_reject_the_interval_holds_0():
    rng = np.random.default_rng(10)
    result = firm(rng.normal(size=200), rng.normal(size=(200, 40)))
    kept = result.pvalues > 0.05
    assert kept.sum() > 30
    assert not np.minimum(np.abs(result.ci_low), np.abs(result.ci_high))[kept].any()


def test_standardized_errors_know_that_the_spread_is_estimated():
    rng, found, errors = np.random.default_rng(11), [], []
    for _ in range(200):
        X = rng.normal(size=(500, 1))
        result = firm(X[:, 0] + rng.normal(size=500), X, standardize=True)
        found.append(result.importances[0])
        errors.append(result.standard_error[0])
    np.testing.assert_allclose(np.mean(errors), np.std(found), rtol=0.2)


@pytest.mark.parametrize(("options", "least"), [({}, 0.7), ({"standardize": True}, 0.5)])
def test_heavy_tails_are_noted_and_harmless_lines_are_not(options, least):
    rng, found = np.random.default_rng(12), []
    for _ in range(60):
        X, noise = rng.normal(size=(100, 2)), rng.normal(size=100)
        wild, tame = np.exp(2 * X[:, 0]) + noise, X[:, 0] + noise
        few = firm(tame[:30], X[:30], **options)
        results = firm(wild, X, **options), firm(tame, X, **options), few
        found.append([result.heavy_tails[0] for result in results])
    wild, tame, few = np.mean(found, axis=0)
    assert wild > least
    assert tame < 0.05
    assert few < 0.2


@pytest.mark.parametrize("rows", ["sample", "population"])
def test_a_result_survives_as_json(rows):
    import pandas as pd

    rng = np.random.default_rng(14)
    frame = pd.DataFrame({"x": rng.normal(size=300), "colour": rng.choice(["a", "b"], 300)})
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9, 300), "D")
    frame.loc[:9, ["x", "day"]] = np.nan
    before = firm(rng.normal(size=300), frame, rows=rows)
    after = firmlib.FirmResult.from_json(before.to_json())
    pd.testing.assert_frame_equal(after.to_frame(), before.to_frame())
    pd.testing.assert_frame_equal(after.intervals(0.8), before.intervals(0.8))
    assert (after.n, after.rows, after.weight_type) == (300, rows, "count")
    for name in frame:
        np.testing.assert_array_equal(after.curves[name].t, before.curves[name].t)
        np.testing.assert_array_equal(after.curves[name].q, before.curves[name].q)
    with pytest.raises(ValueError, match=r"text must be what FirmResult\.to_json wrote"):
        firmlib.FirmResult.from_json("{}")


def test_targets_and_levels_survive_as_json():
    import pandas as pd

    days = pd.date_range("2026-01-01T03:04:05.000006", periods=2, tz="Europe/Berlin")
    frame = pd.DataFrame({"day": days.tolist() * 50, "width": np.arange(100) % 4 / 4})
    frame["day"] = frame["day"].astype("category")
    frame["width"] = pd.cut(frame["width"], 2)
    frame["moment"] = np.arange(100)
    labels = np.column_stack([np.arange(100) % 2, np.arange(100) // 50])
    model = DecisionTreeClassifier().fit(labels, labels)
    before = firm(lambda X: X["moment"], frame)
    after = firmlib.FirmResult.from_json(before.to_json())
    assert after.curves["day"].t.tolist() == before.curves["day"].t.tolist()
    assert after.curves["width"].t.tolist() == [str(t) for t in before.curves["width"].t]
    assert after.curves["moment"].t.tolist() == before.curves["moment"].t.tolist()
    for target in [(0, 1), None]:
        score = model if target else labels[:, 0]
        text = firm(score, labels, target=target).to_json()
        assert firmlib.FirmResult.from_json(text).target == target


def test_what_is_no_result_and_no_path_is_refused():
    X, s = correlated(np.random.default_rng(8))
    result = firm(s, X)
    with pytest.raises(ValueError, match=r"^other=ndarray must be a FirmResult"):
        firmlib.compare(result, s)
    with pytest.raises(ValueError, match=r"^result=FirmByClass must be a FirmResult"):
        firmlib.compare(firmlib.firm_by_class(s > 0, X), result)
    with pytest.raises(ValueError, match=r"^path=5 must be that of a file"):
        result.report(5)


def length(X):
    return np.linalg.norm(X, axis=1)


KEPT = {
    "columns": None,
    "names and ready values": {"a": 0, "ab": [0, 1], "values": np.arange(300) % 7},
    "a table": np.random.default_rng(0).normal(size=(300, 2)),
    "a function": [length, features.coordinate(3), features.product(0, 1)],
    "built": [features.threshold(0, 1), features.literal(2, None), features.linear([1, 2, 3, 4])],
    "pairs": features.Pairs("xor"),
    "a stream": None,
}


@pytest.mark.parametrize("copied", [deepcopy, lambda result: loads(dumps(result))])
@pytest.mark.parametrize("kind", KEPT)
def test_a_result_is_pickled_with_all_that_it_keeps(kind, copied):
    X, s = correlated(np.random.default_rng(32))
    before = stream_of(X, s).result() if kind == "a stream" else firm(s, X, KEPT[kind])
    after = copied(before)
    assert after.to_frame().equals(before.to_frame())
    assert after.compare().equals(before.compare())
    name = before.feature_names[0]
    assert after.curves[name].to_frame().equals(before.curves[name].to_frame())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_type": "survey"}, "^weight_type='survey' is unknown"),
        ({"groups": [1, 2]}, r"^groups has shape \(2,\), expected \(300,\)"),
        ({"groups": np.zeros(300)}, "has one label; expected at least 2 units"),
        ({"groups": np.zeros((300, 2))}, r"^groups has shape \(300, 2\)"),
    ],
)
def test_bad_arguments(options, message):
    X, s = correlated(np.random.default_rng(13))
    with pytest.raises(ValueError, match=message):
        firm(s, X, **options)


def test_the_order_of_rows_does_not_matter_to_units_either():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 10)
    X = np.maximum(rng.normal(size=(600, 2)) - 0.8, 0)  # most are tied, at 0
    s = X[:, 0] + rng.normal(size=600)
    order = rng.permutation(600)
    one = firm(s, X, groups=groups)
    other = firm(s[order], X[order], groups=groups[order])
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-9)
    np.testing.assert_allclose(one.standard_error, other.standard_error, rtol=1e-9)
