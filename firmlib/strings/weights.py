"""A string score, unfolded: one weight for each word at each position (Section 1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib.strings.alphabet import DNA, Alphabet, decode, encode, windows
from firmlib.strings.background import Background
from firmlib.strings.kernel import Kernel, check_kernel, mix_positions
from firmlib.strings.matvec import common_words
from firmlib.tables.checks import check_array, check_integer, check_memory, check_number

DENSE_ENTRIES = 2**25  # a table up to this size is stored, if its sequences take as much
_BATCH = 2**15  # sequences at once


@dataclass(eq=False, repr=False)
class PositionalWeights:
    """The linear string score s(x) = sum_{y,i} w_{y,i} I(x[i:i+|y|] = y) + b, eq. (4).

    Made by `from_dual`, `from_dict` and `from_tables`. Attributes: `length` L, `degree`,
    `intercept` b, `alphabet`; whether both strands have one score, `reverse_complement`, and
    whether the weight of a word depends on its position, `positional`; `r2` of a surrogate.

    For words of up to `split` letters, w is in `tables`, ``{d: array of shape (L - d + 1, a**d)}``.
    Of longer ones, those of d letters in sequence i of `sequences` (n, L) have the weight
    values[i, d - 1], and smear[s] times as much s positions before and after.

    >>> from firmlib.strings import PositionalWeights
    >>> w = PositionalWeights.from_dict({("GAT", 0): 1.0, ("TA", 3): 0.5}, length=7)
    >>> w.score(["GATTACA", "GATCACA"])
    array([1.5, 1. ])
    """

    length: int
    tables: dict[int, np.ndarray]
    sequences: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    smear: np.ndarray = field(default_factory=lambda: np.ones(1))
    intercept: float = 0.0
    alphabet: Alphabet = DNA
    reverse_complement: bool = False
    positional: bool = True
    r2: float | None = None

    def __post_init__(self) -> None:
        self.intercept = check_number("intercept", self.intercept)
        self.split = max(self.tables, default=0)
        self.degree = max(self.split, self.values.shape[1])

    def __repr__(self) -> str:
        kind = "" if self.positional else ", words at any position"
        kind += "" if self.r2 is None else f", a surrogate with R² {self.r2:.3f}"
        return f"PositionalWeights(length={self.length}, degree={self.degree}{kind})"

    @classmethod
    def from_dual(
        cls, X: ArrayLike, dual_coef: ArrayLike, *, intercept: float = 0.0, **kernel: Any
    ) -> Self:
        """Unfold s(x) = sum_i a_i k(x_i, x) + b for the WDS kernel, not normalized.

            w_{y,p} = beta_d sum_{|s| <= S} delta_|s| sum_i a_i I(x_i[p+s:p+s+d] = y),   d = |y|.

        `X` holds the sequences x_i, `dual_coef` the a_i (for a normalized kernel divide them by
        sqrt(k(x_i, x_i))), `intercept` is b, and `kernel` the `degree` and others of `wds_kernel`.
        """
        X, checked = check_kernel(X, normalize=False, **kernel)
        a = check_array("dual_coef", dual_coef, 1, (len(X),))
        return cls.unfold(X, a, checked, intercept=intercept)

    @classmethod
    def unfold(cls, X: np.ndarray, a: np.ndarray, kernel: Kernel, intercept: float = 0.0) -> Self:
        """`from_dual` of codes, for any kernel, without the norm of the sequence that is scored."""
        X, a = X[a != 0], a[a != 0]
        strands = kernel.strands(X)
        a = np.tile(a / np.sqrt(kernel.size(X)) / len(strands), len(strands))
        X, alphabet, both = np.concatenate(strands), kernel.alphabet, kernel.reverse_complement
        values = np.outer(a, kernel.beta)
        w = cls(kernel.length, {}, X, values, kernel.delta, intercept, alphabet, both)
        most = min(DENSE_ENTRIES, max(X.size * (2 * len(kernel.delta) - 1), 2**20))
        sizes = [(w.length - d + 1) * len(alphabet) ** d for d in range(1, w.degree + 1)]
        w.split = sum(size <= most for size in sizes)
        w.tables = {d: w.columns(d) for d in range(1, w.split + 1)}
        return w

    @classmethod
    def from_dict(
        cls,
        weights: Mapping[tuple[str, int], float],
        length: int,
        *,
        intercept: float = 0.0,
        alphabet: Alphabet = DNA,
    ) -> Self:
        """Take single `weights`, ``{(word, position): weight}``, for sequences of one `length`."""
        length = check_integer("length", length, 1)
        entries = check_array("weights", list(weights.values()), 1)
        sequences = np.full((len(weights), length), len(alphabet), dtype=np.uint8)
        sizes = []
        for row, key in zip(sequences, weights, strict=True):
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], str)):
                raise ValueError(f"weights has the key {key!r}, expected (word, position)")
            (word, i), most = key, min(alphabet.max_letters, length)
            sizes.append(check_integer(f"the length of {word!r}", len(word), 1, most))
            check_integer(f"the position of {word!r}", i, 0, length - len(word))
            row[i : i + len(word)] = encode([word], alphabet=alphabet, name="weights")[0]
        values = np.zeros((len(weights), max(sizes)))
        values[np.arange(len(weights)), np.array(sizes) - 1] = entries
        return cls(length, {}, sequences, values, intercept=intercept, alphabet=alphabet)

    @classmethod
    def from_tables(
        cls, tables: Mapping[int, Any], *, intercept: float = 0.0, alphabet: Alphabet = DNA
    ) -> Self:
        """Take dense `tables`, ``{k: array of shape (L - k + 1, a**k)}``, as `dense` gives them."""
        a = len(alphabet)
        if not tables:
            raise ValueError(f"tables is empty; expected {{k: array of shape (L - k + 1, {a}**k)}}")
        length = min(len(w) + check_integer("k", k, 1) - 1 for k, w in tables.items())
        checked = {
            k: check_array(f"tables[{k}]", w, 2, (length - k + 1, a**k)) for k, w in tables.items()
        }
        return cls(length, checked, intercept=intercept, alphabet=alphabet)

    def dense(self, k: int) -> np.ndarray:
        """w_{y,i} for all words of length `k`, shape (L - k + 1, a**k)."""
        k = check_integer("k", k, 1, self.length)
        check_memory("the table of weights", (self.length - k + 1, len(self.alphabet) ** k))
        return np.array(self.columns(k))

    def columns(self, d: int) -> np.ndarray:
        """`dense` without checks: perhaps a table that must not be changed."""
        if d in self.tables:
            return self.tables[d]
        columns = len(self.alphabet) ** d
        w = np.zeros((self.length - d + 1, columns))
        if d > self.values.shape[1]:
            return w
        for i in range(0, len(self.sequences), _BATCH):
            code = windows(self.sequences[i : i + _BATCH], d, len(self.alphabet))
            row, start = np.nonzero(code >= 0)
            cell = start * columns + code[row, start]
            np.add.at(w.reshape(-1), cell, self.values[i + row, d - 1])
        return mix_positions(w, self.smear, np.empty_like(w))

    def score(
        self, X: ArrayLike, background: Background | None = None, *, unknown: str = "error"
    ) -> np.ndarray:
        """s(x) for each sequence in `X`, shape (n,).

        With `unknown` = "average", ambiguous letters are allowed, and the result is
        E[s(X) | the known letters], exactly, over `background`, uniform by default.
        """
        X = encode(X, alphabet=self.alphabet, unknown=unknown, name="X")
        if X.shape[1] != self.length:
            raise ValueError(f"X has sequences of length {X.shape[1]}, expected {self.length}")
        s, known = np.full(len(X), self.intercept), len(self.alphabet) > X.max(axis=1)
        s[known] += self.matches(X[known])
        if not known.all():
            from firmlib.strings.motifs import expected_score, soft_importance  # import this module

            background, X = check_background(self, background), X[~known]
            odds = self.alphabet.members[X][:, None].astype(float)
            Q, p, _ = soft_importance(self, odds, background)
            if not p.all():
                [shown] = decode(X[p[:, 0] == 0][:1], alphabet=self.alphabet, unknown="average")
                raise ValueError(f"X has {shown}, which has probability 0 under the background")
            s[~known] += Q[:, 0] + expected_score(self, background)
        return s

    def matches(self, X: np.ndarray) -> np.ndarray:
        """Sum of the weights of the words in each row of `X`; unknown letters match nothing."""
        if len(X) > _BATCH:
            return np.concatenate([self.matches(half) for half in np.array_split(X, 2)])
        s, n, size = np.zeros(len(X)), len(self.sequences), len(self.alphabet)
        for d, table in self.tables.items():
            code = windows(X, d, size)
            s += np.where(code < 0, 0, table[np.arange(code.shape[1]), code]).sum(axis=1)
        if self.degree == self.split:
            return s
        Z = np.pad(np.concatenate([self.sequences, X]), ((0, 0), (0, 1)), constant_values=size)
        code = windows(Z[:, :-1], self.split, size)
        place, row = np.nonzero(code.T >= 0)
        word = code[row, place]
        for d in range(self.split + 1, self.degree + 1):
            letter = Z[row, place + d - 1]
            words, number = np.unique(word * size + letter, return_inverse=True)
            share = (np.bincount(number, row < n) / np.bincount(number))[number]
            keep = (letter < size) & (share > 0) & (share < 1)  # words of both, which are few
            row, place, word = row[keep], place[keep], words[number[keep]]
            F, mix = common_words(row, place, word, len(Z), self.smear)
            s += F[n:] @ mix(F[:n].T @ self.values[:, d - 1])
        return s


def check_background(weights: PositionalWeights, background: Background | None) -> Background:
    """Return the background, uniform for None; raise unless it fits the weights."""
    background = background or Background.uniform(weights.length, alphabet=weights.alphabet)
    for what in ("alphabet", "length"):
        own, other = getattr(weights, what), getattr(background, what)
        if own != other:
            raise ValueError(f"background has {what} {other}, but the weights' is {own}")
    return background
