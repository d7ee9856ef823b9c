"""Tables as people have them: frames of every kind, categories, dates, missing values, files."""

import datetime
import warnings
from decimal import Decimal
from operator import add

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from firmlib.tables import Table, read, sources
from firmlib.tables.sources import chunks, dask_reduce, is_source, sample

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


NOON = datetime.time(12)
READ = {  # values, kind, what they stand for
    "floats": ([1.5, np.nan], "number", [1.5, np.nan]),
    "none": ([None, None], "number", [np.nan, np.nan]),
    "missing first": (pl.Series([None, 1.5]), "number", [np.nan, 1.5]),
    "float16": (np.array([1, 2], np.float16), "number", [1, 2]),
    "big endian": (np.array([1, 2], ">f8"), "number", [1, 2]),
    "truth": (np.array([True, False]), "ordered", [True, False]),
    "truth or missing": ([True, None], "ordered", [True, None]),
    "nullable truth": (pd.array([True, None], dtype="boolean"), "ordered", [True, None]),
    "polars truth": (pl.Series([True, None]), "ordered", [True, None]),
    "masked numbers": (np.ma.array([1.0, np.inf], mask=[0, 1]), "number", [1, np.nan]),
    "masked words": (np.ma.array(["a", "b"], mask=[0, 1]), "nominal", ["a", None]),
    "mixed numbers": ([1, 2.5], "number", [1, 2.5]),
    "bytes": ([b"x", b"y"], "nominal", [b"x", b"y"]),
    "times": ([NOON, None], "duration", [np.timedelta64(12, "h"), np.timedelta64("NaT")]),
    "spells": (pd.to_timedelta([1, None], unit="h"), "duration", [np.timedelta64(1, "h"), pd.NaT]),
    "polars spells": (
        pl.Series([datetime.timedelta(1), None]),
        "duration",
        [np.timedelta64(1, "D"), pd.NaT],
    ),
    "category": (pd.Series(pd.Categorical(["b", None])), "nominal", ["b", None]),
    "ordered": (
        pd.Series(pd.Categorical(["M", "S"], ["S", "M", "L"], ordered=True)),
        "ordered",
        ["M", "S"],
    ),
}


@pytest.mark.parametrize(("values", "kind", "expected"), READ.values(), ids=READ)
def test_what_values_stand_for(values, kind, expected):
    column = read("f", values, 2)
    assert column.kind == kind
    for shown, value in zip(column.shown(column.values), expected, strict=True):
        assert shown == value or (pd.isna(shown) and pd.isna(value))
    assert np.isnan(column.values).tolist() == pd.isna(pd.Series(expected)).tolist()


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
def test_large_integers_are_never_merged(values):
    column = read("id", values, 3)
    assert column.kind == "ordered"
    last = 2 if len(column.labels) == 3 else np.nan
    np.testing.assert_array_equal(column.values, [0, 1, last])
    table = Table(pd.DataFrame({"id": LARGE["int64"]}))
    assert not table.plain
    assert table.with_categorical(["id"]).column("id").kind == "nominal"


def test_large_integers_that_floats_hold_stay_numbers():
    seconds = 10**9 * np.arange(1_700_000_000, 1_700_000_003)
    assert read("ns", seconds, 3).kind == "number"


@pytest.mark.parametrize("missing", [np.nan, None])
def test_an_offset_beside_missing_values_loses_nothing(missing):
    x = 1e14 + np.arange(64) / 64
    values = [*x.tolist(), missing]
    for data in (values, pd.Series(values), pl.Series(values, strict=False), np.array(values)):
        np.testing.assert_array_equal(read("x", data, 65).values[:64], x)


def test_values_and_numbers_of_a_column():
    size = read("s", pd.Series(pd.Categorical(["M", None], ["S", "M"], ordered=True)), 2)
    assert size.number("tau", "M") == 1
    assert np.isnan(size.number("tau", "XL"))
    day = read("d", DAY, N)
    assert day.shown(np.array([day.number("tau", "2009-09-08")])) == np.datetime64("2009-09-08")
    large = read("id", LARGE["int64"], 3)
    assert [large.number("tau", BIG + k) for k in range(-1, 5)] == [-0.5, 0, 1, 1.5, 2, 2.5]


def test_numbers_as_levels():
    column = Table([[3.0], [1], [np.nan], [3]]).with_categorical([0]).column(0)
    assert column.kind == "nominal"
    assert column.labels.tolist() == [1, 3]
    np.testing.assert_array_equal(column.values, [1, 0, np.nan, 1])
    halves = Table([[0.5], [1]]).with_categorical(["x0"]).column(0)
    assert halves.labels.tolist() == [0.5, 1]


def test_levels_of_chunks_are_joined():
    first, second = read("f", ["b", "a", None], 3), read("f", ["c", "a", None], 3)
    both = second.joined("f", first)
    assert both.labels.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(both.values, [2, 0, np.nan])
    empty = read("f", [None, None], 2).joined("f", first)
    assert empty.kind == "nominal"
    assert first.joined("f", first) is first
    with pytest.raises(ValueError, match=r"^f holds nominal values in one chunk and number values"):
        read("f", [1, 2], 2).joined("f", first)
    sizes = [read("f", pd.Series(pd.Categorical(list(w), ordered=True)), 2) for w in ("ab", "ac")]
    with pytest.raises(ValueError, match=r"^f has the ordered levels \['a', 'b'\] .* \['c'\]"):
        sizes[1].joined("f", sizes[0])


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_columns_hold_what_is_stored(layout, kind):
    X = np.zeros((10, 3))
    X[[2, 5], 0], X[:, 1], X[3, 2] = [7, np.nan], np.arange(10), 1
    table = Table(getattr(sparse, f"{layout}_{kind}")(X))
    for j in range(3):
        np.testing.assert_array_equal(table.column(j).dense(10), X[:, j])
    thin = table.column(0)
    assert thin.rows is not None
    keep = np.arange(10) != 2
    np.testing.assert_array_equal(thin.take(keep).dense(9), X[keep, 0])
    np.testing.assert_array_equal(thin.take(slice(3, 8)).dense(5), X[3:8, 0])
    np.testing.assert_array_equal(thin.take(slice(None)).dense(10), X[:, 0])
    np.testing.assert_array_equal(table.rows(2, 6).column(0).dense(4), X[2:6, 0])
    assert not table.plain


def test_sparse_truth_values_and_large_integers():
    flags = Table(sparse.csr_array(np.arange(10)[:, None] == [3, 4])).column(1)
    assert flags.shown(flags.dense(10)).tolist() == [k == 4 for k in range(10)]
    large = Table(sparse.csr_array(np.array([[BIG + 1], [0], [BIG], [0], [0], [0]]))).column(0)
    assert large.shown(large.dense(6)).tolist() == [BIG + 1, 0, BIG, 0, 0, 0]
    counts = Table(sparse.csr_array(np.eye(6, dtype=int))).column(2)
    assert (counts.kind, counts.dense(6).tolist()) == ("number", [0, 0, 1, 0, 0, 0])


def test_repeated_entries_of_a_sparse_matrix_add_up():
    table = Table(sparse.csc_array(([1.0, 2, 4], [0, 0, 1], [0, 3]), shape=(9, 1)))
    np.testing.assert_array_equal(table.column(0).dense(9)[:2], [3, 4])


X = rng.normal(size=(3000, 7))
PLAIN = {
    "by rows": X,
    "by columns": np.asfortranarray(X),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "float32": X.astype(np.float32).astype(float).astype(np.float32),
    "integers": (100 * X).astype(int),
    "pandas": pd.DataFrame(X),
    "pandas by columns": pd.DataFrame({f"c{j}": x for j, x in enumerate(X.T)}),
}


@pytest.mark.parametrize("data", PLAIN.values(), ids=PLAIN)
@pytest.mark.parametrize("rows", [slice(1000, 2500), np.arange(0, 3000, 7)], ids=["slice", "some"])
def test_blocks_of_columns(data, rows):
    table = Table(data)
    assert table.plain
    block = table.block(slice(2, 5), rows)
    assert block.flags.c_contiguous
    assert block.dtype == float
    np.testing.assert_array_equal(block, np.asarray(data, dtype=float)[rows, 2:5].T)


def test_a_block_names_the_column_with_an_infinite_value():
    bad = X.copy()
    bad[1200, 3], bad[:, 2] = np.inf, np.nan
    with pytest.raises(ValueError, match=r"^column 'x3' of X .* 1 infinite .* inf at row 1200"):
        Table(bad).block(slice(2, 5), slice(1000, 2000))
    huge = Table(np.full((3000, 1), 1e308))
    assert np.isfinite(huge.block(slice(0, 1), slice(0, 3000))).all()


def test_what_is_not_plain():
    assert not Table(X > 0).plain
    assert not Table(np.ma.array(X)).plain
    assert not Table(X).with_categorical([0]).plain
    assert not Table(pd.DataFrame({"a": [1.5, 2], "b": [1, 2]})).plain
    assert not Table(np.array([[BIG + 1], [1]])).plain


def test_names_positions_and_places():
    assert Table(X).names[:2] == ["x0", "x1"]
    table = Table(pd.DataFrame(np.eye(3), columns=[2, 1, 0]))
    assert table.names == ["2", "1", "0"]
    assert table.column(0).values.tolist() == [1, 0, 0]
    assert [table.place(j) for j in ("0", 1, -1)] == [2, 1, 2]
    with pytest.raises(ValueError, match=r"^feature 0 may be the column at position 0 of X or"):
        table.place(0)
    twice = Table(pd.DataFrame(np.eye(2), columns=["a", "a"]))
    assert twice.place("a") == 0
    assert Table.of(table) is table


def test_a_vector_may_be_a_column():
    table = Table(PANDAS.fillna({"size": 1}))
    np.testing.assert_array_equal(
        table.vector("sample_weight", "size").values, np.where(MISSING, 1, SIZE)
    )
    assert table.vector("groups", "species").kind == "nominal"
    np.testing.assert_array_equal(table.vector("groups", SIZE.tolist()).values, SIZE)
    with pytest.raises(ValueError, match=r"^groups='plot': feature 'plot' is not a column of X"):
        table.vector("groups", "plot")
    with pytest.raises(ValueError, match=r"^groups has the index \[1, .*\.loc\[X\.index\]"):
        table.vector("groups", pd.Series(SIZE, index=range(1, N + 1)))


# Rows that come in chunks; see test_cluster.py for files


def test_iterables_of_tables():
    tables = [np.ones((3, 2)), np.zeros((2, 2))]
    assert not is_source(tables)
    assert is_source(iter(tables))
    assert list(chunks(tables)) == tables
    assert sample(iter(tables), 10) is None


def test_dask_reduces_in_the_order_of_rows():
    array = da.ones((30, 2), chunks=(1, 1))
    assert dask_reduce(array, lambda table, index: [index], add) == list(range(30))
    assert sample(array, 40).shape[1] == 2


def test_only_long_work_shows_a_bar(monkeypatch, capsys):
    assert list(sources.progress(range(3), "fits")) == [0, 1, 2]
    assert not capsys.readouterr().err
    monkeypatch.setattr(sources, "_SECONDS", 0)
    assert list(sources.progress(range(3), "fits")) == [0, 1, 2]
    assert "fits" in capsys.readouterr().err


def test_missing_dates_are_shown_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column = read("d", np.array(["2009-09-07", "NaT"], "M8[D]"), 2)
        assert np.isnat(column.shown(column.values)).tolist() == [False, True]
