"""CPU seconds of weights, POIMs and motif searches, as ratios where there is something to compare.

    python benchmarks/poim.py

Shogun 0.9.3, one core, n = 5000, L = 100, takes 2.8 to 3.4 s for w and the POIM of order 7.
"""

import sys

import numpy as np
from timing import cpu_seconds

from firmlib.strings.background import Background
from firmlib.strings.motifs import motif_importance
from firmlib.strings.poim import poim
from firmlib.strings.search import top_motifs
from firmlib.strings.weights import PositionalWeights


def machine(rng: np.random.Generator, n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Support vectors and coefficients like those of the GATTACA machine: half with a motif."""
    X, label = rng.integers(0, 4, (n, length)), np.repeat([1, -1], n // 2)
    for x in X[: n // 2]:
        start = int(np.clip(np.rint(rng.normal(length / 2 - 3, 7)), 0, length - 7))
        x[start : start + 7] = [2, 0, 3, 3, 0, 1, 0]
        x[start + rng.integers(7)] = rng.integers(4)
    return X.astype(np.uint8), label * rng.uniform(0, 0.2, n)


def report(what: str, seconds: float, target: str = "") -> None:
    sys.stdout.write(f"{what:58s} {seconds:8.3f} s   {target}\n")


def main() -> None:
    rng = np.random.default_rng(0)
    X, a = machine(rng, 3000, 100)
    options = {"degree": 8, "shift": 10}
    w = PositionalWeights.from_dual(X, a, **options)
    report("w, L 100, degree 8, shift 10", cpu_seconds(lambda: w.from_dual(X, a, **options)))
    both = cpu_seconds(lambda: poim(w.from_dual(X, a, **options), 7))
    report("w and POIM of order 7", both, f"at most 0.3; Shogun {2.8 / both:.0f} times as long")
    chain = Background.fit(X, 3)
    report("POIM of order 7, Markov order 3", cpu_seconds(lambda: poim(w, 7, chain)))

    X, a = machine(rng, 3000, 70)
    w = PositionalWeights.from_dual(X, a, **options)
    table = poim(w, 10)
    copy = cpu_seconds(table.copy)
    report("copy of the POIM of order 10, L 70", copy)
    del table
    ten = cpu_seconds(lambda: poim(w, 10))
    report("POIM of order 10", ten, f"{ten / copy:.1f} copies; at most 4")
    motif = cpu_seconds(lambda: motif_importance(w, ["GATTACA" * 5]))
    report("one motif of 35 letters, all positions", motif)
    for length in (12, 20, 40):
        seconds = cpu_seconds(lambda k=length: top_motifs(w, k, 10), repeat=1)
        report(f"top 10 motifs of length {length}", seconds)

    long = PositionalWeights.from_dual(X, a, degree=20, shift=10)
    report("POIM of order 7, degree 20", cpu_seconds(lambda: poim(long, 7), repeat=1))
    seconds = cpu_seconds(lambda: top_motifs(long, 20, 10), repeat=1)
    report("top 10 motifs of length 20, degree 20", seconds)


if __name__ == "__main__":
    main()
