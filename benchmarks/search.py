"""How fast are very many features measured? python benchmarks/search.py [--tiny]

The best conjunction of up to three conditions on 10 000 rows of 30 columns by the same quality
function, Q, for firmlib and for the two algorithms of pysubgroup, if installed. Then the search
with more thresholds and rows, all xors of 1000 bits, and all interactions of 50 columns,
firmlib only.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from timing import Row, cpu_seconds, show, timed

from firmlib import firm, search
from firmlib.features import Pairs
from firmlib.joint.search import best, importance

N, COLUMNS, ORDER, MIN_ROWS = 10_000, 30, 3, 20


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and scores that a rule of three drives in part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    rule = (X[:, 0] > 0.4) & (X[:, 1] < 0) & (X[:, 2] > -0.4)
    return X, 1.0 * rule + 0.3 * X[:, 3] * X[:, 4] + 0.3 * rng.normal(size=n)


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Conditions above and not above two quantiles of each column, and centred scores."""
    X, s = table(n)
    taus = np.quantile(X, [1 / 3, 2 / 3], axis=0).T
    above = [f > tau for f, some in zip(X.T, taus, strict=True) for tau in some]
    return np.column_stack([part for f in above for part in (f, ~f)]), s - s.mean()


def ours(holds: np.ndarray, r: np.ndarray, order: int) -> float:
    p = np.full(len(r), 1 / len(r))
    families = [
        part for column in np.split(holds.T, COLUMNS) for part in (column[::2], column[1::2])
    ]
    rule = best(families, r, p, order, MIN_ROWS)[0]
    return float(importance(np.vstack(families)[rule].all(axis=0), r, p))


def theirs(ps, algorithm, holds: np.ndarray, r: np.ndarray) -> float:
    class Importance(ps.StandardQFNumeric):
        """Q, and the best run of the rows in the order of their scores as its bound."""

        def calculate_statistics(self, subgroup, target, data, statistics=None):
            cover, size = ps.get_cover_array_and_size(subgroup, len(data), data)
            ranked = np.sort(self.all_target_values[cover])[::-1]
            sizes = np.arange(1, size + 1)
            runs = np.cumsum(ranked) / np.sqrt(sizes * np.maximum(len(data) - sizes, 1))
            return self.tpl(size, ranked.mean() if size else 0.0, runs.max(initial=0.0))

        def evaluate(self, subgroup, target, data, statistics=None):
            size, n = np.asarray(statistics.size_sg), self.dataset_statistics.size_sg
            some = (size >= MIN_ROWS) & (size <= n - MIN_ROWS)
            Q = np.asarray(statistics.mean) * np.sqrt(size / np.maximum(n - size, 1))
            return np.where(some, Q, 0.0)

    frame = pd.DataFrame({f"c{i}": column for i, column in enumerate(holds.T)})
    task = ps.SubgroupDiscoveryTask(
        frame.assign(s=r),
        ps.NumericTarget("s"),
        [ps.EqualitySelector(name, True) for name in frame],
        Importance(1.0),
        result_set_size=1,
        depth=ORDER,
    )
    return float(algorithm.execute(task).to_descriptions()[0][0])


def pysubgroup(holds: np.ndarray, r: np.ndarray) -> Iterator[tuple[str, float, float]]:
    try:
        import pysubgroup as ps
    except ImportError:
        return
    yield "DFS", *timed(theirs, ps, ps.DFS(ps.BitSetRepresentation), holds, r)
    yield "Apriori", *timed(theirs, ps, ps.Apriori(use_numba=False), holds, r)


def rows(tiny: bool = False) -> Iterator[Row]:
    part = 10 if tiny else 1
    holds, r = problem(N // part)
    expected, seconds = ours(holds, r, ORDER), cpu_seconds(lambda: ours(holds, r, ORDER), 3)
    yield Row(f"conjunctions of up to 3, {len(r)} × {COLUMNS}, 2 thresholds", seconds)
    for name, found, other in () if tiny else pysubgroup(holds, r):
        np.testing.assert_allclose(found, expected)
        yield Row(f"the same by pysubgroup, {name}", other, ratio=other / seconds)
    for n, order in ((10_000, 2), (100_000, 2), (1000, 3)):
        X, s = table(max(n // part, 300))
        what = f"search(s, X, order={order}), {len(X)} × {COLUMNS}, 9 thresholds"
        yield Row(what, timed(search, s, X, order=order)[1])
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (1000, 1000 // part))
    spent = timed(firm, rng.standard_normal(1000), bits, Pairs("xor"))[1]
    yield Row(f"xors of all pairs of {1000 // part} bits, 1000 rows", spent)
    X = rng.normal(size=(100_000 // part, 50 // part))
    result, spent = timed(firm, X[:, 0] * X[:, 1] + X[:, 2], X, Pairs("interaction"))
    assert result.to_frame().index[0] == "x0 × x1"
    yield Row(f"interactions of all pairs of {X.shape[1]} columns, {len(X)} rows", spent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script")
    with threadpool_limits(1):
        show(rows(parser.parse_args().tiny))
