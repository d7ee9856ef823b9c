"""Do 95 % intervals cover, and does the 5 % test keep its size? python benchmarks/intervals.py

Six populations whose importances are known, many samples of each; "curved" is a hard one. A
feature is "null" if its importance is 0; its noise may differ between its values.
"""

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

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


def simulate(case: Callable, n: int, repeats: int) -> pd.DataFrame:
    """Share of samples whose interval covers, and of those that reject, a row a feature."""
    sample, truth = case()
    rng = np.random.default_rng(n)
    covers, rejects, mean = (np.zeros(len(truth)) for _ in range(3))
    for _ in range(repeats):
        X, s = sample(rng, n)
        result = firm(s, X)
        low = np.minimum(np.abs(result.ci_low), np.abs(result.ci_high))
        high = np.maximum(np.abs(result.ci_low), np.abs(result.ci_high))
        low[result.ci_low * result.ci_high <= 0] = 0
        covers += (low <= truth) & (truth <= high)
        rejects += result.pvalues < 0.05
        mean += np.abs(result.importances)
    table = {
        "case": case.__name__,
        "n": n,
        "feature": [f"x{j}" for j in range(len(truth))],
        "truth": truth,
        "mean": mean / repeats,
        "coverage": np.where(np.array(truth) > 0, covers / repeats, np.nan),
        "rejected": rejects / repeats,
    }
    return pd.DataFrame(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2000)
    repeats = parser.parse_args().repeats
    tables = []
    for n in (300, 1000, 10_000):
        for case in (gaussian, curved, ishigami, binary, uneven_levels, heavy_ties):
            tables.append(simulate(case, n, repeats))
            print(tables[-1].round(3).to_string(header=not len(tables) > 1), flush=True)
    table = pd.concat(tables)
    print(f"standard error of a share near 5 %: {np.sqrt(0.05 * 0.95 / repeats):.4f}")
    for name, part in table.groupby(np.where(table.case == "curved", "curved", "the others")):
        large, null = part[(part.truth > 0) & (part.n >= 1000)], part[part.truth == 0]
        print(f"{name}: coverage from n = 1000 on {large.coverage.min():.3f} to", end=" ")
        print(f"{large.coverage.max():.3f}, rejected null features", end=" ")
        print(f"{null.rejected.min():.3f} to {null.rejected.max():.3f}")
