"""The kernel matrix of letters and pairs alone, which shortens conjugate gradients on the whole."""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag, cho_factor, cho_solve, toeplitz

from firmlib.strings.kernel import degree_factors, shift_factors
from firmlib.strings.words import letters


class Coarse:
    """M = r I + A S A', near K + I / (2C): A says which letters and pairs stand where in x.

    A match of d letters is a product of d factors I(x_p = y_p) = 1/a + c_p. Keep not more than
    one c_p, or two of neighbours, of each product; then, shifted or not, a pair that matches counts
    k_2 = sum_d beta_d (d - 1) a^(2-d), and a letter k_1 = sum_d beta_d d a^(1-d) - 2 k_2 / a. K has
    its large eigenvalues there. By Woodbury's formula

        M^-1 = (I - A (r S^-1 + A'A)^-1 A') / r

    among vectors of mean 0, for which A is centred. A'A has to be exact: if a part of it were too
    small, M^-1 would not be positive.

    Parameters
    ----------
    X, scale : codes of shape (n, L), and what each sequence is multiplied by
    degree, shift, shift_weights
        As in `wds_kernel`; the degree is 2 or more.
    size : int
        Letters of the alphabet, a; codes from a on are unknown letters.
    """

    def __init__(
        self,
        X: np.ndarray,
        scale: np.ndarray,
        *,
        degree: int,
        shift: int,
        shift_weights: str,
        size: int,
    ) -> None:
        length, a, d = X.shape[1], size, np.arange(1.0, degree + 1)
        beta, delta = degree_factors(degree), shift_factors(shift, shift_weights)
        k2 = beta @ ((d - 1) * a ** (2 - d))
        k1 = max(beta @ (d * a ** (1 - d)) - 2 * k2 / a, 0.01 * k2)
        self._scale, self._rest = scale, length * (1 - k1 - k2) * np.mean(scale**2)
        blocks = []
        for m, n_words, k in ((length, a, k1), (length - 1, a * a, k2)):
            mixture = toeplitz(np.r_[delta, np.zeros(m)][:m])
            blocks.append(np.kron(np.linalg.inv(mixture), np.eye(n_words)) / k)
        self._S_inverse = np.asarray(block_diag(*blocks))
        # Three letters are looked up at once, of which every second one of x is the first.
        starts = np.minimum(np.arange(0, length - 1, 2), length - 3)
        self._base = base = a + int(X.max() >= a)
        triples = letters(np.arange(base**3), 3, base)
        number = base ** np.arange(3)[::-1]
        self._words = np.empty((len(starts), len(X)), np.min_scalar_type(base**3))
        parts = []  # of each word, which letters and pairs it has
        for i, start in enumerate(starts):
            self._words[i] = np.minimum(X[:, start : start + 3], a) @ number
            part = sparse.lil_array((base**3, len(self._S_inverse)))
            for p in range(2 * i, length if i == len(starts) - 1 else 2 * i + 2):
                first, pair = triples[:, p - start], triples[:, p - start : p - start + 2]
                known = np.flatnonzero(first < a)
                part[known, p * a + first[known]] = 1
                if p < length - 1:
                    known = np.flatnonzero((pair < a).all(axis=1))
                    part[known, length * a + p * a * a + pair[known] @ [a, 1]] = 1
            parts.append(part)
        self._parts = sparse.csr_array(sparse.vstack(parts))

    def inverse(self, active: np.ndarray, ridge: float) -> Callable[[np.ndarray], np.ndarray]:
        """v -> M^-1 v of the active sequences, whose I / (2C) is about `ridge`."""
        words, scale, E = self._words[:, active], self._scale[active], self._parts
        r, m = ridge + self._rest, self._base**3

        def collected(v: np.ndarray) -> np.ndarray:
            return E.T @ np.concatenate([np.bincount(word, v, minlength=m) for word in words])

        upper = np.zeros(self._S_inverse.shape)
        for i, word in enumerate(words):
            both = np.zeros((len(words), m, m))
            for j in range(i, len(words)):
                table = np.bincount(m * word.astype(np.intp) + words[j], scale**2, minlength=m * m)
                both[j] = table.reshape(m, m).T / (2 if i == j else 1)
            upper += E[i * m : (i + 1) * m].T @ (E.T @ both.reshape(-1, m)).T
        total = collected(scale)
        gram = upper + upper.T - np.outer(total, total) / len(scale)
        factor = cho_factor(r * self._S_inverse + gram, overwrite_a=True)

        def inverse(v: np.ndarray) -> np.ndarray:
            shares = (E @ cho_solve(factor, collected(scale * v))).reshape(len(words), m)
            out = np.zeros(len(v))
            for share, word in zip(shares, words, strict=True):
                out += share.take(word, mode="clip")
            return (v - scale * out) / r

        return inverse
