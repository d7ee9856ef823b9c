"""Permutation importance of all inputs at once."""

import numpy as np
from sklearn import inspection
from sklearn.linear_model import LinearRegression

from firmlib.compendium.shuffling import permutation_importance


def test_it_is_what_scikit_learn_has():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X @ [1, 2, 0, 3] + X[:, 0] * X[:, 1]
    model, options = LinearRegression().fit(X, y), {"n_repeats": 3, "random_state": 5}

    def score(tables):
        return -((model.predict(np.concatenate(tables)).reshape(-1, 50) - y) ** 2).mean(axis=1)

    theirs = inspection.permutation_importance(
        model, X, y, scoring="neg_mean_squared_error", **options
    )
    ours = permutation_importance(score, X, **options)
    np.testing.assert_allclose(ours, theirs.importances_mean, rtol=1e-10)
