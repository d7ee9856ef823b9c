"""The weighted degree kernel with shifts: its matrix and its diagonal."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.linalg import toeplitz
from sklearn.utils import gen_batches

from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.tables.checks import check_memory, check_option, is_integer

__all__ = ["wds_diagonal", "wds_kernel"]

_WORTH = 2**22  # pairs of sequences and shifts from which loading numba pays
_POSITIONS = 16  # mixed by one matrix product, which must not reach far beyond the shifts
_TILE = (64, 256)  # pairs compared at once: few enough for the cache, enough for NumPy


def wds_kernel(
    X: ArrayLike,
    Y: ArrayLike | None = None,
    *,
    degree: int,
    shift: int = 0,
    shift_weights: str = "rase",
    normalize: bool = True,
    reverse_complement: bool = False,
    alphabet: Alphabet = DNA,
    unknown: str = "error",
) -> np.ndarray:
    """Weighted degree kernel with shifts (n, m): how many words two sequences share, and where.

    With x[i:i+d] the word of length d at position i,

        k(x, y) = sum_{d=1..D} beta_d sum_{i} ( I(x[i:i+d] = y[i:i+d])
                  + sum_{s=1..S} delta_s ( I(x[i+s:i+s+d] = y[i:i+d])
                                         + I(x[i:i+d] = y[i+s:i+s+d]) ) ),

    beta_d = 2 (D - d + 1) / (D (D + 1)); delta_s = 1 / (2 (s + 1)) as published ("rase": Rätsch,
    Sonnenburg, Schölkopf, Bioinformatics 21, 2005) or 1 / (2 s) as in Shogun ("shogun").
    Both are positive semi-definite: 1 + sum_s 2 delta_s cos(s t) is never negative.

    Parameters
    ----------
    X : n sequences of one length, as strings or codes (see `encode`)
    Y : m sequences of the same length, optional
        By default X.
    degree : int from 1 to 31
        D, the length of the longest words; 14 at most for proteins.
    shift : int, default 0
        S, below the sequences' length; 0 gives the weighted degree kernel.
    shift_weights : {"rase", "shogun"}, default "rase"
    normalize : bool, default True
        Divide by sqrt(k(x, x) k(y, y)); sequences without a known letter get 0.
    reverse_complement : bool, default False
        Take (k(x, y) + k(x, y')) / 2, y' the reverse complement of y: the strand does not matter.
    alphabet : Alphabet, default DNA
    unknown : {"error", "average"}, default "error"
        "average" allows ambiguous letters, which here match nothing.

    Examples
    --------
    >>> from firmlib.strings import wds_kernel
    >>> wds_kernel(["GATTACA"], ["GATTACA", "CATTACA", "TGATTAC"], degree=3, shift=1).round(3)
    array([[1.   , 0.848, 0.297]])
    """
    X, symmetric = encode(X, alphabet=alphabet, unknown=unknown, name="X"), Y is None
    Y = X if Y is None else encode(Y, alphabet=alphabet, unknown=unknown, name="Y")
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"Y has sequences of length {Y.shape[1]}, expected the length of X, {X.shape[1]}"
        )
    check_kernel(X.shape[1], degree, shift, shift_weights, alphabet)
    check_memory("the kernel matrix", (len(X), len(Y)))
    K = np.zeros((len(X), len(Y)))
    strands = [Y, alphabet.reverse_complement(Y)] if reverse_complement else [Y]
    compiled = _loop() if len(strands) * K.size * (2 * shift + 1) >= _WORTH else None
    for strand in strands:
        for s, delta in enumerate(shift_factors(shift, shift_weights)):
            x, y, own = _words(X, strand, s, degree, len(alphabet))
            if compiled:
                compiled.add_common(x, y, own.ravel(), degree, delta, K, symmetric)
                continue
            for rows, columns in _tiles(*K.shape, symmetric):
                common = _common_words(x[:, :, rows, None], y[:, :, None, columns], own, degree)
                K[rows, columns] += delta * common
    K *= 2 / (degree * (degree + 1) * len(strands))
    if symmetric:
        for rows, columns in _tiles(*K.shape, symmetric):
            K[columns, rows] = K[rows, columns].T
    if normalize:
        options: dict[str, Any] = {"degree": degree, "shift": shift, "shift_weights": shift_weights}
        options |= {"reverse_complement": reverse_complement, "alphabet": alphabet}
        diagonals = [np.diag(K)] * 2
        if not symmetric:
            diagonals = [wds_diagonal(Z, unknown=unknown, **options) for Z in (X, Y)]
        kx, ky = (np.where(k > 0, k, 1) for k in diagonals)
        for row, k in zip(K, kx, strict=True):
            row /= np.sqrt(k * ky)
    return K


def wds_diagonal(
    X: ArrayLike,
    *,
    degree: int,
    shift: int = 0,
    shift_weights: str = "rase",
    reverse_complement: bool = False,
    alphabet: Alphabet = DNA,
    unknown: str = "error",
) -> np.ndarray:
    """Return k(x, x) of every sequence, shape (n,), not normalized.

    Parameters
    ----------
    X, degree, shift, shift_weights, reverse_complement, alphabet, unknown
        As in `wds_kernel`.

    Examples
    --------
    >>> from firmlib.strings import wds_diagonal
    >>> wds_diagonal(["GATTACA", "AAAAAAA"], degree=2, shift=1)
    array([7. , 9.5])
    """
    X = encode(X, alphabet=alphabet, unknown=unknown, name="X")
    check_kernel(X.shape[1], degree, shift, shift_weights, alphabet)
    k = np.zeros(len(X))
    strands = [X, alphabet.reverse_complement(X)] if reverse_complement else [X]
    for strand in strands:
        for s, delta in enumerate(shift_factors(shift, shift_weights)):
            for rows in gen_batches(len(X), _TILE[0] * _TILE[1]):
                words = _words(X[rows], strand[rows], s, degree, len(alphabet))
                k[rows] += delta * _common_words(*words, degree)
    return k * (2 / (degree * (degree + 1) * len(strands)))


def degree_factors(degree: int) -> np.ndarray:
    """beta_1, ..., beta_D, which sum to 1."""
    return 2 * np.arange(degree, 0, -1) / (degree * (degree + 1))


def shift_factors(shift: int, shift_weights: str) -> np.ndarray:
    """1, delta_1, ..., delta_S."""
    s = np.arange(1, shift + 1)
    return np.r_[1.0, 1 / (2 * (s + 1) if shift_weights == "rase" else 2 * s)]


def check_kernel(
    length: int, degree: int, shift: int, shift_weights: str, alphabet: Alphabet
) -> None:
    """Raise unless these are parameters of a kernel on sequences of `length` letters."""
    for name, value, low, high, why in (
        ("degree", degree, 1, min(31, alphabet.max_letters), "any sequences"),
        ("degree", degree, 1, length, f"sequences of length {length}"),
        ("shift", shift, 0, length - 1, f"sequences of length {length}"),
    ):
        if not (is_integer(value) and low <= value <= high):
            raise ValueError(
                f"{name} must be an integer from {low} to {high} for {why}, got {value!r}"
            )
    check_option("shift_weights", shift_weights, ("rase", "shogun"))


def mix_positions(
    table: np.ndarray, factors: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """sum_s factors[|s|] table[p - s] for each position p: a band of numbers times the table."""
    n, reach, out = len(table), len(factors) - 1, np.empty_like(table) if out is None else out
    band = toeplitz(np.r_[factors, np.zeros(n)][:n])
    for start in range(0, n, _POSITIONS):
        rows = slice(start, start + _POSITIONS)
        near = slice(max(0, start - reach), start + _POSITIONS + reach)
        np.matmul(band[rows, near], table[near], out=out[rows])
    return out


@cache
def _loop() -> Any:
    """The loop compiled by numba, or None where it is not installed or cannot be used."""
    try:
        from firmlib.strings import _compiled
    except (ImportError, OSError, RuntimeError):
        return None
    return _compiled if _compiled.ENABLED else None


def _tiles(n: int, m: int, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    for rows in gen_batches(n, _TILE[0]):
        for columns in gen_batches(m, _TILE[1]):
            if not symmetric or columns.stop > rows.start:
                yield rows, columns


def _words(
    X: np.ndarray, Y: np.ndarray, s: int, degree: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits of x[s:] over y[:-s] and of x[:-s] over y[s:], in planes of 64-bit words.

    The bits of x are flipped, so that x ^ y is 1 where they agree and 0 past their ends. Unknown
    letters get one code in x and another in y, so that they agree with nothing.
    """
    overlap, last = X.shape[1] - s, size - 1
    if max(X.max(), Y.max()) > last:
        X, Y, last = np.minimum(X, size), np.where(last < Y, size + 1, Y), size + 1
    n_planes = last.bit_length()
    flipped = 2**n_planes - 1 - X
    pairs = [(flipped[:, s:], Y[:, :overlap]), (flipped[:, :overlap], Y[:, s:])][: 2 if s else 1]
    x, y = (
        np.concatenate([_planes(part, degree, n_planes) for part in parts], axis=1)
        for parts in zip(*pairs, strict=True)
    )
    own = np.full((len(pairs), x.shape[1] // len(pairs)), 2**64 - 2 ** (degree - 1), np.uint64)
    own[:, 0] = 2**64 - 1
    return x, y, own.reshape(-1, 1)


def _planes(codes: np.ndarray, degree: int, n_planes: int) -> np.ndarray:
    """Bits of n sequences, from low to high, in 64-bit words, shape (n_planes, words, n).

    Each word begins with the last degree - 1 letters of the word before, so that no match needs
    to look across.
    """
    n, length = codes.shape
    step = 65 - degree
    n_words = 1 + max(0, -(-(length - 64) // step))
    bits = np.zeros((n_planes, n, step * (n_words - 1) + 64), dtype=np.uint8)
    for plane, row in enumerate(bits):
        row[:, :length] = codes >> plane & 1
    windows = sliding_window_view(bits, 64, axis=2)[:, :, ::step]
    words = np.packbits(windows, axis=-1, bitorder="little").view("<u8")[..., 0]
    return np.ascontiguousarray(words.transpose(0, 2, 1), dtype=np.uint64)


def _common_words(x: np.ndarray, y: np.ndarray, own: np.ndarray, degree: int) -> np.ndarray:
    """sum_d (D - d + 1) (number of positions where a match of d letters ends), in integers.

    It ends where one of d - 1 letters ends and the letter d - 1 places before matches too.
    """
    match = x[0] ^ y[0]
    for plane in range(1, len(x)):
        match &= x[plane] ^ y[plane]
    shape = match.shape[1:]
    match = match.reshape(len(own), -1)
    ends = match & own
    most = int(np.bitwise_count(own).sum())
    total = np.zeros(match.shape[1], np.min_scalar_type(most * degree * (degree + 1) // 2))
    for factor in range(degree, 0, -1):
        ending = np.add.reduce(np.bitwise_count(ends), axis=0, dtype=np.min_scalar_type(most))
        if not ending.any():
            break
        total += np.multiply(ending, factor, dtype=total.dtype)
        match += match
        ends &= match
    return total.reshape(shape)
