"""Does firmlib reach its targets of speed? python benchmarks/targets.py [--tiny]

All in one run, on one thread, with errors and intervals. The flights are 300 000 rows drawn from
those of `firmlib.datasets.flights`, with words, a date and missing values. --tiny takes a hundredth
of the rows and a tenth of the columns, to try the script.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance
from threadpoolctl import threadpool_limits
from timing import Row, cpu_seconds, peak_megabytes, show

from firmlib import StreamingFirm, firm
from firmlib.datasets import flights
from firmlib.scores import as_score

D, CHUNK = 20, 50_000


def table(n: int, d: int = D, dtype: type = float) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns by rows, and a score of the first with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=dtype)
    return X, X[:, 0] + rng.standard_normal(n)


def sort(n: int) -> float:
    X = table(n)[0]
    return cpu_seconds(lambda: np.sort(X, axis=0), 3)


def without_simd(n: int) -> float:
    """What NumPy's sort takes where the CPU has no AVX; it chooses its code when it is imported."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    setting = {"NPY_DISABLE_CPU_FEATURES": " ".join(found)}
    command = [sys.executable, "-c", f"import targets; print(targets.sort({n}))"]
    options = {"env": os.environ | setting, "cwd": Path(__file__).parent, "text": True}
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout)


def long_tables(n: int) -> Iterator[Row]:
    """10^6 rows, against a sort; other columns against normal ones."""
    X, s = table(n)
    ours = cpu_seconds(lambda: firm(s, X))
    what = f"{n:.0e} × {D} by rows"
    for kind, spent in {"": sort(n), " without SIMD": without_simd(n)}.items():
        yield Row(f"np.sort(X, axis=0){kind}, {n:.0e} × {D}", spent)
        yield Row(what, ours, ratio=ours / spent, to=f"np.sort{kind}", target=0.20)
    missing = np.random.default_rng(1).random(X.shape) < 0.3
    other = {
        "exp 2x": lambda: np.exp(2 * X),
        "Cauchy": lambda: np.random.default_rng(2).standard_cauchy(X.shape),
        "rounded to 0.1": lambda: X.round(1),
        "rounded to 0.001": lambda: X.round(3),
        "zeros and exp 3x": lambda: np.where(X < 0.5, 0.0, np.exp(3 * X)),
        "30 % missing": lambda: np.where(missing, np.nan, X),
    }
    for name, make in other.items():
        F = make()
        spent = cpu_seconds(lambda F=F: firm(s, F), 3)
        yield Row(f"{what}, {name}", spent, ratio=spent / ours, to="normal", target=1.5)


def boosted_trees(n: int) -> Iterator[Row]:
    """A model's ranking against one pass of its predictions, and against permutation."""
    X, y = make_classification(n, D, n_informative=8, n_redundant=8, random_state=0)
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    ours, one = cpu_seconds(lambda: firm(model, X), 7), cpu_seconds(lambda: as_score(model, X), 7)
    permuted = cpu_seconds(lambda: permutation_importance(model, X, y, random_state=0), 1)
    what = f"{n:.0e} × {D}, boosted trees"
    yield Row(what, ours, ratio=ours / one, to="a pass of predictions", target=1.5)
    yield Row(what, ours, ratio=ours / permuted, to="permutation, 5 repeats", target=1 / 60)


def mixed_columns(n: int) -> Iterator[Row]:
    """Categories, dates and missing values: the ranking against one pass of predictions."""
    X, delay = flights()
    used = [c for c in X if not pd.api.types.is_datetime64_any_dtype(X[c])]
    model = HistGradientBoostingClassifier(early_stopping=False).fit(X[used], ~(delay < 15))
    many = X.iloc[np.random.default_rng(0).integers(0, len(X), n)].reset_index(drop=True)

    def score(X: pd.DataFrame) -> np.ndarray:
        return model.predict_proba(X[used])[:, 1]

    one, ours = cpu_seconds(lambda: score(many), 2), cpu_seconds(lambda: firm(score, many), 2)
    what = f"{n:.0e} flights, {X.shape[1]} columns"
    yield Row(what, ours, ratio=ours / one, to="a pass of predictions", target=1.5)


def small_and_wide(d: int) -> Iterator[Row]:
    X, s = table(300)
    spent = 1000 * cpu_seconds(lambda: firm(s, X), 20)
    yield Row(f"300 × {D}", spent, "CPU ms", target=5)
    X, s = table(200, d)
    yield Row(f"200 × {d:.0e}", cpu_seconds(lambda: firm(s, X), 3), target=2.5)
    rng = np.random.default_rng(0)
    Z = sparse.random_array((10_000, d), density=0.005, rng=rng, format="csr")
    s = rng.standard_normal(10_000)
    spent = cpu_seconds(lambda: firm(s, Z), 3)
    yield Row(f"1e+04 × {d:.0e}, sparse, 0.5 % stored", spent, target=1)


def stream(n: int) -> Iterator[Row]:
    """The rows of one table in chunks, ten times."""
    X, s = table(n // 10, dtype=np.float32)

    def run() -> None:
        sums = StreamingFirm()
        for start in list(range(0, len(X), CHUNK)) * 10:
            sums.partial_fit(X[start : start + CHUNK], s[start : start + CHUNK])
        sums.result()

    yield Row(f"stream of {n:.0e} × {D} float32", cpu_seconds(run, 2), target=3 * n / 10**7)


def memory(n: int) -> float:
    """MB at most beyond the table and its scores; in a process of its own."""
    firm(*reversed(table(10_000)))  # what is imported on the way is there before
    X, s = table(n)
    before = peak_megabytes()
    firm(s, X)
    return peak_megabytes() - before


def rows(tiny: bool = False) -> Iterator[Row]:
    n, d = (10**4, 2000) if tiny else (10**6, 20_000)
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        beyond = fresh.submit(memory, n).result()
    with threadpool_limits(1):
        yield from long_tables(n)
        yield from boosted_trees(1000 if tiny else 10_000)
        yield from mixed_columns(3000 if tiny else 300_000)
        yield from small_and_wide(d)
        yield from stream(10 * n)
    yield Row(f"memory beyond a table of {n:.0e} × {D}", beyond, "MB", target=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script")
    show(rows(parser.parse_args().tiny))
