"""Closed forms under normal inputs, against quadrature, simulation and naive loops."""

import numpy as np
import pytest
from scipy.linalg import null_space, qr
from scipy.stats import multivariate_normal

from firmlib.expansion import KernelExpansion
from firmlib.normal import (
    firm_linear,
    firm_rbf,
    firm_taylor,
    shrinkage_covariance,
    shrinkage_intensity,
)

MEAN = np.array([0.5, -1.0, 0.2])
COV = np.array([[1.0, 0.6, -0.3], [0.6, 2.0, 0.4], [-0.3, 0.4, 0.5]])
NODES = np.linspace(-12, 12, 2001)  # the trapezoidal rule, as exact as doubles for smooth curves
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()


def gaussian(dual_coef, centers, width):
    """A Gaussian-kernel machine with the paper's gamma."""
    return KernelExpansion(dual_coef, centers, "rbf", scale=width**-2)


def conditional(j, t, mean=MEAN, cov=COV):
    """Means and covariance of the other inputs, given each X_j = t (the textbook formula)."""
    rest = np.delete(np.arange(len(mean)), j)
    slope = cov[rest, j] / cov[j, j]
    return (
        mean[rest] + np.multiply.outer(t - mean[j], slope),
        cov[np.ix_(rest, rest)] - np.outer(slope, cov[j, rest]),
    )


def signed_sd(q, mean, variance):
    """Sd of q(t), t ~ N(mean, variance), signed by Cov(t, q), by quadrature."""
    t = mean + np.sqrt(variance) * NODES
    values = q(t)
    values = values - WEIGHTS @ values
    return np.copysign(np.sqrt(WEIGHTS @ values**2), WEIGHTS @ (values * NODES))


# Linear scores


@pytest.mark.parametrize("j", [0, 1, 2])
def test_firm_linear_by_quadrature_of_the_conditional_mean(j):
    w = np.array([1.0, -2.0, 3.0])

    def q(t):
        return w[j] * t + conditional(j, t)[0] @ np.delete(w, j)

    expected = signed_sd(q, MEAN[j], COV[j, j])
    np.testing.assert_allclose(firm_linear(w, COV)[j], expected, rtol=1e-10)
    along = firm_linear(w, COV, directions=[np.eye(3)[j], w])
    np.testing.assert_allclose(along, [expected, np.sqrt(w @ COV @ w)], rtol=1e-10)


def test_firm_linear_given_inputs_is_that_of_residuals(rng):
    L = rng.normal(size=(5, 5))
    L[4] = L[0] - 2 * L[1]  # known once x0 and x1 are
    cov, w = L @ L.T, rng.normal(size=5)
    rest = np.eye(5)
    rest[:, :2] -= cov[:, :2] @ np.linalg.inv(cov[:2, :2])
    residual = rest @ cov @ rest.T
    found = firm_linear(w, cov, given=[0, 1])
    np.testing.assert_allclose(found[2:4], firm_linear(w[2:4], residual[2:4, 2:4]), rtol=1e-8)
    assert not found[[0, 1, 4]].any()


@pytest.mark.parametrize("d", [3, 100])
def test_directions_in_which_nothing_varies_are_exactly_zero(rng, d):
    """x = L z with two z only: a'x is constant for all a orthogonal to L, but for rounding."""
    L = rng.normal(size=(d, 2))
    flat = null_space(L.T).T
    weights, centers = rng.normal(size=d), rng.normal(size=(4, d))
    assert not firm_linear(weights, L @ L.T, directions=flat).any()
    assert not firm_rbf(
        gaussian(np.ones(4), centers, 9.0), np.zeros(d), L @ L.T, directions=flat
    ).any()


# First order


def test_firm_taylor_is_firm_linear_of_the_gradient_at_the_mean():
    def gradient(x):
        [[a, b, c]] = x
        return np.array([[3 * a**2 - b, -a, np.cos(c)]])

    weights = gradient(MEAN[None])[0]
    for options in ({}, {"directions": [[1.0, 2.0, -1.0]]}):
        expected = firm_linear(weights, COV, **options)
        found = firm_taylor(lambda x: gradient(x + MEAN), COV, **options)
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(firm_taylor(weights, COV, **options), expected)


# Gaussian kernels


def rbf_curve(alpha, centers, gamma, mean, cov, j):
    """q_j(t): the j-th factor of each kernel times a normal density of the others at x_i."""
    d = len(mean)
    rest = np.delete(np.arange(d), j)

    def q(t):
        m, C = conditional(j, t, mean, cov)
        factor = np.exp(-((t[:, None] - centers[:, j]) ** 2) / gamma**2)
        if d == 1:
            return factor @ alpha
        smooth = multivariate_normal(cov=C + gamma**2 / 2 * np.eye(d - 1))
        scale = (np.pi * gamma**2) ** ((d - 1) / 2)
        return (factor * scale * smooth.pdf(centers[:, rest] - m[:, None])) @ alpha

    return q


@pytest.mark.parametrize("gamma", [0.2, 0.8, 2.0, 10.0, 300.0])
@pytest.mark.parametrize("rank", [2, 3])
def test_firm_rbf_by_quadrature(rng, gamma, rank):
    L = rng.normal(size=(3, rank))
    cov = L @ L.T
    alpha = rng.normal(size=20)
    centers = rng.multivariate_normal(MEAN, COV, size=20)
    Q = firm_rbf(gaussian(alpha, centers, gamma), MEAN, cov)
    for j in range(3):
        q = rbf_curve(alpha, centers, gamma, MEAN, cov, j)
        np.testing.assert_allclose(Q[j], signed_sd(q, MEAN[j], cov[j, j]), rtol=1e-8)


def test_firm_rbf_of_directions(rng):
    """The kernel does not notice a rotation, so any direction is some rotation's first input."""
    alpha, centers = rng.normal(size=8), rng.normal(size=(8, 3))
    for a in rng.normal(size=(4, 3)):
        T = qr(a[:, None])[0].T
        T[0] *= np.sign(T[0] @ a)
        np.testing.assert_allclose(T[0], a / np.linalg.norm(a), rtol=1e-12)
        rotated = rbf_curve(alpha, centers @ T.T, 1.5, T @ MEAN, T @ COV @ T.T, 0)
        expected = signed_sd(rotated, T[0] @ MEAN, T[0] @ COV @ T[0])
        Q = firm_rbf(gaussian(alpha, centers, 1.5), MEAN, COV, directions=[a, -a])
        np.testing.assert_allclose(Q, [expected, -expected], rtol=1e-8)


@pytest.mark.parametrize("gamma", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("ratios", [[0.7], [1.0, 2.0], [0.3, -1.7, 0.9]])
def test_firm_rbf_of_copies(ratios, gamma):
    """x = ratios z with one z only: s is a bump in z, of width gamma / ||ratios||."""
    width = gamma / np.linalg.norm(ratios)
    expected = np.sqrt((1 + 4 / width**2) ** -0.5 - 1 / (1 + 2 / width**2))
    origin = np.zeros(len(ratios))
    Q = firm_rbf(gaussian([1.0], [origin], gamma), origin, np.outer(ratios, ratios))
    np.testing.assert_allclose(np.abs(Q), expected, rtol=1e-8)


@pytest.mark.parametrize("distance", [5, 10, 60, 1e3, 1e6])
def test_firm_rbf_of_centers_far_away(distance):
    """A center in the tail adds nothing, not NaN; E[exp(-k (x - c)^2)] is known for d = 1."""
    first, second = ((1 + 2 * k) ** -0.5 * np.exp(-k * distance**2 / (1 + 2 * k)) for k in (1, 2))
    far = firm_rbf(gaussian([1.0], [[distance]], 1.0), [0.0], [[1.0]])
    np.testing.assert_allclose(far, [np.sqrt(second - first**2)], rtol=1e-8)
    alone = firm_rbf(gaussian([1.0], [[0.2]], 1.0), [0.0], [[1.0]])
    both = firm_rbf(gaussian([1.0, 1.0], [[0.2], [distance]], 1.0), [0.0], [[1.0]])
    np.testing.assert_allclose(both, alone, rtol=0, atol=2 * np.sqrt(second))


# Shrinkage


def naive_shrinkage(X):
    """Schaefer and Strimmer (2005), Section 2 and Table 1, target D."""
    n, sd = len(X), X.std(axis=0, ddof=1)
    Z = (X - X.mean(axis=0)) / sd
    w = Z[:, :, None] * Z[:, None, :]
    R = n / (n - 1) * w.mean(axis=0)
    variances = n / (n - 1) ** 3 * ((w - w.mean(axis=0)) ** 2).sum(axis=0)
    pairs = ~np.eye(len(R), dtype=bool)
    intensity = min(1.0, variances[pairs].sum() / (R[pairs] ** 2).sum())
    return intensity, np.where(pairs, (1 - intensity) * R, 1) * np.outer(sd, sd)


@pytest.mark.parametrize("n", [6, 12, 100])
@pytest.mark.parametrize("copies", [1, 20])  # fewer rows than columns
def test_shrinkage_is_that_of_the_paper(rng, n, copies):
    X = np.tile(rng.multivariate_normal(MEAN, COV, size=n) * [1, 10, 0.1], copies)
    X += 0.1 * rng.normal(size=X.shape)
    intensity, cov = naive_shrinkage(X)
    np.testing.assert_allclose(shrinkage_intensity(X), intensity, rtol=1e-10)
    np.testing.assert_allclose(shrinkage_covariance(X), cov, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("value", [0.1, 1e15 + 0.3])
@pytest.mark.parametrize("n", [6, 10, 49])
def test_shrinkage_of_a_constant_column(rng, n, value):
    X = rng.normal(size=(n, 3))
    X[:, 1] = value
    cov = shrinkage_covariance(X)
    assert not cov[1].any()
    assert not cov[:, 1].any()
    np.testing.assert_allclose(cov[::2, ::2], shrinkage_covariance(X[:, ::2]), rtol=1e-12)
    assert firm_linear([1, 1, 1], cov)[1] == 0
