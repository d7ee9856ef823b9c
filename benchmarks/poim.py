"""CPU seconds of weights, POIMs and motif searches, as ratios where there is something to compare.

    python benchmarks/poim.py

Shogun 0.9.3, one core, n = 5000, L = 100, takes 2.8 to 3.4 s for w and the POIM of order 7.
"""

from collections.abc import Iterator

import numpy as np
from timing import Row, cpu_seconds, show, timed

from firmlib.strings import Background, PositionalWeights, motif_importance, poim, top_motifs


def machine(rng: np.random.Generator, n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Support vectors and coefficients like those of the GATTACA machine: half with a motif."""
    X, label = rng.integers(0, 4, (n, length)), np.repeat([1, -1], n // 2)
    for x in X[: n // 2]:
        start = int(np.clip(np.rint(rng.normal(length / 2 - 3, 7)), 0, length - 7))
        x[start : start + 7] = [2, 0, 3, 3, 0, 1, 0]
        x[start + rng.integers(7)] = rng.integers(4)
    return X.astype(np.uint8), label * rng.uniform(0, 0.2, n)


SHOGUN = 2.8  # CPU seconds, at least


def rows() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X, a = machine(rng, 3000, 70)
    options = {"degree": 8, "shift": 10}
    w = PositionalWeights.from_dual(X, a, **options)
    copy = cpu_seconds(poim(w, 10).copy)
    ten = cpu_seconds(lambda: poim(w, 10))
    what = "POIM of order 10, L = 70, degree 8, shift 10"
    yield Row(what, ten, ratio=ten / copy, to="copy of the result")
    motif = cpu_seconds(lambda: motif_importance(w, ["GATTACA" * 5]))
    yield Row("one motif of 35 letters, all positions", motif)
    for length in (10, 12, 15, 20, 40):
        merged = timed(top_motifs, w, length, 10)[1]
        yield Row(f"top 10 motifs of length {length}", merged)
        words = timed(top_motifs, w, length, 10, merge=False)[1]
        yield Row(f"top 10 words of length {length}, not merged", words)
    long = PositionalWeights.from_dual(X, a, degree=20, shift=10)
    yield Row("POIM of order 7, degree 20", timed(poim, long, 7)[1])
    motif = cpu_seconds(lambda: motif_importance(long, ["GATTACA" * 5]), 2)
    yield Row("one motif of 35 letters, degree 20", motif)

    X, a = machine(rng, 3000, 100)
    w = PositionalWeights.from_dual(X, a, **options)
    alone = cpu_seconds(lambda: w.from_dual(X, a, **options))
    yield Row("w from 3000 sequences, L = 100, degree 8, shift 10", alone)
    both = cpu_seconds(lambda: poim(w.from_dual(X, a, **options), 7))
    yield Row("w and POIM of order 7", both)
    yield Row("the same by Shogun, another day", SHOGUN, ratio=SHOGUN / both)
    chain = Background.fit(X, 3)
    yield Row("POIM of order 7, Markov order 3", cpu_seconds(lambda: poim(w, 7, chain)))


if __name__ == "__main__":
    show(rows())
