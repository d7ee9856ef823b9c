"""Time and memory of the statistic against rows and features: python benchmarks/scaling.py.

The scores are given; np.sort(X, axis=0) runs beside it for comparison. Every size has a process of
its own, whose peak memory is counted from after the data were made. Then columns with long tails
and ties beside normal ones, wide tables, and half a million pairs. Writes build/bench/scaling.png
and .csv. --quick leaves out ten million rows.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits
from timing import Row, show

import firmlib
from firmlib import display
from firmlib.compendium import figures
from firmlib.features import Pairs

OUTPUT = Path(__file__).parents[1] / "build" / "bench"
BYTES = 1 if sys.platform == "darwin" else 1024  # unit of ru_maxrss


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES


def seconds(call: Callable[[], Any], clock: Callable[[], float], repeat: int) -> float:
    """The least of some runs."""
    times = []
    for _ in range(repeat):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def measure(n: int, d: int, n_jobs: int) -> dict[str, float]:
    """Seconds of FIRM and of np.sort, CPU or with several jobs wall, and FIRM's extra memory."""
    rng = np.random.default_rng(0)
    firmlib.firm(rng.normal(size=1000), rng.normal(size=(1000, 2)), n_jobs=n_jobs)  # warm up
    X = rng.standard_normal((n, d))
    s = X[:, 0] + rng.standard_normal(n)
    repeat = 5 if n * d <= 10**7 else 1
    clock = time.process_time if n_jobs == 1 else time.perf_counter
    with threadpool_limits(1):
        before = peak()
        first = seconds(lambda: firmlib.firm(s, X, n_jobs=n_jobs), clock, 1)
        memory = peak() - before
        rest = seconds(lambda: firmlib.firm(s, X, n_jobs=n_jobs), clock, repeat)
        sort = seconds(lambda: np.sort(X, axis=0), clock, repeat)
    size = {"n": n, "d": d, "n_jobs": n_jobs}
    return size | {"firm": min(first, rest), "sort": sort, "memory": memory, "data": X.nbytes}


def wide(kind: str, d: int) -> float:
    """CPU seconds of FIRM on a wide table, on one thread."""
    rng = np.random.default_rng(0)
    if kind.startswith("sparse"):
        X: Any = sparse.random_array((10_000, d), density=0.005, rng=rng, format="csr")
    else:
        X = rng.standard_normal((200, d))
    s = rng.standard_normal(X.shape[0])
    X = pd.DataFrame(X, columns=[f"gene {j}" for j in range(d)]) if kind == "frame" else X

    def stream() -> None:
        firmlib.StreamingFirm(first_rows=5000).partial_fit(X[:5000], s[:5000]).partial_fit(
            X[5000:], s[5000:]
        ).result()

    call = stream if kind == "sparse stream" else lambda: firmlib.firm(s, X)
    with threadpool_limits(1):
        return seconds(call, time.process_time, 3)


def pairs(columns: int) -> float:
    """CPU seconds of the xors of all pairs of bits, with their table and one curve."""
    rng = np.random.default_rng(0)
    X, s = rng.integers(0, 2, (1000, columns)), rng.standard_normal(1000)

    def call() -> None:
        result = firmlib.firm(s, X, Pairs("xor"))
        result.curves[result.to_frame().index[0]]

    with threadpool_limits(1):
        return seconds(call, time.process_time, 1)


def kinds(n: int, columns: int = 12) -> Iterator[tuple[str, float]]:
    """CPU seconds of FIRM on tables of one kind of column, on one thread; the first are normal."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(n)
    s, half = z + rng.standard_normal(n), rng.random(n) < 0.5
    values = {
        "normal": z,
        "exp x": np.exp(z),
        "exp 2x": np.exp(2 * z),
        "Cauchy": rng.standard_cauchy(n),
        "tenths": z.round(1),
        "thousandths": z.round(3),
        "zeros and exp x": np.where(half, 0.0, np.exp(z)),
        "zeros and exp 3x": np.where(z < 0.5, 0.0, np.exp(3 * z)),
        "zeros and normal": np.where(half, 0.0, z),
    }
    for name, f in values.items():
        X = np.asfortranarray(np.column_stack([f] * columns))
        with threadpool_limits(1):
            yield name, seconds(lambda X=X: firmlib.firm(s, X), time.process_time, 7)


def slope(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """Exponent and factor of y = c x^a, from the upper half of the sizes."""
    upper = x >= x.median()
    a, log_c = np.polyfit(np.log(x[upper]), np.log(y[upper]), 1)
    return a, np.exp(log_c)


def draw(ax: plt.Axes, x: pd.Series, y: pd.Series, color: str, name: str) -> None:
    a, c = slope(x, y)
    ax.loglog(x, y, "o", color=color, markersize=4, label=f"{name}, slope {a:.2f}")
    ax.loglog(x, c * x**a, color=color, linewidth=1)


def rows(quick: bool = False) -> Iterator[Row]:
    by_n = [(int(n), 20, 1) for n in np.geomspace(10**3, 10**6, 7).round(-2)]
    by_d = [(100_000, d, 1) for d in (2, 5, 10, 20, 50, 100)]
    big = [] if quick else [(10**7, 10, 2)]
    measured = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for size in pool.map(measure, *zip(*(by_n + by_d + big), strict=True)):
            measured.append(size)
            what = f"scores given, {size['n']:,} × {size['d']}"
            if size["n_jobs"] == 2:
                yield Row(f"{what}, two jobs", size["firm"], "s on the clock")
            else:
                yield Row(what, size["firm"], ratio=size["firm"] / size["sort"], to="np.sort")
    table = pd.DataFrame(measured)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUTPUT / "scaling.csv", index=False, float_format="%.6g")

    mpl.use("agg")
    figures.use_style()
    figure, axes = plt.subplots(2, 2, figsize=(6.5, 5), sharex="col", sharey="row")
    parts = {"n": table[: len(by_n)], "d": table[len(by_n) : len(by_n) + len(by_d)]}
    for (time_ax, memory_ax), (size, part) in zip(axes.T, parts.items(), strict=True):
        draw(time_ax, part[size], part["firm"], display.RED, "FIRM")
        draw(time_ax, part[size], part["sort"], display.GREY, "np.sort")
        used = part[part["memory"] > 2**20]  # below, the allocator's grain
        draw(memory_ax, used[size], used["memory"] / 1e6, display.BLUE, "FIRM's extra memory")
        memory_ax.loglog(part[size], part["data"] / 1e6, "--", color=display.GREY, label="X itself")
        for ax in (time_ax, memory_ax):
            ax.legend(fontsize=7, loc="upper left")
    axes[0, 0].set(ylabel="CPU seconds", title="20 features")
    axes[0, 1].set(title="100 000 rows")
    axes[1, 0].set(ylabel="memory, MB", xlabel="rows $n$")
    axes[1, 1].set(xlabel="features $d$")
    figure.savefig(OUTPUT / "scaling.png")

    (_, normal), *others = kinds(10**6)
    for name, spent in others:
        yield Row(f"1,000,000 × 12, {name}", spent, ratio=spent / normal, to="normal")
    for kind in ("array", "frame", "sparse", "sparse stream"):
        narrow, all_of_it = wide(kind, 2000), wide(kind, 20_000)
        what = f"20,000 columns, {kind}"
        yield Row(what, all_of_it, ratio=all_of_it / narrow, to="2000 columns")
    yield Row("xors of 499,500 pairs of bits", pairs(1000))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without ten million rows")
    show(rows(parser.parse_args().quick))
