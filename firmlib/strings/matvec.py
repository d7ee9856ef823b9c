"""The weighted degree kernel with shifts as an operator: K·v in linear time, without K."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import toeplitz

from firmlib._checks import check_array, check_integer, check_memory
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.kernel import check_kernel, degree_factors, shift_factors, wds_diagonal

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
            if d > short:
                bounds = len(words) + np.cumsum([0, *map(len, new)])
                words = np.concatenate([words, *new])
                position = np.concatenate([position, np.repeat(ending, np.diff(bounds))])
                mix = _sparse_mixture(words, position, delta[d - 1])
            else:
                words = np.tile(np.arange(size**d), length - d + 1)
                position = np.repeat(np.arange(length - d + 1), size**d)
                bounds = np.arange(ending.start, length - d + 2) * size**d
                mix = _dense_mixture(length - d + 1, delta[d - 1])
            ends = list(zip(ending, bounds.tolist(), bounds[1:].tolist(), strict=False))
            level = _Level(words, position, size, d, ends, mix, unknown)
            self._levels.append(level)
            words, position = words[level.first] // size, position[level.first]
            if d - 1 == short:
                level.prefix = position * size**short + words

    def __matmul__(self, v: ArrayLike) -> np.ndarray:
        """K v."""
        v = check_array("v", v, 1, (self.shape[1],)) * self.scale
        v = np.tile(v / self._strands, self._strands)
        sums: list[np.ndarray] = []
        for level in self._levels:
            g = np.zeros(level.n)
            if sums:
                above = self._levels[len(sums) - 1]
                g[above.prefix] = above.to_prefixes(sums[-1])
            for p, start, stop in level.ending:
                g[start:stop] = np.bincount(self._longest[p], v, stop - start)
            sums.append(g)
        score, h = np.zeros(len(v)), np.zeros(len(self._longest))
        for level, g in zip(reversed(self._levels), reversed(sums), strict=True):
            h = level.collected(g, h)
            for p, start, stop in level.ending:
                score += np.take(h[start:stop], self._longest[p], mode="clip")
        return score[: self.shape[0]] * self.scale


class _Level:
    """Words (u, p) of d letters, by p, then by u: all of them, or the distinct ones in X.

    `ending` has the positions where no longer word starts, with the numbers of their words.
    """

    def __init__(
        self, words: np.ndarray, position: np.ndarray, size: int, d: int,
        ending: list[tuple[int, int, int]], mix: Callable[[np.ndarray], np.ndarray], unknown: bool,
    ) -> None:  # fmt: skip
        self.n, self.ending, self.mix = len(words), ending, mix
        new = np.diff(words // size, prepend=-1) != 0
        self.first = np.flatnonzero(new | (np.diff(position, prepend=-1) != 0))  # of each prefix
        self.prefix: slice | np.ndarray = slice(len(self.first))  # its number among the prefixes
        self.group = size if len(self.first) * size == self.n else 0  # all have all letters
        self.times = size if self.group else np.diff(self.first, append=self.n)
        digits = words // size ** np.arange(d)[:, None] % size if unknown else None
        self.known = None if digits is None else (digits < size - 1).all(axis=0)

    def to_prefixes(self, g: np.ndarray) -> np.ndarray:
        """Sums of words, to those of their prefixes."""
        if not self.group:
            return np.add.reduceat(g, self.first)
        return sum(g[i :: self.group] for i in range(1, self.group)) + g[:: self.group]

    def collected(self, g: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The mixture of words over shifts, and what their prefixes have."""
        mixed = self.mix(g)
        if self.known is not None:
            mixed *= self.known
        mixed += np.repeat(h[self.prefix], self.times)
        return mixed


def _numbers(letters: np.ndarray, size: int) -> np.ndarray:
    """Columns of d letters as int64 numbers, the first letter counting most."""
    numbers = np.zeros(letters.shape[1], dtype=np.int64)
    for row in letters:
        numbers = size * numbers + row
    return numbers


def _dense_mixture(n: int, delta: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function g -> sum_s delta_|s| g(u, p + s) for all words at n positions."""
    band, shift = toeplitz(np.r_[delta, np.zeros(n)][:n]), len(delta) - 1

    def mix(g: np.ndarray) -> np.ndarray:
        g, out = g.reshape(n, -1), np.empty((n, len(g) // n))
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
