"""Importances over refits of a model: what is averaged, and which rows are fitted."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from firmlib import firm, stability

FITTED = []


class Seen(BaseEstimator):
    """A model that tells what it was fitted to, and predicts the first column."""

    def fit(self, X, y):
        self.fitted_ = True
        FITTED.append(y)
        return self

    def predict(self, X):
        return X[:, 0]


def regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    X[150:, 0] = -X[:150, 0]
    return X, 4 * X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=300)


def test_a_feature_without_direction_keeps_its_size():
    X, y = regression()
    model = make_pipeline(PolynomialFeatures(2), Ridge())
    found, once = stability(model, X, y), firm(model.fit(X, y), X)
    assert found.index[0] == "x0"
    expected = np.abs(once.importances)
    np.testing.assert_allclose(found.loc[["x0", "x1"], "importance"].abs(), expected, rtol=0.05)
    assert (found["model"] < 0.1).all()


def test_columns_are_the_mean_and_the_spread_of_the_fits():
    X, y = regression()
    parts = list(KFold(4).split(X))
    found = stability(LinearRegression(), X, -y, cv=KFold(4), keep=True).loc[["x0", "x1"]]
    fits = [firm(LinearRegression().fit(X[i], -y[i]), X) for i, _ in parts]
    Q = np.array([fit.importances for fit in fits])
    np.testing.assert_allclose(found["importance"].abs(), np.abs(Q).mean(axis=0))
    np.testing.assert_array_equal(np.sign(found["importance"]), np.sign(Q.mean(axis=0)))
    np.testing.assert_allclose(found["model"], np.abs(Q).std(axis=0, ddof=1))
    rows = np.mean([fit.standard_error**2 for fit in fits], axis=0)
    np.testing.assert_allclose(found["total"] ** 2, rows + found["model"] ** 2)


def test_folds_of_a_classifier_have_all_classes():
    X, y = load_iris(return_X_y=True)
    found = stability(LogisticRegression(max_iter=1000), X, y, cv=3, target=0)
    assert found.index[0] in ("x2", "x3")


@pytest.mark.parametrize("cv", [None, 5, GroupKFold(5)])
def test_units_are_fitted_whole(cv):
    FITTED.clear()
    X, _ = regression()
    unit = np.arange(300) % 30
    found = stability(Seen(), X, unit, cv=cv, groups=[f"unit {u}" for u in unit])
    counts = [np.unique(y, return_counts=True)[1] for y in FITTED]
    assert len(counts) == (20 if cv is None else 5)
    assert all((n == 10).all() and len(n) == (15 if cv is None else 24) for n in counts)
    error = firm(X[:, 0], X, groups=unit).standard_error
    np.testing.assert_allclose(found.loc[["x0", "x1"], "rows"], error)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (Ridge(), {"cv": ShuffleSplit(1)}, r"^cv=ShuffleSplit\(.*\) makes 1 fits; expected at le"),
        (np.sum, {}, "^estimator=sum must be an estimator of scikit-learn"),
        (Ridge, {}, "^estimator=Ridge must be an estimator of scikit-learn"),
        (Ridge(), {"groups": [1, 2]}, r"^groups has shape \(2,\), expected \(300,\)"),
    ],
)
def test_refused(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        stability(estimator, *regression(), **options)
