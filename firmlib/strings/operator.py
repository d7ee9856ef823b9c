"""The weighted degree kernel with shifts as an operator: K·v in linear time, without K."""

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import toeplitz
from sklearn.utils import gen_batches

from firmlib._checks import check_array, check_integer, check_memory
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.kernel import check_kernel, degree_factors, shift_factors, wds_diagonal

__all__ = ["WDSOperator"]

_POSITIONS = 16  # mixed by one matrix product, which must not reach far beyond the shifts


class WDSOperator:
    """The kernel matrix of X as an operator: ``WDSOperator(X, ...) @ v`` is K v without K.

    K v is the score of a model with dual coefficients v. Sum v over the sequences that have
    the word u at position p, mix the sums of u over shifts, and let every sequence collect what
    its words have:

        g_d(u, p) = sum_j v_j I(x_j[p:p+d] = u),
        (K v)_i = sum_d beta_d sum_p ( g_d(u, p) + sum_s delta_s (g_d(u, p-s) + g_d(u, p+s)) )

    with u = x_i[p:p+d]. Sequences are looked at only once for each p, at the longest words: sums
    go from words to their prefixes, mixtures from prefixes to words. That takes O(n L) steps, and
    a few for each (u, p) and shift: of short words all are kept, of long ones those that X has.

    Parameters
    ----------
    X : n sequences
    degree, shift, shift_weights, normalize, reverse_complement, alphabet, unknown
        As in `wds_kernel`.

    Attributes
    ----------
    shape : (n, n)
    scale : ndarray of shape (n,)
        1 / sqrt(k(x, x)) if normalized, else 1.

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
        self.scale = np.ones(n)
        if normalize:
            options = {
                "reverse_complement": reverse_complement,
                "alphabet": alphabet,
                "unknown": unknown,
            }
            k = wds_diagonal(X, degree=degree, shift=shift, shift_weights=shift_weights, **options)
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
        n_words = sum(m * (length - i) for i, m in enumerate(most))
        check_memory("the table of the words in X", (n_words, 2))
        delta = np.outer(degree_factors(degree), shift_factors(shift, shift_weights))
        self._build(letters, base, short, delta, unknown=base > size)

    def _build(
        self, letters: np.ndarray, size: int, short: int, delta: np.ndarray, unknown: bool
    ) -> None:
        """Number the words of each degree at each position, and the longest of each sequence."""
        (length, n), degree = letters.shape, len(delta)
        self._longest = np.empty((length, n), dtype=np.int32)  # words of min(D, L - p) letters
        self._levels: list[_All | _Found] = []
        self._alone = Lock()  # a product writes into the levels, for fresh memory takes its time
        words = position = np.empty(0, dtype=np.int64)
        for d in range(degree, 0, -1):
            ending = range(0 if d == degree else length - d, length - d + 1)
            if d <= short:
                for p in ending:
                    self._longest[p] = _numbers(letters[p : p + d][::-1], size)
                known = _known(np.arange(size**d), d, size) if unknown else None
                self._levels.append(_All(size, d, length, delta[d - 1], ending, known))
                continue
            new = []
            for p in ending:
                numbers = _numbers(letters[p : p + d], size)
                distinct, self._longest[p] = np.unique(numbers, return_inverse=True)
                new.append(distinct)
            bounds = len(words) + np.cumsum([0, *map(len, new)])
            words = np.concatenate([words, *new])
            position = np.concatenate([position, np.repeat(ending, np.diff(bounds))])
            known = _known(words, d, size) if unknown else None
            ends = list(zip(ending, bounds.tolist(), bounds[1:].tolist(), strict=False))
            level = _Found(words, position, size, delta[d - 1], ends, known)
            self._levels.append(level)
            words, position = words[level.first] // size, position[level.first]
            if d - 1 == short:
                level.prefix = position * size**short + _backwards(words, short, size)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_alone"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_alone": Lock()}  # which cannot be pickled

    def __matmul__(self, v: ArrayLike) -> np.ndarray:
        """K v."""
        v = check_array("v", v, 1, (self.shape[1],)) * self.scale
        v = np.tile(v / self._strands, self._strands)
        score, h, own = np.zeros(len(v)), np.zeros(len(self._longest)), np.empty(len(v))
        with self._alone:
            for i, level in enumerate(self._levels):
                if i:
                    self._levels[i - 1].down(level.g)
                for p, start, stop in level.ending:
                    level.g[start:stop] = np.bincount(self._longest[p], v, stop - start)
            for level in reversed(self._levels):
                h = level.up(h)
                for p, start, stop in level.ending:
                    score += np.take(h[start:stop], self._longest[p], out=own, mode="clip")
        return score[: self.shape[0]] * self.scale


class _All:
    """All words of d letters at all positions.

    They are numbered by position, then from the last letter to the first, so that the sums over
    the last letter are sums of a few long rows.
    """

    def __init__(
        self,
        size: int,
        d: int,
        length: int,
        delta: np.ndarray,
        ending: range,
        known: np.ndarray | None,
    ) -> None:
        n = length - d + 1
        self.shape, m = (n, size, size ** (d - 1)), size**d
        self.ending = [(p, p * m, (p + 1) * m) for p in ending]  # where no longer word is had
        self.g, self.h = np.zeros(n * m), np.empty((n, m))
        self.known = known  # which have no unknown letter; None for all
        self.shift = len(delta) - 1
        self.mixture = toeplitz(np.r_[delta, np.zeros(n)][:n])
        self.batches = list(gen_batches(n, _POSITIONS))  # once: its checks take long

    def down(self, g: np.ndarray) -> None:
        """Sums of words, to those of their prefixes."""
        n, _, m = self.shape
        self.g.reshape(self.shape).sum(axis=1, out=g[: n * m].reshape(n, m))

    def up(self, h: np.ndarray) -> np.ndarray:
        """What prefixes have, and the mixture of words over shifts."""
        n, _, m = self.shape
        g, out = self.g.reshape(n, -1), self.h
        for rows in self.batches:
            near = slice(max(0, rows.start - self.shift), rows.stop + self.shift)
            np.matmul(self.mixture[rows, near], g[near], out=out[rows])
        if self.known is not None:
            out *= self.known
        out = out.reshape(self.shape)
        out += h[: n * m].reshape(n, 1, m)
        return out.reshape(-1)


class _Found:
    """The distinct words (u, p) of one degree in X, by p, then by u, with what `_All` has."""

    def __init__(
        self,
        words: np.ndarray,
        position: np.ndarray,
        size: int,
        delta: np.ndarray,
        ending: list[tuple[int, int, int]],
        known: np.ndarray | None,
    ) -> None:
        self.g, self.ending, self.known = np.zeros(len(words)), ending, known
        new = np.diff(words // size, prepend=-1) != 0
        self.first = np.flatnonzero(new | (np.diff(position, prepend=-1) != 0))  # of each prefix
        self.prefix: slice | np.ndarray = slice(len(self.first))  # its number among the prefixes
        self.own, self.above = delta[0], _above(words, position, delta)

    def down(self, g: np.ndarray) -> None:
        g[self.prefix] = np.add.reduceat(self.g, self.first)

    def up(self, h: np.ndarray) -> np.ndarray:
        g = self.g
        mixed = self.own * g + self.above @ g + self.above.T @ g
        if self.known is not None:
            mixed *= self.known
        return mixed + np.repeat(h[self.prefix], np.diff(self.first, append=len(g)))


def _numbers(letters: np.ndarray, size: int) -> np.ndarray:
    """Columns of d letters as int64 numbers, the first letter counting most."""
    numbers = np.zeros(letters.shape[1], dtype=np.int64)
    for row in letters:
        numbers = size * numbers + row
    return numbers


def _backwards(words: np.ndarray, d: int, size: int) -> np.ndarray:
    """The numbers of words of d letters whose first letter counts least."""
    numbers = np.zeros_like(words)
    for _ in range(d):
        words, letter = np.divmod(words, size)
        numbers = size * numbers + letter
    return numbers


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
