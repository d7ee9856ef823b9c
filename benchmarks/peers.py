"""How fast is FIRM beside its peers? python benchmarks/peers.py [--rows N]

One thread, one run, 20 correlated features. Where a peer would take too long it gets fewer rows or
features, which are named; only SALib's delta is scaled up. SHAP and SAGE would need more rows and
orders than here for a stable answer.
"""

import argparse
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import openturns as ot
import sage
import shap
from SALib.analyze import delta, rbd_fast
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from timing import Row, cpu_seconds, show

import firmlib
from firmlib.scores import as_score

ONE_PASS = "one pass of predictions"
FEATURES = 20
SUBSET = 1000  # rows of the brute partial dependence and of SHAP for boosted trees
Run = tuple[str, Callable[[], Any], int]


def models(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any]]:
    yield "boosting", HistGradientBoostingClassifier(random_state=0).fit(X, y)
    yield "forest of 100", RandomForestClassifier(random_state=0, n_jobs=1).fit(X, y)
    yield "RBF-SVC", SVC(random_state=0).fit(X[:2000], y[:2000])  # training is not the subject


def contestants(name: str, model: Any, X: np.ndarray, y: np.ndarray) -> Iterator[Run]:
    """What is timed for a model, and how often."""

    def score(rows: np.ndarray) -> np.ndarray:
        return as_score(model, rows)

    yield ONE_PASS, lambda: score(X), 5
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


def rows(n: int = 10_000) -> Iterator[Row]:
    warnings.simplefilter("ignore")
    logging.getLogger("shap").setLevel(logging.ERROR)
    ot.TBB.Disable()
    X, y = make_classification(n, FEATURES, n_informative=8, n_redundant=8, random_state=0)
    with threadpool_limits(1):
        for name, model in models(X, y):
            seconds = {}
            for what, call, repeat in contestants(name, model, X, y):
                seconds[what] = spent = cpu_seconds(call, repeat)
                if what == ONE_PASS:
                    yield Row(f"{name}: {what}, {n} × {FEATURES}", spent)
                elif what == "FIRM":
                    ratio = spent / seconds[ONE_PASS]
                    yield Row(f"{name}: FIRM", spent, ratio=ratio, to="a pass")
                else:
                    yield Row(f"{name}: {what}", spent, ratio=spent / seconds["FIRM"])
            if name == "boosting":
                s = as_score(model, X)
        (_, ours), *others = given_scores(X, s)
        yield Row("scores given: FIRM", ours)
        for what, spent in others:
            yield Row(f"scores given: {what}", spent, ratio=spent / ours)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    show(rows(parser.parse_args().rows))
