"""A string score, unfolded: one weight for each word at each position (Section 1.2)."""

from collections.abc import Mapping, Sequence
from itertools import groupby, product
from typing import NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.linalg import toeplitz

from firmlib.strings._sweep import expected_score
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.background import Background
from firmlib.strings.kernel import check_kernel, degree_factors, shift_factors
from firmlib.strings.words import known_runs, windows
from firmlib.tables.checks import check_array, check_integer, check_memory, check_number

__all__ = ["PositionalWeights"]

DENSE_ENTRIES = 2**25
"""A table of weights up to this size is stored, if it takes hardly more than its sequences."""

_BATCH = 2**13  # sequences at once
_BLOCK = 32  # positions at once: few products with 0, and enough work for BLAS
_FILLINGS = 4**6  # sequences that one with unknown letters stands for, to go through them all


class Pieces(NamedTuple):
    """Sequences from one position on, whose words of length d all have the weight values[d]."""

    codes: np.ndarray  # (m, n)
    offset: int
    values: dict[int, np.ndarray]  # each (m,)


class PositionalWeights:
    """The linear string score s(x) = sum_{y,i} w_{y,i} I(x[i:i+|y|] = y) + b, eq. (4).

    For short words, w is a table. Only a tiny part of all long words has a weight: w stays folded
    up in the sequences they come from, until some words (`columns`) or all (`dense`) are needed.
    Made by `from_dual`, `from_dict` and `from_tables`.

    Attributes
    ----------
    length, degree, intercept, alphabet
        L, the length of the longest words, b, and the letters.
    tables, pieces : dict and list
        w for words of up to `split` letters, ``{d: ndarray of shape (L - d + 1, a**d)}``, and for
        longer words, to be smeared along the positions with the factors `smear`.
    reverse_complement : bool
        Whether both strands have one score, so that a motif is named on one of them.
    positional : bool
        False if a word has the same weight at all positions (`fit_surrogate`).
    r2 : float or None
        For a surrogate, the share of the variance of held-out scores that it explains.

    Examples
    --------
    >>> from firmlib.strings import PositionalWeights
    >>> w = PositionalWeights.from_dict({("GAT", 0): 1.0, ("TA", 3): 0.5}, length=7)
    >>> w.score(["GATTACA", "GATCACA"])
    array([1.5, 1. ])
    """

    def __init__(
        self,
        length: int,
        tables: dict[int, np.ndarray],
        pieces: Sequence[Pieces] = (),
        *,
        smear: ArrayLike = (1.0,),
        intercept: float = 0.0,
        alphabet: Alphabet = DNA,
        reverse_complement: bool = False,
    ) -> None:
        self.length, self.tables, self.pieces = length, tables, list(pieces)
        self.alphabet, self.reverse_complement = alphabet, reverse_complement
        self.smear, self.intercept = np.asarray(smear), check_number("intercept", intercept)
        self.r2: float | None = None
        self.positional = True
        self.split = max(tables, default=0)
        self.degree = max([self.split, *(d for piece in self.pieces for d in piece.values)])

    def __repr__(self) -> str:
        kind = "" if self.positional else ", words at any position"
        kind += "" if self.r2 is None else f", a surrogate with R² {self.r2:.3f}"
        return f"PositionalWeights(length={self.length}, degree={self.degree}{kind})"

    @classmethod
    def from_dual(
        cls,
        X: Sequence[str] | ArrayLike,
        dual_coef: ArrayLike,
        *,
        degree: int,
        shift: int = 0,
        shift_weights: str = "rase",
        intercept: float = 0.0,
        reverse_complement: bool = False,
        alphabet: Alphabet = DNA,
        unknown: str = "error",
    ) -> Self:
        """Unfold s(x) = sum_i a_i k(x_i, x) + b for the WDS kernel, not normalized.

            w_{y,p} = beta_d sum_{|s| <= S} delta_|s| sum_i a_i I(x_i[p+s:p+s+d] = y),   d = |y|.

        `X` holds the sequences x_i, `dual_coef` the numbers a_i (for a normalized kernel divide
        them by sqrt(k(x_i, x_i)) first), `intercept` is b, 0 by default. `degree`, `shift`,
        `shift_weights`, `reverse_complement`, `alphabet` and `unknown` as in `wds_kernel`.
        """
        X = encode(X, alphabet=alphabet, unknown=unknown, name="X")
        a = check_array("dual_coef", dual_coef, 1, (len(X),))
        check_kernel(X.shape[1], degree, shift, shift_weights, alphabet)
        used = a != 0 if a.any() else slice(1)  # one sequence at least
        X, a, length = X[used], a[used], X.shape[1]
        if reverse_complement:
            X, a = np.concatenate([X, alphabet.reverse_complement(X)]), np.r_[a, a] / 2
        options = {"smear": shift_factors(shift, shift_weights), "intercept": intercept}
        options |= {"alphabet": alphabet, "reverse_complement": reverse_complement}
        beta = degree_factors(degree)
        pieces = [
            Pieces(run, offset, {d: beta[d - 1] * a[rows] for d in range(1, most + 1)})
            for rows, offset, run in known_runs(X, len(alphabet))
            for most in [min(degree, run.shape[1])]
        ]
        folded = cls(length, {}, pieces, **options)
        size, words = len(alphabet), X.size * (2 * shift + 1)  # to go through one by one
        entries = [(length - d + 1) * size**d for d in range(1, degree + 1)]
        most = min(DENSE_ENTRIES, words if entries[-1] > 4 * words else entries[-1])
        short = [d for d, n in enumerate(entries, 1) if n <= most]
        tables = {d: folded.columns(d) for d in short}
        return cls(length, tables, folded.part(len(short) + 1, degree).pieces, **options)

    @classmethod
    def from_dict(
        cls,
        weights: Mapping[tuple[str, int], float],
        length: int,
        *,
        intercept: float = 0.0,
        alphabet: Alphabet = DNA,
    ) -> Self:
        """Take single `weights`, ``{(word, position): weight}``, of sequences of `length` letters.

        `intercept` is 0 by default, `alphabet` DNA.
        """
        length = check_integer("length", length, 1)
        if not weights:
            raise ValueError("weights is empty; expected {(word, position): weight}")
        values = check_array("weights", list(weights.values()), 1)
        for key in weights:
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], str)):
                raise ValueError(f"weights has the key {key!r}, expected (word, position)")
            most = min(alphabet.max_letters, length)
            d = check_integer(f"the length of {key[0]!r}", len(key[0]), 1, most)
            check_integer(f"the position of {key[0]!r}", key[1], 0, length - d)
        pieces = []
        entries = sorted((len(y), i, y, w) for (y, i), w in zip(weights, values, strict=True))
        for (d, offset), group in groupby(entries, key=lambda entry: entry[:2]):
            _, _, word, value = zip(*group, strict=True)
            codes = encode(word, alphabet=alphabet, name="weights")
            pieces.append(Pieces(codes, offset, {d: np.array(value)}))
        return cls(length, {}, pieces, intercept=intercept, alphabet=alphabet)

    @classmethod
    def from_tables(
        cls, tables: Mapping[int, ArrayLike], *, intercept: float = 0.0, alphabet: Alphabet = DNA
    ) -> Self:
        """Take dense `tables`, ``{k: array of shape (L - k + 1, a**k)}``, as `dense` gives them.

        `intercept` is 0 by default, `alphabet` DNA.
        """
        a, most = len(alphabet), _longest_table(alphabet)
        if not tables:
            raise ValueError(f"tables is empty; expected {{k: array of shape (L - k + 1, {a}**k)}}")
        length = min(
            np.shape(table)[0] + check_integer("k", k, 1, most) - 1 for k, table in tables.items()
        )
        checked = {
            k: check_array(f"tables[{k}]", table, 2, (length - k + 1, a**k))
            for k, table in tables.items()
        }
        return cls(length, checked, intercept=intercept, alphabet=alphabet)

    def dense(self, k: int) -> np.ndarray:
        """w_{y,i} for all words of length `k`, shape (L - k + 1, a**k), up to 4**12 words."""
        k = check_integer("k", k, 1, min(_longest_table(self.alphabet), self.length))
        check_memory("the table of weights", (self.length - k + 1, len(self.alphabet) ** k))
        return np.array(self.columns(k))

    def columns(self, d: int, codes: np.ndarray | None = None) -> np.ndarray:
        """w_{y,i} for words of length `d`: those with `codes`, distinct and sorted, or all."""
        if d in self.tables:
            return self.tables[d] if codes is None else self.tables[d][:, codes]
        size = len(self.alphabet)
        n, m = self.length - d + 1, size**d if codes is None else len(codes)
        w = np.zeros((n, m))
        for letters, offset, values in (piece for piece in self.pieces if d in piece.values):
            for i in range(0, len(letters), _BATCH):
                rows = slice(i, i + _BATCH)
                row, start, column = find(windows(letters[rows], d, size), codes)
                np.add.at(w.reshape(-1), (start + offset) * m + column, values[d][rows][row])
        return w if len(self.smear) == 1 else _smeared(w, self.smear)

    def part(self, low: int, high: int) -> Self:
        """The same weights for words of `low` to `high` letters, and none for others."""
        tables = {d: table for d, table in self.tables.items() if low <= d <= high}
        pieces = [
            Pieces(codes, offset, {d: value for d, value in values.items() if low <= d <= high})
            for codes, offset, values in self.pieces
        ]
        pieces = [piece for piece in pieces if piece.values]
        return type(self)(self.length, tables, pieces, smear=self.smear, alphabet=self.alphabet)

    def at(self, d: int, position: np.ndarray, code: np.ndarray) -> np.ndarray:
        """w_{y,i} for words of length `d` one by one; `position` is broadcast to `code`."""
        if d in self.tables:
            return self.tables[d][position, code]
        pieces = [piece for piece in self.pieces if d in piece.values]
        known = [windows(piece.codes, d, len(self.alphabet)).ravel() for piece in pieces]
        known = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *known]))
        *where, which = find(code, known)
        codes, column = np.unique(known[which], return_inverse=True)
        w = np.zeros(code.shape)
        w[*where] = self.columns(d, codes)[np.broadcast_to(position, code.shape)[*where], column]
        return w

    def score(
        self,
        X: Sequence[str] | ArrayLike,
        background: Background | None = None,
        *,
        unknown: str = "error",
    ) -> np.ndarray:
        """s(x) for each sequence in `X`, shape (n,).

        With `unknown` = "average" ("error" by default), ambiguous letters are allowed, and the
        result is E[s(X) | the known letters], exactly, over `background`, uniform by default.

        Examples
        --------
        >>> from firmlib.strings import PositionalWeights
        >>> w = PositionalWeights.from_dict({("GAT", 0): 1.0, ("TA", 3): 0.5}, length=7)
        >>> w.score(["GATTNCA", "GRTCACA"], unknown="average")
        array([1.125, 0.5  ])
        """
        X = encode(X, alphabet=self.alphabet, unknown=unknown, name="X")
        if X.shape[1] != self.length:
            raise ValueError(f"X has sequences of length {X.shape[1]}, expected {self.length}")
        s, known = np.full(len(X), self.intercept), len(self.alphabet) > X.max(axis=1)
        s[known] += self.matches(X[known])
        if not known.all():
            s[~known] += _expected_scores(self, X[~known], background)
        return s

    def matches(self, X: np.ndarray) -> np.ndarray:
        """Sum of the weights of the words in each row of `X`; unknown letters match nothing."""
        s, size = np.zeros(len(X)), len(self.alphabet)
        for start in range(0, len(X), _BATCH):
            rows = slice(start, start + _BATCH)
            gap = size <= X[rows]
            Z, gaps = np.where(gap, 0, X[rows]), gap.any()
            for d in range(1, self.degree + 1):
                code = windows(Z, d, size)
                w = self.at(d, np.arange(code.shape[1]), code)
                if gaps:
                    w = np.where(sliding_window_view(gap, d, axis=1).any(axis=2), 0, w)
                s[rows] += w.sum(axis=1)
        return s


def _smeared(w: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """sum_s factors[|s|] w[p - s] for each position p: a band of numbers times w, in blocks."""
    n, reach = len(w), len(factors) - 1
    band, smeared = toeplitz(np.r_[factors, np.zeros(n)][:n]), np.empty_like(w)
    for start in range(0, n, _BLOCK):
        near = slice(max(0, start - reach), start + _BLOCK + reach)
        rows = slice(start, start + _BLOCK)
        np.matmul(band[rows, near], w[near], out=smeared[rows])
    return smeared


def _longest_table(alphabet: Alphabet) -> int:
    """Letters in the words of a table of at most 4**12 columns."""
    return max(d for d in range(1, 25) if len(alphabet) ** d <= 4**12)


def find(code: np.ndarray, codes: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Where entries of `code` are among the sorted `codes`, an array for each axis; and which.

    None stands for all codes, each its own number.
    """
    if codes is None:
        return *np.indices(code.shape).reshape(code.ndim, -1), code.ravel()
    which = np.searchsorted(codes, code)
    where = np.nonzero(np.append(codes, -1)[which] == code)
    return *where, which[where]


def _expected_scores(
    weights: PositionalWeights, X: np.ndarray, background: Background | None
) -> np.ndarray:
    """E[s(X) | the known letters of x] without the intercept, for codes with unknown letters.

    By going through all sequences that x stands for, where they are few; else by the law of X
    given x, which is a chain again.
    """
    background = background or Background.uniform(weights.length, alphabet=weights.alphabet)
    if (background.length, background.alphabet) != (weights.length, weights.alphabet):
        raise ValueError(
            f"background has length {background.length} and the {background.alphabet}, "
            f"but the weights' are {weights.length} and {weights.alphabet}"
        )
    s = np.zeros(len(X))
    for i, allowed in enumerate(weights.alphabet.members[X]):
        if allowed.sum(axis=1).prod(dtype=float) > _FILLINGS:
            s[i] = expected_score(weights, background.given(allowed.astype(float)))
            continue
        every = np.array(list(product(*map(np.flatnonzero, allowed))), dtype=np.uint8)
        p = background.motif_probabilities(every)[:, 0]
        if not p.any():
            raise ValueError(f"X[{i}] of those with unknown letters has probability 0; expected "
                             "sequences that the background can produce")  # fmt: skip
        s[i] = p @ weights.matches(every) / p.sum()
    return s
