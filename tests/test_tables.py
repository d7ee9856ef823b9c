"""Tables as people have them, against groupby: frames of every kind, categories, dates, gaps."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from firmlib import firm

N = 150
rng = np.random.default_rng(0)
LEVELS = ["Adelie", "Chinstrap", "Gentoo"]
CODES = rng.integers(0, 3, N)
MISSING = np.arange(N) % 5 == 2
SIZE = rng.integers(0, 5, N)
DAY = pd.to_datetime("2009-09-07") + pd.to_timedelta(rng.integers(0, 9, N), unit="D")
WORDS = np.where(MISSING, None, np.array(LEVELS, object)[CODES])
PANDAS = pd.DataFrame(
    {
        "species": WORDS,
        "size": np.where(MISSING, np.nan, SIZE),
        "day": np.where(MISSING, pd.NaT, DAY),
    }
).astype({"day": "datetime64[us]"})


def known(values):
    """Values as Python has them, None where they are missing."""
    return [None if m else v for m, v in zip(MISSING, values, strict=True)]


POLARS = pl.DataFrame(
    {"species": WORDS.tolist(), "size": known(SIZE.tolist()), "day": known(DAY.to_pydatetime())}
)
ARROW = POLARS.to_arrow()
DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
FRAMES = {
    "pandas": PANDAS,
    "pandas object": PANDAS.astype({"species": object}),
    "pandas category": PANDAS.astype({"species": "category"}),
    "pandas nullable": PANDAS.convert_dtypes(),
    "pandas Arrow": PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "pandas decimals": PANDAS.assign(size=known(map(Decimal, SIZE.tolist()))),
    "pandas dates of Python": PANDAS.assign(day=known(d.date() for d in DAY)),
    "pandas time zone": PANDAS.assign(day=PANDAS["day"].dt.tz_localize("UTC")),
    "pandas periods": PANDAS.assign(day=PANDAS["day"].dt.to_period("D")),
    "pandas Arrow dictionary": PANDAS.assign(species=pd.array(WORDS, dtype=DICTIONARY)),
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
S = rng.normal(size=N) + (WORDS == "Gentoo") * 2.0 - SIZE + MISSING
SIZES = np.where(MISSING, np.nan, SIZE)


def column(values, n):
    """Return the kind and the curve of a column, as a feature of n rows."""
    result = firm(np.arange(n) ** 2, np.zeros((n, 1)), {"f": values})
    return result.kinds[0], result.curves["f"]


# What values stand for

HOUR = datetime.timedelta(hours=1)
READ = {  # values, kind, what they stand for
    "floats": ([1.5, np.nan], "number", [1.5, np.nan]),
    "none": ([None, None], "number", [np.nan, np.nan]),
    "missing first": (pl.Series([None, 1.5]), "number", [np.nan, 1.5]),
    "big endian": (np.array([1, 2], ">f8"), "number", [1, 2]),
    "truth": (np.array([True, False]), "ordered", [True, False]),
    "truth or missing": ([True, None], "ordered", [True, None]),
    "polars truth": (pl.Series([True, None]), "ordered", [True, None]),
    "masked numbers": (np.ma.array([1.0, np.inf], mask=[0, 1]), "number", [1, np.nan]),
    "masked words": (np.ma.array(["a", "b"], mask=[0, 1]), "nominal", ["a", None]),
    "bytes": ([b"x", b"y"], "nominal", [b"x", b"y"]),
    "spells": (pd.to_timedelta([1, None], unit="h"), "duration", [np.timedelta64(1, "h"), pd.NaT]),
    "polars spells": (pl.Series([HOUR, None]), "duration", [np.timedelta64(1, "h"), pd.NaT]),
    "category": (pd.Series(pd.Categorical(["b", None])), "nominal", ["b", None]),
    "ordered array": (pd.Categorical(["M", "S"], ["S", "M"], ordered=True), "ordered", ["M", "S"]),
}


@pytest.mark.parametrize(("values", "kind", "expected"), READ.values(), ids=READ)
@pytest.mark.filterwarnings("ignore:importance 0:UserWarning")
def test_what_values_stand_for(values, kind, expected):
    found, curve = column(values, 2)
    assert found == kind
    known = sorted(value for value in expected if not pd.isna(value))
    assert sorted(t for t in curve.t if not pd.isna(t)) == known
    assert sum(map(pd.isna, curve.t)) == any(map(pd.isna, expected))


BIG = 2**53
LARGE = {
    "int64": np.array([BIG, BIG + 1, BIG + 3]),
    "uint64": np.array([2**64 - 3, 2**64 - 2, 2**64 - 1], np.uint64),
    "nullable": pd.Series(pd.array([BIG, BIG + 1, None], dtype="Int64")),
    "pandas Arrow": pd.Series(pd.array([BIG, BIG + 1, None], dtype="int64[pyarrow]")),
    "polars": pl.Series([BIG, BIG + 1, None]),
    "masked": np.ma.array([BIG, BIG + 1, 7], mask=[0, 0, 1]),
    "objects": [BIG, BIG + 1, None],
    "beyond 64 bits": [2**70, 2**70 + 1, None],
}


@pytest.mark.parametrize("values", LARGE.values(), ids=LARGE)
@pytest.mark.filterwarnings("ignore:importance 0:UserWarning")
def test_large_integers_are_never_merged(values):
    kind, curve = column(values, 3)
    assert kind == "nominal"
    np.testing.assert_array_equal(curve.n, [1, 1, 1])
    assert curve.t[0] + 1 == curve.t[1]


def test_large_integers_that_floats_hold_stay_numbers():
    seconds = 10**9 * np.arange(1_700_000_000, 1_700_000_003)
    assert column(seconds, 3)[0] == "number"


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_columns_hold_what_is_stored(layout, kind):
    X = np.zeros((10, 3))
    X[[2, 5], 0], X[:, 1], X[3, 2] = [7, np.nan], np.arange(10) % 4, 1
    stored = getattr(sparse, f"{layout}_{kind}")(X)
    keep = np.arange(10) != 2
    some = {"sample_weight": keep}
    for options in ({}, some, some | {"categorical": [0, 2]}, some | {"features": {"f": "x2"}}):
        found, expected = firm(S[:10] + 99, stored, **options), firm(S[:10] + 99, X, **options)
        for name, curve in found.curves.items():
            other = expected.curves[name]
            for part in ("t", "q", "n"):
                mine, dense = (np.asarray(getattr(c, part), float) for c in (curve, other))
                np.testing.assert_allclose(mine, dense)


def test_sparse_columns_of_long_tables_have_the_bins_of_dense_ones():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 20_000), *rng.normal(size=(2, 20_000))])
    s = X[:, 1] + X[:, 2] ** 2
    dense, thin = (firm(s, table).variance for table in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin, dense, rtol=1e-9)


def test_sparse_large_integers_are_never_merged():
    large = np.array([[BIG + 1], [0], [BIG], [0], [0], [0]])
    assert firm(S[:6], sparse.csr_array(large)).curves["x0"].t.tolist() == [0, BIG, BIG + 1]
    assert firm(S[:6], sparse.csr_array(-large)).curves["x0"].t.tolist() == [-BIG - 1, -BIG, 0]


@pytest.mark.parametrize("features", [None, range(299, -1, -1)])
def test_columns_of_a_wide_table_are_not_mixed_up(features):
    X = np.random.default_rng(0).integers(0, 2, (2000, 300))
    s = X @ np.arange(300.0)
    found = firm(s, X, features, rows="population")
    expected = pd.DataFrame(X).apply(lambda f: pd.Series(s).groupby(f).mean().diff()[1] * f.std())
    names = [f"x{j}" for j in range(300)]
    mine = pd.Series(found.signed, found.feature_names)[names]
    np.testing.assert_allclose(mine, expected * np.sqrt(1999 / 2000), rtol=1e-9)


def test_sparse_truth_values_and_repeated_entries():
    flags = firm(S[:10], sparse.csr_array(np.arange(10)[:, None] == [3, 4]))
    assert flags.curves["x1"].t.tolist() == [False, True]
    assert firm(S[:6], sparse.csr_array(np.eye(6, dtype=int))).kinds[2] == "number"
    twice = sparse.csc_array(([1.0, 2, 4], [0, 0, 1], [0, 3]), shape=(9, 1))
    assert firm(S[:9], twice).curves["x0"].t.tolist() == [0, 3, 4]


def test_names_and_positions():
    assert firm(S, np.eye(N)[:, :2]).feature_names == ("x0", "x1")
    frame = pd.DataFrame(np.eye(N)[:, :3], columns=[2, 1, 0])
    assert firm(S, frame).feature_names == ("2", "1", "0")


# Against groupby


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


def test_ordered_categories_have_a_direction_and_named_numbers_have_none():
    size = pd.Categorical.from_codes(SIZE, ["S", "M", "L", "X", "XL"], ordered=True)
    frame = pd.DataFrame({"size": size, "code": SIZE, "flag": SIZE > 2})
    result = firm(S, frame, categorical=frame.columns[[1]])
    assert result.kinds == ("ordered", "nominal", "ordered")
    np.testing.assert_array_equal(result.direction, [-1, np.nan, -1])
    np.testing.assert_allclose(result.variance[1], result.variance[0])
    assert result.curves["code"].t.tolist() == [0, 1, 2, 3, 4]
    assert result.curves["size"].t.tolist() == ["S", "M", "L", "X", "XL"]
    assert result.curves["flag"].t.tolist() == [False, True]
    stored = sparse.csc_array(np.where(SIZE == 4, SIZE, 0)[:, None])
    assert np.isnan(firm(S, stored, categorical=[0]).direction[0])
    assert firm(S, stored).direction[0] == -1


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
    some = list(mixed)
    some[4:6] = [None, None]
    with pytest.raises(ValueError, match=r"groups must not be missing, got 2 .*row 4"):
        firm(s, X, groups=np.array(some, object))
    w = np.ones(60)
    w[4:6] = 0
    firm(s, X, groups=np.array(some, object), sample_weight=w)  # of no weight, no unit is needed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "missing"), [(33, True), (33, False), (1000, True), (1000, False)])
def test_sparse_columns_without_zeros_or_values_are_as_dense_ones(n, weighted, missing):
    rng = np.random.default_rng(0)
    full = rng.poisson(6, n) + 1.0
    half = np.where(rng.random(n) < 0.3, full, 0.0)
    gaps = np.where(rng.random(n) < 0.7, np.nan, rng.integers(0, 40, n))
    X = np.column_stack([full, half, np.where(rng.random(n) < 0.1, np.nan, full), gaps])
    X = np.column_stack([X, full > 7, np.where(half < 9, 0, half)])  # blocks of other sizes
    X = X if missing else np.nan_to_num(np.column_stack([X, full % 2 + 1]), nan=-2.0)
    options = {"sample_weight": rng.choice([0.5, 1, 1.5], n)} if weighted else {}
    s = full + rng.normal(size=n)
    dense, thin = (firm(s, table, **options) for table in (X, sparse.csr_array(X)))
    for name in ("variance", "pvalues", "ci_high", "missing"):
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), rtol=1e-7, atol=1e-12)
    for curves in zip(thin.curves.values(), dense.curves.values(), strict=True):
        pd.testing.assert_frame_equal(*(curve.to_frame() for curve in curves))
    empty = sparse.csr_matrix(([1.0], ([0], [0])), shape=(n, 2))
    with pytest.warns(UserWarning, match="importance 0"):
        assert firm(s, empty, **options).importances[1] == 0


def test_weights_are_numbers_and_nothing_is_missing_that_is_there():
    x = np.arange(50.0)
    weight = pd.date_range("2020-01-01", periods=50)
    with pytest.raises(ValueError, match="sample_weight must hold numbers, got date"):
        firm(x, x[:, None], sample_weight=weight)
    assert firm(x, x[:, None], sample_weight=1 + x % 7).missing[0] == 0


def test_sparse_truth_values_are_ordered_levels():
    truth = np.arange(60)[:, None] % 3 == 0
    assert firm(np.arange(60.0), sparse.csr_array(truth)).kinds == ("ordered",)


def test_complex_numbers_are_refused_in_sparse_tables_too():
    X = sparse.csr_array(np.array([[0, 1j], [2, 0], [0, 3j], [1, 0]] * 9))
    with pytest.raises(ValueError, match=r"must hold|holds values"):
        firm(np.arange(36.0), X)
