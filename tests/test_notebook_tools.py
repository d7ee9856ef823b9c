"""What notebooks need: parameters, whose faults are named with advice, metrics, permutations."""

import json

import numpy as np
import pytest
from sklearn import inspection
from sklearn.linear_model import LinearRegression

from firmlib.compendium import metrics
from firmlib.compendium.parameters import require
from firmlib.compendium.shuffling import permutation_importance


@pytest.mark.parametrize(
    ("value", "kind", "bounds"),
    [
        (3, int, {"low": 3, "high": 3}),
        (3, float, {"low": 0}),
        (0.5, float, {}),
        (False, bool, {}),
        ("a", str, {"options": ("a", "b")}),
        ([1, 2], list, {"low": 1, "high": 2}),
        (["a"], list, {"options": ("a", "b")}),
    ],
)
def test_accepted(value, kind, bounds):
    require("p", value, kind, **bounds)


@pytest.mark.parametrize(
    ("value", "kind", "bounds", "message"),
    [
        ("3", int, {}, r"p='3' is text, expected int; with papermill write, .* -y \"p: 10\""),
        ("false", bool, {}, r"p='false' is text, expected bool; .* -y \"p: false\""),
        ("[1]", list, {}, r"p='\[1\]' is text, expected list; .* -y \"p: \[1, 2\]\""),
        (True, int, {}, "p=True is bool, expected int"),
        (1, bool, {}, "p=1 is int, expected bool"),
        (1.5, int, {}, "p=1.5 is float, expected int"),
        (None, float, {}, "p=None is NoneType, expected float"),
        (1, str, {}, "p=1 is int, expected str$"),
        (2, int, {"low": 3}, "p=2 must be at least 3"),
        (2, int, {"high": 1}, "p=2 must be at most 1"),
        (2, int, {"low": 3, "high": 4}, "p=2 must be between 3 and 4"),
        (float("nan"), float, {"low": 0}, "p=nan must be at least 0"),
        ([1, 5], list, {"high": 4}, r"p=\[1, 5\] must be at most 4"),
        ([], list, {}, r"p=\[\] is empty"),
        ("c", str, {"options": ("a", "b")}, r"p='c' is unknown; expected one of \['a', 'b'\]"),
    ],
)
def test_refused(value, kind, bounds, message):
    with pytest.raises(ValueError, match=message):
        require("p", value, kind, **bounds)


# Scalars that notebooks record for sweeps


def test_scalars_are_shown_and_written_and_replaced_by_name(output):
    shown = metrics.record(rank=np.int64(3), auc=np.float64(1 / 3), found=np.bool_(True), how="w")
    assert repr(shown) == "rank   3\nauc    0.3333\nfound  True\nhow    w"
    metrics.record(rank=1, signal=float("nan"))
    expected = {"rank": 1, "auc": 1 / 3, "found": True, "how": "w", "signal": None}
    assert json.loads((output / "metrics.json").read_text()) == expected
    for value in ([1], None, np.ones(2), {"a": 1}):
        with pytest.raises(ValueError, match=r"rank=.* must be a number"):
            metrics.record(rank=value)
    with pytest.raises(ValueError, match="nothing to record"):
        metrics.record()


def test_permutation_importance_is_what_scikit_learn_has():
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
