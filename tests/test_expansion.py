"""Kernel expansions: exact gradients and unfolded weights of kernel machines."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    SGDOneClassSVM,
    TweedieRegressor,
)
from sklearn.svm import SVC, SVR, OneClassSVM

from firmlib.expansion import KernelExpansion, gradient

rng = np.random.default_rng(0)
X = rng.normal([0.5, -1.0, 0.0], [1.0, 2.0, 0.5], size=(60, 3))
y = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=60)
labels = (y > np.median(y)).astype(int)
words = np.where(labels, "spam", "ham")
Y = np.column_stack([y, -2 * y, X[:, 0]])


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 1.5},
    {"kernel": "poly", "degree": 2, "gamma": 0.3},
    {"kernel": "rbf", "gamma": 0.4},
]
SCALED = [  # scikit-learn's default gamma, 1 / (d Var[X])
    {"kernel": "poly", "gamma": "scale", "coef0": 1.0},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "rbf", "gamma": "auto"},
]
MACHINES = [
    *[SVC(**kernel).fit(X, words) for kernel in KERNELS + SCALED],
    *[SVC(**kernel).fit(sparse.csr_matrix(X), labels) for kernel in KERNELS],
    *[SVR(**kernel).fit(X, y) for kernel in KERNELS],
    OneClassSVM(nu=0.3).fit(X),
    *[KernelRidge(**kernel).fit(X, y) for kernel in KERNELS],
    KernelRidge(kernel="rbf", gamma=None).fit(X, y),  # None is 1 / d
    KernelRidge(kernel="polynomial", gamma=None, degree=2).fit(X, y),
    KernelRidge(kernel="rbf").fit(X, Y[:, :1]),
]
POINTS = np.array([[0.0, 0.0, 0.0], [0.7, -1.3, 0.4], [-0.4, 2.0, -0.9]])


def raw(machine, X):
    return getattr(machine, "decision_function", machine.predict)(X).reshape(len(X))


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_expansion_and_gradient_are_those_of_the_machine(machine):
    """The gradient against central differences of the machine's own output."""
    expansion = KernelExpansion.from_estimator(machine)
    np.testing.assert_allclose(expansion(X), raw(machine, X), rtol=1e-10, atol=1e-10)
    step = 1e-5
    expected = [
        [(raw(machine, [x + e]) - raw(machine, [x - e]))[0] / (2 * step) for e in step * np.eye(3)]
        for x in POINTS
    ]
    for score in (machine, expansion):
        np.testing.assert_allclose(gradient(score, POINTS), expected, rtol=1e-6, atol=1e-7)


def test_width_is_the_papers_gamma():
    expansion = KernelExpansion([1.0], [[0.0, 0.0]], "rbf", scale=0.25)
    assert expansion.width == 2
    x = np.array([0.3, 0.4])
    np.testing.assert_allclose(expansion([x]), np.exp(-(0.25) / expansion.width**2), rtol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
def test_unfolded_weights(kernel):
    """By the tensor power: (u'v)^D is the product of the D-fold tensors of u and of v."""
    expansion = KernelExpansion.from_estimator(SVR(**kernel).fit(X, y))
    linear = kernel["kernel"] == "linear"
    scale, coef0, degree = (
        (1, 0, 1) if linear else (expansion.scale, expansion.coef0, kernel["degree"])
    )
    rows = np.c_[np.full(len(expansion.centers), coef0**0.5), scale**0.5 * expansion.centers]
    entries = {}
    for factors in product(range(4), repeat=degree):  # 0 is the constant
        exponents = tuple(factors.count(j) for j in (1, 2, 3))
        entry = expansion.dual_coef @ rows[:, factors].prod(axis=1)
        entries.setdefault(exponents, []).append(entry)
    powers, w = expansion.unfold()
    unfolded = dict(zip(map(tuple, powers.tolist()), w, strict=True))
    for exponents, equal in entries.items():
        expected = sum(equal) / np.sqrt(len(equal))
        np.testing.assert_allclose(unfolded.pop(exponents, 0), expected, rtol=1e-9, atol=1e-12)
    assert not unfolded
    norm = expansion.dual_coef @ (expansion(expansion.centers) - expansion.intercept)
    np.testing.assert_allclose(w @ w, norm, rtol=1e-9)  # ||w||^2 = alpha' K alpha


@pytest.mark.parametrize(
    "machine",
    [
        LinearRegression().fit(X, y),
        LinearRegression().fit(X, Y[:, :1]),
        ElasticNet().fit(sparse.csr_matrix(X), y),
        LogisticRegression().fit(X, words),
        LinearDiscriminantAnalysis().fit(X, labels),
        TweedieRegressor(power=0).fit(X, y),  # identity link
        SGDOneClassSVM(random_state=0).fit(X),  # X @ coef_ - offset_
    ],
    ids=str,
)
def test_gradient_of_linear_models(machine):
    """A linear score moves by the gradient with every unit step."""
    origin = np.zeros((1, 3))
    expected = [(raw(machine, origin + e) - raw(machine, origin))[0] for e in np.eye(3)]
    np.testing.assert_allclose(gradient(machine, POINTS), [expected] * 3, rtol=1e-9, atol=1e-12)
