"""firm and conditional_expected_score: Definitions 1 and 2, and the forms features may have."""

import importlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from firmlib import conditional_expected_score, features, firm, firm_by_class

N = 120
normal = np.random.default_rng(1).normal(size=(N, 2))
X = np.column_stack([normal[:, 0], np.random.default_rng(2).integers(0, 4, N), normal[:, 1]])
S = 2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 0] * X[:, 2]


# Definitions 1 and 2


def test_a_population_has_no_error():
    result = firm(S, X, rows="population")
    np.testing.assert_array_equal(result.standard_error, 0)
    np.testing.assert_array_equal(result.ci_low, result.importances)
    np.testing.assert_array_equal(result.ci_high, result.importances)
    assert np.isnan(result.pvalues).all()
    np.testing.assert_allclose(result.standardized[0], 1)  # all values differ: q_f = s


populations = st.lists(
    st.tuples(st.integers(-8, 8), st.integers(-8, 8), st.integers(1, 3)), min_size=3, max_size=30
).map(lambda rows: np.array(rows, dtype=float).T)


@given(populations)
def test_inequalities_of_a_population(rows):
    """slope <= Q <= sd(s), and coarser features explain less."""
    s, f, w = rows
    coarse, whole = (
        firm(s, g[:, None], rows="population", sample_weight=w) for g in (np.floor(f / 2), f)
    )
    slope = firm(s, f[:, None], rows="population", sample_weight=w, method="slope")
    most = np.cov(s, aweights=w, ddof=0)
    V = [0, coarse.variance[0], whole.variance[0], most]
    assert (np.diff(V) >= -1e-12 * (1 + most)).all()
    assert slope.variance[0] <= whole.variance[0] + 1e-12 * (1 + most)
    increasing = firm(s, (f**3 + f)[:, None], rows="population", sample_weight=w)
    np.testing.assert_allclose(increasing.variance, whole.variance, rtol=1e-9, atol=1e-12)


# Curves


def test_curve_is_the_mean_of_each_group():
    curve = conditional_expected_score(S, X, 1)
    groups = pd.Series(S).groupby(X[:, 1])
    np.testing.assert_array_equal(curve.t, list(groups.groups))
    np.testing.assert_allclose(curve.q, groups.mean(), rtol=1e-12)
    np.testing.assert_array_equal(curve.n, groups.size())
    np.testing.assert_allclose(curve.p, groups.size() / N)
    np.testing.assert_allclose(curve.standard_error, groups.sem(), rtol=1e-10)
    assert list(curve.to_frame()) == ["t", "q", "standard_error", "p", "n"]


@pytest.mark.filterwarnings("ignore:.*rows are few")
def test_a_group_has_no_curve():
    with pytest.raises(ValueError, match=r"^feature=\[0, 2\] has no curve; exp"):
        conditional_expected_score(S, X, [0, 2])


# What features may be

ALL = ("x0", "x1", "x2")
NEW = np.column_stack([X[:, 0] ** 2, X[:, 1]])
FORMS = {
    "none": (None, ALL, X),
    "position": (1, ("x1",), X[:, [1]]),
    "negative position": (-1, ("x2",), X[:, [2]]),
    "positions": ([2, 0], ("x2", "x0"), X[:, [2, 0]]),
    "array of positions": (np.array([2, -3]), ("x2", "x0"), X[:, [2, 0]]),
    "names": (["x1", "x0"], ("x1", "x0"), X[:, [1, 0]]),
    "name": ("x2", ("x2",), X[:, [2]]),
    "all but one": (features.exclude("x1"), ("x0", "x2"), X[:, [0, 2]]),
    "callable": (features.product(0, 0), ("x0·x0",), X[:, [0]] ** 2),
    "callable (n, 1)": (lambda X: X[:, [1]], ("<lambda>",), X[:, [1]]),
    "mixed": ([features.coordinate(2), 1, "x0"], ("x2", "x1", "x0"), X[:, [2, 1, 0]]),
    "dict": (
        {"square": lambda X: X[:, 0] ** 2, "one": 1, "named": "x2", "values": X[:, 0]},
        ("square", "one", "named", "values"),
        np.column_stack([X[:, 0] ** 2, X[:, 1], X[:, 2], X[:, 0]]),
    ),
    "table": (NEW, ("f0", "f1"), NEW),
    "pandas": (pd.DataFrame(NEW, columns=["a", "b"]), ("a", "b"), NEW),
    "sparse": (sparse.csr_array(NEW), ("f0", "f1"), NEW),
}


@pytest.mark.parametrize(("argument", "names", "values"), FORMS.values(), ids=FORMS.keys())
def test_features_argument(argument, names, values):
    result = firm(S, X, argument, method="slope")
    assert result.feature_names == names
    expected = [np.polyfit(f, S, 1)[0] * f.std() for f in values.T]
    np.testing.assert_allclose(result.signed, expected, rtol=1e-9)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames_keep_their_column_names(package):
    frame = importlib.import_module(package).DataFrame
    table = frame(dict(zip(["age", "kind", "x0"], X.T, strict=True)))
    result = firm(S, table, ["kind", -1, features.threshold("age", 0)])
    assert result.feature_names == ("kind", "x0", "age>0")
    renamed = firm(S, table, feature_names=["a", "b", "c"])
    assert renamed.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(renamed.importances, firm(S, X).importances)


def test_repeated_column_names_can_be_overridden():
    table = pd.DataFrame(X, columns=["a", "a", "b"])
    result = firm(S, table, feature_names=["first", "second", "third"])
    np.testing.assert_array_equal(result.importances, firm(S, X).importances)


@pytest.mark.filterwarnings("ignore:.*rows are few")
def test_given_features_are_read_like_others():
    expected = firm(S, X, [2], given=1)
    table = pd.DataFrame(X, columns=["a", "a", "b"])  # position 1 is not the first "a"
    for known in (1, lambda T: np.asarray(T)[:, 1], {"g": X[:, 1]}, [1]):
        found = firm(S, table, ["b"], given=known)
        np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-6)
    two = firm(S, X, [2], given=[0, 1])
    np.testing.assert_allclose(firm(S, X, [2], given={"g": [0, 1]}).variance, two.variance)
    assert firm(S, X, given=[1]).feature_names == ("x0", "x2")
    assert firm(S, X, given={"g": 1}).feature_names == ("x0", "x2")
    assert firm(S, X, given={"g": [0, 1]}).feature_names == ("x2",)
    assert firm(S > 0, X > 0, features.Pairs("xor", [0, 1]), given=2).given == ("x2",)


def test_weights_and_groups_may_be_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        w=np.arange(N) % 3, unit=np.arange(N) // 2
    )
    named = firm(S, frame, ["a", "b"], sample_weight="w", groups="unit")
    given = firm(S, frame, ["a", "b"], sample_weight=frame["w"], groups=frame["unit"].to_numpy())
    pd.testing.assert_frame_equal(named.to_frame(), given.to_frame())


# Scores


def test_one_pass_of_predictions_serves_all():
    asked = []

    def model(X):
        asked.append(X)
        return np.column_stack([X[:, 0], X[:, 1] + X[:, 2]])

    assert list(firm_by_class(model, X)) == [0, 1]
    assert len(asked) == 1


def test_warnings_point_to_the_caller():
    X = np.column_stack([np.random.default_rng(0).normal(size=(200, 2)), np.ones(200)])
    ways = [lambda: firm(X[:, 0], X), lambda: firm(X[:, 0], X, {"g": [0, 1]})]
    ways += [lambda: firm(X[:, 0], X, given=1), lambda: conditional_expected_score(X[:, 0], X, 2)]
    for way in ways:
        with pytest.warns(UserWarning, match="importance 0|rows are few") as caught:
            way()
        assert {warning.filename for warning in caught} == {__file__}
