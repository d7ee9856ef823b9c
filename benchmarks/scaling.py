"""How do time and memory grow with rows and features? python benchmarks/scaling.py [--tiny]

The scores are given; np.sort(X, axis=0) runs beside it. Each size has a process of its own, whose
peak memory is counted from after the data were made. Writes scaling.png. Then: what a stream of
1000 columns needs for a value, keeps and sends; whether memory stays the same while a memory map
and a Parquet file are read; very many features. --tiny takes small
sizes, to try the script, and draws nothing.
"""

import argparse
import mmap
import pickle
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits
from timing import Row, cpu_seconds, peak_megabytes, show, timed

from firmlib import StreamingFirm, display, firm, search
from firmlib.compendium import figures
from firmlib.features import Pairs

D, CHUNK = 20, 50_000
WEIGHTS = np.linspace(2, 0, D, dtype=np.float32)


def measure(n: int, d: int) -> dict[str, float]:
    """CPU seconds of FIRM and of np.sort, and FIRM's extra memory."""
    rng = np.random.default_rng(0)
    firm(rng.normal(size=1000), rng.normal(size=(1000, 2)))  # warm up
    X = rng.standard_normal((n, d))
    s = X[:, 0] + rng.standard_normal(n)
    repeat = 5 if n * d <= 10**7 else 2
    with threadpool_limits(1):
        before = peak_megabytes()
        first = timed(firm, s, X)[1]
        memory = peak_megabytes() - before
        ours = min(first, cpu_seconds(lambda: firm(s, X), repeat))
        sort = cpu_seconds(lambda: np.sort(X, axis=0), repeat)
    return {"n": n, "d": d, "firm": ours, "sort": sort, "memory": memory, "data": X.nbytes / 1e6}


def draw(ax: plt.Axes, x: pd.Series, y: pd.Series, color: str, name: str) -> None:
    """Points, and y = c x^a from the upper half of the sizes."""
    upper = x >= x.median()
    a, log_c = np.polyfit(np.log(x[upper]), np.log(y[upper]), 1)
    ax.loglog(x, y, "o", color=color, markersize=4, label=f"{name}, slope {a:.2f}")
    ax.loglog(x, np.exp(log_c) * x**a, color=color, linewidth=1)


def picture(parts: dict[str, pd.DataFrame]) -> None:
    mpl.use("agg")
    figures.use_style()
    figure, axes = plt.subplots(2, 2, figsize=(6.5, 5), sharex="col", sharey="row")
    for (time_ax, memory_ax), (size, part) in zip(axes.T, parts.items(), strict=True):
        draw(time_ax, part[size], part["firm"], display.RED, "FIRM")
        draw(time_ax, part[size], part["sort"], display.GREY, "np.sort")
        used = part[part["memory"] > 1]  # below, the allocator's grain
        memory_ax.loglog(
            used[size], used["memory"], "o-", color=display.BLUE, label="FIRM's extra memory"
        )
        memory_ax.loglog(part[size], part["data"], "--", color=display.GREY, label="X itself")
        for ax in (time_ax, memory_ax):
            ax.legend(fontsize=7, loc="upper left")
    axes[0, 0].set(ylabel="CPU seconds", title="20 features")
    axes[0, 1].set(title="100 000 rows")
    axes[1, 0].set(ylabel="memory, MB", xlabel="rows $n$")
    axes[1, 1].set(xlabel="features $d$")
    figure.savefig(Path(__file__).with_suffix(".png"))


def stream(n: int, d: int) -> Iterator[Row]:
    """What a worker needs for a chunk, keeps, and sends; and by this, 10^10 × 1000."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    one, other = (StreamingFirm().partial_fit(X, X[:, 0]) for _ in range(2))
    other = StreamingFirm(bins=one.bins).partial_fit(X, X[:, 0])
    spent = cpu_seconds(lambda: one.partial_fit(X, X[:, 0]), 3)
    yield Row(f"a chunk of {n:.0e} × {d} float32", spent)
    yield Row("the same, for a value", 1e9 * spent / X.size, "CPU ns")
    sums = pickle.dumps(other)
    yield Row("sums of a worker, as they are sent", len(sums) / 1e6, "MB")
    merge = cpu_seconds(lambda: one.merge(pickle.loads(sums)), 3)
    yield Row("to receive and add the sums of another worker", merge)
    yield Row("the result of the sums", cpu_seconds(one.result, 1))
    yield Row("by these, 10^10 × 1000", spent / X.size * 1e13 / 3600, "CPU h")


def chunks(path: Path) -> Iterator[np.ndarray]:
    """Yield a memory map by rows; its pages are given back, or they would count as memory used."""
    F = np.load(path, mmap_mode="r")
    for start in range(0, len(F), CHUNK):
        yield F[start : start + CHUNK]
        F._mmap.madvise(mmap.MADV_DONTNEED)


def score(X) -> np.ndarray:
    return np.asarray(X, dtype=np.float32) @ WEIGHTS


def write(path: Path, n: int) -> None:
    """Write normal float32 as a memory map or a Parquet file, chunk by chunk."""
    rng = np.random.default_rng(0)
    sizes = np.diff([*range(0, n, CHUNK), n])
    made = (rng.standard_normal((size, D), dtype=np.float32) for size in sizes)
    if path.suffix == ".npy":
        memory = np.lib.format.open_memmap(path, "w+", np.float32, (n, D))
        for start, F in zip(range(0, n, CHUNK), made, strict=True):
            memory[start : start + len(F)] = F
        return
    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(D)])
    with pq.ParquetWriter(path, schema) as file:
        for F in made:
            file.write_table(pa.table(list(F.T.copy()), schema=schema))


def read(path: Path) -> tuple[float, float]:
    """Return CPU seconds and MB beyond the start of one pass over a file."""
    before = peak_megabytes()
    source = chunks(path) if path.suffix == ".npy" else str(path)
    stream, spent = timed(StreamingFirm().fit, source, score)
    result = stream.result()
    strong, near = slice(D - 2), 25 / np.sqrt(result.n)
    np.testing.assert_allclose(result.importances[strong], WEIGHTS[strong], atol=near)
    return spent, peak_megabytes() - before


def files(n: int) -> Iterator[Row]:
    """Read files of n / 10 and n rows: memory must not grow with them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, size in (("npy", n // 10), ("npy", n), ("parquet", n // 5)):
            path = Path(folder, f"rows.{name}")
            write(path, size)
            with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                spent, beyond = fresh.submit(read, path).result()
            what = f"{'memory map' if name == 'npy' else 'Parquet'}, {size:.0e} × {D}"
            yield Row(what, spent)
            yield Row(f"{what}: memory beyond the start", beyond, "MB")
            path.unlink()


def many(part: int) -> Iterator[Row]:
    """Measure very many features: rules, xors of bits, interactions."""
    rng = np.random.default_rng(0)
    for n, order in ((10_000, 2), (100_000, 2), (1000, 3)):
        X = rng.normal(size=(max(n // part, 300), 30))
        s = 1.0 * ((X[:, 0] > 0.4) & (X[:, 1] < 0) & (X[:, 2] > -0.4)) + 0.3 * X[:, 3]
        what = f"search(s, X, order={order}), {len(X)} × 30"
        yield Row(what, timed(search, s, X, order=order)[1])
    bits = rng.integers(0, 2, (1000, 1000 // part))
    spent = timed(firm, rng.standard_normal(1000), bits, Pairs("xor"))[1]
    yield Row(f"xors of all pairs of {1000 // part} bits, 1000 rows", spent)
    X = rng.normal(size=(100_000 // part, 50 // part))
    result, spent = timed(firm, X[:, 0] * X[:, 1] + X[:, 2], X, Pairs("interaction"))
    assert result.to_frame().index[0] == "x0 × x1"
    yield Row(f"interactions of all pairs of {X.shape[1]} columns, {len(X)} rows", spent)


def rows(tiny: bool = False) -> Iterator[Row]:
    by_n = [(int(n), 20) for n in np.geomspace(10**3, 10**6, 7).round(-2)]
    by_d = [(100_000, d) for d in (2, 5, 10, 20, 50, 100)]
    if tiny:
        by_n, by_d = by_n[:3], [(1000, d) for d in (2, 5, 10)]
    measured = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for size in pool.map(measure, *zip(*(by_n + by_d), strict=True)):
            measured.append(size)
            what = f"scores given, {size['n']} × {size['d']}"
            yield Row(what, size["firm"], ratio=size["firm"] / size["sort"], to="np.sort")
    table = pd.DataFrame(measured)
    if not tiny:
        picture({"n": table[: len(by_n)], "d": table[len(by_n) :]})
    with threadpool_limits(1):
        yield from stream(2000 if tiny else 50_000, 50 if tiny else 1000)
        yield from files(10**5 if tiny else 10**7)
        yield from many(10 if tiny else 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script")
    show(rows(parser.parse_args().tiny))
