"""CPU seconds of the kernel matrix and of training: python benchmarks/kernel.py [--million].

Beside ours the package strkernels (PyPI, no shifts), if it is installed, in the same run; Shogun
0.9.3 was measured once, on another day.
"""

import argparse
import resource
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits
from timing import Row, show, timed

from firmlib.datasets import gattaca
from firmlib.strings import PositionalWeights, WDSClassifier, decode, wds_kernel
from firmlib.strings.kernel import check_kernel
from firmlib.strings.matvec import WDSOperator

SHOGUN = {(8, 0): 9.3, (8, 10): 134.0, (8, 30): 332.0}  # CPU seconds


def kernel_matrices(n: int = 5000, length: int = 100) -> Iterator[Row]:
    X = np.random.default_rng(0).integers(0, 4, (n, length), dtype=np.uint8)
    for degree, shift in [(8, 0), (8, 10), (8, 30), (20, 10), (31, 10)]:
        what = f"kernel matrix, n = {n}, L = {length}, degree {degree}, shift {shift}"
        K, ours = timed(wds_kernel, X, degree=degree, shift=shift)
        yield Row(what, ours)
        if (degree, shift) in SHOGUN:
            theirs = SHOGUN[degree, shift]
            yield Row("the same by Shogun, another day", theirs, ratio=theirs / ours)
        if shift == 0:
            yield from strkernels(K, decode(X), ours)


def strkernels(K: np.ndarray, seqs: list[str], ours: float) -> Iterator[Row]:
    try:
        from strkernels import WeightedDegreeStringKernel
    except ImportError:
        return
    other, theirs = timed(WeightedDegreeStringKernel(degree=8), seqs, seqs)
    np.testing.assert_allclose(other, K, atol=1e-6)
    yield Row("the same by strkernels", theirs, ratio=theirs / ours)


def products() -> Iterator[Row]:
    for n, degree in [(10**4, 8), (10**5, 8), (10**4, 20)]:
        X, kernel = check_kernel(gattaca(n, random_state=0)[0], degree=degree, shift=5)
        K, setup = timed(WDSOperator, X, kernel)
        product = min(timed(K.__matmul__, np.ones(n))[1] for _ in range(3))
        what = f"K·v without K, L = 70, degree {degree}, shift 5, n = {n:,}"
        yield Row(what, product)
        yield Row("to set it up", setup)


def scoring(n: int = 7000) -> Iterator[Row]:
    X = gattaca(n + 20_000, random_state=0)[0]
    a = np.random.default_rng(0).normal(size=n)
    weights = PositionalWeights.from_dual(X[:n], a, degree=20, shift=5)
    what = f"scores of 20,000 sequences from {n:,} support vectors, L = 70, degree 20, shift 5"
    yield Row(what, timed(weights.score, X[n:])[1])


def training(million: bool) -> Iterator[Row]:
    X_test, y_test = gattaca(5000, random_state=1)
    runs = [("hinge", 10**4), ("squared_hinge", 10**4), ("squared_hinge", 10**5)]
    for loss, n in runs + [("squared_hinge", 10**6)] * million:
        model, seconds = timed(WDSClassifier(8, 5, loss=loss).fit, *gattaca(n, random_state=0))
        yield Row(f"training, L = 70, degree 8, shift 5, {loss}, n = {n:,}", seconds)
        yield Row("its test AUC", roc_auc_score(y_test, model.decision_function(X_test)), "")
        if (loss, n) == ("hinge", 10**4):
            many = np.tile(X_test, (200, 1))
            what = f"scores of 1,000,000 sequences from {len(model.support_):,} support vectors"
            yield Row(what, timed(model.decision_function, many)[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Row("memory at most, the kernel matrix of 10,000 included", peak, "GiB")


def rows(million: bool = False) -> Iterator[Row]:
    with threadpool_limits(1):  # a second thread of BLAS would wait, and count
        yield from kernel_matrices()
        yield from products()
        yield from scoring()
        yield from training(million)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", action="store_true", help="train on 10^6 sequences, too")
    show(rows(parser.parse_args().million))
