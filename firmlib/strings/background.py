"""The distribution of sequences that an expected score is taken over (Section 1.2)."""

import math
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from firmlib.strings.alphabet import DNA, Alphabet, encode, letters, windows
from firmlib.tables.checks import check_array, check_integer, check_memory, check_number, warn

_FEW = 10  # from this number of sequences, a constant column is not an accident


class Background:
    """A Markov chain of order D over an alphabet, whose transitions may depend on the position.

    With contexts c of D letters, the first letter most significant,

        Pr(X[:D] = c) = initial[c],   Pr(X_{j+D} = b | X[j:j+D] = c) = transition[j, c, b].

    Made by `uniform`, `product`, `markov`, `fit` and `given`. Attributes: `length` L, `order` D,
    0 for independent positions, `initial` (a**D,), `transition` (L - D, a**D, a), `alphabet` of a
    letters, and `name`, such as "uniform".

    >>> from firmlib.strings import Background
    >>> sticky = Background.markov([0.25] * 4, 0.6 * np.eye(4) + 0.1, length=50)
    >>> sticky.motif_probabilities(["AAA"])[0, 7].round(4)
    np.float64(0.1225)
    """

    def __init__(
        self, initial: np.ndarray, transition: np.ndarray, alphabet: Alphabet = DNA, name: str = ""
    ) -> None:
        self.initial, self.transition, self.alphabet = initial, transition, alphabet
        self.order = round(math.log(len(initial), len(alphabet)))
        self.name = name or f"chain of order {self.order}"
        self.length = len(transition) + self.order
        check_memory("the background", (len(transition), len(alphabet) ** (self.order + 1)))

    @classmethod
    def uniform(cls, length: int, *, alphabet: Alphabet = DNA) -> Self:
        """All sequences of `length` letters of the `alphabet` equally likely."""
        shape = check_integer("length", length, 1), 1, len(alphabet)
        return cls(np.ones(1), np.full(shape, 1 / len(alphabet)), alphabet, "uniform")

    @classmethod
    def product(cls, probs: ArrayLike, *, alphabet: Alphabet = DNA) -> Self:
        """Independent positions; row j of `probs` (L, a) is the distribution of letter j."""
        probs = check_rows("probs", probs, (None, len(alphabet)))
        return cls(np.ones(1), probs[:, None, :], alphabet)

    @classmethod
    def markov(
        cls, initial: ArrayLike, transition: ArrayLike, length: int, *, alphabet: Alphabet = DNA
    ) -> Self:
        """Homogeneous chain of `length` letters; it need not start in its stationary distribution.

        `initial` (a**D,) is the distribution of the first D letters, ([1.0] for D = 0), and
        `transition` has shape (a**D, a).
        """
        initial, a = check_rows("initial", initial, (None,)), len(alphabet)
        order = round(math.log(len(initial), a))
        if len(initial) != a**order:
            raise ValueError(f"initial has length {len(initial)}, expected a power of {a}")
        rows = check_rows("transition", transition, (len(initial), a))
        length = check_integer("length", length, order + 1)
        return cls(initial, np.broadcast_to(rows, (length - order, *rows.shape)), alphabet)

    @classmethod
    def fit(
        cls,
        seqs: ArrayLike,
        order: int,
        *,
        positional: bool = False,
        pseudo_count: float = 1.0,
        alphabet: Alphabet = DNA,
        unknown: str = "error",
    ) -> Self:
        """Chain of this `order` from the counts in `seqs`, without words with ambiguous letters.

        One transition table for all positions, or with `positional` one for each, where a letter
        that all sequences share is certain; otherwise there is a warning. With `pseudo_count` 0, a
        context without a next letter gets a uniform row.
        """
        X, a = encode(seqs, alphabet=alphabet, unknown=unknown), len(alphabet)
        order = check_integer("order", order, 0, X.shape[1] - 1)
        check_number("pseudo_count", pseudo_count, 0)
        n = X.shape[1] - order if positional else 1
        check_memory("the table of transitions", (n, a**order, a))
        constant = np.flatnonzero((X[0] == X).all(axis=0) & (X[0] < a) & (len(X) >= _FEW))
        possible = np.ones((X.shape[1], a))
        if positional:
            possible[constant] = np.eye(a)[X[0, constant]]
        elif len(constant):
            shown = ", ".join(f"{j} ({alphabet.letters[X[0, j]]})" for j in constant[:4])
            warn(
                f"all sequences have the same letter in column {shown}"
                f"{', …' * (len(constant) > 4)}, but this background is the same at all positions: "
                "words over it get importance although nothing varies there; pass positional=True "
                "to Background.fit, or leave the column out"
            )
        context = letters(np.arange(a**order), order, a)
        first = pseudo_count * possible[np.arange(order), context].prod(axis=1)
        first += _count(windows(X[:, :order], order, a), a**order)
        columns = windows(X, order + 1, a).T.reshape(n, -1)
        counts = np.array([_count(words, a ** (order + 1)) for words in columns])
        counts = counts.reshape(n, -1, a) + pseudo_count * possible[order:][:n, None]
        counts[counts.sum(axis=2) == 0] = 1
        rows = counts / counts.sum(axis=2, keepdims=True)
        rows = np.broadcast_to(rows, (X.shape[1] - order, *rows.shape[1:]))
        first[:] = first if first.any() else 1
        return cls(first / first.sum(), rows, alphabet)

    @cached_property
    def contexts(self) -> np.ndarray:
        """Pr(X[j:j+D] = c), shape (L - D + 1, a**D): `initial` carried along the chain."""
        marginals = [self.initial]
        for step in self.transition:
            joint = marginals[-1][:, None] * step
            marginals.append(joint.reshape(len(self.alphabet), -1).sum(axis=0))
        return np.array(marginals)

    @cached_property
    def backward(self) -> np.ndarray:
        """Pr(X_j = a | X[j+1:j+1+D] = c), shape (L - D, a, a**D); 0 after an impossible c."""
        joint = self.contexts[:-1, :, None] * self.transition
        joint = joint.reshape(len(joint), len(self.alphabet), -1)
        total = joint.sum(axis=1, keepdims=True)
        return joint / np.where(total > 0, total, 1)

    @cached_property
    def has_zeros(self) -> bool:
        """Whether some word is impossible somewhere."""
        return not (self.contexts[0].all() and self.transition.all())

    def sample(self, n: int, random_state: int | np.random.RandomState | None = None) -> np.ndarray:
        """Draw `n` sequences, as codes of shape (n, L); `random_state` as in scikit-learn."""
        shape = self.length - self.order + 1, check_integer("n", n, 1)
        return self.from_uniform(check_random_state(random_state).random_sample(shape))

    def from_uniform(self, u: np.ndarray) -> np.ndarray:
        """Sequences from uniform random numbers `u` (L - D + 1, n), the first row for D letters."""
        a, cumulative = len(self.alphabet), np.cumsum(self.initial)
        state = np.searchsorted(cumulative / cumulative[-1], u[0], side="right")
        drawn = list(letters(state, self.order, a).T)
        for step, v in zip(self.transition, u[1:], strict=True):
            upper = np.cumsum(step, axis=1)[:, : a - 1] / step.sum(axis=1, keepdims=True)
            drawn.append((v[:, None] >= upper[state]).sum(axis=1))
            state = (a * state + drawn[-1]) % a**self.order
        return np.stack(drawn, axis=1).astype(np.uint8)

    def given(self, motif: str | ArrayLike, position: int = 0) -> Self:
        """The law given a `motif` z at `position` j: Pr(x | z) = Pr(x) prod_t z_t(x_{j+t}) / Z.

        `motif` is a string, perhaps with ambiguous letters, or an array (k, a) of z_t(b) >= 0.
        """
        if isinstance(motif, str):
            codes = encode([motif], alphabet=self.alphabet, unknown="average", name="motif")
            z = self.alphabet.members[codes[0]].astype(float)
        else:
            z = check_array("motif", motif, 2, (None, len(self.alphabet)))
        last = self.length - check_integer("the motif's length", len(z), 1, self.length)
        j = check_integer("position", position, 0, last)
        if z.min() < 0:
            raise ValueError(f"motif must not be negative, got {z.min()}")
        tilted, log_z = self.tilt(z, j)
        if log_z == -np.inf:
            raise ValueError(f"motif={motif} has probability 0 at position {j}; expected more")
        return tilted

    def tilt(self, z: np.ndarray, position: int) -> tuple[Self, float]:
        """The chain Pr(x) prod_t z[t, x_{position+t}] / Z, and log Z, by messages from the end."""
        D, a, C = self.order, len(self.alphabet), len(self.initial)
        factors = np.ones((self.length, a))
        factors[position : position + len(z)] = z
        after = (a * np.arange(C)[:, None] + np.arange(a)) % C
        transition, beta, log_z = np.array(self.transition), np.ones(C), 0.0
        for j in reversed(range(len(transition))):
            step = transition[j] * factors[j + D] * beta[after]
            beta = step.sum(axis=1)  # sum_b Pr(b | c) factors_{j+D}(b) beta_{j+1}(c[1:] b)
            possible = beta > 0
            transition[j, possible] = step[possible] / beta[possible, None]
            largest = beta.max() or 1.0  # taken out, so that products do not vanish
            beta, log_z = beta / largest, log_z + np.log(largest)
        own = factors[np.arange(D), letters(np.arange(C), D, a)].prod(axis=1)
        initial = self.initial * beta * own
        total = initial.sum()
        if total == 0:
            return self, -np.inf
        return type(self)(initial / total, transition, self.alphabet), float(log_z + np.log(total))

    def motif_probabilities(self, motifs: ArrayLike) -> np.ndarray:
        """Pr(X[j:j+k] = z) for `motifs` z of one length k, shape (n_motifs, L - k + 1)."""
        Z = encode(motifs, alphabet=self.alphabet, name="motifs")
        check_integer("the motifs' length", Z.shape[1], 1, self.length)
        return self.word_probabilities(Z)

    def word_probabilities(self, Z: np.ndarray) -> np.ndarray:
        """`motif_probabilities` of codes."""
        k, D, a = Z.shape[1], self.order, len(self.alphabet)
        if k <= D:
            return self.probabilities(k)[:, windows(Z, k, a)[:, 0]].T
        n, context = self.length - k + 1, windows(Z, D, a).T
        p = self.contexts[:n, context[0]]
        for t in range(k - D):
            p = p * self.transition[t : t + n, context[t], Z[:, D + t]]
        return p.T

    def probabilities(self, k: int) -> np.ndarray:
        """Pr(X[j:j+k] = z) for all words z of length `k`, shape (L - k + 1, a**k)."""
        k, a = check_integer("k", k, 1, self.length), len(self.alphabet)
        check_memory("the table of probabilities", (self.length - k + 1, a**k))
        p, D = self.contexts, self.order
        for d in range(D, k):
            step = self.transition[d - D :, None]
            p = (p[:-1].reshape(len(step), -1, a**D, 1) * step).reshape(len(step), -1)
        for _ in range(k, D):
            p = marginal(p, a)
        return np.minimum(p, 1)  # sums may round up


def _count(words: np.ndarray, size: int) -> np.ndarray:
    """How often each of `size` words occurs, those with unknown letters aside."""
    return np.bincount(words[words >= 0], minlength=size)


def marginal(table: np.ndarray, size: int = 4) -> np.ndarray:
    """Sum a table over words of length d, all positions, to one over words of length d - 1."""
    from_left = table[:1].reshape(-1, size).sum(axis=1)
    return np.vstack([from_left, table.reshape(len(table), size, -1).sum(axis=1)])


def check_rows(name: str, value: ArrayLike, shape: tuple) -> np.ndarray:
    """Return probabilities of a `shape`, as in `check_array`, whose last axis sums to 1."""
    rows = check_array(name, value, len(shape), shape)
    total = rows.sum(axis=-1, keepdims=True)
    bad = (rows.min(axis=-1, keepdims=True) < 0) | (np.abs(total - 1) > 1e-6)  # six digits
    if bad.any():
        row = rows.reshape(-1, rows.shape[-1])[bad.argmax()]
        raise ValueError(f"{name} must hold probabilities that sum to 1, got {row}")
    return rows / total
