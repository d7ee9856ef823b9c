"""CPU seconds of the kernel matrix and of training: python benchmarks/kernel.py [--million].

Beside ours the package strkernels (PyPI, no shifts), if it is installed, in the same run.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from firmlib.datasets import gattaca
from firmlib.strings.alphabet import decode
from firmlib.strings.kernel import wds_kernel
from firmlib.strings.operator import WDSOperator
from firmlib.strings.svm import WDSClassifier

SHOGUN = {(8, 0): 9.3, (8, 10): 134.0, (8, 30): 332.0}
"""CPU seconds of Shogun 0.9.3 for n = 5000, L = 100, measured once, on another day."""


def timed(function: Callable, *args: Any, **options: Any) -> tuple[Any, float]:
    """What a call returns, and the CPU seconds it took."""
    start = time.process_time()
    result = function(*args, **options)
    return result, time.process_time() - start


def kernel_matrices(n: int = 5000, length: int = 100) -> None:
    X = np.random.default_rng(0).integers(0, 4, (n, length), dtype=np.uint8)
    print(f"Kernel matrix, n = {n}, L = {length}: CPU seconds")
    for degree, shift in [(8, 0), (8, 10), (8, 30), (20, 0), (20, 10), (31, 10)]:
        K, ours = timed(wds_kernel, X, degree=degree, shift=shift)
        line = f"  degree {degree:2}, shift {shift:2}: {ours:6.2f}"
        if (degree, shift) in SHOGUN:
            line += f"   Shogun had {SHOGUN[degree, shift]:5.1f}"
        if (degree, shift) == (8, 0):
            line += strkernels(K, decode(X), ours)
        print(line, flush=True)


def strkernels(K: np.ndarray, seqs: list[str], ours: float) -> str:
    try:
        from strkernels import WeightedDegreeStringKernel
    except ImportError:
        return "   strkernels is not installed"
    other, theirs = timed(WeightedDegreeStringKernel(degree=8), seqs, seqs)
    gap = np.abs(other - K).max()
    return f"   strkernels {theirs:.1f}, {theirs / ours:.0f} times ours (differs by {gap:.0e})"


def products() -> None:
    print("K·v without K, L = 70, shift 5: CPU seconds to set up, and of a product")
    for n, degree in [(10_000, 8), (100_000, 8), (10_000, 20), (100_000, 20)]:
        K, setup = timed(WDSOperator, gattaca(n, random_state=0)[0], degree=degree, shift=5)
        _, product = timed(K.__matmul__, np.ones(n))
        print(f"  degree {degree:2}, n = {n:7}: {setup:6.2f} {product:7.3f}", flush=True)


def training(million: bool) -> None:
    print("Training, L = 70, degree 8, shift 5, C = 1: CPU seconds, and a millisecond a sequence")
    X_test, y_test = gattaca(5000, random_state=1)
    runs = [("hinge", 10**4), ("squared_hinge", 10**4), ("squared_hinge", 10**5)]
    for loss, n in runs + [("squared_hinge", 10**6)] * million:
        X, y = gattaca(n, random_state=0)
        wall = time.perf_counter()
        machine, cpu = timed(WDSClassifier(8, 5, loss=loss).fit, X, y)
        wall = time.perf_counter() - wall
        auc = roc_auc_score(y_test, machine.decision_function(X_test))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  {loss:13}, n = {n:7}: {cpu:7.1f} ({1000 * cpu / n:.2f}), {wall:.0f} s on clock, "
            f"{machine.n_iter_} steps, peak so far {peak:.1f} GiB, test AUC {auc:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", action="store_true", help="train on 10^6 sequences, too")
    arguments = parser.parse_args()
    kernel_matrices()
    products()
    training(arguments.million)
