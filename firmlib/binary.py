"""Exact FIRM for binary features and binary data (Sections 2.3, 2.4.1 and 2.4.2)."""

import numpy as np
from numpy.typing import ArrayLike

from firmlib.tables.checks import check_array, check_memory, check_probability, refuse

__all__ = ["firm_binary", "firm_conjunctions", "firm_empirical", "firm_from_poim"]


def firm_binary(q_a: ArrayLike, q_b: ArrayLike, p_a: ArrayLike) -> np.ndarray:
    """FIRM of a binary feature, eq. (10): Q_f = (q_a - q_b) sqrt(p_a p_b).

    `q_a` and `q_b` are the expected scores given that the feature is a or b, and `p_a` is
    Pr(f(X) = a) = 1 - p_b: arrays that broadcast.

    >>> float(firm_binary(q_a=3.0, q_b=1.0, p_a=0.5))
    1.0
    """
    p_a = check_probability("p_a", p_a)
    q_a, q_b = (check_array(name, q, np.ndim(q)) for name, q in (("q_a", q_a), ("q_b", q_b)))
    return (q_a - q_b) * np.sqrt(p_a * (1 - p_a))


def firm_empirical(weights: ArrayLike, X: ArrayLike) -> np.ndarray:
    """FIRM of the inputs of s(x) = w'x + b under the empirical distribution of `X` (Section 2.4.2).

    In matrix form, with n_j+ and n_j- the number of rows with x_j = +1 and -1,

        Q = M'Xw,   M = 1 D0 + X D1,
        (D1)_jj = 1 / (2 sqrt(n_j+ n_j-)),   (D0)_jj = (n_j- - n_j+) (D1)_jj / n.

    The paper prints D0 with the opposite sign, which is wrong unless the feature is balanced.
    `weights` (d,) are w, and `X` (n, d) has entries -1 and +1.

    >>> firm_empirical([1, 0], [[-1, -1], [1, -1], [1, 1], [1, 1]]).round(3)
    array([0.866, 0.5  ])
    """
    X = check_array("X", X, 2)
    refuse("X must hold only -1 and 1", np.abs(X) != 1, X, "that differ")
    weights = check_array("weights", weights, 1, (X.shape[1],))
    n, n_plus, n_minus = len(X), (X > 0).sum(axis=0), (X < 0).sum(axis=0)
    varies = n_plus * n_minus > 0
    D1 = 1 / (2 * np.sqrt(np.where(varies, n_plus * n_minus, 1)))
    D0 = (n_minus - n_plus) * D1 / n
    score = X @ weights
    return np.where(varies, D0 * score.sum() + D1 * (X.T @ score), 0)


def firm_conjunctions(score: ArrayLike, X: ArrayLike) -> np.ndarray:
    """FIRM of all literals and pairwise conjunctions of d binary variables, for any score.

    With Z the indicators of all 2d literals and r = s - E[s], the conjunctions have the
    probabilities P = Z'Z / n and the importances Q = Z' diag(r) Z / (n sqrt(P (1 - P))), or 0 where
    P is 0 or 1. `score` (n,) has scores or labels, and `X` (n, d) is binary in any coding. In the
    result (d, d, 2, 2), ``Q[j, k, a, b]`` is for x_j at its lower (a = 0) or higher (a = 1) value
    and x_k likewise; ``Q[j, j, a, a]`` is the literal itself.

    >>> Q = firm_conjunctions([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]])  # x0 and x1
    >>> float(Q[0, 1, 1, 1].round(3)), float(Q[0, 1, 0, 0].round(3))
    (0.433, -0.144)
    """
    X = check_array("X", X, 2)
    (n, d), low, high = X.shape, X.min(), X.max()
    refuse(f"X must hold only {low:g} and {high:g}", ~np.isin(X, [low, high]), X, "that differ")
    s = check_array("score", score, 1, (n,))
    check_memory("the table of conjunctions", (d, d, 2, 2))
    r = np.zeros_like(s) if np.ptp(s) == 0 else s - s.mean()
    Z = np.hstack([low == X, high == X]).astype(float)
    P = Z.T @ Z / n
    R = Z.T @ (r[:, None] * Z) / n
    variance = P * (1 - P)
    Q = np.where(variance > 0, R / np.sqrt(np.where(variance > 0, variance, 1)), 0)
    return Q.reshape(2, d, 2, d).transpose(1, 3, 0, 2)


def firm_from_poim(poim: ArrayLike, p: ArrayLike) -> np.ndarray:
    """FIRM from a POIM: Q(z, j) = Q'(z, j) sqrt(p / (1 - p)), with p = Pr(X[j] = z) (Section 2.3).

    The printed factor is inverted; this one follows from the paper's own identity
    Q' = sqrt(p_a / p_b) Q with p_b = p. Q is 0 if z is impossible or certain. `poim` is
    Q'(z, j) = E[s(X) | X[j] = z] - E[s(X)], eq. (5), and broadcasts against `p`.

    >>> firm_from_poim([3.0, -1.0], 1 / 4).round(3)
    array([ 1.732, -0.577])
    """
    p, poim = check_probability("p", p), check_array("poim", poim, np.ndim(poim))
    return np.where(p < 1, poim * np.sqrt(p / np.where(p < 1, 1 - p, 1)), 0)
