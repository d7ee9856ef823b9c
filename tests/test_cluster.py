"""StreamingFirm on worker processes, one of which is killed."""

import contextlib
import os
import signal
import uuid

import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from test_streaming import F, N, S, W, assert_same

from firmlib import StreamingFirm, firm


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # a free port: two runs at once must not meet
            silence_logs=50,  # a killed worker is no news here
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def local(bins, weights=None):
    return StreamingFirm(bins=bins).partial_fit(F, S, weights).result()


def test_array_on_two_processes(client):
    assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
    table, s = da.from_array(F, chunks=(170, 5)), da.from_array(S, chunks=170)
    stream = StreamingFirm(first_rows=500).partial_fit(table, s, W)
    assert_same(stream.result(), local(stream.bins, W))
    bins = StreamingFirm().partial_fit(F, S).bins
    assert_same(StreamingFirm(bins=bins).partial_fit(table, s).result(), firm(S, F))


def test_frame_on_two_processes(client):
    frame = pd.DataFrame(F, columns=list("abcde")).assign(s=S)
    lazy = dd.from_pandas(frame, npartitions=20).query("s < 1e6")  # of unknown lengths
    stream = StreamingFirm(first_rows=500).partial_fit(lazy[list("abcde")], lazy.s)
    expected = StreamingFirm(bins=stream.bins).partial_fit(frame[list("abcde")], S)
    assert_same(stream.result(), expected.result())


def test_an_error_on_a_worker_is_told_here(client):
    bad = F.copy()
    bad[N - 1, 2] = np.inf
    with pytest.raises(ValueError, match=r"^column 'x2' of F must be finite or missing, got 1 inf"):
        StreamingFirm(first_rows=100).partial_fit(da.from_array(bad, chunks=(500, 5)), S)


def test_a_model_on_parquet_where_the_rows_are(client, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(F, columns=list("abcde")).assign(word=rng.choice(["x", "y", "z"], N))
    frame.loc[rng.random(N) < 0.1, "a"] = np.nan
    for i in range(5):
        frame.iloc[i::5].to_parquet(tmp_path / f"{i}.parquet", row_group_size=100)
    stream = StreamingFirm().fit(total, dd.read_parquet(tmp_path))
    result = stream.result()
    expected = StreamingFirm(bins=stream.bins).partial_fit(frame, total).result()
    np.testing.assert_allclose(result.variance, expected.variance, rtol=1e-10)
    np.testing.assert_allclose(result.standard_error, expected.standard_error, rtol=1e-10)
    assert result.kinds[-1] == "nominal"
    assert result.missing[0] == pytest.approx(frame["a"].isna().mean())


def total(frame):
    return frame["b"].to_numpy() + (frame["word"] == "x").to_numpy() + frame["a"].isna().to_numpy()


def test_a_killed_worker_changes_nothing(client, tmp_path):
    pids = set(client.run(os.getpid).values())
    table = da.from_array(F, chunks=(100, 5)).map_blocks(deadly, tmp_path, meta=np.empty((0, 5)))
    stream = StreamingFirm(bins=StreamingFirm().partial_fit(F, S).bins).partial_fit(table, S)
    reads = [path for path in tmp_path.iterdir() if path.name != "killed"]
    assert int((tmp_path / "killed").read_text()) in pids - set(client.run(os.getpid).values())
    assert len(reads) > table.numblocks[0]  # what the process held was read again
    assert_same(stream.result(), firm(S, F))


def deadly(block, folder):
    """Return a block; who reads the eighth ends its process, once."""
    (folder / uuid.uuid4().hex).touch()
    if len(list(folder.iterdir())) >= 8:
        with contextlib.suppress(FileExistsError), (folder / "killed").open("x") as killed:
            killed.write(str(os.getpid()))
            killed.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    return block
