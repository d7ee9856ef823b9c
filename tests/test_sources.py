"""firm of rows that come in parts: dask, LazyFrames, datasets, Parquet; categories in streams."""

from collections import Counter

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

from firmlib import StreamingFirm, firm
from firmlib.features import literal, threshold

N = 4000
rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "day": np.repeat(pd.date_range("2013-01-01", periods=N // 10).to_numpy(), 10),  # sorted
        "carrier": rng.choice(["AA", "B6", "UA"], N),
        "temp": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        "hour": rng.integers(0, 24, N),
    }
)
X.loc[X.index[-20:], "carrier"] = "HA"  # a level that comes late
X.loc[X.index[:400], "carrier"] = None  # nothing there at first


def model(X):
    day = pd.to_datetime(pd.Series(np.asarray(X["day"]))).dt.day_of_year.to_numpy()
    carrier = pd.Series(np.asarray(X["carrier"], dtype=object))
    temp = pd.Series(np.asarray(X["temp"], dtype=float)).fillna(2).to_numpy()
    hour = np.asarray(X["hour"], dtype=float)
    return day / 100 + (carrier == "AA").to_numpy() - temp + 0.1 * hour


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for i in range(4):
        part = X.iloc[1000 * i : 1000 * (i + 1)]
        part.to_parquet(folder / f"{i}.parquet", row_group_size=250)
    return folder


def sources(folder):
    yield "path", str(folder)
    yield "pattern", str(folder / "*.parquet")
    yield "dataset", ds.dataset(folder)
    yield "lazy", pl.scan_parquet(folder / "*.parquet")
    yield "dask frame", dd.read_parquet(folder)
    yield "dask of pandas", dd.from_pandas(X, npartitions=7)


def assert_same(result, other, rtol=1e-10):
    assert result.feature_names == other.feature_names
    assert result.kinds == other.kinds
    np.testing.assert_allclose(result.variance, other.variance, rtol=rtol)
    np.testing.assert_allclose(result.standard_error, other.standard_error, rtol=rtol)
    np.testing.assert_allclose(result.missing, other.missing)


def test_every_source_says_the_same_as_the_table(parquet):
    exact = firm(model, X)
    for name, source in sources(parquet):
        stream = StreamingFirm().fit(model, source)
        result = stream.result()
        assert result.response == "callable"
        assert result.n == N
        assert_same(result, StreamingFirm(bins=stream.bins).partial_fit(X, model).result())
        np.testing.assert_allclose(result.importances, exact.importances, rtol=0.03, err_msg=name)
        assert result.curves["carrier"].n.sum() == N
        counts = dict(zip(result.curves["carrier"].t, result.curves["carrier"].n, strict=True))
        assert counts == Counter(None if pd.isna(c) else c for c in X["carrier"])
        assert firm(model, source).kinds == exact.kinds


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
    result = firm(score, table, n_bins=20)
    assert set(seen.values()) == {1}
    assert set(scored.values()) == {1}
    assert len(seen) == len(scored) == 20
    assert result.importances[0] == pytest.approx(1, rel=0.05)
    assert result.importances[1] < 0.1


def test_bins_of_sorted_rows_are_found_from_all_of_them(parquet):
    for source in (parquet, dd.read_parquet(parquet)):
        bins = StreamingFirm(first_rows=800).fit(model, source).bins["day"]
        firsts = bins.scale.shown(bins.first)
        assert firsts[0] < np.datetime64("2013-03-01")
        assert firsts[-1] > np.datetime64("2014-01-01")


@pytest.mark.parametrize("n", [300, 3000, 60_000])  # beyond 50 000 no lines within bins
@pytest.mark.parametrize("weighted", [False, True])
def test_a_standardized_stream_has_the_errors_of_firm(n, weighted):
    rng = np.random.default_rng(n)
    F = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 4, n)])
    F[rng.random(n) < 0.1, 1] = np.nan
    s = 100 + F[:, 0] ** 2 + np.nan_to_num(F[:, 1]) + 0.3 * F[:, 2] + rng.exponential(size=n)
    w = rng.integers(1, 4, n).astype(float) if weighted else None
    bins = StreamingFirm(first_rows=n).partial_fit(F, s, w).bins
    parts = [StreamingFirm(bins=bins, standardize=True) for _ in range(3)]
    for part, rows in zip(parts, np.array_split(np.arange(n), 3), strict=True):
        part.partial_fit(F[rows], s[rows], None if w is None else w[rows])
    result = parts[2].merge(parts[0]).merge(parts[1]).result()
    expected = firm(s, F, sample_weight=w, standardize=True)
    for name in ("importances", "standard_error", "ci_low", "ci_high", "pvalues"):
        np.testing.assert_allclose(
            getattr(result, name), getattr(expected, name), rtol=1e-7, atol=1e-10
        )
    plain = StreamingFirm(bins=bins).partial_fit(F, s, w).result()
    assert (result.standard_error * s.std() < 0.9 * plain.standard_error).any()


def test_a_standardized_stream_refuses_weights_of_sampling():
    stream = StreamingFirm(standardize=True, first_rows=10).partial_fit(
        np.arange(20.0)[:, None], np.arange(20.0), np.linspace(0.1, 1, 20)
    )
    with pytest.raises(ValueError, match="standardize=True with weights of sampling"):
        stream.result()
    other = StreamingFirm(bins=stream.bins).partial_fit(np.ones((5, 1)), np.ones(5))
    with pytest.raises(ValueError, match="other has standardize=False, expected True"):
        stream.merge(other)


def test_streams_have_what_firm_has():
    features = {"late": threshold("hour", 12), "AA": literal("carrier", "AA"), "temp": "temp"}
    options = {"features": features, "standardize": True, "missing": "drop"}
    chunks = [X.iloc[i : i + 333] for i in range(0, N, 333)]
    stream = StreamingFirm(first_rows=N, **options).fit(model, iter(chunks))
    assert_same(stream.result(), firm(model, X, **options))
    options["standardize"] = False
    plain = StreamingFirm(first_rows=N, **options).fit(model, iter(chunks))
    assert_same(plain.result(), firm(model, X, **options))
    stream = plain
    left, right = (StreamingFirm(bins=stream.bins, **options) for _ in range(2))
    left.fit(model, chunks[7:]).merge(right.fit(model, chunks[:7]))
    assert_same(left.result(), stream.result())
    named = StreamingFirm(features=["hour"], categorical=["hour"], first_rows=500).fit(
        model, chunks
    )
    assert named.result().kinds == ("nominal",)
    exact = firm(model, X, "hour", categorical=["hour"])
    np.testing.assert_allclose(named.result().variance, exact.variance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: firm(model, "nowhere/*.parquet"), "^X='nowhere/.*' is no file, folder or pattern"),
        (lambda: StreamingFirm().fit(model, X), "^chunks=DataFrame must be an iterable of tables"),
        (lambda: StreamingFirm().fit(model, 3), "^chunks=int must be an iterable of tables"),
        (lambda: StreamingFirm().fit([1, 2], [X]), "^score=list must be a fitted model or a call"),
        (lambda: StreamingFirm(features={"g": ["a", "b"]}), "groups, pairs and ready values need"),
        (lambda: StreamingFirm(features=np.ones((3, 2))), "groups, pairs and ready values need"),
        (lambda: StreamingFirm(missing="no"), "^missing='no' is unknown"),
        (
            lambda: StreamingFirm(missing="raise").fit(model, [X]),
            "^feature 'carrier' must not be missing, got 400",
        ),
        (
            lambda: StreamingFirm(missing="drop").merge(StreamingFirm()),
            "^other has missing='level', expected 'drop'",
        ),
        (
            lambda: firm(model, dd.from_pandas(X, npartitions=2), sample_weight=np.ones(N)),
            "^sample_weight of rows that come in parts",
        ),
        (
            lambda: firm(model, dd.from_pandas(X, npartitions=2), method="slope"),
            "^method='slope' is unknown",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_bar_is_shown_when_asked_for(capsys):
    StreamingFirm().fit(model, [X], progress=True)
    assert "1chunk" in capsys.readouterr().err
