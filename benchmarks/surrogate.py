"""How well are POIMs of a model known that is not ours? python benchmarks/surrogate.py.

A multilayer perceptron on one-hot letters, trained on the donor sites in data/: all words of six
letters at all positions from 40 000 calls of the model, by naive conditional means and by the
surrogate, against a simulation a hundred times as large; and the first 20, confirmed.
"""

import sys
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

from firmlib.datasets import splice
from firmlib.strings import Background, PositionalWeights, confirm, fit_surrogate, poim, top_motifs
from firmlib.strings.words import windows

K, CALLS, LARGE = 6, 40_000, 4_000_000


def report(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def one_hot(X: np.ndarray) -> np.ndarray:
    return np.eye(4, dtype=np.float32)[X].reshape(len(X), -1)


def conditional_means(score, background: Background, n: int, seed: int) -> tuple:
    """Means of s - E[s] given each word at each position, and their variances."""
    positions = background.length - K + 1
    count, total, square = np.zeros((3, positions, 4**K))
    for batch in range(max(1, n // 40_000)):
        X = background.sample(min(n, 40_000), np.random.RandomState([seed, batch]))
        s = score(X)
        for j, code in enumerate(windows(X, K).T):
            count[j] += np.bincount(code, minlength=4**K)
            total[j] += np.bincount(code, s, minlength=4**K)
            square[j] += np.bincount(code, s**2, minlength=4**K)
    seen = np.maximum(count, 1)
    mean = total / seen
    variance = np.maximum(square / seen - mean**2, 0) / np.maximum(count - 1, 1)
    return np.where(count > 0, mean - total[0].sum() / count[0].sum(), 0), variance, count


def compare(name: str, score, background: Background, degree: int, large: int) -> None:
    truth, noise, count = conditional_means(score, background, large, 1)
    known = count > 100
    start = time.process_time()
    surrogate = fit_surrogate(score, background, CALLS, degree=degree, random_state=0)
    seconds = time.process_time() - start
    naive = conditional_means(score, background, CALLS, 2)[0]
    Q = poim(surrogate, K, background)
    top = np.argsort(-np.abs(Q[known]))[:1000]

    def error(table: np.ndarray, among=slice(None)) -> float:
        """Without that of the truth."""
        square = (table[known] - truth[known]) ** 2 - noise[known]
        return float(np.sqrt(max(square[among].mean(), 0)))

    report(f"{name}, degree {degree}: R² {surrogate.r2:.3f}, {seconds:.0f} CPU seconds")
    report(f"  sd of Q' {np.sqrt((truth[known] ** 2 - noise[known]).mean()):.3f}")
    report(
        f"  error of naive means {error(naive):.3f}, of the surrogate {error(Q):.3f}: "
        f"{error(naive) / error(Q):.1f} times less; among its first 1000 "
        f"{error(naive, top):.3f} and {error(Q, top):.3f}"
    )
    motifs, positions, _ = zip(*top_motifs(surrogate, K, 20, background), strict=True)
    found = confirm(score, motifs, positions, background, 2000, surrogate=surrogate, random_state=0)
    plain = confirm(score, motifs, positions, background, 2000, random_state=0)
    much = confirm(score, motifs, positions, background, 20_000, random_state=1)
    gap = (found["measured"] - much["measured"]).abs()
    se = np.hypot(found["standard_error"], much["standard_error"])
    bias = np.sqrt(((found["surrogate"] - much["measured"]) ** 2).mean())
    report(
        f"  first 20, 2000 pairs each: {(gap < 3 * se).sum()} of 20 within 3 standard errors; "
        f"mean Q' {much['measured'].mean():.2f}, standard error "
        f"{found['standard_error'].mean():.4f}, {plain['standard_error'].mean():.4f} without "
        f"control variate, the surrogate off by {bias:.2f}"
    )


def main() -> None:
    X, y, _ = splice("donor")
    X = np.ascontiguousarray(X[:, 40:100])
    background = Background.fit(X[y == -1], 1)
    mlp = MLPClassifier((64,), early_stopping=True, random_state=0).fit(one_hot(X), y)

    def by_network(Z: np.ndarray) -> np.ndarray:
        hidden = np.maximum(one_hot(Z) @ mlp.coefs_[0] + mlp.intercepts_[0], 0)
        return (hidden @ mlp.coefs_[1] + mlp.intercepts_[1])[:, 0].astype(float)

    p = np.clip(mlp.predict_proba(one_hot(X[:100]))[:, 1], 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(by_network(X[:100]), np.log(p / (1 - p)), atol=1e-3)
    compare("MLP, its logit", by_network, background, 4, LARGE)
    compare(
        "MLP, its probability", lambda Z: 1 / (1 + np.exp(-by_network(Z))), background, 4, LARGE
    )
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(one_hot(X), y)
    compare(
        "boosted trees", lambda Z: trees.decision_function(one_hot(Z)), background, 4, LARGE // 10
    )

    rng = np.random.default_rng(0)
    words = PositionalWeights.from_dual(X[:50], rng.normal(size=50), degree=4)
    Q = poim(words.score, K, background, n=CALLS, random_state=0)
    exact = poim(words, K, background)
    gap = np.sqrt(np.mean((Q - exact) ** 2) / np.mean(exact**2))
    report(f"a model linear in words of 4 letters: off by {gap:.1e} of the POIM's size")


if __name__ == "__main__":
    main()
