"""Do worker processes give what one process gives? python benchmarks/cluster.py [--rows 10000000]

A folder of Parquet files, of numbers with gaps, words and dates, is made in a temporary folder
(--folder) and measured by `StreamingFirm.fit` on two processes of dask's `LocalCluster`; then again
while a worker is killed, and in this process with the same bins. The peak of memory of a worker
(for that, Linux is needed) is told for half of the rows and for all.
"""

import argparse
import os
import re
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd

from firmlib import FirmResult, StreamingFirm

ALL = ("variance", "standard_error", "ci_low", "ci_high", "pvalues", "missing")


def write(folder: Path, rows: int, files: int) -> None:
    """Numbers, one of them missing in a tenth of the rows, a word of many, and a date."""
    words, n = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"], rows // files
    for i in range(files):
        rng = np.random.default_rng(i)
        frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=[f"x{j}" for j in range(5)])
        frame.loc[rng.random(n) < 0.1, "x1"] = np.nan
        frame["word"] = rng.choice(words, n)
        days = pd.to_timedelta(rng.integers(0, 365, n), unit="D")
        frame["day"] = pd.Timestamp("2013-01-01") + days
        frame.to_parquet(folder / f"{i:04}.parquet")


def score(X: pd.DataFrame) -> np.ndarray:
    """A score of all columns but x4; a row without x1 has another one."""
    s = X["x0"] * 2 + np.sin(2 * X["x2"]) * X["x3"] + X["x1"].fillna(1.5)
    return (s + X["word"].isin(["ak", "bl"]) + X["day"].dt.month / 12).to_numpy()


def deadly(X: pd.DataFrame) -> np.ndarray:
    """The same, but the tenth call ends its process."""
    folder = Path(os.environ["FIRMLIB_DEADLY"])
    (folder / f"{time.time_ns()}-{os.getpid()}").touch()
    if len(list(folder.iterdir())) >= 10:
        try:
            (folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return score(X)
        os.kill(os.getpid(), signal.SIGKILL)
    return score(X)


def peak() -> float:
    """MB that a process had at most."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / 1e6


def on_cluster(model, files: list[str], bins=None) -> tuple[StreamingFirm, float, list]:
    """The stream, the seconds it took, and the workers' peaks of memory beyond their start."""
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        before, began = min(client.run(peak).values()), time.perf_counter()
        stream = StreamingFirm(bins=bins, first_rows=100_000).fit(dd.read_parquet(files), model)
        seconds = time.perf_counter() - began
        return stream, seconds, [round(p - before) for p in client.run(peak).values()]


def farthest(a: FirmResult, b: FirmResult, names: Sequence[str] = ALL) -> float:
    """The largest relative difference of two results."""
    pairs = [(getattr(a, name), getattr(b, name)) for name in names]
    pairs += [(a.curves[name].q, b.curves[name].q) for name in a.feature_names]
    return max(float(np.max(np.abs(x - y) / np.maximum(np.abs(y), 1e-9))) for x, y in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--folder", help="where to make the temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder, dead = Path(name, "rows"), Path(name, "dead")
        folder.mkdir()
        dead.mkdir()
        write(folder, arguments.rows, arguments.files)
        files = sorted(map(str, folder.iterdir()))
        half = on_cluster(score, files[: len(files) // 2])[2]
        stream, seconds, large = on_cluster(score, files)
        result = stream.result()
        print(f"{result.n} rows, {len(result)} columns: {seconds:.0f} s on two processes")
        print(f"memory of the workers beyond their start: {large} MB, of half the rows {half} MB")
        os.environ["FIRMLIB_DEADLY"] = str(dead)
        again = on_cluster(deadly, files, stream.bins)[0].result()
        calls = len(list(dead.iterdir())) - 1
        print(f"a killed worker: {calls} of {len(files)} files scored, {calls - len(files)} again;")
        print(f"  largest relative difference {farthest(again, result):.1e}")
        here, whole = StreamingFirm(bins=stream.bins), StreamingFirm(bins=stream.bins)
        for file in files:
            frame = pd.read_parquet(file)
            here.merge(StreamingFirm(bins=stream.bins).partial_fit(frame, score))
            whole.partial_fit(frame, score)
        gap = farthest(result, here.result())
        print(f"in one process, file by file: largest relative difference {gap:.1e}")
        assert gap < 1e-9
        one = whole.result()  # its rows are numbered through, so that others leave out together
        gap, errors = farthest(result, one, ("variance", "pvalues")), result.standard_error
        print(f"in one process, all rows as one table: variance and p-value {gap:.1e},")
        print(f"  standard errors {np.abs(errors / one.standard_error - 1).max():.2f}")


if __name__ == "__main__":
    main()
