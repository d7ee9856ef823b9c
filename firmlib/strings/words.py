"""Words as column numbers of a table, and the words of a sequence."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from firmlib.strings.alphabet import DNA, Alphabet, decode, encode
from firmlib.tables.checks import check_integer

__all__ = ["index_word", "word_index"]


def word_index(words: Sequence[str] | ArrayLike, *, alphabet: Alphabet = DNA) -> np.ndarray:
    """Number words of k letters from AA..A = 0 to TT..T = 4**k - 1: the columns of `poim`.

    Parameters
    ----------
    words : n str, or codes of shape (n, k)
        Of at most 31 letters for DNA, 14 for proteins.
    alphabet : Alphabet, default DNA
        The alphabet of the words.

    Examples
    --------
    >>> from firmlib.strings import word_index
    >>> word_index(["AA", "AC", "TT"])
    array([ 0,  1, 15])
    """
    codes = encode(words, alphabet=alphabet, name="words")
    k = check_integer("the words' length", codes.shape[1], 1, alphabet.max_letters)
    return windows(codes, k, len(alphabet))[:, 0]


def index_word(index: ArrayLike, k: int, *, alphabet: Alphabet = DNA) -> list[str]:
    """Return the words of k letters that have these numbers, the inverse of `word_index`.

    Parameters
    ----------
    index : integer array of shape (n,)
    k : int
        Letters in each word.
    alphabet : Alphabet, default DNA
        As in `word_index`.

    Examples
    --------
    >>> from firmlib.strings import index_word
    >>> index_word([0, 1, 15], 2)
    ['AA', 'AC', 'TT']
    """
    k, index = check_integer("k", k, 1, alphabet.max_letters), np.asarray(index)
    if index.dtype.kind not in "iu" or index.ndim != 1 or index.size == 0:
        raise ValueError(
            f"index must be a list of integers, got {index.dtype} of shape {index.shape}"
        )
    n_words = len(alphabet) ** k
    if index.min() < 0 or index.max() >= n_words:
        bad = index[(index < 0) | (index >= n_words)][0]
        raise ValueError(
            f"index must be from 0 to {n_words - 1} for words of length {k}, got {bad}"
        )
    return decode(letters(index, k, len(alphabet)), alphabet=alphabet)


def windows(codes: np.ndarray, d: int, size: int = 4) -> np.ndarray:
    """Numbers of the words of d letters at each position, shape (n, L - d + 1)."""
    n = codes.shape[1] - d + 1
    index = np.zeros((len(codes), n), dtype=np.int64)
    for t in range(d):
        index *= size
        index += codes[:, t : t + n]
    return index


def letters(index: np.ndarray, d: int, size: int = 4) -> np.ndarray:
    """Codes (n, d) of the words of d letters with these numbers."""
    return index[:, None] // size ** np.arange(d)[::-1] % size


def known_runs(codes: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """Stretches without unknown letters, grouped by place: rows, offset, their codes."""
    edge = np.diff(np.pad(codes < size, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, start = np.nonzero(edge == 1)
    stop = np.nonzero(edge == -1)[1]
    order = np.lexsort([stop, start])
    last = np.flatnonzero(np.diff(start[order]) | np.diff(stop[order])) + 1
    for group in np.split(order, last):
        if group.size:
            first, end = int(start[group[0]]), int(stop[group[0]])
            yield row[group], first, codes[row[group], first:end]
