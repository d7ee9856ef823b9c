"""The weighted degree kernel with shifts as an operator: K·v in linear time, without K."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import toeplitz

from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.kernel import check_kernel, degree_factors, shift_factors, wds_diagonal
from firmlib.tables.checks import check_array, check_integer, check_memory

__all__ = ["WDSOperator"]

_POSITIONS = 16  # mixed by one matrix product, which must not reach far beyond the shifts


class WDSOperator:
    """The kernel matrix of X as an operator: ``WDSOperator(X, ...) @ v`` is K v without K.

    K v is the score of a model with dual coefficients v. Sum v over the sequences that have
    the word u at position p, mix the sums of u over shifts, and let every sequence collect the
    mixtures of its words:

        g_d(u, p) = sum_j v_j I(x_j[p:p+d] = u),
        (K v)_i = sum_d beta_d sum_p ( g_d(u, p) + sum_s delta_s (g_d(u, p-s) + g_d(u, p+s)) )

    with u = x_i[p:p+d]. Sequences are looked at only once for each p, at the longest words: sums
    go from words to their prefixes, mixtures from prefixes to words. That takes O(n L) steps, and
    a few for each (u, p) and shift. All short words are kept, but only the long words in X.

    Parameters
    ----------
    X : n sequences
    degree, shift, shift_weights, normalize, reverse_complement, alphabet, unknown
        As in `wds_kernel`.

    Examples
    --------
    >>> from firmlib.strings import wds_kernel
    >>> from firmlib.strings.matvec import WDSOperator
    >>> X, v = ["GATTACA", "CATTACA", "TGATTAC"], [1.0, -2.0, 1.0]
    >>> np.allclose(WDSOperator(X, degree=3) @ v, wds_kernel(X, degree=3) @ v)
    True
    """

    def __init__(
        self,
        X: ArrayLike,
        *,
        degree: int,
        shift: int = 0,
        shift_weights: str = "rase",
        normalize: bool = True,
        reverse_complement: bool = False,
        alphabet: Alphabet = DNA,
        unknown: str = "error",
    ) -> None:
        X = encode(X, alphabet=alphabet, unknown=unknown, name="X")
        check_kernel(X.shape[1], degree, shift, shift_weights, alphabet)
        self.shape, self.scale = (len(X), len(X)), np.ones(len(X))
        if normalize:
            options: dict[str, Any] = {"degree": degree, "shift": shift, "alphabet": alphabet}
            options |= {"reverse_complement": reverse_complement, "unknown": unknown}
            k = wds_diagonal(X, shift_weights=shift_weights, **options)
            self.scale = 1 / np.sqrt(np.where(k > 0, k, 1))
        self._strands = 2 if reverse_complement else 1
        if reverse_complement:
            X = np.concatenate([X, alphabet.reverse_complement(X)])
        size = len(alphabet)
        letters = np.ascontiguousarray(np.minimum(X, size).T)
        base = size + int(letters.max() == size)  # an unknown letter is one more
        longest = max(d for d in range(1, 63) if base**d <= 2**62)
        check_integer("degree, with unknown letters,", degree, 1, longest)
        short = max(d for d in range(degree + 1) if base**d <= 2 * len(X))
        most = [base**d if d <= short else len(X) for d in range(1, degree + 1)]
        n_words = sum(m * (len(letters) - i) for i, m in enumerate(most))
        check_memory("the table of the words in X", (n_words, 2))
        delta = np.outer(degree_factors(degree), shift_factors(shift, shift_weights))
        self._build(letters, base, short, delta, unknown=base > size)

    def _build(
        self, letters: np.ndarray, size: int, short: int, delta: np.ndarray, unknown: bool
    ) -> None:
        """Number the words of each degree at each position, and the longest of each sequence."""
        (length, n), degree = letters.shape, len(delta)
        self._longest = np.empty((length, n), dtype=np.int32)  # words of min(D, L - p) letters
        self._levels: list[_Level] = []
        words = position = np.empty(0, dtype=np.int64)
        for d in range(degree, 0, -1):
            ending = range(0 if d == degree else length - d, length - d + 1)
            new = []
            for p in ending:
                numbers = _numbers(letters[p : p + d], size)
                if d > short:
                    distinct, numbers = np.unique(numbers, return_inverse=True)
                    new.append(distinct)
                self._longest[p] = numbers
            if d <= short:  # all words at all positions
                m, n = size**d, length - d + 1
                ends = [(p, p * m, (p + 1) * m) for p in ending]
                known = np.tile(_known(np.arange(m), d, size), n) if unknown else None
                level = _Level(ends, _dense_mixture(n, delta[d - 1]), known, n * m, size)
                self._levels.append(level)
                continue
            bounds = len(words) + np.cumsum([0, *map(len, new)])
            words = np.concatenate([words, *new])
            position = np.concatenate([position, np.repeat(ending, np.diff(bounds))])
            ends = list(zip(ending, bounds.tolist(), bounds[1:].tolist(), strict=False))
            known = _known(words, d, size) if unknown else None
            level = _Level(ends, _sparse_mixture(words, position, delta[d - 1]), known, len(words))
            changes = np.diff(words // size, prepend=-1) | np.diff(position, prepend=-1)
            level.first = np.flatnonzero(changes)
            words, position = words[level.first] // size, position[level.first]
            in_table = position * size**short + words
            level.prefix = in_table if d - 1 == short else slice(len(words))
            self._levels.append(level)

    def __matmul__(self, v: ArrayLike) -> np.ndarray:
        """K v; not from several threads, because the sums of words are kept in place."""
        v = check_array("v", v, 1, (self.shape[1],)) * self.scale
        v = np.tile(v / self._strands, self._strands)
        for i, level in enumerate(self._levels):
            if i:
                above = self._levels[i - 1]
                sums = above.to_prefixes()
                level.g[above.prefix if above.size == 0 else slice(len(sums))] = sums
            for p, start, stop in level.ending:
                level.g[start:stop] = np.bincount(self._longest[p], v, stop - start)
        score, h = np.zeros(len(v)), np.zeros(len(self._longest))
        for level in reversed(self._levels):
            h = level.collected(h)
            for p, start, stop in level.ending:
                score += np.take(h[start:stop], self._longest[p], mode="clip")
        return score[: self.shape[0]] * self.scale


class _Level:
    """Words (u, p) of d letters, by p, then by u, and their sums g: all, or those found in X.

    `ending` has the positions where no longer word starts, with the numbers of their words. Of
    found words, `first` is the first with each prefix, and `prefix` the number of that prefix.
    """

    first: np.ndarray
    prefix: slice | np.ndarray

    def __init__(
        self, ending: list[tuple[int, int, int]], mix: Any, known: Any, n: int, size: int = 0
    ) -> None:
        self.ending, self.mix, self.known, self.size = ending, mix, known, size
        self.g = np.zeros(n)

    def to_prefixes(self) -> np.ndarray:
        """Sums of words, to those of their prefixes."""
        if not self.size:
            return np.add.reduceat(self.g, self.first)
        sums = self.g[:: self.size] + self.g[1 :: self.size]
        for i in range(2, self.size):
            sums += self.g[i :: self.size]
        return sums

    def collected(self, h: np.ndarray) -> np.ndarray:
        """The mixture of words over shifts, and what their prefixes have."""
        mixed = self.mix(self.g)
        if self.known is not None:
            mixed *= self.known
        if self.size:
            mixed += np.repeat(h[: len(mixed) // self.size], self.size)
        else:
            mixed += np.repeat(h[self.prefix], np.diff(self.first, append=len(mixed)))
        return mixed


def _numbers(letters: np.ndarray, size: int) -> np.ndarray:
    """Columns of d letters as int64 numbers, the first letter counting most."""
    numbers = np.zeros(letters.shape[1], dtype=np.int64)
    for row in letters:
        numbers = size * numbers + row
    return numbers


def _known(words: np.ndarray, d: int, size: int) -> np.ndarray:
    """Which words of d letters have no letter of the last code, the unknown one."""
    digits = words // size ** np.arange(d)[:, None] % size
    return np.asarray((digits < size - 1).all(axis=0))


def _dense_mixture(n: int, delta: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function g -> sum_s delta_|s| g(u, p + s) for all words at n positions."""
    band, shift, kept = toeplitz(np.r_[delta, np.zeros(n)][:n]), len(delta) - 1, []

    def mix(g: np.ndarray) -> np.ndarray:
        g = g.reshape(n, -1)
        if not kept:  # because fresh memory is slow
            kept.append(np.empty_like(g))
        out = kept[0]
        for start in range(0, n, _POSITIONS):
            rows = slice(start, min(n, start + _POSITIONS))
            near = slice(max(0, start - shift), rows.stop + shift)
            np.matmul(band[rows, near], g[near], out=out[rows])
        return out.ravel()

    return mix


def _sparse_mixture(
    words: np.ndarray, position: np.ndarray, delta: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """The same for some words: above has delta_s at [(u, p), (u, p + s)], s >= 1."""
    order = np.argsort(words, kind="stable")  # by word, then by position
    words, position = words[order], position[order]
    rows, columns, lags = [order[:0]], [order[:0]], [order[:0]]
    for k in range(1, len(delta)):
        lag = position[k:] - position[:-k]
        i = np.flatnonzero((words[k:] == words[:-k]) & (lag < len(delta)))
        rows.append(order[i])
        columns.append(order[i + k])
        lags.append(lag[i])
    entries = np.concatenate(rows), np.concatenate(columns)
    above = sparse.csr_matrix((delta[np.concatenate(lags)], entries), (len(words), len(words)))
    return lambda g: delta[0] * g + above @ g + above.T @ g
