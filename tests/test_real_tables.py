"""Tables as people have them, against groupby: categories, missing values, dates, native models."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from test_tables import DAY, FRAMES, LEVELS, MISSING, PANDAS, SIZE, WORDS, N

from firmlib import conditional_expected_score, firm
from firmlib.features import conjunction, coordinate, literal, threshold

rng = np.random.default_rng(0)
S = rng.normal(size=N) + (WORDS == "Gentoo") * 2.0 - SIZE + MISSING
SIZES = np.where(MISSING, np.nan, SIZE)


def by_hand(s, level):
    """The means, sizes and U-statistic of the levels, missing ones last, by groupby."""
    groups = pd.DataFrame({"s": s, "level": level}).groupby("level", dropna=False)["s"]
    table = groups.agg(["mean", "size", "var"])
    p = table["size"] / len(s)
    plain = (p * (table["mean"] - s.mean()) ** 2).sum()
    variance = plain - (table["var"].sum() - s.var(ddof=1)) / len(s)
    return table["mean"].to_numpy(), table["size"].to_numpy(), variance


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_says_what_groupby_says(kind):
    seen = []

    def score(X):
        seen.append(X)
        return S

    result = firm(score, FRAMES[kind])
    assert seen[0] is FRAMES[kind] or kind == "list of rows"  # the model gets X as it is
    assert result.kinds == ("nominal", "number", "date")
    np.testing.assert_allclose(result.missing, MISSING.mean())
    known = [pd.Series(WORDS), pd.Series(SIZES), pd.Series(np.where(MISSING, pd.NaT, DAY))]
    levels = [LEVELS, list(range(5)), sorted(set(DAY[~MISSING]))]
    for j, curve in enumerate(result.curves.values()):
        q, n, variance = by_hand(S, known[j])
        np.testing.assert_allclose(curve.q, q, rtol=1e-9)
        np.testing.assert_allclose(curve.n, n)
        np.testing.assert_allclose(result.variance[j], variance, rtol=1e-9)
        assert pd.isna(curve.t[-1])
        assert list(pd.Series(curve.t[:-1])) == levels[j]
    np.testing.assert_array_equal(result.direction[:2], [np.nan, -1])


@pytest.mark.parametrize("kind", ["pandas", "pandas category", "polars", "pyarrow dictionary"])
def test_features_of_categories_and_dates(kind):
    frame = FRAMES[kind]
    adelie = (WORDS == "Adelie").astype(float)
    both = conjunction({"species": "Adelie", "size": 3})
    late = threshold("day", "2009-09-10")
    after = np.where(MISSING, np.nan, DAY > "2009-09-10")
    asked = [literal("species", "Adelie"), literal("species", None), both, late]
    result = firm(S, frame, asked, rows="population")
    assert result.feature_names[2] == "species=Adelie ∧ size=3"
    for values, name in zip((adelie, MISSING, adelie * (SIZES == 3), after), result, strict=True):
        means = pd.Series(S).groupby(values, dropna=False).mean()
        np.testing.assert_allclose(result.curves[name].q, means)
    np.testing.assert_array_equal(conditional_expected_score(S, frame, late).t, [0, 1, np.nan])
    words = firm(S, frame, {"first": coordinate("species"), "word": lambda X: X["species"]})
    assert words.kinds == ("nominal", "nominal")
    np.testing.assert_allclose(*words.variance)


def test_missing_of_binned_numbers_is_a_bin_apart():
    f, gone = rng.normal(size=5000), rng.random(5000) < 0.3
    s = f + rng.normal(size=5000) + 3 * gone
    result = firm(s, np.where(gone, np.nan, f)[:, None])
    curve = result.curves["x0"]
    assert np.isnan(curve.t[-1])
    assert curve.n[-1] == gone.sum()
    np.testing.assert_allclose(curve.q[-1], s[gone].mean())
    assert curve.p @ curve.q == pytest.approx(s.mean())
    truth = np.where(gone, f + 3, f)
    truth[gone] = s[gone].mean()
    assert abs(result.importances[0] - truth.std()) < 3 * result.standard_error[0]
    assert result.direction[0] == 1


def test_lone_rows_borrow_the_pooled_variance():
    """By hand: the lone row gets the pooled variance of levels with pairs."""
    s, f = np.array([1.0, 3.0, 2.0, 5.0, 8.0, 20.0]), np.array([0, 0, 1, 1, 1, 2])
    v0, v1 = s[:2].var(ddof=1), s[2:5].var(ddof=1)
    between = sum(np.mean(f == t) * (s[f == t].mean() - s.mean()) ** 2 for t in (0, 1, 2))
    expected = between - (v0 + v1 + (v0 + 2 * v1) / 3 - s.var(ddof=1)) / 6
    np.testing.assert_allclose(firm(s, f[:, None], categorical=[0]).variance, expected)


def test_ordered_categories_have_a_direction_and_named_numbers_have_none():
    size = pd.Categorical.from_codes(SIZE, ["S", "M", "L", "X", "XL"], ordered=True)
    frame = pd.DataFrame({"size": size, "code": SIZE, "flag": SIZE > 2})
    result = firm(S, frame, categorical=["code"])
    assert result.kinds == ("ordered", "nominal", "ordered")
    np.testing.assert_array_equal(result.direction, [-1, np.nan, -1])
    np.testing.assert_allclose(result.variance[1], result.variance[0])
    assert result.curves["code"].t.tolist() == [0, 1, 2, 3, 4]
    assert result.curves["size"].t.tolist() == ["S", "M", "L", "X", "XL"]
    assert result.curves["flag"].t.tolist() == [False, True]
    stored = sparse.csc_array(np.where(SIZE == 4, SIZE, 0)[:, None])
    assert np.isnan(firm(S, stored, categorical=[0]).direction[0])
    assert firm(S, stored).direction[0] == -1


def test_times_and_durations():
    hours = rng.integers(0, 24, 600)
    times = [datetime.time(int(h)) for h in hours]
    frame = pd.DataFrame({"time": times, "spell": pd.to_timedelta(hours, unit="h")})
    result = firm(hours + rng.normal(size=600), frame)
    assert result.kinds == ("duration", "duration")
    np.testing.assert_allclose(*result.importances)
    assert result.curves["time"].t[0] < np.timedelta64(2, "h")
    late = threshold("spell", pd.Timedelta("12h"))
    np.testing.assert_array_equal(late(frame), hours > 12)


@pytest.mark.parametrize("labels", ["words", "objects", "days", "category"])
def test_units_are_told_by_labels_of_any_kind(labels):
    X, s, unit = rng.normal(size=(60, 2)), rng.normal(size=60), np.arange(60) // 2
    mixed = [f"unit {u}" if u % 2 else f"u{u}" for u in unit.tolist()]
    found = firm(s, X, groups={
        "words": mixed,
        "objects": np.array(mixed, object),
        "days": np.datetime64("2020-01-01") + unit,
        "category": pd.Series(unit).astype("category"),
    }[labels])  # fmt: skip
    expected = firm(s, X, groups=unit)
    assert (np.abs(found.importances - expected.importances) < 3 * expected.standard_error).all()
    for missing in ([None], [None, None]):
        some = list(mixed)
        some[4 : 4 + len(missing)] = missing
        with pytest.raises(
            ValueError, match=rf"groups must not be missing, got {len(missing)} .*row 4"
        ):
            firm(s, X, groups=np.array(some, object))
    w = np.ones(60)
    w[4:6] = 0
    firm(s, X, groups=np.array(some, object), sample_weight=w)  # of no weight, no unit is needed


@pytest.mark.parametrize("package", ["sklearn", "lightgbm", "xgboost", "catboost"])
def test_models_with_native_categories_and_missing_values(package):
    library = pytest.importorskip(package)
    frame, words = PANDAS.astype({"species": "category"}).drop(columns="day"), pd.Series(WORDS)
    if package == "sklearn":
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(max_iter=20)
    elif package == "lightgbm":
        model = library.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, min_child_samples=3)
    elif package == "xgboost":
        model = library.XGBRegressor(n_estimators=20, enable_categorical=True, n_jobs=1)
    else:  # takes missing numbers, but no missing levels
        words = words.fillna("none")
        frame["species"] = words.astype("category")
        options = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        model = library.CatBoostRegressor(n_estimators=20, cat_features=["species"], **options)
    result = firm(model.fit(frame, S), frame)
    q, _, variance = by_hand(model.predict(frame).astype(float), words)
    np.testing.assert_allclose(result.curves["species"].q, q, rtol=1e-6)
    np.testing.assert_allclose(result.variance[0], variance, rtol=1e-6)
    assert result.missing[1] == pytest.approx(MISSING.mean())
