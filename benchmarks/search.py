"""How fast is the exact search? python benchmarks/search.py; with pysubgroup, if installed.

10 000 rows of 30 columns, all conjunctions of up to three conditions: the ten best by the same
quality function, Q, with the same bound on what a refinement can reach, for pysubgroup's two
algorithms. Then more thresholds and rows, and the interactions of all pairs of 50 columns of 10^5
rows, firmlib alone.
"""

import sys
import time

import numpy as np
import pandas as pd
from timing import cpu_seconds

from firmlib import firm
from firmlib._conjunctions import Conjunctions
from firmlib.features import Pairs

N, COLUMNS, ORDER, BEST, MIN_ROWS = 10_000, 30, 3, 10, 20


def report(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def problem(n: int, cuts: int) -> tuple[np.ndarray, np.ndarray]:
    """Conditions above and not above quantiles, and scores that a rule of three drives in part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    rule = (X[:, 0] > 0.4) & (X[:, 1] < 0) & (X[:, 2] > -0.4)
    s = 1.0 * rule + 0.3 * X[:, 3] * X[:, 4] + 0.3 * rng.normal(size=n)
    taus = np.quantile(X, np.arange(1, cuts + 1) / (cuts + 1), axis=0).T
    above = [f > tau for f, some in zip(X.T, taus, strict=True) for tau in some]
    return np.column_stack([part for f in above for part in (f, ~f)]), s - s.mean()


def ours(holds: np.ndarray, r: np.ndarray) -> list[float]:
    found = Conjunctions(holds, r, np.ones(len(r)), MIN_ROWS)
    best = [found.importance(rule) for rule in found.best(ORDER, 4 * BEST)]
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


def timed(call, *arguments) -> tuple[float, list[float]]:
    start = time.process_time()
    found = call(*arguments)
    return time.process_time() - start, found


def main(cuts: int) -> None:
    holds, r = problem(N, cuts)
    m = holds.shape[1]
    many = m + m * (m - 1) // 2 + m * (m - 1) * (m - 2) // 6
    best = ours(holds, r)
    seconds = cpu_seconds(lambda: ours(holds, r), repeat=3)
    report(f"{N} x {COLUMNS}, {cuts} cuts, {many} conjunctions: firmlib {seconds:.2f} s")
    try:
        import pysubgroup as ps
    except ImportError:
        report("pysubgroup is not installed (it declares numpy < 2)")
        return
    for name, algorithm in {
        "Apriori": ps.Apriori(use_numba=False),
        "DFS": ps.DFS(ps.BitSetRepresentation),
    }.items():
        other, found = timed(theirs, ps, algorithm, holds, r)
        np.testing.assert_allclose(found, best)
        report(f"  pysubgroup, {name}: {other:.1f} s, {other / seconds:.0f} times as long")


if __name__ == "__main__":
    main(2)
    for n, cuts, order in ((10_000, 9, 2), (5_000, 9, 3), (100_000, 9, 2)):
        ORDER = order
        seconds, _ = timed(ours, *problem(n, cuts))
        report(f"firmlib, {n} x {COLUMNS}, {cuts} cuts, order {order}: {seconds:.1f} s")
    X = np.random.default_rng(0).normal(size=(100_000, 50))
    start = time.process_time()
    [best] = firm(X[:, 0] * X[:, 1] + X[:, 2], X, Pairs("interaction")).to_frame().index[:1]
    report(f"interactions of 1225 pairs, 10^5 rows: {time.process_time() - start:.1f} s, {best}")
