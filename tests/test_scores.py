"""Scores: what an estimator, a callable, a torch module or a vector is asked."""

import sys
from contextlib import nullcontext
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import Tensor
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from firmlib.scores import as_score
from firmlib.tables.table import Table

rng = np.random.default_rng(0)
X = rng.normal([0.5, -1.0, 0.0], [1.0, 2.0, 0.5], size=(60, 3))
y = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=60)
labels = (y > np.median(y)).astype(int)
words = np.where(labels, "spam", "ham")
three = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]
Y = np.column_stack([y, -2 * y, X[:, 0]])


class Machine:
    """A model that does without scikit-learn."""

    def predict(self, X):
        return X[:, 0] * 3


@pytest.mark.parametrize(
    ("estimator", "target", "expected"),
    [
        (LogisticRegression(), words, lambda e: e.decision_function(X)),
        (make_pipeline(StandardScaler(), SVC()), words, lambda e: e.decision_function(X)),
        (GaussianNB(), words, lambda e: e.predict_proba(X)[:, 1]),
        (LinearRegression(), y, lambda e: e.predict(X)),
        (LinearRegression(), Y[:, :1], lambda e: e.predict(X)[:, 0]),  # of shape (n, 1)
    ],
)
def test_decision_function_probability_and_prediction_come_in_this_order(
    estimator, target, expected
):
    estimator.fit(X, target)
    np.testing.assert_array_equal(as_score(estimator, X), expected(estimator))
    np.testing.assert_array_equal(as_score(Machine(), X), 3 * X[:, 0])


@pytest.mark.parametrize("method", ["decision_function", "predict_proba", "predict"])
@pytest.mark.parametrize("target", ["spam", "ham", "a", "b", "c"])
def test_response_method_and_target(method, target):
    estimator = LogisticRegression().fit(X, three if len(target) == 1 else words)
    raw = getattr(estimator, method)(X)
    column = estimator.classes_.tolist().index(target)
    if method == "predict":
        expected = raw == target
    elif raw.ndim == 1:
        expected = raw if target == "spam" else -raw
    else:
        expected = raw[:, column]
    found = as_score(estimator, X, response_method=method, target=target)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "values",
    [
        y,
        y.tolist(),
        y[:, None],
        pd.Series(y),
        pl.Series(y),
        labels,
        labels > 0,
        np.array([Decimal(1), 2, 2.5, True, np.float32(3)] * 12, dtype=object),
    ],
)
def test_arrays_and_numeric_labels_are_scores(values):
    expected = np.asarray(values, dtype=float).ravel()
    np.testing.assert_array_equal(as_score(values, X), expected)
    np.testing.assert_array_equal(as_score(lambda X: values, X), expected)


@pytest.mark.parametrize("values", [words, words.tolist(), words.astype(object), pd.Series(words)])
def test_word_labels_become_an_indicator(values):
    np.testing.assert_array_equal(as_score(values, X, target="spam"), labels)


class Module:
    """As much of a torch module as is asked."""

    training = False

    def parameters(self):
        return iter([SimpleNamespace(dtype=np.float32, device="cpu")])

    def __call__(self, X):
        assert isinstance(X, Tensor)
        return Tensor(X.values[:, :1] * 2)


@pytest.fixture
def torch(monkeypatch):
    fake = SimpleNamespace(
        nn=SimpleNamespace(Module=Module),
        Tensor=Tensor,
        no_grad=nullcontext,
        float64=float,
        zeros=lambda n, dtype: SimpleNamespace(dtype=dtype, device="cpu"),
        as_tensor=lambda values, dtype, device: Tensor(values.astype(dtype)),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.mark.parametrize("table", [X, Tensor(X), pd.DataFrame(X), sparse.csr_array(X)])
def test_a_torch_module_gets_a_tensor(torch, table):
    np.testing.assert_allclose(as_score(Module(), table), 2 * X[:, 0], rtol=1e-6)


def test_tensors_are_scores_and_tables():
    np.testing.assert_array_equal(as_score(Tensor(y), X), y)
    np.testing.assert_array_equal(as_score(lambda X: X, np.ones((2, 1))), [1, 1])
    np.testing.assert_array_equal(Table(Tensor(X)).column(1).values, X[:, 1])


def test_a_torch_module_says_what_it_needs(torch):
    words = pd.DataFrame({"city": ["Rome", "Oslo"]})
    with pytest.raises(ValueError, match=r"^X of score=Module must hold numbers, got .*'Rome'"):
        as_score(Module(), words)
    training = Module()
    training.training = True
    with pytest.raises(ValueError, match=r"^score=Module is in training mode; call eval\(\)"):
        as_score(training, X)


def test_a_survival_model_is_told_what_to_give():
    class CoxFitter:
        def fit(self, frame):
            return self

        def predict_partial_hazard(self, X):
            return pd.Series(np.exp(X[:, 0]))

    with pytest.raises(ValueError, match=r"^score=<.*CoxFitter.* must be .* a function of X"):
        as_score(CoxFitter(), X)
    np.testing.assert_array_equal(as_score(CoxFitter().predict_partial_hazard, X), np.exp(X[:, 0]))
