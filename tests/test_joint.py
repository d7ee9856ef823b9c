"""Several columns: against closed forms for normal inputs, enumeration and groupby."""

import pickle
import re
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import firmlib
from firmlib import firm
from firmlib.features import Pairs, conjunction, xor

INTERACTION = Pairs("interaction")


def normal(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_given_normal_columns_is_the_partial_effect():
    a, u, noise = normal(3000, 3).T
    X = pd.DataFrame({"a": a, "f": 0.8 * a + 0.6 * u})
    result = firm(a + X["f"] + 0.5 * noise, X, given="a")
    assert abs(result.importances[0] - 0.6) < 4 * result.standard_error[0]
    assert result.pvalues[0] < 1e-10


def test_given_levels_is_what_groupby_says():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"g": rng.choice(list("abc"), 4000), "f": rng.choice(list("xyz"), 4000)})
    s = (X["g"] == "a") * 1.0 + (X["f"] == "x") * (X["g"] == "b") + 0.1 * rng.normal(size=4000)
    result = firm(s.to_numpy(), X, given="g")
    both, one = (s.groupby([X[c] for c in k]).transform("mean") for k in (["g", "f"], ["g"]))
    assert_allclose(result.importances, [np.sqrt(((both - one) ** 2).mean())], rtol=0.01)
    with pytest.warns(match="importance 0 for .'f'.: .*linear in the given columns"):
        assert firm(s.to_numpy(), X.assign(f=X["g"]), ["f"], given="g").importances == [0]


def test_group_of_columns_is_the_sd_of_the_joint_expectation():
    X = normal(3000, 3)
    result = firm(X[:, 0] * X[:, 1] + X[:, 2], X, {"pair": [0, 1], "last": [2], "first": [0]})
    assert_allclose(result.importances, [1, 1, 0], atol=0.2)
    assert result.compare("pair", "first")["pvalue"].iloc[0] < 1e-6
    assert result.pvalues[0] < 1e-6


def test_duplicates_and_constants_add_nothing_and_are_named():
    X = pd.DataFrame(normal(300, 2), columns=["a", "b"]).assign(
        twin=lambda X: 3 - 2 * X["a"], one=1
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = firm(X["a"] + X["b"], X, given="a")
    assert_allclose(result.importances[1:], 0)
    assert ["importance 0 for ['twin', 'one']" in str(w.message) for w in said].count(True) == 1
    assert any("300 rows are few" in str(w.message) for w in said)


def test_learning_is_noted_beside_single_columns():
    X = normal(1000, 3)
    assert not firm(X.sum(axis=1), X, {"all": [0, 1, 2]}).notes
    result = firm(X.prod(axis=1), X, {"first": 0, "all": [0, 1, 2], "last": 2})
    assert len(result.notes) == 1
    assert "V would still grow for all (by" in result.notes[0]


@pytest.mark.parametrize("rows", ["sample", "population"])
def test_dropped_rows_of_levels_are_rows_left_out(rows):
    rng = np.random.default_rng(8)
    X = rng.integers(0, 3, size=(900, 3)).astype(float)
    s, w = X @ [1, 2, 1] + X[:, 0] * X[:, 1] + rng.normal(size=900), rng.exponential(size=900)
    X[rng.random(900) < 0.2, 0] = np.nan
    there = ~np.isnan(X[:, 0])
    given, pair = {"features": [0], "given": [1]}, {"features": Pairs("interaction", [0, 1])}
    for asked in ({"features": {"both": [0, 1]}}, given, pair):
        whole = firm(s, X, sample_weight=3 * w, missing="drop", rows=rows, **asked)
        part = firm(s[there], X[there], sample_weight=w[there], rows=rows, **asked)
        assert_allclose(whole.variance, part.variance)
        with pytest.raises(ValueError, match=r"feature .*missing"):
            firm(s, X, missing="raise", **asked)


@pytest.mark.parametrize("option", [{"method": "slope"}, {"n_bins": 3}], ids=str)
def test_options_for_single_columns_are_refused_or_count(option):
    X = normal(300, 3)
    for asked in ({"features": {"g": [0, 1]}}, {"given": 1}, {"features": INTERACTION}):
        with pytest.raises(ValueError, match="is for single columns"):
            firm(X[:, 0], X, **asked, **option)
    bits = X > 0
    xor = firm(X[:, 0], bits, Pairs("xor"), feature_names=list("abc"), **option)
    by_hand = {"b": bits[:, 0] ^ bits[:, 2]}
    assert_allclose(xor["b"]["importance"], firm(X[:, 0], bits, by_hand, **option).importances[0])


def test_additive_score_has_no_interactions_whatever_the_correlations():
    a, b, c, u, noise = normal(2000, 5).T
    X = pd.DataFrame({"a": a, "b": b, "c": c, "d": a * b + u})
    result = firm(X["d"] + c, X, INTERACTION)
    assert_allclose(result.importances, 0, atol=1e-6)
    assert result.unexplained.share == 0
    result = firm(X["d"] + np.exp(c) + 0.2 * noise, X, INTERACTION)
    assert (result.pvalues_adjusted() > 0.05).all()


def test_a_column_that_follows_from_another_does_not_interact_with_it():
    few_p = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a, few = rng.normal(size=700), rng.integers(0, 4, 700)
        word = np.where(a > 0, "up", "down")
        result = firm(a * few, pd.DataFrame({"a": a, "few": few, "word": word}), INTERACTION)
        few_p.append(result["a × word"]["pvalue"])
        assert result["a × few"]["pvalue"] < 1e-6
    assert np.mean(np.array(few_p) < 0.05) <= 0.1


def test_interaction_of_a_product():
    a, b, c = normal(20_000, 3).T
    result = firm(a * b + c, np.column_stack([a, b, c]), INTERACTION)
    assert result.feature_names == ("x0 × x1", "x0 × x2", "x1 × x2")
    assert_allclose(result.importances, [1, 0, 0], atol=0.06)
    assert abs(result.unexplained.share - 0.5) < 4 * result.unexplained.error
    assert "of the score's variance is in no sum of single columns" in repr(result)
    assert repr(firmlib.Unexplained(0.431, 0.012)).startswith("43 % ± 1 of the score's variance")


def test_error_of_an_interaction_is_its_spread_over_samples_of_units():
    Q, error = [], []
    for seed in range(30):
        a, b, noise = normal(400, 3, seed).T
        twice = np.repeat(np.arange(400), 2)  # each row is in the table two times
        result = firm((a * b + noise)[twice], np.c_[a, b][twice], INTERACTION, groups=twice)
        Q.append(result.importances[0])
        error.append(result.standard_error[0])
    assert_allclose(np.mean(error), np.std(Q), rtol=0.2)


def test_interaction_without_noise_is_certain():
    X = np.random.default_rng(0).integers(0, 2, size=(200, 2))
    assert firm(X[:, 0] ^ X[:, 1], X, INTERACTION).pvalues == [0]


def test_weak_interaction_is_found_in_few_rows():
    found = []
    for seed in range(10):
        a, b, c, d = X = normal(300, 4, seed).T
        found.append(firm(0.2 * a * b + a + c + d, X.T, INTERACTION).pvalues[0] < 0.05)
    assert np.mean(found) > 0.9


def test_interactions_of_levels_are_those_of_analysis_of_variance():
    X = np.array([(a, b) for a in range(3) for b in range(4)])
    s = np.random.default_rng(3).normal(size=12)
    table = s.reshape(3, 4)
    rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    result = firm(s, X, INTERACTION, rows="population")
    assert_allclose(result.importances, [rest.std()], rtol=1e-6)
    assert_allclose(result.unexplained.share, rest.var() / s.var(), rtol=1e-6)


def test_missing_and_nominal_columns_interact():
    rng = np.random.default_rng(4)
    x, level = rng.normal(size=3000), rng.choice(list("abc"), 3000)
    X = pd.DataFrame({"x": np.where(rng.random(3000) < 0.2, np.nan, x), "level": level})
    s = X["x"].isna() * (level == "a") + (level == "b") * 1.0
    result = firm(s.to_numpy(), X, INTERACTION)
    assert_allclose(result.importances[0], np.sqrt(0.16 * 2 / 9), atol=0.012)  # 4 errors


W = np.random.default_rng(6).exponential(size=500)


@pytest.mark.parametrize("kind", ["xor", "conjunction"])
def test_binary_pairs_are_missing_where_a_column_is(kind):
    rng = np.random.default_rng(9)
    X = rng.integers(0, 2, size=(400, 2)).astype(float)
    s = X @ [1, 2] + X[:, 0] * X[:, 1] + rng.normal(size=400)
    X[::7, 0] = X[::5, 1] = np.nan
    there = ~np.isnan(X).any(axis=1)
    dropped = firm(s, X, Pairs(kind), missing="drop")
    assert_allclose(dropped.variance, firm(s[there], X[there], Pairs(kind)).variance)
    assert_allclose(dropped.missing, 1 - there.mean())
    with pytest.raises(ValueError, match=r"^feature 'x0.*' must not be missing, got \d+ missing"):
        firm(s, X, Pairs(kind), missing="raise")


@pytest.mark.parametrize("kind", ["xor", "conjunction"])
@pytest.mark.parametrize(
    "known", [{"sample_weight": W}, {"groups": np.arange(500) // 2}, {"rows": "population"}]
)
def test_binary_pairs_are_features_one_by_one(kind, known):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(500, 4)).astype(float)
    s = X[:, 0] * X[:, 1] + rng.normal(size=500)
    names = combinations(range(4), 2)
    one_by_one = [xor(j, k) for j, k in names] if kind == "xor" else [
        conjunction({j: a, k: b}) for j, k in names for a in (0, 1) for b in (0, 1)
    ]  # fmt: skip
    all_at_once, single = firm(s, X, Pairs(kind), **known), firm(s, X, one_by_one, **known)
    assert all_at_once.feature_names == single.feature_names
    for number in ("variance", "standard_error", "pvalues", "signed"):
        assert_allclose(getattr(all_at_once, number), getattr(single, number))
    assert list(all_at_once.curves) == list(single.curves)


def test_interactions_of_two_samples_are_not_paired():
    X, Z, model = normal(500, 3), -normal(500, 3)[::-1], lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    one, other = (firm(model, table, INTERACTION) for table in (X, Z))
    for a, b, paired in ((one, other, False), (one, firm(model(X) + 1, X, INTERACTION), True)):
        asked, found = (firmlib.compare(a, b, paired=p).to_numpy() for p in (paired, "auto"))
        assert_allclose(asked, found)


def test_unexplained_ignores_the_scale_of_weights_and_rows_without_weight():
    X, w = normal(1000, 3), np.random.default_rng(6).exponential(size=1000)
    w[::5] = 0
    s = X[:, 0] * X[:, 1] + X[:, 2]
    found = firmlib.unexplained(s, X, sample_weight=w)
    again = firmlib.unexplained(s[w > 0], X[w > 0], sample_weight=7 * w[w > 0])
    assert_allclose(found.share, again.share)
    assert 0.3 < found.share < 0.7
    assert pickle.loads(pickle.dumps(found)) == found


def test_search_finds_the_rule_and_different_rules():
    X = normal(4000, 5)
    s = X[:, 0] + 0.5 * (X[:, 1] > 0) * (X[:, 2] > 0)
    result = firmlib.search(s, X, n=10)
    assert result.feature_names[0].startswith("x0 > ")
    assert sum("x0" in name for name in result.feature_names) <= 2
    assert any("x1 > " in name and "x2 > " in name for name in result.feature_names)
    assert (result.covered > 0).all()
    assert list(result.to_frame().columns[1:3]) == ["searched", "covered"]


def test_rules_found_in_noise_matter_less_in_other_rows():
    result = firmlib.search(normal(2000, 1)[:, 0], normal(2000, 20, 1), n=5)
    assert (result.importances < 0.8 * result.searched).all()
    assert (result.pvalues_adjusted() > 0.05).all()


def test_search_is_exact():
    X = np.random.default_rng(7).integers(0, 2, size=(400, 5))
    s = X @ [3, 2, 1, 0, 0] + 4 * X[:, 0] * X[:, 3]
    result = firmlib.search(s, X, n=1, order=2)
    half = np.random.default_rng(0).permutation(400) < 200
    r, best = s[half] - s[half].mean(), 0.0
    for order in (1, 2):
        for j in combinations(range(5), order):
            for values in np.ndindex(*[2] * order):
                A = (X[half][:, j] == values).all(axis=1)
                if 20 <= A.sum() <= 180:
                    p = A.mean()
                    best = max(best, abs(r[A].sum()) / 200 / np.sqrt(p * (1 - p)))
    assert_allclose(result.searched[0], best)


@pytest.mark.parametrize("sign", [1, -1])
def test_search_tells_the_largest_level_from_the_rest(sign):
    x = np.minimum(normal(2000, 1)[:, 0] + 1.7, 0)  # 0 in 96 % of the rows
    result = firmlib.search(1.0 * (x == 0), sign * x[:, None], n=1)
    assert_allclose(result.searched, np.std(x == 0), rtol=0.1)
    assert_allclose(result.covered * (1 - result.covered), np.var(x == 0))


def test_rules_are_written_without_zeros_that_say_nothing():
    rng = np.random.default_rng(2)
    days = pd.to_timedelta(rng.integers(0, 90, 900), unit="D")
    X = pd.DataFrame({"day": pd.Timestamp("2024-01-01") + days, "wait": days[::-1]})
    X = X.assign(count=rng.integers(0, 9, 900), version=rng.choice(["1.0", "2.0", "3.0"], 900))
    s = 1.0 * (X["day"] > "2024-02-01") + (X["count"] > 4) + (X["version"] == "2.0")
    found = firmlib.search(s + (X["wait"] > "40 D"), X, n=20, order=1).feature_names
    assert {"count > 4", "version = 2.0"} <= set(found)
    for start, kind in (("day > ", r"2024-0\d-\d\d"), ("wait > ", r"\d+ days")):
        [rule] = [name for name in found if name.startswith(start)]
        assert re.fullmatch(start + kind, rule)


def test_stability_matches_rows_and_is_never_negative():
    X = pd.DataFrame(normal(200, 2), columns=["a", "b"])
    y = -X["a"] + 0.1 * normal(200, 1, 1)[:, 0]
    found = firmlib.stability(LinearRegression(), X, y, standardize=True)
    assert (found["importance"] >= 0).all()
    assert found.index[0] == "a"
    assert_allclose(found.loc["a", "importance"], 1, atol=0.05)
    with pytest.raises(ValueError, match="y has the index"):
        firmlib.stability(LinearRegression(), X, y.iloc[::-1])
    found = firmlib.stability(LogisticRegression(), X, y > 0, cv=3, groups=np.arange(200) // 2)
    assert found.index[0] == "a"


@pytest.mark.filterwarnings("ignore:.*rows are few")
def test_few_units_rarely_reject_what_adds_nothing():
    pvalues = []
    for seed in range(20):
        rng = np.random.default_rng([4, seed])
        unit = np.repeat(np.arange(4), 25)  # rows of a unit share most of all three columns
        e = rng.normal(size=(3, 4))[:, unit] + rng.normal(size=(3, 100)) / 2
        g, f, s = e[0], e[0] + e[1], e[0] + e[2]
        pvalues += [*firm(s, np.c_[f, g], [0], given=1, groups=unit).pvalues]
    assert (np.array(pvalues) < 0.01).sum() <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: firm(X[:9, 0], normal(9, 300), INTERACTION), "are 44850 pairs; expected at"),
        (lambda X: firmlib.search(X[:, 0], normal(1000, 80), order=3), "rules of 3 conditions on"),
        (
            lambda X: firmlib.search(X[:, 0] * 0, X),
            "^no rule of up to 2 conditions .* a score and columns that vary",
        ),
        (lambda X: firmlib.search(X[:30, 0], X[:30]), "^no rule of up to 2 .* or more rows"),
        (lambda X: firm(X[:50, 0], X[:50], given=1), "50 rows; expected at least 100"),
        (
            lambda X: firmlib.unexplained(X[:30, 0], X[:30]),
            "^30 rows are too few for curves of 12 columns with 25 values; expected more rows, or",
        ),
        (
            lambda X: firmlib.search(X[:, 0], X, groups=np.arange(1000) % 3),
            "^groups has 3 units; expected at least 4, for two halves",
        ),
        (
            lambda X: firmlib.search(X[:, 0], pd.DataFrame(X[:, :2], columns=["a", "a"])),
            "^feature names must differ, got 'a' 2 times",
        ),
        (lambda X: firmlib.stability(lambda X: X, X, X[:, 0]), "must be a scikit-learn estimator"),
        (
            lambda X: firmlib.stability(LinearRegression(), X, X[:9, 0]),
            r"y has shape \(9,\), expected",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(1000, 12)))
