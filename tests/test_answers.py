"""Answers that were once wrong without a word, and what users expect."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import firmlib
from firmlib import StreamingFirm, firm

few_rows = pytest.mark.filterwarnings("ignore:.*rows:UserWarning")  # of ways that learn

rng = np.random.default_rng(7)
X = rng.normal(size=(500, 3))
S = X @ [1.0, -0.5, 0.0] + rng.normal(size=500)
NAMED = pd.DataFrame(X, columns=["a", "b", "c"])


# Comparisons


def two_scores(rng, n=300):
    X, e = rng.normal(size=(n, 2)), rng.normal(size=n)
    other = 1.2 * X[:, 0] + 0.6 * X[:, 1] + 0.8 * e + 0.3 * rng.normal(size=n)
    return X, X[:, 0] + 0.6 * X[:, 1] + e, other


def test_two_models_with_equal_importances_are_rarely_told_apart():
    rejected = []
    for k in range(200):
        X, one, two = two_scores(np.random.default_rng([5, k]))
        rejected.append(firmlib.compare(firm(one, X), firm(two, X))["pvalue"] < 0.05)
    power, size = np.mean(rejected, axis=0)
    assert size <= 0.08
    assert power >= 0.5


@pytest.mark.parametrize("form", ["copy", "view", "list", "frame"])
def test_the_same_rows_are_paired_whatever_holds_them(form):
    table, one, two = two_scores(np.random.default_rng(0))
    forms = {
        "copy": table.copy(),
        "view": np.repeat(table, 2, axis=0)[::2],
        "list": table.tolist(),
        "frame": pd.DataFrame(table, columns=["x0", "x1"]),
    }
    expected = firmlib.compare(firm(one, table), firm(two, table), paired=True)
    found = firmlib.compare(firm(one, table), firm(two, forms[form]))
    pd.testing.assert_frame_equal(found, expected)
    apart = firmlib.compare(firm(one, table), firm(two, table), paired=False)
    assert (apart["pvalue"] > 2 * expected["pvalue"]).any()


def test_other_rows_are_not_paired():
    table, one, two = two_scores(np.random.default_rng(0))
    other = table[::-1].copy()
    found = firmlib.compare(firm(one, table), firm(two[::-1], other))
    apart = firmlib.compare(firm(one, table), firm(two[::-1], other), paired=False)
    pd.testing.assert_frame_equal(found, apart)


def test_a_result_is_equal_to_itself():
    result = firm(S, X)
    for table in (firmlib.compare(result, result), firmlib.compare(result, firm(S, X.copy()))):
        assert (table[["difference", "standard_error", "ci_low", "ci_high"]] == 0).all(axis=None)
        assert (table["pvalue"] == 1).all()


# Joint features


@pytest.mark.slow
def test_a_proxy_of_a_wiggly_column_adds_nothing_to_it():
    for seed in range(5):
        local = np.random.default_rng(seed)
        a, b = local.normal(size=(2, 2000))
        table = np.column_stack([a, b, np.sin(3 * a) + 0.3 * local.normal(size=2000)])
        result = firm(np.sin(3 * a) + b, table, [2], given=[0, 1])
        assert result.pvalues[0] > 0.001


# Missing and large values


@pytest.mark.parametrize("missing", ["level", "drop"])
@pytest.mark.parametrize("method", ["auto", "slope"])
def test_a_large_offset_keeps_the_sign(missing, method):
    if (missing, method) == ("level", "slope"):
        pytest.skip("a slope has no level for missing values")
    f = np.round(4 * X[:, 0]) / 4
    for offset in (0.0, -1e14, 1e14):
        g = np.where(np.arange(500) % 4 == 0, np.nan, f + offset)
        result = firm(S, np.column_stack([g, -f]), missing=missing, method=method)
        np.testing.assert_array_equal(result.direction, [1, -1])
        assert result.signed[0] > 0.5


# Importances, tests and intervals say the same


def test_importances_tests_and_intervals_agree():
    for seed in range(150):
        local = np.random.default_rng(seed)
        n = int(local.integers(20, 300))
        table = np.column_stack([local.normal(size=(n, 4)), local.integers(0, 3, n)])
        result = firm(0.15 * table[:, 0] + local.normal(size=n), table)
        Q, low, high, p = (
            getattr(result, a) for a in ("importances", "ci_low", "ci_high", "pvalues")
        )
        assert (Q >= 0).all()
        assert ((Q > 0) | (p > 0.05)).all(), (seed, Q, p)
        assert ((low == 0) | (p <= 0.05)).all(), (seed, low, p)
        assert ((low <= Q) & (high > Q)).all(), (seed, low, Q, high)
        assert ((low < Q) | (low == 0)).all(), (seed, low, Q)
        assert ((p >= 0) & (p <= 1)).all()


# What users expect


@few_rows
@pytest.mark.parametrize("given", [None, ["b"]], ids=str)
def test_one_column_never_stops_the_call(given):
    frame = pd.DataFrame(
        {"id": [f"row {i}" for i in range(500)], "flat": 1.0, "a": X[:, 0], "b": X[:, 1]}
    ).assign(none=np.nan)
    if given:
        frame["twin"] = frame["b"]
    asked = [name for name in frame.columns if name != "b"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = firm(S, frame, asked, given=given)
    caught = [w for w in caught if "rows are few" not in str(w.message)]
    assert len(caught) == 1
    for name in ("id", "flat", "none", *(["twin"] if given else [])):
        assert not result.importances[result.feature_names.index(name)] > 0
        assert name in str(caught[0].message)
    a = result.feature_names.index("a")
    alone = firm(S, frame, ["a"], given=given)
    np.testing.assert_allclose(result.importances[a], alone.importances[0], rtol=1e-9)


@few_rows
def test_heavy_tails_and_what_is_given_are_shown():
    local = np.random.default_rng(0)
    heavy = firm(np.exp(3 * X[:, 0]) + local.standard_cauchy(500), NAMED)
    assert np.any(heavy.heavy_tails)
    assert "heavy" in repr(heavy)
    given = firm(S, NAMED, ["a"], given=["b"])
    assert "given" in repr(given)
    assert "b" in repr(given)


@few_rows
@pytest.mark.parametrize("way", ["firm", "stream", "given", "group"])
def test_results_pickle(way):
    result = {
        "firm": lambda: firm(S, NAMED),
        "stream": lambda: StreamingFirm().partial_fit(NAMED, S).result(),
        "given": lambda: firm(S, NAMED, ["a"], given=["b"]),
        "group": lambda: firm(S, NAMED, {"both": ["a", "b"], "c": "c"}),
    }[way]()
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == repr(result)
    pd.testing.assert_frame_equal(again.to_frame(), result.to_frame(), check_exact=True)
    if len(result) > 1:
        pd.testing.assert_frame_equal(again.compare(), result.compare())


def test_clusters_that_lie_far_apart_keep_their_bins():
    z = np.random.default_rng(0).normal(size=100_000)
    X = np.column_stack([z, np.where(z > 0, 1e6 + z, z)])
    np.testing.assert_allclose(firm(z, X).importances, z.std(), rtol=0.001)


def test_a_column_that_is_missing_at_first_keeps_its_digits():
    rng = np.random.default_rng(0)
    f = np.where(np.arange(2000) < 1000, np.nan, rng.normal(size=2000))
    s = np.nan_to_num(f, nan=1e13) + rng.normal(size=2000)
    bins = StreamingFirm().partial_fit(f[1000:, None], s[1000:]).bins
    whole = StreamingFirm(bins=bins, missing="drop")
    parts = [StreamingFirm(bins=bins, missing="drop") for _ in range(4)]
    for k, part in enumerate(parts):
        here = slice(500 * k, 500 * (k + 1))
        whole.partial_fit(f[here, None], s[here])
        part.partial_fit(f[here, None], s[here])
    for part in parts[1:]:
        parts[0].merge(part)
    expected = firm(s[1000:], f[1000:, None]).variance
    for stream in (whole, parts[0]):
        np.testing.assert_allclose(stream.result().variance, expected, rtol=1e-6)
