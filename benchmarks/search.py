"""How fast is the exact search? python benchmarks/search.py; with pysubgroup, if installed.

10 000 rows of 30 columns, all conjunctions of up to three conditions: the ten best by the same
quality function, Q, with the same bound on what a refinement can reach, for pysubgroup's two
algorithms. Then more thresholds and rows, and the interactions of all pairs of 50 columns of 10^5
rows, firmlib alone.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from firmlib._conjunctions import Conjunctions
from timing import Row, cpu_seconds, show, timed

from firmlib import firm
from firmlib.features import Pairs

N, COLUMNS, ORDER, BEST, MIN_ROWS = 10_000, 30, 3, 10, 20


def problem(n: int, cuts: int) -> tuple[np.ndarray, np.ndarray]:
    """Conditions above and not above quantiles, and scores that a rule of three drives in part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    rule = (X[:, 0] > 0.4) & (X[:, 1] < 0) & (X[:, 2] > -0.4)
    s = 1.0 * rule + 0.3 * X[:, 3] * X[:, 4] + 0.3 * rng.normal(size=n)
    taus = np.quantile(X, np.arange(1, cuts + 1) / (cuts + 1), axis=0).T
    above = [f > tau for f, some in zip(X.T, taus, strict=True) for tau in some]
    return np.column_stack([part for f in above for part in (f, ~f)]), s - s.mean()


def ours(holds: np.ndarray, r: np.ndarray, order: int) -> list[float]:
    found = Conjunctions(holds, r, np.ones(len(r)), MIN_ROWS)
    best = [found.importance(rule) for rule in found.best(order, 4 * BEST)]
    return sorted((Q for Q in best if Q > 0), reverse=True)[:BEST]


def theirs(ps, algorithm, holds: np.ndarray, r: np.ndarray) -> list[float]:
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
        result_set_size=BEST,
        depth=ORDER,
    )
    return [float(Q) for Q, _ in algorithm.execute(task).to_descriptions()]


def rows() -> Iterator[Row]:
    holds, r = problem(N, 2)
    m = holds.shape[1]
    many = m + m * (m - 1) // 2 + m * (m - 1) * (m - 2) // 6
    best = ours(holds, r, ORDER)
    seconds = cpu_seconds(lambda: ours(holds, r, ORDER), repeat=3)
    yield Row(f"{many:,} conjunctions of up to 3, {N:,} × {COLUMNS}, 2 thresholds", seconds)
    try:
        import pysubgroup as ps
    except ImportError:
        ps = None
    for name in ("DFS", "Apriori") if ps else ():
        algorithm = (
            ps.DFS(ps.BitSetRepresentation) if name == "DFS" else ps.Apriori(use_numba=False)
        )
        found, other = timed(theirs, ps, algorithm, holds, r)
        np.testing.assert_allclose(found, best)
        yield Row(f"the same by pysubgroup, {name}", other, ratio=other / seconds)
    for n, order in ((10_000, 2), (5_000, 3), (100_000, 2)):
        what = f"conjunctions of up to {order}, {n:,} × {COLUMNS}, 9 thresholds"
        yield Row(what, timed(ours, *problem(n, 9), order)[1])
    X = np.random.default_rng(0).normal(size=(100_000, 50))
    result, seconds = timed(firm, X[:, 0] * X[:, 1] + X[:, 2], X, Pairs("interaction"))
    assert result.to_frame().index[0] == "x0 × x1"
    yield Row("interactions of 1225 pairs, 100,000 rows", seconds)


if __name__ == "__main__":
    show(rows())
