"""Words as column numbers of a table, and the words of a sequence."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from firmlib.strings.alphabet import DNA, Alphabet, decode, encode
from firmlib.tables.checks import check_integer

__all__ = ["index_word", "word_index"]


def word_index(words: Sequence[str] | ArrayLike, *, alphabet: Alphabet = DNA) -> np.ndarray:
    """Number words of k letters from AA..A = 0 to TT..T = 4**k - 1: the columns of `poim`.

    Parameters
    ----------
    words : n str or codes (n, k), of at most 31 letters for DNA, 14 for proteins
    alphabet : as in `encode`

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
    index, k : integers of shape (n,), int
    alphabet : as in `encode`

    Examples
    --------
    >>> from firmlib.strings import index_word
    >>> index_word([0, 1, 15], 2)
    ['AA', 'AC', 'TT']
    """
    k, index = check_integer("k", k, 1, alphabet.max_letters), np.asarray(index)
    if index.dtype.kind not in "iu" or index.ndim != 1 or index.size == 0:
        found = f"{index.dtype} of shape {index.shape}"
        raise ValueError(f"index must be a list of integers, got {found}")
    last = len(alphabet) ** k - 1
    if index.min() < 0 or index.max() > last:
        bad = index[(index < 0) | (index > last)][0]
        raise ValueError(f"index must be from 0 to {last} for words of length {k}, got {bad}")
    return decode(letters(index, k, len(alphabet)), alphabet=alphabet)


def windows(codes: np.ndarray, d: int, size: int = 4) -> np.ndarray:
    """Numbers of the words of d letters at each position, (n, L - d + 1); -1 if one is unknown."""
    n = codes.shape[1] - d + 1
    index = np.zeros((len(codes), n), dtype=np.int64)
    for t in range(d):
        index *= size
        index += codes[:, t : t + n]
    if codes.max(initial=0) >= size:
        unknown = np.pad(np.cumsum(codes >= size, axis=1), ((0, 0), (1, 0)))
        index[unknown[:, d:] > unknown[:, :n]] = -1
    return index


def letters(index: np.ndarray, d: int, size: int = 4) -> np.ndarray:
    """Codes (n, d) of the words of d letters with these numbers."""
    return index[:, None] // size ** np.arange(d)[::-1] % size


def find(code: np.ndarray, codes: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Where entries of `code` are among the sorted `codes`, an array for each axis; and which.

    None stands for all codes from 0, each its own number.
    """
    which = code if codes is None else np.searchsorted(codes, code)
    where = np.nonzero(code >= 0 if codes is None else np.append(codes, -2)[which] == code)
    return *where, which[where]
