"""The weighted degree kernel with shifts: its matrix and its diagonal."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.linalg import toeplitz
from sklearn.utils import gen_batches

from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.tables.checks import check_integer, check_memory, check_option

_WORTH = 2**21  # pairs of sequences and shifts from which loading numba pays
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

    With x[i:i+d] the word of length d at position i, D = `degree` and S = `shift`,

        k(x, y) = sum_{d=1..D} beta_d sum_{|s|<=S} delta_|s| sum_i I(x[i+s:i+s+d] = y[i:i+d]),

    beta_d = 2 (D - d + 1) / (D (D + 1)), delta_0 = 1; `shift_weights` makes delta_s 1 / (2 (s + 1))
    as published ("rase": Rätsch, Sonnenburg, Schölkopf, Bioinformatics 21, 2005) or 1 / (2 s)
    ("shogun").

    `X` and `Y` (by default `X`) are n and m sequences of one length; `alphabet` and `unknown` are
    as in `encode`. D is at most 31 (14 for proteins). `normalize` divides by
    sqrt(k(x, x) k(y, y)). With `reverse_complement` the strand does not matter: k(x, y) becomes
    (k(x, y) + k(x, y')) / 2, where y' is the reverse complement of y.

    >>> from firmlib.strings import wds_kernel
    >>> wds_kernel(["GATTACA"], ["GATTACA", "CATTACA", "TGATTAC"], degree=3, shift=1).round(3)
    array([[1.   , 0.848, 0.297]])
    """
    X = encode(X, alphabet=alphabet, unknown=unknown, name="X")
    options = degree, shift, shift_weights, normalize, reverse_complement
    kernel = Kernel(X.shape[1], *options, alphabet)
    if Y is not None:
        Y = encode(Y, alphabet=alphabet, unknown=unknown, name="Y")
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"Y has sequences of length {Y.shape[1]}, expected {X.shape[1]}")
    return kernel.matrix(X, Y)


def wds_diagonal(X: ArrayLike, **kernel: Any) -> np.ndarray:
    """Return k(x, x) of every sequence, not normalized; `kernel` as in `wds_kernel`.

    >>> from firmlib.strings import wds_diagonal
    >>> wds_diagonal(["GATTACA", "AAAAAAA"], degree=2, shift=1)
    array([7. , 9.5])
    """
    X, checked = check_kernel(X, normalize=False, **kernel)
    return checked.diagonal(X)


def check_kernel(
    X: ArrayLike, *, alphabet: Alphabet = DNA, unknown: str = "error", **options: Any
) -> tuple[np.ndarray, "Kernel"]:
    """Return the codes of sequences and a kernel on them, from arguments of `wds_kernel`."""
    X = encode(X, alphabet=alphabet, unknown=unknown, name="X")
    return X, Kernel(X.shape[1], alphabet=alphabet, **options)


@dataclass
class Kernel:
    """A kernel on checked codes of `length` letters; the other fields are those of `wds_kernel`."""

    length: int
    degree: int
    shift: int = 0
    shift_weights: str = "rase"
    normalize: bool = True
    reverse_complement: bool = False
    alphabet: Alphabet = DNA

    def __post_init__(self) -> None:
        where, degree = f"for sequences of length {self.length}", self.degree
        most = min(31, self.alphabet.max_letters, self.length)
        check_integer(f"degree {where}", degree, 1, most)
        check_integer(f"shift {where}", self.shift, 0, self.length - 1)
        check_option("shift_weights", self.shift_weights, ("rase", "shogun"))
        s = np.arange(1, self.shift + 1)
        self.delta = np.r_[1.0, 1 / (2 * (s + 1) if self.shift_weights == "rase" else 2 * s)]
        self.beta = 2 * np.arange(degree, 0, -1) / (degree * (degree + 1))

    def strands(self, X: np.ndarray) -> list[np.ndarray]:
        """X, and if both strands count also its reverse complement."""
        return [X, self.alphabet.reverse_complement(X)] if self.reverse_complement else [X]

    def matrix(self, X: np.ndarray, Y: np.ndarray | None = None) -> np.ndarray:
        """`wds_kernel` of codes."""
        symmetric, Y = Y is None, X if Y is None else Y
        check_memory("the kernel matrix", (len(X), len(Y)))
        K = np.zeros((len(X), len(Y)))
        compiled = _loop() if K.size * len(self.delta) >= _WORTH else None
        for factor, x, y, own in self._shifted(X, Y):
            if compiled:
                compiled.add_common(x, y, own, self.degree, factor, K, symmetric)
                continue
            for rows, columns in product(*map(gen_batches, K.shape, _TILE)):
                if not symmetric or columns.stop > rows.start:
                    pair = x[:, :, rows, None], y[:, :, None, columns]
                    K[rows, columns] += factor * _common_words(*pair, own, self.degree)
        if symmetric:
            for i, row in enumerate(K):
                row[:i] = K[:i, i]
        ky = self.size(Y)
        for row, k in zip(K, self.size(X), strict=True):
            row /= np.sqrt(k * ky)
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """k(x, x) of codes, not normalized."""
        k = np.zeros(len(X))
        for rows in gen_batches(len(X), _TILE[0] * _TILE[1]):
            for factor, x, y, own in self._shifted(X[rows], X[rows]):
                k[rows] += factor * _common_words(x, y, own, self.degree)
        return k

    def size(self, X: np.ndarray) -> np.ndarray:
        """What normalizing divides by, squared: k(x, x), but 1 without a known letter."""
        k = self.diagonal(X) if self.normalize else np.ones(len(X))
        return np.where(k > 0, k, 1)

    def _shifted(self, X: np.ndarray, Y: np.ndarray) -> Iterator[tuple]:
        """A factor, bits of x, of y, and those each word counts, for all strands and shifts."""
        size, length, strands = len(self.alphabet), X.shape[1], self.strands(Y)
        for B in strands:
            A, last = X, size - 1
            if max(A.max(), B.max()) > last:  # unknown letters never agree
                A, B, last = np.minimum(A, size), np.where(last < B, size + 1, B), size + 1
            n_planes = last.bit_length()
            A = 2**n_planes - 1 - A  # so that x ^ y is 1 where they agree and 0 past their ends
            for s, delta in enumerate(self.delta):
                parts = [(A[:, s:], B[:, : length - s])]
                parts += [(A[:, : length - s], B[:, s:])] if s else []
                planes = [[_planes(side, self.degree, n_planes) for side in part] for part in parts]
                x, y = (np.concatenate(side, axis=1) for side in zip(*planes, strict=True))
                own = np.full(x.shape[1], 2**64 - 2 ** (self.degree - 1), np.uint64)
                own[:: x.shape[1] // len(parts)] = 2**64 - 1  # the first word of each part
                yield delta * self.beta[-1] / len(strands), x, y, own


def mix_positions(table: np.ndarray, factors: np.ndarray, out: np.ndarray) -> np.ndarray:
    """sum_s factors[|s|] table[p - s] for each position p: a band of numbers times the table."""
    n, reach = len(table), len(factors) - 1
    band = toeplitz(np.r_[factors, np.zeros(n)][:n])
    for start in range(0, n, _POSITIONS):
        rows = slice(start, start + _POSITIONS)
        near = slice(max(0, start - reach), start + _POSITIONS + reach)
        np.matmul(band[rows, near], table[near], out=out[rows])
    return out


def _loop() -> Any:
    """The loop compiled by numba, or None where it is not installed or cannot be used."""
    try:
        from firmlib.strings import _compiled
    except (ImportError, OSError, RuntimeError):
        return None
    return _compiled


def _planes(codes: np.ndarray, degree: int, n_planes: int) -> np.ndarray:
    """Bits of n sequences, from low to high, in 64-bit words, shape (n_planes, words, n)."""
    n, length = codes.shape
    step = 65 - degree  # each word begins with the last degree - 1 letters of the one before
    n_words = 1 + max(0, -(-(length - 64) // step))
    bits = np.zeros((n_planes, n, step * (n_words - 1) + 64), dtype=np.uint8)
    for plane, row in enumerate(bits):
        row[:, :length] = codes >> plane & 1
    windows = sliding_window_view(bits, 64, axis=2)[:, :, ::step]
    words = np.packbits(windows, axis=-1, bitorder="little").view("<u8")[..., 0]
    return np.ascontiguousarray(words.transpose(0, 2, 1), dtype=np.uint64)


def _common_words(x: np.ndarray, y: np.ndarray, own: np.ndarray, degree: int) -> np.ndarray:
    """sum_d (D - d + 1) (number of positions where a match of d letters ends), in integers."""
    match = np.bitwise_and.reduce(x ^ y)
    ends = match & own.reshape(-1, *[1] * (match.ndim - 1))
    most = int(np.bitwise_count(own).sum())
    total = np.zeros(match.shape[1:], np.min_scalar_type(most * degree * (degree + 1) // 2))
    for factor in range(degree, 0, -1):
        ending = np.bitwise_count(ends).sum(axis=0, dtype=np.min_scalar_type(most))
        if not ending.any():
            break
        total += np.multiply(ending, factor, dtype=total.dtype)
        match += match
        ends &= match  # the letter d - 1 places before the end matches, too
    return total
