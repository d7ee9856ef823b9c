"""The distribution of sequences that an expected score is taken over (Section 1.2)."""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from firmlib._checks import (
    check_array,
    check_integer,
    check_memory,
    check_number,
    check_probability,
)
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.words import known_runs, letters, windows

__all__ = ["Background"]

_PRINTED = 1e-6  # how far from 1 probabilities may sum that were printed to six digits


class Background:
    """A Markov chain of order D over an alphabet, whose transitions may depend on the position.

    With contexts c of D letters, the first letter most significant,

        Pr(X[:D] = c) = initial[c],   Pr(X_{j+D} = b | X[j:j+D] = c) = transition[j, c, b].

    D = 0 gives independent positions; then there is one context, the empty one. Made by
    `uniform`, `product`, `markov` and `fit`, for DNA unless they are given another `alphabet`, of
    a letters (4 for DNA); and by `given`.

    Attributes
    ----------
    length, order : int
        L and D.
    initial : ndarray of shape (a**D,)
    transition : ndarray of shape (L - D, a**D, a)
    alphabet : Alphabet

    Examples
    --------
    >>> from firmlib.strings.background import Background
    >>> sticky = Background.markov([0.25] * 4, 0.6 * np.eye(4) + 0.1, length=50)
    >>> round(sticky.probability("AAA", position=7), 4)
    0.1225
    """

    def __init__(
        self, initial: np.ndarray, transition: np.ndarray, alphabet: Alphabet = DNA
    ) -> None:
        self.initial, self.transition, self.alphabet = initial, transition, alphabet
        self.order = _order(len(initial), len(alphabet))
        self.length = len(transition) + self.order
        check_memory("the background", (len(transition), len(alphabet) ** (self.order + 1)))

    @classmethod
    def uniform(cls, length: int, *, alphabet: Alphabet = DNA) -> Self:
        """All sequences of `length` letters of the `alphabet`, DNA by default, equally likely."""
        shape = check_integer("length", length, 1), len(alphabet)
        return cls.product(np.full(shape, 1 / len(alphabet)), alphabet=alphabet)

    @classmethod
    def product(cls, probs: ArrayLike, *, alphabet: Alphabet = DNA) -> Self:
        """Independent positions; `probs` of shape (L, a) holds each one's distribution.

        `alphabet`, DNA by default, has a letters.
        """
        probs = check_rows("probs", check_array("probs", probs, 2, (None, len(alphabet))))
        return cls(np.ones(1), probs[:, None, :], alphabet)

    @classmethod
    def markov(
        cls, initial: ArrayLike, transition: ArrayLike, length: int, *, alphabet: Alphabet = DNA
    ) -> Self:
        """Homogeneous chain of `length` letters; it need not start in its stationary distribution.

        The order D is read off `initial`, shape (a**D,), the distribution of the first D letters
        ([1.0] for D = 0); `transition` has shape (a**D, a). `alphabet`, DNA by default, has a
        letters.
        """
        initial = check_rows("initial", check_array("initial", initial, 1))
        a = len(alphabet)
        order = _order(len(initial), a)
        if len(initial) != a**order:
            raise ValueError(f"initial has length {len(initial)}, expected a power of {a}")
        transition = check_array("transition", transition, 2, (len(initial), a))
        length = check_integer("length", length, order + 1)
        shape = (length - order, *transition.shape)
        rows = np.broadcast_to(check_rows("transition", transition), shape)
        return cls(initial, rows, alphabet)

    @classmethod
    def fit(
        cls,
        seqs: Sequence[str] | ArrayLike,
        order: int,
        *,
        pseudo_count: float = 1.0,
        alphabet: Alphabet = DNA,
        unknown: str = "error",
    ) -> Self:
        """Homogeneous chain of this `order` from the counts in `seqs`.

        `pseudo_count`, 1 by default, is added to each of them.
        `initial` is counted on the first letters, `transition` on all positions. Without
        pseudo-counts, a context that is never followed by anything gets a uniform row.
        `alphabet`, DNA by default, and `unknown`, "error" by default, as in `encode`; words with
        an ambiguous letter are not counted.
        """
        X, a = encode(seqs, alphabet=alphabet, unknown=unknown), len(alphabet)
        order = check_integer("order", order, 0, X.shape[1] - 1)
        check_number("pseudo_count", pseudo_count, 0)
        check_memory("the table of transitions", (a**order, a))
        first, counts = np.full(a**order, pseudo_count), np.full(a ** (order + 1), pseudo_count)
        for _, offset, run in known_runs(X, a):
            if offset == 0 and run.shape[1] >= order:
                first += np.bincount(windows(run, order, a)[:, 0], minlength=a**order)
            if run.shape[1] > order:
                words = windows(run, order + 1, a).ravel()
                counts += np.bincount(words, minlength=a ** (order + 1))
        counts = counts.reshape(-1, a)
        counts[counts.sum(axis=1) == 0] = 1
        first = first if first.any() else np.ones(len(first))
        rows = counts / counts.sum(axis=1, keepdims=True)
        return cls.markov(first / first.sum(), rows, X.shape[1], alphabet=alphabet)

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
        """Draw `n` sequences, as codes of shape (n, L); `random_state` as in scikit-learn.

        Examples
        --------
        >>> from firmlib.strings.background import Background
        >>> Background.product([[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]).sample(1, 0)
        array([[2, 0, 3]], dtype=uint8)
        """
        n, a = check_integer("n", n, 1), len(self.alphabet)
        rng = check_random_state(random_state)
        state = rng.choice(len(self.initial), size=n, p=self.initial)
        drawn = list(letters(state, self.order, a).T)
        for step in self.transition:
            upper = np.cumsum(step, axis=1)[:, : a - 1] / step.sum(axis=1, keepdims=True)
            drawn.append((rng.uniform(size=(n, 1)) >= upper[state]).sum(axis=1))
            state = (a * state + drawn[-1]) % a**self.order
        return np.stack(drawn, axis=1).astype(np.uint8)

    def given(self, motif: str | ArrayLike, position: int = 0) -> Self:
        """The law of X given a motif z at position j, again a chain of order D.

            Pr(x | z) = Pr(x) prod_t z_t(x_{j+t}) / Z

        Parameters
        ----------
        motif : str, or array of shape (k, a)
            Letters, some of them perhaps ambiguous ("GATNNCA"); or a number z_t(b) >= 0 for each
            letter b at each place t, 1 for what is allowed and 0 for what is not.
        position : int, default 0
            j, that of the first letter.

        Returns
        -------
        Background

        Examples
        --------
        >>> from firmlib.strings import Background
        >>> sticky = Background.markov([0.5, 0.5, 0, 0], 0.6 * np.eye(4) + 0.1, length=4)
        >>> sticky.given("GT", 2).probabilities(1).round(3)
        array([[0.5  , 0.5  , 0.   , 0.   ],
               [0.25 , 0.25 , 0.438, 0.062],
               [0.   , 0.   , 1.   , 0.   ],
               [0.   , 0.   , 0.   , 1.   ]])
        """
        if isinstance(motif, str):
            codes = encode([motif], alphabet=self.alphabet, unknown="average", name="motif")
            z = self.alphabet.members[codes[0]].astype(float)
        else:
            z = check_array("motif", motif, 2, (None, len(self.alphabet)))
        last = self.length - check_integer("the motif's length", len(z), 1, self.length)
        j = check_integer("position", position, 0, last)
        factors = np.ones((self.length, len(self.alphabet)))
        factors[j : j + len(z)] = z
        initial, transition, log_z = self.tilt(factors)
        if factors.min() < 0 or log_z == -np.inf:
            shown = motif if isinstance(motif, str) else z
            raise ValueError(f"motif={shown} has probability 0 at position {j}; expected more")
        return type(self)(initial, transition, self.alphabet)

    def tilt(self, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Initial and transition of Pr(x) prod_j factors[..., j, x_j] / Z, and log Z.

        `factors` are not negative, of shape (..., L, a).

        By messages from the end, beta_j(c) = sum_b Pr(b | c) factors_{j+D}(b) beta_{j+1}(c[1:] b).
        What cannot be reached keeps its transitions.
        """
        D, a, C = self.order, len(self.alphabet), len(self.initial)
        after = (a * np.arange(C)[:, None] + np.arange(a)) % C
        shape = factors.shape[:-2]
        transition = np.empty((*shape, *self.transition.shape))
        beta, log_z = np.ones((*shape, C)), np.zeros(shape)
        for j in reversed(range(len(self.transition))):
            step = self.transition[j] * factors[..., j + D, None, :] * beta[..., after]
            total = step.sum(axis=-1, keepdims=True)
            possible = total > 0
            transition[..., j, :, :] = np.where(
                possible, step / np.where(possible, total, 1), self.transition[j]
            )
            beta, log_z = _scaled(total[..., 0], log_z)
        initial = self.initial * beta
        for t, column in enumerate(letters(np.arange(C), D, a).T):
            initial = initial * factors[..., t, :][..., column]
        total = initial.sum(axis=-1, keepdims=True)
        initial = np.where(total > 0, initial / np.where(total > 0, total, 1), self.initial)
        return initial, transition, log_z + _log(total[..., 0])

    def probability(self, motif: str, position: int) -> float:
        """Pr(X[j:j+k] = z) for the word z = `motif` and j = `position`."""
        z = encode([motif], alphabet=self.alphabet, name="motif")
        last = self.length - check_integer("the motif's length", z.shape[1], 1, self.length)
        j = check_integer("position", position, 0, last)
        return float(self.motif_probabilities(z)[0, j])

    def motif_probabilities(self, motifs: Sequence[str] | ArrayLike) -> np.ndarray:
        """Pr(X[j:j+k] = z) for `motifs` z of one length k, shape (n_motifs, L - k + 1)."""
        Z, D = encode(motifs, alphabet=self.alphabet, name="motifs"), self.order
        k = check_integer("the motifs' length", Z.shape[1], 1, self.length)
        if k <= D:
            return self.probabilities(k)[:, windows(Z, k, len(self.alphabet))[:, 0]].T
        n = self.length - k + 1
        context = windows(Z, D, len(self.alphabet)).T
        p = self.contexts[:n, context[0]]
        for t in range(k - D):
            p = p * self.transition[t : t + n, context[t], Z[:, D + t]]
        return p.T

    def probabilities(self, k: int) -> np.ndarray:
        """Pr(X[j:j+k] = z) for all words z of length `k`, shape (L - k + 1, a**k).

        Examples
        --------
        >>> from firmlib.strings.background import Background
        >>> Background.uniform(3).probabilities(1)
        array([[0.25, 0.25, 0.25, 0.25],
               [0.25, 0.25, 0.25, 0.25],
               [0.25, 0.25, 0.25, 0.25]])
        """
        k, a = check_integer("k", k, 1, self.length), len(self.alphabet)
        check_memory("the table of probabilities", (self.length - k + 1, a**k))
        p, D = self.contexts, self.order
        for d in range(D, k):
            step = self.transition[d - D :, None]
            p = (p[:-1].reshape(len(step), -1, a**D, 1) * step).reshape(len(step), -1)
        for _ in range(k, D):
            p = marginal(p, a)
        return p


def marginal(table: np.ndarray, size: int = 4) -> np.ndarray:
    """Sum a table over words of length d, all positions, to one over words of length d - 1."""
    from_left = table[:1].reshape(-1, size).sum(axis=1)
    return np.vstack([from_left, table.reshape(len(table), size, -1).sum(axis=1)])


def _order(n_contexts: int, size: int) -> int:
    """The greatest D with size**D <= n_contexts."""
    order = 0
    while size ** (order + 1) <= n_contexts:
        order += 1
    return order


def _log(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, np.log(np.where(value > 0, value, 1)), -np.inf)


def _scaled(beta: np.ndarray, log_z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take the largest of each row out, so that products of many factors do not vanish."""
    largest = beta.max(axis=-1, keepdims=True)
    return beta / np.where(largest > 0, largest, 1), log_z + _log(largest[..., 0])


def check_rows(name: str, array: np.ndarray) -> np.ndarray:
    """Return probabilities whose last axis sums to 1, exactly so but for rounding."""
    array = check_probability(name, array)
    total = array.sum(axis=-1, keepdims=True)
    if np.abs(total - 1).max() > _PRINTED:
        row = int(np.abs(total - 1).argmax())
        where = f" in row {row}" if array.ndim > 1 else ""
        raise ValueError(f"{name} must sum to 1, got {total.flat[row]:.6g}{where}")
    return array / total
