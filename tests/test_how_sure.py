"""Weights of sampling, rows that belong together, differences and ranks, many features."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import firmlib
from firmlib import StreamingFirm, firm


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
@given(scale=st.sampled_from([0.3, 1e-6, 1e9]), seed=st.integers(0, 99))
def test_the_scale_of_weights_of_sampling_does_not_matter(scale, seed):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 2)), rng.exponential(size=60)
    s = X[:, 0] + rng.normal(size=60)
    one, other = (firm(s, X, sample_weight=v, weight_type="sampling") for v in (w, scale * w))
    for name in ("variance", "standard_error", "pvalues", "ci_high"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8, atol=1e-12)


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


def test_the_error_of_a_difference_is_its_spread_over_samples():
    rng, found, errors = np.random.default_rng(6), [], []
    for _ in range(200):
        X, s = correlated(rng)
        row = firm(s, X).compare("x0", "x2").iloc[0]
        found.append(row["difference"])
        errors.append(row["standard_error"])
    np.testing.assert_allclose(np.mean(errors), np.std(found), rtol=0.15)


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
    group = firm(s, X, {"a": 0, "g": [1, 2]})
    with pytest.raises(ValueError, match="feature 'g' cannot be compared"):
        group.compare("a", "g")


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


def test_heavy_tails_are_noted():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(1000, 2))
    result = firm(np.exp(3 * X[:, 0]) + X[:, 1], X)
    assert result.heavy_tails[0]
    assert not firm(X[:, 0], X).heavy_tails.any()


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
