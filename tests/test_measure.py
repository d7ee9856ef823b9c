"""firm and conditional_expected_score: Definitions 1 and 2, and the forms features may have."""

import importlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from firmlib import conditional_expected_score, features, firm, firm_by_class
from firmlib.scores import as_score

N = 120
normal = np.random.default_rng(1).normal(size=(N, 2))
X = np.column_stack([normal[:, 0], np.random.default_rng(2).integers(0, 4, N), normal[:, 1]])
S = 2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 0] * X[:, 2]


def definition(s, f, w):
    """Q_f by Definitions 1 and 2, with plain sums over the rows."""
    total, variance = sum(w), 0.0
    mean = sum(a * b for a, b in zip(s, w, strict=True)) / total
    for t in set(f):
        level = [(a, b) for a, c, b in zip(s, f, w, strict=True) if c == t]
        p = sum(b for _, b in level)
        variance += p / total * (sum(a * b for a, b in level) / p - mean) ** 2
    return variance**0.5


# Definitions 1 and 2


@pytest.mark.parametrize("scale", [1, 1e-6, 1e6])
def test_population_equals_the_definition(rng, scale):
    table, score = rng.integers(-1, 3, size=(40, 3)), rng.normal(size=40)
    weights = rng.integers(1, 9, size=40) * scale
    result = firm(score, table, rows="population", sample_weight=weights)
    expected = [definition(score, table[:, j].tolist(), weights) for j in range(3)]
    np.testing.assert_allclose(result.importances, expected, rtol=1e-12)


def test_population_of_two_dice():
    """f = maximum, s = sum: every quantity by counting the 36 throws."""
    dice = np.array([(i, j) for i in range(1, 7) for j in range(1, 7)])
    total = dice.sum(axis=1)
    curve = conditional_expected_score(total, dice, lambda X: X.max(axis=1), rows="population")
    np.testing.assert_array_equal(curve.t, [1, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(curve.n, [1, 3, 5, 7, 9, 11])
    np.testing.assert_allclose(curve.p, np.array([1, 3, 5, 7, 9, 11]) / 36)
    np.testing.assert_allclose(curve.q, [2, 10 / 3, 24 / 5, 44 / 7, 70 / 9, 102 / 11])
    np.testing.assert_array_equal(curve.standard_error, 0)


def test_xor_is_flat_in_each_input_but_not_in_their_xor():
    table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    built = [0, 1, features.xor(0, 1), features.product(0, 1)]
    result = firm(lambda X: X[:, 0] * X[:, 1], table, built, rows="population")
    np.testing.assert_array_equal(result.signed, [0, 0, -1, 1])


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


def test_sign_is_that_of_the_slope():
    table = np.array([[1.0], [2.0], [3.0], [4.0]])
    for options in ({}, {"n_bins": 2}, {"method": "slope"}):
        up, down = (
            firm(s, table, rows="population", **options) for s in ([0, 1, 2, 9], [9, 2, 1, 0])
        )
        assert up.direction == 1
        assert down.direction == -1
        np.testing.assert_array_equal(down.signed, -up.signed)
    assert firm([3, 1, 1, 3], table, rows="population").importances == 1


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


@pytest.mark.parametrize("n", [120, 5000])
def test_curve_of_a_number(n):
    """Bins are intervals, q is their mean score, and t is a middle value of each."""
    f = np.sort(np.random.default_rng(3).lognormal(size=n))
    curve = conditional_expected_score(np.log(f), f[:, None], 0)
    cuts = np.cumsum(curve.n).round().astype(int)
    assert cuts[-1] == n
    np.testing.assert_allclose(curve.p, curve.n / n)
    for t, q, part in zip(curve.t, curve.q, np.split(f, cuts[:-1]), strict=True):
        np.testing.assert_allclose(q, np.log(part).mean(), rtol=1e-9)
        assert part[0] <= t <= part[-1]
        assert len(part) < 5 or 0.2 <= (part < t).mean() <= 0.8


@pytest.mark.parametrize("weights", [None, np.arange(N) % 5 + 1])
@pytest.mark.parametrize("rows", ["sample", "population"])
def test_slope_is_that_of_linear_regression(rows, weights):
    result = firm(S, X, method="slope", rows=rows, sample_weight=weights)
    w = np.ones(N) if weights is None else weights
    for f, importance in zip(X.T, result.signed, strict=True):
        slope = np.polyfit(f, S, 1, w=np.sqrt(w))[0]
        sd = np.sqrt(np.cov(f, fweights=w, ddof=0))
        np.testing.assert_allclose(importance, slope * sd, rtol=1e-10)


def test_slope_equals_firm_of_a_binary_feature():
    binary = features.threshold(0, 0.3)
    slope = firm(S, X, binary, method="slope").importances
    np.testing.assert_allclose(slope, firm(S, X, binary, rows="population").importances, rtol=1e-12)


# What features may be

ALL = ("x0", "x1", "x2")
NEW = np.column_stack([X[:, 0] ** 2, X[:, 1]])
FORMS = {
    "none": (None, ALL, X),
    "position": (1, ("x1",), X[:, [1]]),
    "numpy position": (np.int64(1), ("x1",), X[:, [1]]),
    "negative position": (-1, ("x2",), X[:, [2]]),
    "positions": ([2, 0], ("x2", "x0"), X[:, [2, 0]]),
    "range": (range(2), ("x0", "x1"), X[:, :2]),
    "array of positions": (np.array([2, -3]), ("x2", "x0"), X[:, [2, 0]]),
    "names": (["x1", "x0"], ("x1", "x0"), X[:, [1, 0]]),
    "name": ("x2", ("x2",), X[:, [2]]),
    "all but one": (features.exclude("x1"), ("x0", "x2"), X[:, [0, 2]]),
    "callable": (features.product(0, 0), ("x0·x0",), X[:, [0]] ** 2),
    "mixed": ([features.coordinate(2), 1, "x0"], ("x2", "x1", "x0"), X[:, [2, 1, 0]]),
    "dict": (
        {"square": lambda X: X[:, 0] ** 2, "one": 1, "named": "x2", "values": X[:, 0]},
        ("square", "one", "named", "values"),
        np.column_stack([X[:, 0] ** 2, X[:, 1], X[:, 2], X[:, 0]]),
    ),
    "table": (NEW, ("f0", "f1"), NEW),
    "lists": (NEW.tolist(), ("f0", "f1"), NEW),
    "pandas": (pd.DataFrame(NEW, columns=["a", "b"]), ("a", "b"), NEW),
    "sparse": (sparse.csr_array(NEW), ("f0", "f1"), NEW),
}


@pytest.mark.parametrize(("argument", "names", "values"), FORMS.values(), ids=FORMS.keys())
def test_features_argument(argument, names, values):
    result = firm(S, X, argument, method="slope")
    assert result.feature_names == names
    expected = [np.polyfit(f, S, 1)[0] * f.std() for f in values.T]
    np.testing.assert_allclose(result.signed, expected, rtol=1e-9)


@pytest.mark.parametrize("feature", [1, np.int64(1), -2, "x1", features.coordinate(1), X[:, 1]])
def test_feature_argument_of_the_curve(feature):
    curve = conditional_expected_score(S, X, feature)
    np.testing.assert_array_equal(curve.t, [0, 1, 2, 3])
    np.testing.assert_allclose(curve.q, pd.Series(S).groupby(X[:, 1]).mean(), rtol=1e-12)


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


def test_weights_and_groups_may_be_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        w=np.arange(N) % 3, unit=np.arange(N) // 2
    )
    named = firm(S, frame, ["a", "b"], sample_weight="w", groups="unit")
    given = firm(S, frame, ["a", "b"], sample_weight=frame["w"], groups=frame["unit"].to_numpy())
    pd.testing.assert_frame_equal(named.to_frame(), given.to_frame())


# Scores


def test_what_a_score_may_be():
    from sklearn.linear_model import LogisticRegression

    words = np.array(["a", "b", "c"])[np.digitize(S, [-2, 0])]
    model = LogisticRegression().fit(X, words)
    options = {"response_method": "predict_proba", "target": "c"}
    expected = firm(model.predict_proba(X)[:, 2], X).importances
    result = firm(model, X, **options)
    np.testing.assert_array_equal(result.importances, expected)
    assert (result.response, result.target) == ("predict_proba", "c")
    np.testing.assert_array_equal(firm(as_score(model, X, **options), X).importances, expected)
    np.testing.assert_array_equal(
        firm(words, X, target="a").importances, firm((words == "a") * 1.0, X).importances
    )


class Counted:
    """A model of two outputs that counts how often it is asked."""

    asked = 0

    def __call__(self, X):
        self.asked += 1
        return np.column_stack([X[:, 0], X[:, 1] + X[:, 2]])


def test_one_pass_of_predictions_serves_all():
    model = Counted()
    assert list(firm_by_class(model, X)) == [0, 1]
    assert model.asked == 1


@pytest.mark.parametrize("value", [0.1, 0.1 + 0.2, 1 / 3, 1e-300, 1e100, -7.7])
@pytest.mark.parametrize("n", [3, 10, 49, 1000])
@pytest.mark.filterwarnings("ignore:importance 0 for:UserWarning")
def test_constants_have_importance_exactly_zero(rng, n, value):
    """The mean of n times 0.1 is seldom 0.1, which must not show."""
    table = np.column_stack([np.full(n, value), rng.normal(size=n)])
    for options in ({}, {"method": "slope"}, {"rows": "population"}):
        options["sample_weight"] = rng.random(n) + 1
        flat = (
            firm(rng.normal(size=n), table[:, :1], **options),
            firm(np.full(n, value), table, **options),
        )
        for result in flat:
            assert not result.importances.any()
            assert not result.standardized.any()
            assert np.abs(result.variance).max() < 1e-15  # up to rounding


def test_warnings_point_to_the_caller():
    X = np.column_stack([np.random.default_rng(0).normal(size=(200, 2)), np.ones(200)])
    ways = [lambda: firm(X[:, 0], X), lambda: firm(X[:, 0], X, {"g": [0, 1]})]
    ways += [lambda: firm(X[:, 0], X, given=1), lambda: conditional_expected_score(X[:, 0], X, 2)]
    for way in ways:
        with pytest.warns(UserWarning, match="importance 0|rows are few") as caught:
            way()
        assert {warning.filename for warning in caught} == {__file__}
