"""Tables as people have them: categories, missing values, dates, frames of every kind."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lightgbm import LGBMRegressor
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from firmlib import conditional_expected_score, firm
from firmlib.features import conjunction, coordinate, literal, threshold

N = 600
rng = np.random.default_rng(0)
SPECIES = rng.choice(["Adelie", "Chinstrap", "Gentoo"], N, p=[0.5, 0.2, 0.3])
MISSING = rng.random(N) < 0.2
SIZE = rng.integers(0, 5, N).astype(float)
DAY = pd.to_datetime("2009-09-07") + pd.to_timedelta(rng.integers(0, 9, N), unit="D")
S = rng.normal(size=N) + (SPECIES == "Gentoo") * 2.0 - SIZE + MISSING
WORDS = np.where(MISSING, None, SPECIES.astype(object))
SIZES = np.where(MISSING, np.nan, SIZE)


def by_hand(s, level):
    """The means, shares and U-statistic of the levels, missing ones last, by groupby."""
    groups = pd.DataFrame({"s": s, "level": level}).groupby("level", dropna=False)["s"]
    table = groups.agg(["mean", "size", "var"])
    p = table["size"] / len(s)
    plain = (p * (table["mean"] - s.mean()) ** 2).sum()
    variance = plain - (table["var"].sum() - s.var(ddof=1)) / len(s)
    return table["mean"].to_numpy(), table["size"].to_numpy(), variance


PANDAS = pd.DataFrame({"species": WORDS, "size": SIZES, "day": np.where(MISSING, pd.NaT, DAY)})
PANDAS = PANDAS.astype({"day": "datetime64[us]"})
POLARS = pl.DataFrame(
    {
        "species": WORDS.tolist(),
        "size": [None if m else int(v) for m, v in zip(MISSING, SIZE, strict=True)],
        "day": [None if m else d for m, d in zip(MISSING, DAY.to_pydatetime(), strict=True)],
    }
)
LEVELS = ["Adelie", "Chinstrap", "Gentoo"]
ARROW = POLARS.to_arrow()
FRAMES = {
    "pandas": PANDAS,
    "pandas object": PANDAS.astype({"species": object}),
    "pandas category": PANDAS.astype({"species": "category"}),
    "pandas nullable": PANDAS.convert_dtypes(),
    "pandas Arrow": PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "pandas decimals": PANDAS.assign(
        size=[None if m else Decimal(int(v)) for m, v in zip(MISSING, SIZE, strict=True)]
    ),
    "pandas dates of Python": PANDAS.assign(
        day=[None if m else d.date() for m, d in zip(MISSING, DAY, strict=True)]
    ),
    "pandas time zone": PANDAS.assign(day=PANDAS["day"].dt.tz_localize("UTC")),
    "pandas periods": PANDAS.assign(day=PANDAS["day"].dt.to_period("D")),
    "pandas Arrow dictionary": PANDAS.assign(
        species=pd.array(WORDS, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
    ),
    "array of objects": PANDAS.to_numpy(dtype=object),
    "list of rows": [list(row) for row in PANDAS.astype(object).to_numpy()],
    "polars": POLARS,
    "polars Categorical": POLARS.with_columns(pl.col("species").cast(pl.Categorical)),
    "polars Enum": POLARS.with_columns(pl.col("species").cast(pl.Enum(LEVELS))),
    "polars Date": POLARS.with_columns(pl.col("day").cast(pl.Date)),
    "polars Decimal": POLARS.with_columns(pl.col("size").cast(pl.Decimal(10, 2))),
    "pyarrow": ARROW,
    "pyarrow dictionary": ARROW.set_column(
        0, "species", ARROW.column("species").dictionary_encode()
    ),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_says_what_groupby_says(kind):
    result = firm(S, FRAMES[kind])
    assert result.kinds == ("nominal", "number", "date")
    np.testing.assert_allclose(result.missing, MISSING.mean())
    known = [pd.Series(WORDS), pd.Series(SIZES), pd.Series(np.where(MISSING, pd.NaT, DAY))]
    levels = [LEVELS, list(range(5)), sorted(set(DAY[~MISSING]))]
    curves = list(result.curves.values())
    for j, curve in enumerate(curves):
        q, n, variance = by_hand(S, known[j])
        np.testing.assert_allclose(curve.q, q, rtol=1e-12)
        np.testing.assert_array_equal(curve.n, n)
        np.testing.assert_allclose(result.variance[j], variance, rtol=1e-10)
        assert pd.isna(curve.t[-1])
        assert list(pd.Series(curve.t[:-1])) == levels[j]
    assert result.importances[0] > 0  # no direction
    np.testing.assert_array_equal(result.direction, [np.nan, -1, result.direction[2]])
    assert list(result.to_frame()["missing"]) == [MISSING.mean()] * 3


@pytest.mark.parametrize("kind", ["pandas", "pandas category", "polars", "pyarrow dictionary"])
def test_features_of_categories_and_dates(kind):
    frame = FRAMES[kind]
    adelie = (WORDS == "Adelie").astype(float)
    np.testing.assert_array_equal(literal("species", "Adelie")(frame), adelie)
    np.testing.assert_array_equal(literal("species", None)(frame), MISSING)
    both = conjunction({"species": "Adelie", "size": 3})
    assert both.__name__ == "species=Adelie ∧ size=3"
    np.testing.assert_array_equal(both(frame), adelie * (SIZES == 3))
    late = threshold("day", "2009-09-10")
    expected = np.where(MISSING, np.nan, DAY > "2009-09-10")
    np.testing.assert_array_equal(late(frame), expected)
    later = threshold("day", DAY[0])(frame)
    np.testing.assert_array_equal(later[~MISSING], (DAY[0] < DAY)[~MISSING])
    q, _, _ = by_hand(S, expected)
    curve = conditional_expected_score(S, frame, late)
    np.testing.assert_allclose(curve.q, q)
    np.testing.assert_array_equal(curve.t, [0, 1, np.nan])
    result = firm(S, frame, {"first": coordinate("species"), "word": lambda X: X["species"]})
    assert result.kinds == ("nominal", "nominal")
    np.testing.assert_allclose(*result.variance)


def test_missing_dropped_is_the_same_as_rows_left_out_for_each_feature():
    other = SIZES.copy()
    other[:100] = np.nan
    frame = PANDAS.assign(other=other)
    for rows in ("sample", "population"):
        dropped = firm(S, frame, missing="drop", rows=rows)
        for j, name in enumerate(frame.columns):
            known = frame[name].notna().to_numpy()
            alone = firm(S[known], frame.loc[known, [name]], rows=rows)
            np.testing.assert_allclose(dropped.variance[j], alone.variance[0])
            np.testing.assert_allclose(dropped.curves[name].q, alone.curves[name].q)
            assert dropped.missing[j] == pytest.approx(1 - known.mean())
    line = firm(S, frame[["size"]], missing="drop", method="slope")
    known = ~MISSING
    alone = firm(S[known], frame.loc[known, ["size"]], method="slope")
    np.testing.assert_allclose(line.importances, alone.importances)


def test_missing_of_binned_numbers_is_a_bin_apart():
    f = rng.normal(size=5000)
    s = f + rng.normal(size=5000)
    gone = rng.random(5000) < 0.3
    s[gone] += 3
    result = firm(s, np.where(gone, np.nan, f)[:, None])
    curve = result.curves["x0"]
    assert curve.method == "binned"
    assert np.isnan(curve.t[-1])
    assert curve.n[-1] == gone.sum()
    np.testing.assert_allclose(curve.q[-1], s[gone].mean())
    assert curve.p @ curve.q == pytest.approx(s.mean())
    direct = np.where(gone, 3, f).std()
    assert abs(result.importances[0] - direct) < 3 * result.standard_error[0]
    assert result.direction[0] == 1


def test_more_levels_than_bins_are_all_kept_and_lone_ones_are_pooled():
    rng = np.random.default_rng(1)
    level = np.concatenate([np.repeat(np.arange(1000), 2), 1000 + np.arange(500)])
    s = rng.normal(size=len(level))
    frame = pd.DataFrame({"tail": pd.Series(level.astype(str))})
    result = firm(s, frame)
    assert len(result.curves["tail"].t) == 1500
    assert abs(result.variance[0]) < 3 * 2 / np.sqrt(len(level))  # nothing there


def rare_levels_held_back(s, levels):
    """What rare levels seem to explain, minus what stands out, by groupby."""
    n, groups = len(s), pd.Series(s - s.mean()).groupby(levels)
    table = pd.DataFrame({"w": groups.size(), "m": groups.mean(), "u": groups.var()})
    noise = ((table["w"] - 1) * table["u"]).sum() / (table["w"] - 1).sum()
    rare = table.fillna({"u": noise})[table["w"] < max(np.sqrt(n) / 2, 4)]
    away = rare["m"] - np.average(rare["m"], weights=rare["w"])
    c = (rare["w"] * away**2 - rare["u"]) / n
    own, u = c[rare["w"] > 1], rare["u"][rare["w"] > 1]
    t2 = own.sum() ** 2 / min((own**2).sum(), 8 * (u**2).sum() / n**2)
    return c.sum() - own.sum() * max(0, 1 - 2 / t2) * (own.sum() > 0)


@pytest.mark.parametrize(("n", "effect"), [(40, 1), (300, 0), (300, 0.3), (300, 2)])
def test_rare_levels_count_in_so_far_as_they_stand_out(n, effect):
    rng = np.random.default_rng(5)
    p = 1 / np.arange(1, 51)
    k, names = rng.choice(50, n, p=p / p.sum()), rng.permutation(50)
    s = effect * rng.normal(size=50)[k] + rng.normal(size=n)
    result = firm(s, k[:, None], categorical=[0])
    all_of_it = firm(s, k[:, None], method="discrete")
    expected = all_of_it.variance - rare_levels_held_back(s, k)
    np.testing.assert_allclose(result.variance, (1 - result.pvalues) * expected, rtol=1e-9)
    held_back = result.estimate.unbiased - result.variance
    assert (held_back / all_of_it.variance < 0.1) == (effect == 2)
    renamed = firm(s, names[k][:, None], categorical=[0])
    np.testing.assert_allclose(renamed.variance, result.variance, rtol=1e-9)
    assert result.ci_low <= result.importances <= result.ci_high
    if effect == 2:  # the test of numbers, which have an order, rejects, too
        pd.testing.assert_frame_equal(result.intervals(), all_of_it.intervals())


def test_of_few_levels_none_is_held_back():
    rng = np.random.default_rng(6)
    k = rng.choice(5, 100, p=[0.5, 0.4, 0.04, 0.03, 0.03])
    s = rng.normal(size=100)
    named, number = firm(s, k[:, None], categorical=[0]), firm(s, k[:, None])
    np.testing.assert_allclose(named.variance, number.variance, rtol=1e-9)


def test_many_levels_without_effect_seem_to_matter_less_than_before():
    rng, found = np.random.default_rng(7), []
    for _ in range(100):
        k, s = rng.integers(0, 50, 200)[:, None], rng.normal(size=200)
        found.append(
            [firm(s, k, **o).importances[0] for o in ({"categorical": [0]}, {"n_bins": 60})]
        )
    held_back, all_of_it = np.sqrt(np.mean(np.square(found), axis=0))
    assert held_back < 0.75 * all_of_it


def test_ordered_categories_have_a_direction_and_named_numbers_have_none():
    size = pd.Categorical.from_codes(SIZE.astype(int), ["S", "M", "L", "X", "XL"], ordered=True)
    frame = pd.DataFrame({"size": size, "code": SIZE, "flag": SIZE > 2})
    result = firm(S, frame, categorical=["code"])
    assert result.kinds == ("ordered", "nominal", "ordered")
    assert result.importances[0] < 0 < result.importances[1]
    np.testing.assert_allclose(result.importances[1], -result.importances[0])
    assert result.curves["code"].t.tolist() == [0, 1, 2, 3, 4]
    assert result.curves["size"].t.tolist() == ["S", "M", "L", "X", "XL"]
    assert result.curves["flag"].t.tolist() == [False, True]
    assert firm(S, SIZE[:, None], categorical=[0]).importances[0] > 0
    stored = sparse.csc_array(np.where(SIZE == 4, SIZE, 0)[:, None])
    assert firm(S, stored, categorical=[0]).importances[0] > 0 > firm(S, stored).importances[0]


def test_a_row_without_weight_may_hold_anything():
    w = np.ones(N)
    w[:3] = 0
    strange = PANDAS.astype(object)
    strange.iloc[:3] = [["a", "b", "c"], [1, np.inf, 2], [[], {}, ()]]
    left = firm(S, strange, sample_weight=w)
    np.testing.assert_allclose(left.variance, firm(S[3:], PANDAS.iloc[3:]).variance)


def test_times_and_durations():
    hours = rng.integers(0, 24, N)
    times = [datetime.time(int(h)) for h in hours]
    frame = pd.DataFrame({"time": times, "spell": pd.to_timedelta(hours, unit="h")})
    s = hours + rng.normal(size=N)
    result = firm(s, frame)
    assert result.kinds == ("duration", "duration")
    np.testing.assert_allclose(*result.importances)
    assert result.curves["time"].t[5] == np.timedelta64(5, "h")
    late = threshold("spell", pd.Timedelta("12h"))
    np.testing.assert_array_equal(late(frame), hours > 12)


def test_the_model_gets_x_as_it_is():
    seen = []

    def score(X):
        seen.append(X)
        return S

    for frame in FRAMES.values():
        firm(score, frame)
        assert seen.pop() is frame or isinstance(frame, list)


def test_pipeline_and_boosting_with_native_categories_and_missing_values():
    frame = PANDAS.astype({"species": "category"}).drop(columns="day")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["species"]), (SimpleImputer(), ["size"])
    )
    for model in (
        make_pipeline(columns, LinearRegression()),
        LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1),
    ):
        model.fit(frame, S)
        result = firm(model, frame)
        q, _, variance = by_hand(model.predict(frame), pd.Series(WORDS))
        np.testing.assert_allclose(result.curves["species"].q, q)
        np.testing.assert_allclose(result.variance[0], variance)


@pytest.mark.parametrize("package", ["xgboost", "catboost"])
def test_other_boosting_with_native_categories_and_missing_values(package):
    boosting = pytest.importorskip(package)
    frame, words = PANDAS.astype({"species": "category"}).drop(columns="day"), pd.Series(WORDS)
    if package == "xgboost":
        model = boosting.XGBRegressor(n_estimators=20, enable_categorical=True, n_jobs=1)
    else:  # takes missing numbers, but no missing levels
        words = words.fillna("none")
        frame["species"] = words.astype("category")
        options = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        model = boosting.CatBoostRegressor(n_estimators=20, cat_features=["species"], **options)
    model.fit(frame, S)
    result = firm(model, frame)
    q, _, variance = by_hand(model.predict(frame).astype(float), words)
    np.testing.assert_allclose(result.curves["species"].q, q)
    np.testing.assert_allclose(result.variance[0], variance)
    assert result.missing[1] == pytest.approx(MISSING.mean())


def test_groups_of_categories_and_missing_values():
    n = 3000
    rng = np.random.default_rng(2)
    letter = rng.choice(list("abcd"), n)
    x = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    q = (letter == "b") * 1.0 + (letter == "d") * 2 + np.where(np.isnan(x), 1.5, x)
    frame = pd.DataFrame({"letter": letter, "x": x})
    [found] = firm(q + rng.normal(size=n), frame, {"both": ["letter", "x"]}).importances
    assert found == pytest.approx(q.std(), rel=0.05)
    levels = pd.DataFrame({"letter": letter, "gone": np.where(np.isnan(x), np.nan, 1.0)})
    exact = firm(q, levels, {"both": ["letter", "gone"]}, rows="population").variance[0]
    means = pd.Series(q).groupby([letter, np.isnan(x)]).transform("mean")
    assert exact == pytest.approx(means.var(ddof=0))
