"""The weighted degree kernel with shifts as an operator: K·v in linear time, without K."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from firmlib.strings.alphabet import letters, windows
from firmlib.strings.kernel import Kernel, mix_positions
from firmlib.tables.checks import check_array, check_memory


class WDSOperator:
    """The kernel matrix of codes X as an operator: ``WDSOperator(X, kernel) @ v`` is K v without K.

    With g_d(u, p) the sum of v over the sequences that have the word u of d letters at p,

        (K v)_i = sum_d beta_d sum_p sum_{|s|<=S} delta_|s| g_d(x_i[p:p+d], p - s).
    """

    def __init__(self, X: np.ndarray, kernel: Kernel) -> None:
        self.shape, self.scale = (len(X), len(X)), 1 / np.sqrt(kernel.size(X))
        X, degree = np.concatenate(kernel.strands(X)), kernel.degree
        size, (n, length) = len(kernel.alphabet), X.shape
        self._base = base = size + int(X.max() >= size)  # an unknown letter is one more
        self._delta = np.outer(kernel.beta, kernel.delta)
        short = max(d for d in range(1, degree + 1) if d == 1 or base**d <= 2 * n)
        check_memory("the table of the words in X", (length, 4 * base**short, degree))
        padded = np.pad(np.minimum(X, size), ((0, 0), (0, short - 1)))
        self._words = np.ascontiguousarray(windows(padded, short, base).T)
        every = [letters(np.arange(base**d), d, base) for d in range(1, short + 1)]
        self._tables = [np.zeros((2, length, base**d)) for d in range(1, short + 1)]
        self._unknown = [np.flatnonzero((word == size).any(axis=1)) for word in every]
        self._long = []  # numbered only if they occur in X
        for d in range(short + 1, degree + 1):
            code = windows(X, d, size)
            place, row = np.nonzero(code.T >= 0)
            self._long.append(common_words(row, place, code[row, place], n, self._delta[d - 1]))

    def __matmul__(self, v: ArrayLike) -> np.ndarray:
        """K v; not from several threads, because the sums of words are kept in place."""
        v = check_array("v", v, 1, (self.shape[1],)) * self.scale
        strands = self._words.shape[1] // len(v)
        v = np.tile(v / strands, strands)
        longer, base = self._tables[-1][0], self._base
        for row, word in zip(longer, self._words, strict=True):
            row[:] = np.bincount(word, v, len(row))
        for g, _ in self._tables[-2::-1]:  # sums go from words to their prefixes, mixtures back
            longer = np.matmul(longer.reshape(*g.shape, base), np.ones(base), out=g)
        total = np.zeros((len(self._words), 1))
        for d, ((g, mixed), unknown) in enumerate(zip(self._tables, self._unknown, strict=True)):
            n = len(g) - d  # no word of d + 1 letters starts later
            g[:, unknown] = 0
            mix_positions(g[:n], self._delta[d], mixed[:n])
            mixed[n:] = 0
            mixed += np.repeat(total, base, axis=1)
            total = mixed
        score = np.zeros(len(v))
        for row, word in zip(total, self._words, strict=True):
            score += np.take(row, word, mode="clip")
        for F, mix in self._long:
            score += F @ mix(F.T @ v)
        return score[: self.shape[0]] * self.scale


def common_words(
    row: np.ndarray, place: np.ndarray, word: np.ndarray, n: int, delta: np.ndarray
) -> tuple[Any, Callable[[np.ndarray], np.ndarray]]:
    """F[i, (u, p)] = 1 if sequence i of n has the word u at p; how to mix sums of u over shifts."""
    order = np.argsort(word, kind="stable")  # place, too, is in order
    row, place, word = row[order], place[order], word[order]
    new = (np.diff(word, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 0)
    number, word, place = np.cumsum(new) - 1, word[new], place[new]
    F = sparse.csr_array((np.ones(len(row)), (row, number)), (n, len(word)))
    pairs: list[tuple] = [(place[:0],) * 3]
    for k in range(1, len(delta)):  # the k-th neighbour is at least k positions away
        lag = place[k:] - place[:-k]
        i = np.flatnonzero((word[k:] == word[:-k]) & (lag < len(delta)))
        pairs.append((i, i + k, lag[i]))
    rows, columns, lags = map(np.concatenate, zip(*pairs, strict=True))
    above = sparse.csr_array((delta[lags], (rows, columns)), (len(word), len(word)))
    return F, lambda g: delta[0] * g + above @ g + above.T @ g


def solve(
    K: Any,
    rows: np.ndarray,
    ridge: float | np.ndarray,
    target: np.ndarray,
    start: np.ndarray,
    *,
    centred: bool = False,
    **tolerance: float,
) -> np.ndarray:
    """Solve (K + ridge) a = target on some rows, a = 0 elsewhere; centred: up to a constant."""
    a = np.zeros(len(target))

    def project(z: np.ndarray) -> np.ndarray:
        return z - z.mean() if centred else z

    def product(z: np.ndarray) -> np.ndarray:
        a[rows] = z = project(z)
        return project((K @ a)[rows] + ridge * z)

    m = len(target[rows])
    system = LinearOperator((m, m), matvec=product, dtype=float)  # type: ignore[call-arg]
    z, _ = cg(system, project(target[rows]), x0=project(start[rows]), **tolerance)
    a[rows] = project(z)
    return a
