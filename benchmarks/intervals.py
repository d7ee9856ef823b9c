"""Do 95 % intervals cover, and does the 5 % test keep its size? python benchmarks/intervals.py

Populations whose importances are known, many samples of each. A feature is "null" if its
importance is 0; its noise may differ between its values. --csv FILE keeps the table; --plain leaves
out what weights and units mean, for comparison.
"""

import argparse
import warnings
from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats
from tqdm import tqdm

from firmlib import firm

Sample = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def gaussian() -> tuple[Sample, list[float]]:
    """s = x0 + x1 / 2, x0 and x1 correlated, x2 a proxy of both, x3 alone."""
    corr = np.eye(4)
    corr[:3, :3] = [[1, 0.5, 0.6], [0.5, 1, 0.2], [0.6, 0.2, 1]]
    w = np.array([1, 0.5, 0, 0])

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.multivariate_normal(np.zeros(4), corr, n)
        return X, X @ w

    return sample, (corr @ w).tolist()


def curved() -> tuple[Sample, list[float]]:
    """s = x0^2 + x1^3 / 4 of normal inputs: most of the variance is in the tails; x2 is null."""

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, 3))
        return X, X[:, 0] ** 2 + X[:, 1] ** 3 / 4

    return sample, [np.sqrt(2), np.sqrt(15) / 4, 0.0]


def ishigami() -> tuple[Sample, list[float]]:
    """s = sin x0 + 7 sin(x1)^2 + 0.1 x2^4 sin x0: x2 is null, but moves the spread of s."""

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.uniform(-np.pi, np.pi, (n, 3))
        return X, np.sin(X[:, 0]) * (1 + 0.1 * X[:, 2] ** 4) + 7 * np.sin(X[:, 1]) ** 2

    return sample, [(1 + np.pi**4 / 50) / np.sqrt(2), 7 / np.sqrt(8), 0.0]


def binary() -> tuple[Sample, list[float]]:
    """Four bits, s = b0 + 2 b1 + (2 b0 - 1)(2 b2 - 1) + b0 b3: b2 is null."""
    p = np.array([0.5, 0.2, 0.5, 0.1])

    def score(B: np.ndarray) -> np.ndarray:
        return B[:, 0] + 2 * B[:, 1] + (2 * B[:, 0] - 1) * (2 * B[:, 2] - 1) + B[:, 0] * B[:, 3]

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        B = (rng.random((n, 4)) < p).astype(float)
        return B, score(B)

    table = np.array(list(product([0.0, 1.0], repeat=4)))
    weight = np.prod(np.where(table == 1, p, 1 - p), axis=1)
    truth = firm(score, table, sample_weight=weight, rows="population").importances
    return sample, np.abs(truth).round(12).tolist()


def uneven_levels() -> tuple[Sample, list[float]]:
    """Twenty levels with Pr(k) ~ 1 / (k + 1); the second feature is null, but scales the noise."""
    p = 1 / np.arange(1, 21)
    p /= p.sum()
    q = np.sin(np.arange(20)) / 2

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        K = rng.choice(20, (n, 2), p=p)
        return K, q[K[:, 0]] + rng.normal(size=n) * np.where(K[:, 1] >= 3, 1.5, 0.5)

    return sample, [float(np.sqrt(p @ (q - p @ q) ** 2)), 0.0]


def heavy_ties() -> tuple[Sample, list[float]]:
    """Counts, 40 % of them 0, with exponential noise; the second feature is null."""
    k = np.arange(2000)
    p = 0.6 * stats.nbinom.pmf(k, 0.5, 0.02)
    p[0] += 0.4
    q = np.sqrt(k) / 5

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        K = rng.negative_binomial(0.5, 0.02, (n, 2)) * (rng.random((n, 2)) < 0.6)
        return K, q[K[:, 0]] + rng.exponential(size=n)

    return sample, [float(np.sqrt(p @ (q - p @ q) ** 2)), 0.0]


Population = Callable[[], tuple[Sample, list[float]]]


def of_one(curve: Callable, noise: float, truth: float, *, t3: bool = False) -> Population:
    """s = curve(x0) + noise, of normal or Student's t3; x1 is null."""

    def population() -> tuple[Sample, list[float]]:
        def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
            X = rng.normal(size=(n, 2))
            e = rng.standard_t(3, n) if t3 else rng.normal(size=n)
            return X, curve(X[:, 0]) + noise * e

        return sample, [truth, 0.0]

    return population


def fifty_levels() -> tuple[Sample, list[float]]:
    """Fifty uneven levels without order, and a null feature of the same kind."""
    p = 1 / np.arange(1, 51)
    p /= p.sum()
    q = np.random.default_rng(0).normal(size=50)

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        K = rng.choice(50, (n, 2), p=p)
        return K, q[K[:, 0]] + rng.normal(size=n)

    return sample, [float(np.sqrt(p @ (q - p @ q) ** 2)), 0.0]


POPULATIONS: dict[str, Population] = {
    f.__name__: f for f in (gaussian, curved, ishigami, binary, uneven_levels, heavy_ties)
} | {
    "sine": of_one(lambda x: np.sin(8 * x), 0.5, np.sqrt((1 - np.exp(-128)) / 2)),
    "sine, no noise": of_one(lambda x: np.sin(8 * x), 0.0, np.sqrt((1 - np.exp(-128)) / 2)),
    "steps": of_one(lambda x: np.sign(x) + (x > 1), 0.5, float(np.sqrt(1.4507942721943161))),
    "weak": of_one(lambda x: 0.1 * x, 1.0, 0.1),
    "t3 noise": of_one(lambda x: x, 1.0, 1.0, t3=True),
    "exp": of_one(lambda x: np.exp(2 * x), 1.0, float(np.sqrt(np.exp(8) - np.exp(4)))),
    "fifty levels": fifty_levels,
    "weights": of_one(lambda x: x, 1.0, 1.0),
    "units": of_one(lambda x: x, 1.0, 1.0),
}


def drawn(name: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Return the rows and scores of a sample, and what `firm` is told of them."""
    X, s = POPULATIONS[name]()[0](rng, n)
    options: dict = {}
    if name == "weights":
        options["sample_weight"] = rng.exponential(size=n)
    if name == "units":  # ten rows each, alike in the noise and in the null feature
        unit = np.arange(n) // 10
        u = rng.normal(size=(unit.max() + 1, 2))[unit]
        s, X[:, 1] = X[:, 0] + u[:, 0], u[:, 1]
        options["groups"] = unit
    if name == "fifty levels":
        options["categorical"] = [0, 1]
    return X, s, options


def simulate(name: str, n: int, repeats: int, plain: bool) -> pd.DataFrame:
    """Coverage, width, rejections and error over samples, one row per feature."""
    truth = np.array(POPULATIONS[name]()[1])
    rng = np.random.default_rng(n)
    low, high, found, rejects = (np.zeros((repeats, len(truth))) for _ in range(4))
    for k in range(repeats):
        X, s, options = drawn(name, rng, n)
        result = firm(s, X, **({} if plain else options))
        if plain and "sample_weight" in options:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = firm(s, X, sample_weight=options["sample_weight"])
        ends = np.abs([result.ci_low, result.ci_high])
        low[k], high[k] = ends.min(axis=0), ends.max(axis=0)
        low[k, result.ci_low * result.ci_high <= 0] = 0
        found[k], rejects[k] = np.abs(result.importances), result.pvalues < 0.05
    real = truth > 0
    table = {
        "population": name,
        "n": n,
        "feature": [f"x{j}" for j in range(len(truth))],
        "truth": truth,
        "mean": found.mean(axis=0),
        "rmse": np.sqrt(((found - truth) ** 2).mean(axis=0)),
        "coverage": np.where(real, ((low <= truth) & (truth <= high)).mean(axis=0), np.nan),
        "above 0": np.where(real, np.nan, (low > 0).mean(axis=0)),
        "width": (high - low).mean(axis=0),
        "rejected": rejects.mean(axis=0),
    }
    return pd.DataFrame(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--csv", help="where to keep the table")
    parser.add_argument("--plain", action="store_true", help="without groups and categories")
    arguments = parser.parse_args()
    tables = []
    for n in (30, 100, 300, 1000, 10_000):
        repeats = arguments.repeats if n < 10_000 else max(arguments.repeats // 4, 1)
        for name in tqdm(POPULATIONS, desc=f"n = {n}", leave=False):
            if name == "units" and n < 100:
                continue  # three units tell nothing
            tables.append(simulate(name, n, repeats, arguments.plain))
    table = pd.concat(tables, ignore_index=True)
    if arguments.csv:
        table.to_csv(arguments.csv, index=False, float_format="%.4g")
    print(table.round(3).to_string())
    print(f"standard error of a share near 5 %: {np.sqrt(0.05 * 0.95 / arguments.repeats):.4f}")
    for n, part in table.groupby("n"):
        real, null = part[part.truth > 0], part[part.truth == 0]
        print(
            f"n = {n}: {(real.coverage < 0.9).sum()} of {len(real)} cover less than .90;", end=" "
        )
        print(f"null features rejected {null.rejected.min():.3f} to {null.rejected.max():.3f}")
