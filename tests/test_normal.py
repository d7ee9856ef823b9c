"""Closed forms under normal inputs, against quadrature, simulation and naive loops."""

import numpy as np
import pytest
from scipy.linalg import null_space, qr
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC, SVR

from firmlib.expansion import KernelExpansion, gradient
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


@pytest.mark.parametrize("mean", [None, MEAN])
def test_firm_taylor_is_exact_for_linear_scores(rng, mean):
    w = rng.normal(size=3)
    X = rng.normal(size=(20, 3))
    machine = LinearRegression().fit(X, X @ w + 4)
    Q = firm_taylor(lambda x: gradient(machine, x), COV, mean=mean)
    np.testing.assert_allclose(Q, firm_linear(w, COV), rtol=1e-9)


def test_firm_taylor_takes_the_gradient_at_the_mean(rng):
    """A cubic score: finite differences of s at the mean, then Sigma_j' g / sd_j by hand."""

    def s(x):
        return x[0] ** 3 - x[0] * x[1] + np.sin(x[2])

    g = approx_fprime(MEAN, s, 1e-7)
    expected = [COV[j] @ g / np.sqrt(COV[j, j]) for j in range(3)]

    def exact(x):
        [[a, b, c]] = x
        return np.array([[3 * a**2 - b, -a, np.cos(c)]])

    np.testing.assert_allclose(firm_taylor(exact, COV, mean=MEAN), expected, rtol=1e-5)
    np.testing.assert_allclose(firm_taylor(exact(MEAN[None])[0], COV), expected, rtol=1e-5)
    a = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(
        firm_taylor(exact, COV, mean=MEAN, directions=[a]),
        [a @ COV @ g / np.sqrt(a @ COV @ a)],
        rtol=1e-5,
    )


# Gaussian kernels


def rbf_score(X, alpha, centers, gamma):
    squares = ((X[:, None, :] - centers) ** 2).sum(axis=2)
    return np.exp(-squares / gamma**2) @ alpha


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
@pytest.mark.parametrize("j", [0, 1, 2])
def test_firm_rbf_by_quadrature(rng, gamma, j):
    alpha = rng.normal(size=20)
    centers = rng.multivariate_normal(MEAN, COV, size=20)
    q = rbf_curve(alpha, centers, gamma, MEAN, COV, j)
    expected = signed_sd(q, MEAN[j], COV[j, j])
    Q = firm_rbf(gaussian(alpha, centers, gamma), MEAN, COV)
    np.testing.assert_allclose(Q[j], expected, rtol=1e-8)


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


@pytest.mark.parametrize("gamma", [10.0, 1.0, 1e-2, 1e-4, 1e-6, 1e-8])
def test_firm_rbf_of_one_bump(gamma):
    """d = 1: E[exp(-k x^2 / gamma^2)] = (1 + 2 k v / gamma^2)^(-1/2), so Var s is known."""
    v = 2.0
    variance = (1 + 4 * v / gamma**2) ** -0.5 - 1 / (1 + 2 * v / gamma**2)
    Q = firm_rbf(gaussian([3.0], [[0.7]], gamma), [0.7], [[v]])
    np.testing.assert_allclose(Q, [3 * np.sqrt(variance)], rtol=1e-8)


@pytest.mark.parametrize("gamma", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("ratios", [[1.0, 2.0], [0.3, -1.7, 0.9]])
def test_firm_rbf_of_copies(ratios, gamma):
    """x = ratios z with one z only: s is a bump in z, of width gamma / ||ratios||."""
    width = gamma / np.linalg.norm(ratios)
    expected = np.sqrt((1 + 4 / width**2) ** -0.5 - 1 / (1 + 2 / width**2))
    origin = np.zeros(len(ratios))
    Q = firm_rbf(gaussian([1.0], [origin], gamma), origin, np.outer(ratios, ratios))
    np.testing.assert_allclose(np.abs(Q), expected, rtol=1e-8)


def test_firm_rbf_with_a_singular_covariance(rng):
    L = rng.normal(size=(3, 2))
    cov = L @ L.T
    alpha, centers = rng.normal(size=6), rng.normal(size=(6, 3))
    Q = firm_rbf(gaussian(alpha, centers, 1.2), MEAN, cov)
    for j in range(3):
        q = rbf_curve(alpha, centers, 1.2, MEAN, cov, j)
        np.testing.assert_allclose(Q[j], signed_sd(q, MEAN[j], cov[j, j]), rtol=1e-8)


@pytest.mark.parametrize("distance", [5, 10, 60, 1e3, 1e6])
def test_firm_rbf_of_centers_far_away(distance):
    """A center in the tail adds nothing, not NaN; E[exp(-k (x - c)^2)] is known for d = 1."""
    first, second = ((1 + 2 * k) ** -0.5 * np.exp(-k * distance**2 / (1 + 2 * k)) for k in (1, 2))
    far = firm_rbf(gaussian([1.0], [[distance]], 1.0), [0.0], [[1.0]])
    np.testing.assert_allclose(far, [np.sqrt(second - first**2)], rtol=1e-8)
    alone = firm_rbf(gaussian([1.0], [[0.2]], 1.0), [0.0], [[1.0]])
    both = firm_rbf(gaussian([1.0, 1.0], [[0.2], [distance]], 1.0), [0.0], [[1.0]])
    np.testing.assert_allclose(both, alone, rtol=0, atol=2 * np.sqrt(second))


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_firm_rbf_of_a_support_vector_machine(rng, kind):
    """Its own output, integrated: q_0(t) by Gauss-Hermite over x1 given x0 = t."""
    mean, cov = np.array([0.3, -0.2]), np.array([[1.0, 0.5], [0.5, 1.5]])
    X = rng.multivariate_normal(mean, cov, size=100)
    y = X[:, 0] + X[:, 1] ** 2 > 1
    machine = kind(kernel="rbf", gamma=0.3).fit(X, y)
    score = machine.decision_function if kind is SVC else machine.predict
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def q(t):
        m, [[v]] = conditional(0, t, mean, cov)
        x1 = m + np.sqrt(v) * nodes
        values = score(np.column_stack([np.repeat(t, 60), x1.ravel()])).reshape(x1.shape)
        return values @ weights / weights.sum()

    expansion = KernelExpansion.from_estimator(machine)
    Q = firm_rbf(expansion, mean, cov)
    np.testing.assert_allclose(Q[0], signed_sd(q, mean[0], cov[0, 0]), rtol=1e-8)


def test_firm_rbf_of_wide_kernels_is_firm_taylor(rng):
    """With sum alpha = 0, as in an SVM, the quadratic term vanishes as fast as 1 / gamma^4."""
    alpha = rng.normal(size=10)
    alpha -= alpha.mean()
    centers = rng.normal(size=(10, 3))
    error = []
    for gamma in (10.0, 100.0, 1000.0):
        machine = KernelExpansion(alpha, centers, "rbf", scale=gamma**-2)
        exact = firm_rbf(gaussian(alpha, centers, gamma), MEAN, COV)
        first_order = firm_taylor(machine.gradient, COV, mean=MEAN)
        error.append(np.abs(exact / first_order - 1).max())
    assert error[0] < 0.5
    assert error[1] < error[0] / 50
    assert error[2] < error[1] / 50


def test_firm_taylor_can_miss_everything():
    """A bump at the mean has no gradient there."""
    bump = KernelExpansion([1.0], [[0.0]], "rbf")
    assert firm_taylor(bump.gradient, [[1.0]]) == 0
    assert firm_rbf(gaussian([1.0], [[0.0]], 1.0), [0.0], [[1.0]]) > 0.3


# Shrinkage


def naive_shrinkage(X):
    """Schaefer and Strimmer (2005), Section 2 and Table 1, target D, as three loops."""
    n, d = X.shape
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    variances = correlations = 0.0
    R = np.eye(d)
    for i in range(d):
        for j in range(d):
            if i == j:
                continue
            w = [Z[k, i] * Z[k, j] for k in range(n)]
            mean = sum(w) / n
            R[i, j] = n / (n - 1) * mean
            variances += n / (n - 1) ** 3 * sum((x - mean) ** 2 for x in w)
            correlations += R[i, j] ** 2
    intensity = min(1.0, variances / correlations)
    shrunk = (1 - intensity) * R
    for i in range(d):
        shrunk[i, i] = 1
    sd = X.std(axis=0, ddof=1)
    return intensity, shrunk * np.outer(sd, sd)


@pytest.mark.parametrize("n", [6, 12, 100])
def test_shrinkage_is_that_of_the_paper(rng, n):
    X = rng.multivariate_normal(MEAN, COV, size=n) * [1, 10, 0.1]
    intensity, cov = naive_shrinkage(X)
    np.testing.assert_allclose(shrinkage_intensity(X), intensity, rtol=1e-10)
    np.testing.assert_allclose(shrinkage_covariance(X), cov, rtol=1e-10, atol=1e-14)


def test_shrinkage_with_fewer_rows_than_columns_is_positive_definite(rng):
    X = rng.normal(size=(8, 40))
    assert np.linalg.matrix_rank(np.cov(X, rowvar=False)) == 7
    cov = shrinkage_covariance(X)
    assert 0 < shrinkage_intensity(X) <= 1
    assert np.linalg.eigvalsh(cov).min() > 0
    np.linalg.cholesky(cov)
    np.testing.assert_allclose(np.diag(cov), X.var(axis=0, ddof=1), rtol=1e-12)


def test_units_do_not_matter_to_firm_with_shrinkage(rng):
    X, w = rng.normal(size=(10, 15)), rng.normal(size=15)
    plain = firm_linear(w, shrinkage_covariance(X))
    units = np.where(np.arange(15) == 3, 100.0, 1.0)
    rescaled = firm_linear(w / units, shrinkage_covariance(X * units))
    np.testing.assert_allclose(rescaled, plain, rtol=1e-10)


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
