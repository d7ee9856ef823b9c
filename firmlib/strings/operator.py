"""The weighted degree kernel with shifts as an operator: K·v in linear time, without K."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from firmlib._checks import check_array, check_integer, check_memory
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.kernel import check_kernel, degree_factors, shift_factors, wds_diagonal

__all__ = ["WDSOperator"]


class WDSOperator:
    """The kernel matrix of X as an operator: ``WDSOperator(X, ...) @ v`` is K v without K.

    K v is the score of a model with dual coefficients v. Sum v over the sequences that have
    the word u at position p, mix the sums of u over shifts, and let every sequence collect what
    its words have:

        g_d(u, p) = sum_j v_j I(x_j[p:p+d] = u),
        (K v)_i = sum_d beta_d sum_p ( g_d(u, p) + sum_s delta_s (g_d(u, p-s) + g_d(u, p+s)) )

    with u = x_i[p:p+d]. Sequences are looked at only once for each p, at the longest words: sums
    go from words to their prefixes, mixtures from prefixes to words. That takes O(n L) steps, and
    a few for each distinct (u, p) and shift.

    Parameters
    ----------
    X : n sequences
    degree, shift, shift_weights, normalize, reverse_complement, alphabet, unknown
        As in `wds_kernel`.

    Examples
    --------
    >>> from firmlib.strings import wds_kernel
    >>> from firmlib.strings.operator import WDSOperator
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
        n, length = X.shape
        check_kernel(length, degree, shift, shift_weights, alphabet)
        self.shape = (n, n)
        self._beta = degree_factors(degree)
        self._scale = np.ones(n)
        if normalize:
            options = {
                "reverse_complement": reverse_complement,
                "alphabet": alphabet,
                "unknown": unknown,
            }
            k = wds_diagonal(X, degree=degree, shift=shift, shift_weights=shift_weights, **options)
            self._scale = 1 / np.sqrt(np.where(k > 0, k, 1))
        self._strands = 2 if reverse_complement else 1
        if reverse_complement:
            X = np.concatenate([X, alphabet.reverse_complement(X)])
        size = len(alphabet)
        letters = np.ascontiguousarray(np.minimum(X, size).T)
        self._size = base = size + int(letters.max() == size)  # an unknown letter is one more
        longest = max(d for d in range(1, 63) if base**d <= 2**62)
        check_integer("degree, with unknown letters,", degree, 1, longest)
        n_words = sum(min(len(X), base**d) * (length - d + 1) for d in range(1, degree + 1))
        check_memory("the table of the words in X", (n_words, 2))
        self._build(letters, degree, shift_factors(shift, shift_weights), unknown=base > size)

    def _build(self, letters: np.ndarray, degree: int, delta: np.ndarray, unknown: bool) -> None:
        """Number the words of each degree at each position, and the longest of each sequence."""
        length, n = letters.shape
        size = self._size
        self._longest = np.empty((length, n), dtype=np.int32)  # words of min(D, L - p) letters
        self._levels = []
        words = position = np.empty(0, dtype=np.int64)
        for d in range(degree, 0, -1):
            positions = range(length - d + 1) if d == degree else [length - d]
            new = []
            for p in positions:
                distinct, self._longest[p] = _distinct(letters[p : p + d], size)
                new.append(distinct)
            sizes = [len(distinct) for distinct in new]
            bounds = pairwise(len(words) + np.cumsum([0, *sizes]))
            ending = [(p, slice(*b)) for p, b in zip(positions, bounds, strict=True)]
            words = np.concatenate([words, *new])
            position = np.concatenate([position, np.repeat(positions, sizes)])
            prefix = words // size
            first = (np.diff(prefix, prepend=-1) != 0) | (np.diff(position, prepend=-1) != 0)
            above = _above(words, position, delta)
            known = _known(words, d, size) if unknown else None
            self._levels.append(_Level(ending, np.flatnonzero(first), above, known))
            words, position = prefix[first], position[first]

    def __matmul__(self, v: ArrayLike) -> np.ndarray:
        """K v."""
        v = check_array("v", v, 1, (self.shape[1],)) * self._scale
        v = np.tile(v / self._strands, self._strands)
        sums, g = [], np.empty(0)
        for level in self._levels:
            new = [np.bincount(self._longest[p], v) for p, _ in level.ending]
            sums.append(np.concatenate([g, *new]))
            g = np.add.reduceat(sums[-1], level.first)
        score, h = np.zeros(len(v)), np.zeros(len(g))
        for beta, level in zip(self._beta, reversed(self._levels), strict=True):
            g = sums.pop()
            h = np.repeat(h[: len(level.first)], np.diff(level.first, append=len(g)))
            shared = g + level.above @ g + level.above.T @ g
            h += beta * (shared if level.known is None else shared * level.known)
            for p, own in level.ending:
                score += h[own][self._longest[p]]
        return score[: self.shape[0]] * self._scale


class _Level(NamedTuple):
    """The distinct words (u, p) of one degree, ordered by p, then by u."""

    ending: list[tuple[int, slice]]  # the p where no longer word is had, and their words
    first: np.ndarray  # the first word with each prefix
    above: sparse.csr_matrix  # delta_s from (u, p) to (u, p + s)
    known: np.ndarray | None  # which have no unknown letter; None for all


def _distinct(letters: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct columns of d letters as sorted int64 words, and each column's number."""
    words = np.zeros(letters.shape[1], dtype=np.int64)
    for row in letters:
        words = size * words + row
    if size ** len(letters) > 4 * len(words):
        return np.unique(words, return_inverse=True)
    seen = np.bincount(words, minlength=size ** len(letters)) > 0
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[words]


def _known(words: np.ndarray, d: int, size: int) -> np.ndarray:
    """Which words of d letters have no letter of the last code, the unknown one."""
    known = np.ones(len(words), dtype=bool)
    for _ in range(d):
        words, letter = np.divmod(words, size)
        known &= letter < size - 1
    return known


def _above(words: np.ndarray, position: np.ndarray, delta: np.ndarray) -> sparse.csr_matrix:
    """delta_s at [(u, p), (u, p + s)], s >= 1."""
    order = np.argsort(words, kind="stable")  # by word, then by position
    words, position = words[order], position[order]
    rows, columns, lags = [order[:0]], [order[:0]], [order[:0]]
    for k in range(1, len(delta)):
        lag = position[k:] - position[:-k]
        i = np.flatnonzero((words[k:] == words[:-k]) & (lag < len(delta)))
        if not i.size:
            break
        rows.append(order[i])
        columns.append(order[i + k])
        lags.append(lag[i])
    entries = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_matrix((delta[np.concatenate(lags)], entries), (len(words), len(words)))
