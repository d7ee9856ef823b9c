"""CPU seconds of FIRM and of its peers on one task: python benchmarks/peers.py [--rows N].

One thread, one run, 20 correlated features. Where a peer would take too long it gets fewer rows
or features, which are named; nothing but SALib's delta is scaled up. SHAP and SAGE would need more
rows and orders than here for a stable answer. Writes build/bench/peers.csv.
"""

import argparse
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openturns as ot
import pandas as pd
import sage
import shap
from SALib.analyze import delta, rbd_fast
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from timing import cpu_seconds

import firmlib
from firmlib.scores import as_score

OUTPUT = Path(__file__).parents[1] / "build" / "bench"
FEATURES = 20
SUBSET = 1000  # rows of the brute partial dependence and of SHAP for boosted trees
Run = tuple[str, Callable[[], Any], int]


def machines(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any]]:
    yield "boosting", HistGradientBoostingClassifier(random_state=0).fit(X, y)
    yield "forest of 100", RandomForestClassifier(random_state=0, n_jobs=1).fit(X, y)
    yield "RBF-SVC", SVC(random_state=0).fit(X[:2000], y[:2000])  # training is not the subject


def contestants(name: str, model: Any, X: np.ndarray, y: np.ndarray) -> Iterator[Run]:
    """What is timed for a model, and how often."""

    def score(rows: np.ndarray) -> np.ndarray:
        return as_score(model, rows)

    yield "one pass of predictions", lambda: score(X), 5
    yield "FIRM", lambda: firmlib.firm(model, X), 5
    yield "permutation, 5 repeats", lambda: permutation_importance(model, X, y, random_state=0), 1

    def dependence(method: str, rows: int) -> None:
        for j in range(FEATURES):
            partial_dependence(model, X[:rows], [j], method=method, grid_resolution=20)

    yield f"partial dependence, {SUBSET} rows", lambda: dependence("brute", SUBSET), 1
    if name == "boosting":  # scikit-learn has it for forests of regression trees only
        yield "partial dependence, recursion", lambda: dependence("recursion", len(X)), 1
    if name == "RBF-SVC":
        background = shap.maskers.Independent(X, max_samples=50)
        explain = shap.explainers.Permutation(score, background, seed=0)
        yield "SHAP by permutation, 10 rows", lambda: explain(X[:10], silent=True), 1
    else:
        rows = SUBSET if name == "boosting" else 50
        tree = shap.TreeExplainer(model)
        yield f"SHAP of trees, {rows} rows", lambda: tree.shap_values(X[:rows]), 1
    estimate = sage.PermutationEstimator(sage.MarginalImputer(score, X[:64]), "mse", random_state=0)
    options = {"n_permutations": 64, "batch_size": 64, "detect_convergence": False, "bar": False}
    yield "SAGE, 64 orders, 64 rows", lambda: estimate(X, y.astype(float), **options), 1


def given_scores(X: np.ndarray, s: np.ndarray) -> Iterator[tuple[str, float]]:
    """Estimators of one quantity, Var E[s | x_j], from scores that are there already."""
    yield "FIRM", cpu_seconds(lambda: firmlib.firm(s, X), 10)
    Xs, ss = ot.Sample(X), ot.Sample(s[:, None])
    rank = ot.RankSobolSensitivityAlgorithm
    yield "OpenTURNS, rank", cpu_seconds(lambda: rank(Xs, ss).getFirstOrderIndices(), 3)
    problem = {"num_vars": FEATURES, "names": [f"x{j}" for j in range(FEATURES)]}
    yield "SALib, RBD-FAST", cpu_seconds(lambda: rbd_fast.analyze(problem, X, s, seed=1), 1)
    problem = {"num_vars": 2, "names": ["x0", "x1"]}
    with warnings.catch_warnings(record=True):  # delta sets its own filter
        two = cpu_seconds(lambda: delta.analyze(problem, X[:, :2], s, seed=1), 1)
    yield "SALib delta, 10 × two features", two * FEATURES / 2


def goal(what: str, reached: float, wanted: float, *, at_most: bool = False) -> None:
    met = reached <= wanted if at_most else reached >= wanted
    bound = "at most" if at_most else "at least"
    print(f"  {what}: {reached:.3g}, wanted {bound} {wanted:g}: {'met' if met else 'NOT met'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")
    logging.getLogger("shap").setLevel(logging.ERROR)
    ot.TBB.Disable()
    X, y = make_classification(n, FEATURES, n_informative=8, n_redundant=8, random_state=0)

    rows = []
    print(f"{n} × {FEATURES}, CPU seconds of one thread\n")
    print(f"{'':14}{'':34}{'seconds':>9}{'passes':>9}{'× FIRM':>9}")
    for name, model in machines(X, y):
        seconds = {}
        for what, call, repeat in contestants(name, model, X, y):
            seconds[what] = cpu_seconds(call, repeat)
            passes = seconds[what] / seconds["one pass of predictions"]
            ratio = seconds[what] / seconds["FIRM"] if "FIRM" in seconds else np.nan
            times = f"{ratio:.1f}" if "FIRM" in seconds else ""
            rows.append((name, what, seconds[what], passes, ratio))
            print(f"{name:14}{what:34}{seconds[what]:9.3f}{passes:9.2f}{times:>9}", flush=True)
        print()
        if name == "boosting":
            s = as_score(model, X)
    seconds = {}
    for what, spent in given_scores(X, s):
        seconds[what] = spent
        rows.append(("scores given", what, spent, np.nan, spent / seconds["FIRM"]))
        print(
            f"{'scores given':14}{what:34}{spent:9.4f}{'':9}{spent / seconds['FIRM']:9.1f}",
            flush=True,
        )

    table = pd.DataFrame(rows, columns=["model", "what", "cpu_seconds", "passes", "times_firm"])
    OUTPUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUTPUT / "peers.csv", index=False, float_format="%.6g")

    print("\nGoals")
    ratios = table.set_index(["model", "what"])
    for name in table["model"].unique()[:-1]:
        goal(f"{name}, FIRM in passes", ratios.loc[(name, "FIRM"), "passes"], 1.3, at_most=True)
        permutation = ratios.loc[(name, "permutation, 5 repeats"), "times_firm"]
        goal(f"{name}, times faster than permutation", permutation, 80)
    wanted = {"OpenTURNS, rank": 10, "SALib delta, 10 × two features": 150}
    for what, times in wanted.items():
        goal(f"times faster than {what}", ratios.loc[("scores given", what), "times_firm"], times)
    faster = table[(table["times_firm"] < 1) & (table["what"] != "one pass of predictions")]
    for row in faster.itertuples():
        print(f"  faster than FIRM: {row.what} ({row.model}), {1 / row.times_firm:.1f} times")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
