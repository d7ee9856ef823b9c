"""Scores: what an estimator, a callable or a vector is asked, and exact gradients."""

from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
    SGDOneClassSVM,
    TweedieRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM

from firmlib.expansion import KernelExpansion, gradient
from firmlib.scores import as_score

rng = np.random.default_rng(0)
X = rng.normal([0.5, -1.0, 0.0], [1.0, 2.0, 0.5], size=(60, 3))
y = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=60)
labels = (y > np.median(y)).astype(int)
words = np.where(labels, "spam", "ham")
three = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]
Y = np.column_stack([y, -2 * y, X[:, 0]])


def test_decision_function_comes_first():
    estimator = LogisticRegression().fit(X, labels)
    np.testing.assert_array_equal(as_score(estimator, X), estimator.decision_function(X))


@pytest.mark.parametrize("estimator", [GaussianNB(), KNeighborsClassifier()])
def test_probability_of_second_class_comes_next(estimator):
    estimator = estimator.fit(X, words)
    assert not hasattr(estimator, "decision_function")
    np.testing.assert_array_equal(as_score(estimator, X), estimator.predict_proba(X)[:, 1])


def test_prediction_comes_last():
    estimator = LinearRegression().fit(X, y)
    np.testing.assert_array_equal(as_score(estimator, X), estimator.predict(X))


def test_pipeline_is_asked_as_a_whole():
    estimator = make_pipeline(StandardScaler(), SVC()).fit(X, labels)
    np.testing.assert_array_equal(as_score(estimator, X), estimator.decision_function(X))


def test_estimator_without_scikit_learn():
    class Machine:
        def predict(self, X):
            return X[:, 0] * 3

    np.testing.assert_array_equal(as_score(Machine(), X), 3 * X[:, 0])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("decision_function", lambda e: e.decision_function(X)),
        ("predict_proba", lambda e: e.predict_proba(X)[:, 1]),
        ("predict", lambda e: e.predict(X).astype(float)),
    ],
)
def test_response_method(method, expected):
    estimator = LogisticRegression().fit(X, labels)
    np.testing.assert_array_equal(
        as_score(estimator, X, response_method=method), expected(estimator)
    )


@pytest.mark.parametrize("method", ["decision_function", "predict_proba", "predict"])
@pytest.mark.parametrize(("target", "sign"), [("spam", 1), ("ham", -1)])
def test_target_of_two_classes(method, target, sign):
    estimator = LogisticRegression().fit(X, words)
    assert list(estimator.classes_) == ["ham", "spam"]
    expected = {
        "decision_function": sign * estimator.decision_function(X),
        "predict_proba": estimator.predict_proba(X)[:, int(target == "spam")],
        "predict": estimator.predict(X) == target,
    }[method]
    np.testing.assert_array_equal(
        as_score(estimator, X, response_method=method, target=target), expected
    )


@pytest.mark.parametrize("method", ["decision_function", "predict_proba", "predict"])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_target_of_three_classes(method, column):
    estimator = LogisticRegression().fit(X, three)
    raw = getattr(estimator, method)(X)
    expected = raw == "abc"[column] if method == "predict" else raw[:, column]
    score = as_score(estimator, X, response_method=method, target="abc"[column])
    np.testing.assert_array_equal(score, expected)


def test_integer_target_is_the_class_not_the_column():
    estimator = RandomForestClassifier(10, random_state=0).fit(X, 10 - labels)  # classes 9, 10
    np.testing.assert_array_equal(
        as_score(estimator, X, target=9), estimator.predict_proba(X)[:, 0]
    )


def test_class_that_is_never_predicted_scores_zero():
    estimator = LogisticRegression().fit(X, words)
    ham = X[estimator.predict(X) == "ham"]
    score = as_score(estimator, ham, response_method="predict", target="spam")
    np.testing.assert_array_equal(score, np.zeros(len(ham)))


@pytest.mark.parametrize("column", [0, 1, 2])
def test_multioutput_regression_takes_a_column(column):
    estimator = LinearRegression().fit(X, Y)
    np.testing.assert_array_equal(
        as_score(estimator, X, target=column), estimator.predict(X)[:, column]
    )


def test_single_output_in_a_matrix_needs_no_target():
    estimator = LinearRegression().fit(X, Y[:, :1])  # predicts shape (n, 1)
    np.testing.assert_array_equal(as_score(estimator, X), estimator.predict(X)[:, 0])


def test_callable():
    np.testing.assert_array_equal(as_score(lambda X: X @ [1, 2, 3], X), X @ [1, 2, 3])


@pytest.mark.parametrize(
    "values",
    [
        y,
        y.tolist(),
        pd.Series(y),
        pl.Series(y),
        labels,
        labels > 0,
        np.array([Decimal(1), 2, 2.5, True, np.float32(3)] * 12, dtype=object),
    ],
)
def test_arrays_and_numeric_labels_are_scores(values):
    np.testing.assert_array_equal(as_score(values, X), np.asarray(values, dtype=float))


@pytest.mark.parametrize("values", [words, words.tolist(), words.astype(object), pd.Series(words)])
def test_word_labels_become_an_indicator(values):
    np.testing.assert_array_equal(as_score(values, X, target="spam"), labels)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_reach_the_estimator_unchanged(frame):
    """scikit-learn warns (here: fails) if the column names it was fitted with are lost."""
    table = frame(dict(zip("abc", X.T, strict=True)))
    estimator = LogisticRegression().fit(table, labels)
    assert list(estimator.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(as_score(estimator, table), estimator.decision_function(table))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_reach_a_callable_unchanged(frame):
    table = frame(dict(zip("abc", X.T, strict=True)))
    np.testing.assert_array_equal(as_score(lambda X: X["b"] * 2, table), 2 * X[:, 1])


def test_sparse_rows_reach_the_estimator():
    table = sparse.csr_array(X)
    estimator = LogisticRegression().fit(table, labels)
    np.testing.assert_array_equal(as_score(estimator, table), estimator.decision_function(table))


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
    *[SVC(**kernel).fit(X, labels) for kernel in KERNELS + SCALED],
    *[SVC(**kernel).fit(X, words) for kernel in KERNELS[-1:]],
    *[NuSVC(**kernel).fit(X, labels) for kernel in KERNELS + SCALED],
    *[SVR(**kernel).fit(X, y) for kernel in KERNELS + SCALED],
    *[NuSVR(**kernel).fit(X, y) for kernel in KERNELS + SCALED],
    *[OneClassSVM(nu=0.3, **kernel).fit(X) for kernel in KERNELS + SCALED],
    *[KernelRidge(**kernel).fit(X, y) for kernel in KERNELS],
    KernelRidge(kernel="rbf", gamma=None).fit(X, y),  # None is 1 / d
    KernelRidge(kernel="polynomial", gamma=None, degree=2).fit(X, y),
    KernelRidge(kernel="rbf").fit(X, Y[:, :1]),
]
POINTS = np.array([[0.0, 0.0, 0.0], [0.7, -1.3, 0.4], [-0.4, 2.0, -0.9]])


def raw(machine, X):
    return getattr(machine, "decision_function", machine.predict)(X).reshape(len(X))


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_expansion_equals_the_machine(machine):
    expansion = KernelExpansion.from_estimator(machine)
    np.testing.assert_allclose(expansion(X), raw(machine, X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_gradient_of_kernel_machines(machine):
    """Against central differences of the machine's own output."""
    step = 1e-5
    expected = [
        [(raw(machine, [x + e]) - raw(machine, [x - e]))[0] / (2 * step) for e in step * np.eye(3)]
        for x in POINTS
    ]
    np.testing.assert_allclose(gradient(machine, POINTS), expected, rtol=1e-6, atol=1e-7)


def test_gradient_of_an_expansion_itself():
    expansion = KernelExpansion([1.0, -2.0], [[0.0, 1.0], [2.0, 0.5]], "rbf", scale=0.3)
    x = np.array([0.4, -0.2])
    expected = approx_fprime(x, lambda x: expansion([x])[0], 1e-7)
    np.testing.assert_allclose(gradient(expansion, [x])[0], expected, rtol=1e-5)


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


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_machines_fitted_on_sparse_rows(kernel):
    machine = SVC(**kernel).fit(sparse.csr_matrix(X), labels)  # holds sparse coefficients
    expansion = KernelExpansion.from_estimator(machine)
    np.testing.assert_allclose(expansion(X), raw(machine, X), rtol=1e-10, atol=1e-10)
    dense = gradient(SVC(**kernel).fit(X, labels), POINTS)
    np.testing.assert_allclose(gradient(machine, POINTS), dense, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "machine",
    [
        LinearRegression().fit(X, y),
        LinearRegression().fit(X, Y[:, :1]),
        LinearRegression(fit_intercept=False).fit(X, y),
        Lasso(alpha=0.1).fit(X, y),
        ElasticNet().fit(sparse.csr_matrix(X), y),
        LogisticRegression().fit(X, words),
        LinearSVC().fit(X, labels),
        RidgeClassifier().fit(X, labels),
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


def test_log_link_is_not_linear():
    machine = PoissonRegressor().fit(X, np.exp(X[:, 0]))
    with pytest.raises(ValueError, match="PoissonRegressor is not linear in X"):
        gradient(machine, X)


@pytest.mark.parametrize("machine", [SVC(kernel="sigmoid"), KernelRidge(kernel="laplacian")])
def test_other_kernels_are_refused(machine):
    with pytest.raises(ValueError, match=r"kernel='(sigmoid|laplacian)'.*linear.*poly.*rbf"):
        gradient(machine.fit(X, labels), X)


@pytest.mark.parametrize("machine", [SVC().fit(X, three), KernelRidge().fit(X, Y)])
def test_several_outputs_have_no_single_gradient(machine):
    with pytest.raises(ValueError, match="several outputs, dual_coef_ of shape"):
        gradient(machine, X)


def test_gradient_of_a_log_link_is_refused_at_the_origin_too():
    model = PoissonRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 7.0])
    with pytest.raises(ValueError, match="is not linear in X"):
        gradient(model, [[0.0]])
