"""Rows in chunks: dask, LazyFrames, datasets, Parquet; worker processes."""

import os
from collections import Counter

import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

from firmlib import StreamingFirm, firm

N = 4000
rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "day": np.repeat(pd.date_range("2013-01-01", periods=N // 10).to_numpy(), 10),  # sorted
        "carrier": rng.choice(["AA", "B6", "UA"], N),
        "temp": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        "hour": rng.integers(0, 24, N),
        "w": rng.integers(1, 5, N) / 4,
    }
)
X.loc[X.index[-20:], "carrier"] = "HA"  # a level that comes late
X.loc[X.index[:400], "carrier"] = None  # nothing there at first
FEATURES = ["day", "carrier", "temp", "hour"]
F = np.column_stack([rng.normal(size=N), rng.integers(0, 4, N), rng.lognormal(sigma=2, size=N)])


def model(X):
    day = pd.to_datetime(pd.Series(np.asarray(X["day"]))).dt.day_of_year.to_numpy()
    carrier = pd.Series(np.asarray(X["carrier"], dtype=object))
    temp = pd.Series(np.asarray(X["temp"], dtype=float)).fillna(2).to_numpy()
    return (
        day / 100 + (carrier == "AA").to_numpy() - temp + 0.1 * np.asarray(X["hour"], dtype=float)
    )


def linear(F):
    return F[:, 0] - F[:, 1] + np.log(F[:, 2])


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for i in range(4):
        part = X.iloc[1000 * i : 1000 * (i + 1)]
        part.to_parquet(folder / f"{i}.parquet", row_group_size=250)
    return folder


SOURCES = {  # of the rows in a folder
    "path": str,
    "pattern": lambda folder: str(folder / "*.parquet"),
    "dataset": ds.dataset,
    "lazy": lambda folder: pl.scan_parquet(folder / "*.parquet"),
    "dask frame": dd.read_parquet,
    "dask of pandas": lambda folder: dd.from_pandas(X, npartitions=7),
    "generator": lambda folder: (X.iloc[i::3] for i in range(3)),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_source_is_the_table(parquet, kind, weight):
    exact = firm(model, X, FEATURES, sample_weight=weight)
    found = firm(model, SOURCES[kind](parquet), FEATURES, sample_weight=weight)
    assert (found.kinds, found.n, found.response) == (exact.kinds, N, "callable")
    np.testing.assert_allclose(found.importances, exact.importances, rtol=0.03)
    np.testing.assert_allclose(found.importances[1], exact.importances[1], rtol=1e-9)  # levels
    np.testing.assert_allclose(found.standard_error, exact.standard_error, rtol=0.4)
    np.testing.assert_allclose(found.missing, exact.missing)
    if weight is None:
        curve = found.curves["carrier"]
        counts = dict(zip(curve.t, curve.n, strict=True))
        assert counts == Counter(None if pd.isna(c) else c for c in X["carrier"])


OPTIONS = [
    {"groups": "day"},
    {"categorical": ["hour"]},
    {"missing": "drop"},
    {"n_bins": 5},
    {"confidence_level": 0.8},
    {"feature_names": ["one", "two", "three", "four", "five"]},
    {"method": "slope"},
    {"given": ["hour"], "features": ["temp"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_drops_no_option(tmp_path, options):
    """Every option is heeded, or refused by its name."""
    X.to_parquet(tmp_path / "table.parquet")
    try:
        found = firm(model, tmp_path / "table.parquet", **options)
    except ValueError as error:
        found = str(error)
    if isinstance(found, str):
        assert any(name in found for name in options), found
        return
    expected = firm(model, X, **options)
    assert list(found.feature_names) == list(expected.feature_names)
    np.testing.assert_allclose(found.importances, expected.importances, rtol=1e-6)
    np.testing.assert_allclose(found.pvalues, expected.pvalues, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(found.ci_low, expected.ci_low, rtol=0.1, atol=0.01)


@pytest.mark.parametrize("kind", ["path", "dask frame"])
def test_bins_of_sorted_rows_are_found_from_all_of_them(parquet, kind):
    stream = StreamingFirm(["day"]).fit(SOURCES[kind](parquet), model)
    curve = stream.result().curves["day"]
    assert curve.t[0] < np.datetime64("2013-02-01")
    assert curve.t[-1] > np.datetime64("2014-01-01")
    assert curve.n.max() < N / 20
    same = StreamingFirm(["day"], bins=stream.bins).partial_fit(X, model).result()
    np.testing.assert_allclose(same.variance, stream.result().variance, rtol=1e-9)


def test_each_partition_is_computed_once_and_scored_once():
    seen, scored = Counter(), Counter()

    def block(block_info=None):
        [where] = block_info.values()
        i = where["chunk-location"][0]
        seen[i] += 1
        values = np.random.default_rng(i).normal(size=(500, 3))
        values[:, 2] = i
        return values

    def score(X):
        scored[int(X[0, 2])] += 1
        return X[:, 0]

    table = da.map_blocks(block, chunks=((500,) * 20, (3,)), dtype=float, meta=np.empty((0, 0)))
    result = firm(score, table)
    assert set(seen.values()) == set(scored.values()) == {1}
    assert len(seen) == len(scored) == 20
    assert result.importances[0] == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("chunks", [(700, 3), ((1, 2, 997, 3000), 2), (N, 3)], ids=str)
def test_dask_arrays_of_any_chunks(chunks):
    exact, found = firm(linear, F), firm(linear, da.from_array(F, chunks=chunks))
    np.testing.assert_allclose(found.importances, exact.importances, rtol=0.03)
    np.testing.assert_allclose(found.importances[1], exact.importances[1], rtol=1e-9)


def test_dask_frames_of_unknown_length_with_empty_partitions():
    lazy = dd.from_pandas(X.assign(number=np.arange(N)), npartitions=13)
    lazy = lazy[lazy.number < 2000][FEATURES]
    found, exact = firm(model, lazy), firm(model, X[FEATURES][:2000])
    np.testing.assert_allclose(found.importances, exact.importances, rtol=0.05)
    assert found.n == 2000
    stream = StreamingFirm().partial_fit(X[FEATURES][:500], model).partial_fit(lazy, model)
    with pytest.warns(UserWarning, match=r"importances of .'day'. are too small"):
        assert stream.result().n == 2500  # days in order


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: firm(model, "nowhere/*.parquet"),
            "^X='nowhere/.*' must be a Parquet file, folder",
        ),
        (lambda: firm(linear, da.zeros(9)), r"^X has shape \(9,\), expected \('any', 'any'\)"),
        (lambda: firm(F[:, 0], da.from_array(F)), "^score=ndarray must be a fitted model"),
        (
            lambda: firm(linear, da.from_array(F), sample_weight=np.ones(N)),
            "^sample_weight=ndarray must name a column, because the rows come in chunks",
        ),
        (lambda: firm(linear, da.from_array(F), given=[0]), "needs all rows in memory"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Worker processes


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # a free port: two runs at once must not meet
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_on_two_processes(client, parquet):
    assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
    stream = StreamingFirm(FEATURES).fit(dd.read_parquet(parquet), model, sample_weight="w")
    same = StreamingFirm(FEATURES, bins=stream.bins).partial_fit(X, model, sample_weight="w")
    np.testing.assert_allclose(stream.result().variance, same.result().variance, rtol=1e-9)
    bad = F.copy()
    bad[N - 1, 2] = np.inf
    with pytest.raises(ValueError, match=r"^column 'x2' of X must be finite or missing, got 1 inf"):
        firm(linear, da.from_array(bad, chunks=(500, 3)))


def test_errors_do_not_depend_on_the_size_of_partitions():
    """Rows of small partitions are spread over all folds."""
    s, found = linear(F) + rng.normal(size=N), {}
    G = np.column_stack([F, s])
    for size in (20, N):
        stream = StreamingFirm([0, 1, 2])
        found[size] = stream.fit(da.from_array(G, chunks=(size, 4)), lambda G: G[:, 3]).result()
    np.testing.assert_allclose(found[20].standard_error, found[N].standard_error, rtol=0.3)
    assert (found[20].estimate.psi != 0).all()
