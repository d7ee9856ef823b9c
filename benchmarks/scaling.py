"""How do time and memory grow, and what follows for a cluster? python benchmarks/scaling.py

The scores are given; np.sort(X, axis=0) runs beside it. Each size has a process of its own, whose
peak memory is counted from after the data were made. Writes scaling.png. Then what a stream of 1000
columns needs for a value, keeps and sends. --tiny leaves out the large sizes, and the picture.
"""

import argparse
import pickle
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from timing import Row, cpu_seconds, show, timed

from firmlib import StreamingFirm, display, firm
from firmlib.compendium import figures

BYTES = 1 if sys.platform == "darwin" else 1024  # unit of ru_maxrss


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES


def measure(n: int, d: int) -> dict[str, float]:
    """CPU seconds of FIRM and of np.sort, and FIRM's extra memory."""
    rng = np.random.default_rng(0)
    firm(rng.normal(size=1000), rng.normal(size=(1000, 2)))  # warm up
    X = rng.standard_normal((n, d))
    s = X[:, 0] + rng.standard_normal(n)
    repeat = 5 if n * d <= 10**7 else 2
    with threadpool_limits(1):
        before = peak()
        first = timed(firm, s, X)[1]
        memory = peak() - before
        ours = min(first, cpu_seconds(lambda: firm(s, X), repeat))
        sort = cpu_seconds(lambda: np.sort(X, axis=0), repeat)
    return {"n": n, "d": d, "firm": ours, "sort": sort, "memory": memory, "data": X.nbytes}


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
        used = part[part["memory"] > 2**20]  # below, the allocator's grain
        memory_ax.loglog(
            used[size], used["memory"] / 1e6, "o-", color=display.BLUE, label="FIRM's extra memory"
        )
        memory_ax.loglog(part[size], part["data"] / 1e6, "--", color=display.GREY, label="X itself")
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script")
    show(rows(parser.parse_args().tiny))
