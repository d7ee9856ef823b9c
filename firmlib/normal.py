"""FIRM under normally distributed inputs X ~ N(mean, cov) (Sections 2.2 and 2.4.3)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from firmlib.expansion import KernelExpansion
from firmlib.tables.checks import check_array, check_integer

__all__ = ["firm_linear", "firm_rbf", "firm_taylor", "shrinkage_covariance", "shrinkage_intensity"]

# A variance counts as 0 below these shares of the largest possible and of the original variance.
_ROUNDING, _KNOWN = 1e-14, 1e-10

Directions = ArrayLike | None  # one feature a'x per row; None for one per input


def firm_linear(
    weights: ArrayLike, cov: ArrayLike, *, directions: Directions = None, given: Sequence[int] = ()
) -> np.ndarray:
    """Exact FIRM of a linear score s(x) = w'x + b: Q = D^-1 Sigma w (Section 2.4.3).

    Q is signed, and 0 for a constant feature. `weights` (d,) and `cov` (d, d) are w and Sigma, and
    D is the diagonal matrix of the standard deviations. `directions` (m, d) has one feature a'x per
    row, Q_a = a'Sigma w / sqrt(a'Sigma a), by default one per input. With `given`, the positions of
    known inputs, Sigma is the covariance given them, and Q is what a feature adds to them.

    >>> firm_linear([1, 0], [[1, 0.99], [0.99, 1]])  # the score uses one of two similar inputs
    array([1.  , 0.99])
    >>> firm_linear([1, 0], [[1, 0.99], [0.99, 1]], given=[0])  # x1 adds nothing
    array([0., 0.])
    """
    weights = check_array("weights", weights, 1)
    cov, A, v = _inputs(cov, directions, len(weights))
    known = [check_integer("given", j, 0, len(weights) - 1) for j in np.atleast_1d(given)]
    if known:
        cov = cov - cov[:, known] @ np.linalg.pinv(cov[np.ix_(known, known)]) @ cov[known]
        left = ((A @ cov) * A).sum(axis=1)
        v = np.where(left > _KNOWN * v, left, 0)
    return np.where(v > 0, A @ cov @ weights / np.sqrt(np.where(v > 0, v, 1)), 0)


def firm_taylor(
    gradient: ArrayLike | Callable, cov: ArrayLike, *, directions: Directions = None
) -> np.ndarray:
    """First-order FIRM of any differentiable score, eq. (9), signed.

    Q_j ~ Sigma_j' g / sqrt(Sigma_jj), with g the gradient of s at the mean, is `firm_linear` of
    the tangent plane. It is exact for linear s and can be very inaccurate otherwise. `gradient` is
    g (d,), or a callable such as `KernelExpansion.gradient`, evaluated at zero, the paper's mean.
    `cov` and `directions` are as for `firm_linear`.

    >>> firm_taylor(lambda x: 2 * (x + 3), [[4.0]])  # s(x) = (x + 3)^2
    array([12.])
    """
    if callable(gradient):
        gradient = np.ravel(gradient(np.zeros((1, len(check_array("cov", cov, 2))))))
    return firm_linear(check_array("gradient", gradient, 1), cov, directions=directions)


def firm_rbf(
    expansion: KernelExpansion, mean: ArrayLike, cov: ArrayLike, *, directions: Directions = None
) -> np.ndarray:
    """Exact FIRM of a Gaussian-kernel model, signed by Cov(a'X, s(X)).

    The score is s(x) = sum_i alpha_i exp(-||x - x_i||^2 / gamma^2) + b, and gamma the `width` of
    the expansion. Given a'X = t, X is normal with mean mu + g tau, where tau = t - a'mu,
    v = a'Sigma a and g = Sigma a / v, and covariance Sigma - v g g'. With
    A = gamma^2/2 I + Sigma - v g g',

        q_a(t) = |2A / gamma^2|^(-1/2) sum_i alpha_i exp(-(r_i - 2 l_i tau + h tau^2) / 2),

    r_i = c_i' A^-1 c_i, l_i = g' A^-1 c_i, h = g' A^-1 g, c_i = x_i - mu. Its mean and variance
    over tau ~ N(0, v) are Gaussian integrals again: with u = h v and e_i = E[i-th term],

        Var q = sum_ij e_i e_j (exp(delta_ij) - 1),
        delta_ij = log(1 + u^2 / (1 + 2u)) / 2
                   + v ((1 + u) l_i l_j - u (l_i^2 + l_j^2) / 2) / ((1 + u) (1 + 2u)).

    `mean` is mu; `cov` and `directions` are as for `firm_linear`.

    >>> bump = KernelExpansion([1.0], [[0.0]], "rbf")
    >>> firm_rbf(bump, mean=[0.0], cov=[[1.0]]).round(4)
    array([0.3375])
    """
    if not isinstance(expansion, KernelExpansion) or expansion.kernel != "rbf":
        raise ValueError(f"expansion={expansion!r} must be a KernelExpansion with kernel='rbf'")
    d = expansion.centers.shape[1]
    centred = expansion.centers - check_array("mean", mean, 1, (d,))
    cov, A, variances = _inputs(cov, directions, d)
    pairs = zip(A, variances, strict=True)
    return np.array([_rbf(expansion, centred, cov, a, v) if v > 0 else 0.0 for a, v in pairs])


def _rbf(s: KernelExpansion, c: np.ndarray, cov: np.ndarray, a: np.ndarray, v: float) -> float:
    """Q_a by the formulas of `firm_rbf`, in the eigenvectors of A."""
    alpha, gamma, g = s.dual_coef, s.width, cov @ a / v
    P = np.eye(len(a)) - np.outer(g, a)
    lam, U = np.linalg.eigh(P @ cov @ P.T)  # Sigma - v g g', without cancellation
    lam = np.where(lam > _ROUNDING * np.trace(cov), lam, 0) + gamma**2 / 2  # eigenvalues of A
    c, g = c @ U, U.T @ g
    r, ell, u = c**2 @ (1 / lam), c @ (g / lam), v * g**2 @ (1 / lam)
    log_e = -np.log(2 * lam / gamma**2).sum() / 2 - np.log1p(u) / 2
    log_e = log_e - r / 2 + v * ell**2 / (2 * (1 + u))
    offset = np.log1p(u**2 / (1 + 2 * u)) / 2
    square = -v * u * ell**2 / (2 * (1 + u) * (1 + 2 * u))
    variance = 0.0
    for i in gen_batches(len(alpha), max(1, 2**21 // len(alpha))):  # 16 MB of the m x m table
        delta = offset + square[i, None] + square + v / (1 + 2 * u) * np.outer(ell[i], ell)
        # e_i e_j (exp(delta) - 1), in an order that neither overflows nor cancels
        larger = np.exp(log_e[i, None] + log_e + np.maximum(delta, 0))
        variance += alpha[i] @ (larger * -np.expm1(-np.abs(delta)) * np.sign(delta)) @ alpha
    slope = (alpha * np.exp(log_e)) @ ell
    return float(np.copysign(np.sqrt(max(variance, 0.0)), slope if slope else 1.0))


def shrinkage_covariance(X: ArrayLike) -> np.ndarray:
    """Covariance with its correlations shrunk towards zero (doi:10.2202/1544-6115.1175).

    S* = (1 - lambda) S + lambda diag(S), with the sample covariance S of `X` and lambda the
    `shrinkage_intensity`, is positive definite if lambda > 0 and no column is constant.

    >>> X = np.random.default_rng(0).normal(size=(5, 20))
    >>> bool(np.linalg.eigvalsh(shrinkage_covariance(X))[0] > 0.1)
    True
    """
    Z, intensity = _centred(X), shrinkage_intensity(X)
    S = Z.T @ Z / (len(Z) - 1)
    return (1 - intensity) * S + intensity * np.diag(np.diag(S))


def shrinkage_intensity(X: ArrayLike) -> float:
    """Analytic intensity lambda = sum_{i != j} Var(r_ij) / sum_{i != j} r_ij^2, within [0, 1].

    >>> shrinkage_intensity([[0, 1], [1, 0], [2, 3], [3, 2]]) < 1
    True
    """
    Z = _centred(X)
    n, sd = len(Z), Z.std(axis=0, ddof=1)
    Z /= np.where(sd > 0, sd, 1)
    R = Z.T @ Z / (n - 1)
    # Var(r_ij) = n / (n - 1)^3 sum_k (w_kij - mean w_ij)^2, with w_kij = z_ki z_kj
    variance = n / (n - 1) ** 3 * ((Z**2).T @ Z**2 - (n - 1) ** 2 / n * R**2)
    off = ~np.eye(len(R), dtype=bool)
    total = (R[off] ** 2).sum()
    return float(np.clip(variance[off].sum() / total, 0, 1)) if total > 0 else 1.0


def _centred(X: ArrayLike) -> np.ndarray:
    """Return columns minus their means; a constant column becomes exactly 0."""
    sample = check_array("X", X, 2)
    if len(sample) < 3:
        raise ValueError(f"X must have at least 3 rows to estimate a covariance, got {len(sample)}")
    return np.where(np.ptp(sample, axis=0) > 0, sample - sample.mean(axis=0), 0)


def _inputs(cov: ArrayLike, directions: ArrayLike | None, d: int) -> tuple[np.ndarray, ...]:
    """Return the covariance, checked, the directions a and Var(a'X), 0 where it is rounding."""
    cov = check_array("cov", cov, 2, (d, d))
    sd = np.sqrt(np.abs(np.diag(cov)))
    unit = np.where(sd > 0, sd, 1)
    correlation = cov / np.outer(unit, unit)  # so that units do not matter
    apart = np.abs(correlation - correlation.T).max()
    least = np.linalg.eigvalsh((correlation + correlation.T) / 2)[0]
    if max(apart, -least) > 1e-8 or cov[sd == 0].any():
        got = f"got entries {apart:.3g} sd² apart and the eigenvalue {least:.3g}"
        raise ValueError(f"cov must be symmetric and positive semi-definite, {got}")
    cov = (cov + cov.T) / 2
    A = np.eye(d) if directions is None else check_array("directions", directions, 2, (None, d))
    v = ((A @ cov) * A).sum(axis=1)
    return cov, A, np.where(v > _ROUNDING * (np.abs(A) @ sd) ** 2, v, 0)
