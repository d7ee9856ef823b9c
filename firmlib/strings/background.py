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
from firmlib.strings.alphabet import encode, windows

__all__ = ["Background"]

_PRINTED = 1e-6  # how far from 1 probabilities may sum that were printed to six digits


class Background:
    """A Markov chain of order D over A, C, G and T, whose transitions may depend on the position.

    With contexts c of D letters, the first letter most significant,

        Pr(X[:D] = c) = initial[c],   Pr(X_{j+D} = b | X[j:j+D] = c) = transition[j, c, b].

    D = 0 gives independent positions; then there is one context, the empty one. Made by
    `uniform`, `product`, `markov` and `fit`.

    Attributes
    ----------
    length, order : int
        L and D.
    initial : ndarray of shape (4**D,)
    transition : ndarray of shape (L - D, 4**D, 4)

    Examples
    --------
    >>> from firmlib.strings.background import Background
    >>> sticky = Background.markov([0.25] * 4, 0.6 * np.eye(4) + 0.1, length=50)
    >>> round(sticky.probability("AAA", position=7), 4)
    0.1225
    """

    def __init__(self, initial: np.ndarray, transition: np.ndarray) -> None:
        self.initial, self.transition = initial, transition
        self.order = (len(initial).bit_length() - 1) // 2
        self.length = len(transition) + self.order
        check_memory("the background", (len(transition), 4 ** (self.order + 1)))

    @classmethod
    def uniform(cls, length: int) -> Self:
        """All sequences of `length` letters are equally likely."""
        return cls.product(np.full((check_integer("length", length, 1), 4), 0.25))

    @classmethod
    def product(cls, probs: ArrayLike) -> Self:
        """Independent positions; `probs` of shape (L, 4) holds each one's distribution."""
        probs = _check_rows("probs", check_array("probs", probs, 2, (None, 4)))
        return cls(np.ones(1), probs[:, None, :])

    @classmethod
    def markov(cls, initial: ArrayLike, transition: ArrayLike, length: int) -> Self:
        """Homogeneous chain of `length` letters; it need not start in its stationary distribution.

        The order D is read off `initial`, shape (4**D,), the distribution of the first D letters
        ([1.0] for D = 0); `transition` has shape (4**D, 4).
        """
        initial = _check_rows("initial", check_array("initial", initial, 1))
        order = (len(initial).bit_length() - 1) // 2
        if len(initial) != 4**order:
            raise ValueError(f"initial has length {len(initial)}, expected a power of 4")
        transition = check_array("transition", transition, 2, (len(initial), 4))
        length = check_integer("length", length, order + 1)
        shape = (length - order, *transition.shape)
        return cls(initial, np.broadcast_to(_check_rows("transition", transition), shape))

    @classmethod
    def fit(cls, seqs: Sequence[str] | ArrayLike, order: int, *, pseudo_count: float = 1.0) -> Self:
        """Homogeneous chain of this `order` from the counts in `seqs`.

        `pseudo_count`, 1 by default, is added to each of them.
        `initial` is counted on the first letters, `transition` on all positions. Without
        pseudo-counts, a context that is never followed by anything gets a uniform row.
        """
        X = encode(seqs)
        order = check_integer("order", order, 0, X.shape[1] - 1)
        check_number("pseudo_count", pseudo_count, 0)
        check_memory("the table of transitions", (4**order, 4))
        first = np.bincount(windows(X, order)[:, 0], minlength=4**order) + pseudo_count
        counts = np.bincount(windows(X, order + 1).ravel(), minlength=4 ** (order + 1))
        counts = counts.reshape(-1, 4) + pseudo_count
        counts[counts.sum(axis=1) == 0] = 1
        rows = counts / counts.sum(axis=1, keepdims=True)
        return cls.markov(first / first.sum(), rows, X.shape[1])

    @cached_property
    def contexts(self) -> np.ndarray:
        """Pr(X[j:j+D] = c), shape (L - D + 1, 4**D): `initial` carried along the chain."""
        marginals = [self.initial]
        for step in self.transition:
            marginals.append((marginals[-1][:, None] * step).reshape(4, -1).sum(axis=0))
        return np.array(marginals)

    @cached_property
    def backward(self) -> np.ndarray:
        """Pr(X_j = a | X[j+1:j+1+D] = c), shape (L - D, 4, 4**D); 0 after an impossible c."""
        joint = self.contexts[:-1, :, None] * self.transition
        joint = joint.reshape(len(joint), 4, -1)
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
        n = check_integer("n", n, 1)
        rng = check_random_state(random_state)
        state = rng.choice(len(self.initial), size=n, p=self.initial)
        letters = [state >> 2 * (self.order - 1 - t) & 3 for t in range(self.order)]
        for step in self.transition:
            upper = np.cumsum(step, axis=1)[:, :3] / step.sum(axis=1, keepdims=True)
            letters.append((rng.uniform(size=(n, 1)) >= upper[state]).sum(axis=1))
            state = (4 * state + letters[-1]) % 4**self.order
        return np.stack(letters, axis=1).astype(np.uint8)

    def probability(self, motif: str, position: int) -> float:
        """Pr(X[j:j+k] = z) for the word z = `motif` and j = `position`."""
        z = encode([motif], name="motif")
        last = self.length - check_integer("the motif's length", z.shape[1], 1, self.length)
        j = check_integer("position", position, 0, last)
        return float(self.motif_probabilities(z)[0, j])

    def motif_probabilities(self, motifs: Sequence[str] | ArrayLike) -> np.ndarray:
        """Pr(X[j:j+k] = z) for `motifs` z of one length k, shape (n_motifs, L - k + 1)."""
        Z, D = encode(motifs, name="motifs"), self.order
        k = check_integer("the motifs' length", Z.shape[1], 1, self.length)
        if k <= D:
            return self.probabilities(k)[:, windows(Z, k)[:, 0]].T
        n = self.length - k + 1
        context = windows(Z, D).T
        p = self.contexts[:n, context[0]]
        for t in range(k - D):
            p = p * self.transition[t : t + n, context[t], Z[:, D + t]]
        return p.T

    def probabilities(self, k: int) -> np.ndarray:
        """Pr(X[j:j+k] = z) for all words z of length `k`, shape (L - k + 1, 4**k).

        Examples
        --------
        >>> from firmlib.strings.background import Background
        >>> Background.uniform(3).probabilities(1)
        array([[0.25, 0.25, 0.25, 0.25],
               [0.25, 0.25, 0.25, 0.25],
               [0.25, 0.25, 0.25, 0.25]])
        """
        k = check_integer("k", k, 1, self.length)
        check_memory("the table of probabilities", (self.length - k + 1, 4**k))
        p, D = self.contexts, self.order
        for d in range(D, k):
            step = self.transition[d - D :, None]
            p = (p[:-1].reshape(len(step), -1, 4**D, 1) * step).reshape(len(step), -1)
        for _ in range(k, D):
            p = marginal(p)
        return p


def marginal(table: np.ndarray) -> np.ndarray:
    """Sum a table over words of length d, all positions, to one over words of length d - 1."""
    from_left = table[:1].reshape(-1, 4).sum(axis=1)
    return np.vstack([from_left, table.reshape(len(table), 4, -1).sum(axis=1)])


def _check_rows(name: str, array: np.ndarray) -> np.ndarray:
    array = check_probability(name, array)
    total = array.sum(axis=-1, keepdims=True)
    if np.abs(total - 1).max() > _PRINTED:
        row = int(np.abs(total - 1).argmax())
        where = f" in row {row}" if array.ndim > 1 else ""
        raise ValueError(f"{name} must sum to 1, got {total.flat[row]:.6g}{where}")
    return array / total
