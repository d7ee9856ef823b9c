"""firm and conditional_expected_score: Definitions 1 and 2, and everything they accept."""

import importlib
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from firmlib import conditional_expected_score, features, firm

N = 120
normal = np.random.default_rng(1).normal(size=(N, 2))
X = np.column_stack([normal[:, 0], np.random.default_rng(2).integers(0, 4, N), normal[:, 1]])
S = 2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 0] * X[:, 2]
METHODS = ["auto", "discrete", "binned", "slope"]
ROWS = ["sample", "population"]
COMBINATIONS = [(m, r) for m in METHODS for r in ROWS if (m, r) != ("discrete", "sample")]


def definition(s, f, weights):
    """Q_f by Definitions 1 and 2, with plain sums over the rows."""
    total = sum(weights)
    mean = sum(w * a for a, w in zip(s, weights, strict=True)) / total
    variance = 0.0
    for t in set(f):
        level = [(a, w) for a, b, w in zip(s, f, weights, strict=True) if b == t]
        p = sum(w for _, w in level)
        q = sum(w * a for a, w in level) / p
        variance += p / total * (q - mean) ** 2
    return sqrt(variance)


def assert_same_result(a, b, rtol=1e-12):
    assert a.feature_names == b.feature_names
    assert a.methods == b.methods
    for attribute in ("variance", "importances", "standardized"):
        np.testing.assert_allclose(getattr(a, attribute), getattr(b, attribute), rtol, atol=1e-15)
    for name in a.feature_names:
        for attribute in ("t", "q", "p", "n"):
            np.testing.assert_allclose(
                getattr(a.curves[name], attribute),
                getattr(b.curves[name], attribute),
                rtol,
                atol=1e-13,
            )


# Definitions 1 and 2


@pytest.mark.parametrize("scale", [1, 1e-6, 1e6, "probabilities"])
def test_population_equals_the_definition(rng, scale):
    table = rng.integers(-1, 3, size=(40, 3))
    score = rng.normal(size=40)
    weights = rng.integers(1, 9, size=40).astype(float)
    weights = weights / weights.sum() if scale == "probabilities" else weights * scale
    result = firm(score, table, rows="population", sample_weight=weights)
    expected = [definition(score, table[:, j].tolist(), weights) for j in range(3)]
    np.testing.assert_allclose(np.abs(result.importances), expected, rtol=1e-12)


def test_population_of_two_dice():
    """f = maximum, s = sum: every quantity by counting the 36 throws."""
    dice = np.array([(i, j) for i in range(1, 7) for j in range(1, 7)])
    curve = conditional_expected_score(
        dice.sum(axis=1), dice, lambda X: X.max(axis=1), rows="population"
    )
    np.testing.assert_array_equal(curve.t, [1, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(curve.n, [1, 3, 5, 7, 9, 11])
    np.testing.assert_allclose(curve.p, np.array([1, 3, 5, 7, 9, 11]) / 36)
    np.testing.assert_allclose(curve.q, [2, 10 / 3, 24 / 5, 44 / 7, 70 / 9, 102 / 11])
    assert curve.method == "discrete"


def test_population_is_always_discrete():
    result = firm(S, X, rows="population")
    assert result.methods == ("discrete",) * 3
    np.testing.assert_allclose(result.importances[0], S.std())  # all values differ: q_f = s


def test_xor_is_flat_in_each_input_but_not_in_their_xor():
    table = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    built = [0, 1, features.xor(0, 1), features.product(0, 1)]
    result = firm(lambda X: X[:, 0] * X[:, 1], table, built, rows="population")
    np.testing.assert_array_equal(result.importances, [0, 0, -1, 1])


def test_curve_is_the_mean_of_each_group():
    curve = conditional_expected_score(S, X, 1)
    groups = pd.Series(S).groupby(X[:, 1])
    np.testing.assert_array_equal(curve.t, list(groups.groups))
    np.testing.assert_allclose(curve.q, groups.mean(), rtol=1e-12)
    np.testing.assert_array_equal(curve.n, groups.size())
    np.testing.assert_allclose(curve.p, groups.size() / N)


def test_binned_curve_is_the_mean_of_each_quantile_bin():
    curve = conditional_expected_score(S, X, 0, n_bins=8)
    groups = pd.DataFrame({"t": X[:, 0], "q": S}).groupby(pd.qcut(X[:, 0], 8), observed=True)
    means = groups.mean()
    assert curve.method == "binned"
    np.testing.assert_allclose(curve.t, means.t, rtol=1e-12)
    np.testing.assert_allclose(curve.q, means.q, rtol=1e-12)
    np.testing.assert_array_equal(curve.n, [15] * 8)


def test_slope_curve_is_the_regression_line():
    curve = conditional_expected_score(S, X, 0, method="slope")
    np.testing.assert_array_equal(curve.t, np.sort(X[:, 0]))
    np.testing.assert_allclose(
        curve.q, np.polyval(np.polyfit(X[:, 0], S, 1), curve.t), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("weights", [None, np.arange(N) % 5 + 1])
@pytest.mark.parametrize("rows", ROWS)
def test_slope_is_that_of_linear_regression(rows, weights):
    result = firm(S, X, method="slope", rows=rows, sample_weight=weights)
    w = np.ones(N) if weights is None else weights
    for f, importance in zip(X.T, result.importances, strict=True):
        slope = np.polyfit(f, S, 1, w=np.sqrt(w))[0]
        sd = np.sqrt(np.cov(f, fweights=w, ddof=0))
        np.testing.assert_allclose(importance, slope * sd, rtol=1e-10)


def test_slope_equals_firm_of_a_binary_feature():
    binary = features.threshold(0, 0.3)
    slope = firm(S, X, binary, method="slope").importances
    np.testing.assert_allclose(slope, firm(S, X, binary, rows="population").importances, rtol=1e-12)


def test_sign_is_that_of_the_slope():
    table = np.array([[1.0], [2.0], [3.0], [4.0]])
    for method in METHODS:
        options = {"method": method, "rows": "population", "n_bins": 2}
        assert firm([0, 1, 2, 9], table, **options).importances > 0
        assert firm([9, 2, 1, 0], table, **options).importances < 0
    assert firm([3, 1, 1, 3], table, rows="population").importances == 1  # no direction: positive


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
    "callable": (features.product(0, 0), ("x0·x0",), X[:, [0]] ** 2),
    "mixed": ([features.coordinate(2), 1, "x0"], ("x2", "x1", "x0"), X[:, [2, 1, 0]]),
    "dict": (
        {"square": lambda X: X[:, 0] ** 2, "one": 1, "named": "x2"},
        ("square", "one", "named"),
        np.column_stack([X[:, 0] ** 2, X[:, 1], X[:, 2]]),
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
    assert tuple(result.curves) == names
    expected = [np.polyfit(f, S, 1)[0] * f.std() for f in values.T]
    np.testing.assert_allclose(result.importances, expected, rtol=1e-9)


@pytest.mark.parametrize("feature", [1, np.int64(1), -2, "x1", features.coordinate(1), X[:, 1]])
def test_feature_argument_of_the_curve(feature):
    curve = conditional_expected_score(S, X, feature)
    np.testing.assert_array_equal(curve.t, [0, 1, 2, 3])
    np.testing.assert_allclose(curve.q, pd.Series(S).groupby(X[:, 1]).mean(), rtol=1e-12)


def test_features_as_a_polars_frame():
    frame = importlib.import_module("polars").DataFrame(NEW, schema=["a", "b"])
    test_features_argument(frame, ("a", "b"), NEW)


@pytest.mark.parametrize("package", ["pandas", "polars"])  # slow to import: where it is needed
def test_data_frames_keep_their_column_names(package):
    frame = importlib.import_module(package).DataFrame
    table = frame(dict(zip(["age", "kind", "x0"], X.T, strict=True)))
    result = firm(lambda T: np.asarray(T) @ [1.0, 2.0, 3.0], table)
    assert result.feature_names == ("age", "kind", "x0")
    expected = firm(X @ [1.0, 2.0, 3.0], X).importances
    np.testing.assert_allclose(result.importances, expected, rtol=1e-12)
    one = firm(S, table, ["kind", -1, features.threshold("age", 0)])
    assert one.feature_names == ("kind", "x0", "age>0")


def test_repeated_column_names_can_be_overridden():
    table = pd.DataFrame(X, columns=["a", "a", "b"])
    result = firm(S, table, feature_names=["first", "second", "third"])
    np.testing.assert_array_equal(result.importances, firm(S, X).importances)


@pytest.mark.parametrize("layout", ["csr_array", "csc_array", "csr_matrix", "coo_matrix"])
def test_sparse_rows(layout):
    table = np.where(X > 0, X, 0)
    result = firm(S, getattr(sparse, layout)(table))
    np.testing.assert_array_equal(result.importances, firm(S, table).importances)


def test_lists_of_rows():
    np.testing.assert_array_equal(firm(S.tolist(), X.tolist()).importances, firm(S, X).importances)


def test_feature_names():
    assert firm(S, X, feature_names=["a", "b", "c"]).feature_names == ("a", "b", "c")
    assert firm(S, X, [2], feature_names=["c"]).feature_names == ("c",)


def test_estimator_with_target():
    words = np.array(["a", "b", "c"])[np.digitize(S, [-2, 0])]
    from sklearn.linear_model import LogisticRegression  # slow to import; needed here alone

    machine = LogisticRegression().fit(X, words)
    result = firm(machine, X, response_method="predict_proba", target="c")
    np.testing.assert_array_equal(
        result.importances, firm(machine.predict_proba(X)[:, 2], X).importances
    )


def test_word_labels_are_scores():
    words = np.where(S > 0, "up", "down")
    np.testing.assert_array_equal(
        firm(words, X, target="up").importances, firm((S > 0).astype(float), X).importances
    )


# Weights


@pytest.mark.parametrize(("method", "rows"), [*COMBINATIONS, ("discrete", "sample")])
def test_integer_weights_are_repetition(rng, method, rows):
    table = X[:, 1:2] if (method, rows) == ("discrete", "sample") else X
    weights = rng.integers(0, 4, N)
    options = {"method": method, "rows": rows}
    weighted = firm(S, table, sample_weight=weights, **options)
    repeated = firm(np.repeat(S, weights), np.repeat(table, weights, axis=0), **options)
    assert_same_result(weighted, repeated)


@pytest.mark.parametrize("parts", [[0.5, 0.5], [0.1, 0.2, 0.7], [1 / 7] * 7, [0.1] * 10])
@pytest.mark.parametrize(("method", "rows"), COMBINATIONS)
@pytest.mark.parametrize("n", [5, 9, 100])  # of 5 rows in 2 bins, one lies on the edge
def test_a_row_may_be_split_into_parts(n, method, rows, parts):
    """0.1 + 0.2 + 0.7 is a whole row, even where it falls one rounding short of 1."""
    split = firm(
        np.repeat(S[:n], len(parts)),
        np.repeat(X[:n], len(parts), axis=0),
        sample_weight=np.tile(parts, n),
        weight_type="count",
        method=method,
        rows=rows,
    )
    assert_same_result(split, firm(S[:n], X[:n], method=method, rows=rows), rtol=1e-9)


def test_two_rows_in_thirds_are_still_a_pair():
    levels = np.array([[0], [0], [1], [1]])
    whole = firm([0, 1, 3, 5], levels, method="discrete", rows="sample")
    thirds = firm(
        np.repeat([0, 1, 3, 5], 3),
        np.repeat(levels, 3, axis=0),
        sample_weight=[1 / 3] * 12,
        weight_type="count",
        method="discrete",
        rows="sample",
    )
    np.testing.assert_allclose(thirds.variance, whole.variance, rtol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(("method", "rows"), COMBINATIONS)
def test_rows_of_weight_zero_are_dropped(rng, method, rows, standardize):
    keep = rng.random(N) < 0.7
    score, table = S.copy(), X.copy()
    score[~keep], table[~keep] = 1e6, -1e6
    options = {"method": method, "rows": rows, "standardize": standardize}
    assert_same_result(
        firm(score, table, sample_weight=keep, **options), firm(S[keep], X[keep], **options)
    )


def test_a_score_that_varies_only_where_the_weight_is_zero_is_constant():
    score = np.r_[np.full(9, 0.1), 5.0]
    weights = np.r_[np.ones(9), 0.0]
    levels = np.arange(10).reshape(-1, 1) % 2
    assert_same_result(
        firm(score, levels, sample_weight=weights, standardize=True),
        firm(score[:9], levels[:9], standardize=True),
    )


# Options and results


@pytest.mark.parametrize(
    ("n", "levels", "expected"),
    [(100, 10, "discrete"), (100, 11, "binned"), (99, 10, "binned"), (4, 2, "discrete")],
)
def test_auto_is_discrete_up_to_sqrt_n_levels(n, levels, expected):
    f = np.arange(n) % levels
    assert firm(np.arange(n) ** 0.5, f.reshape(-1, 1)).methods == (expected,)


def test_auto_counts_weights_as_rows():
    f = (np.arange(50) % 10).reshape(-1, 1)
    assert firm(S[:50], f).methods == ("binned",)
    assert firm(S[:50], f, sample_weight=np.full(50, 2)).methods == ("discrete",)


def test_auto_heeds_n_bins():
    f = (np.arange(N) % 10).reshape(-1, 1)
    assert firm(S, f, n_bins=10).methods == ("discrete",)
    assert firm(S, f, n_bins=9).methods == ("binned",)


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_a_sample_unless_said_otherwise(method):
    """How q_f is estimated says nothing of what the rows are."""
    result = firm(S, X[:, 1:2], method=method)
    assert result.rows == "sample"
    assert result.standard_error[0] > 0
    assert_same_result(result, firm(S, X[:, 1:2], method=method, rows="sample"))
    assert firm(S, X[:, 1:2], method=method, rows="population").rows == "population"


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_n_jobs_changes_nothing(rng, n_jobs):
    many = rng.normal(size=(N, 20))
    one, other = firm(many[:, 0], many), firm(many[:, 0], many, n_jobs=n_jobs)
    np.testing.assert_array_equal(one.variance, other.variance)
    np.testing.assert_array_equal(one.importances, other.importances)


@pytest.mark.parametrize(("method", "rows"), COMBINATIONS)
def test_standardize_divides_by_the_sd_of_the_score(rng, method, rows):
    weights = rng.integers(1, 4, N)
    options = {"method": method, "rows": rows, "sample_weight": weights}
    plain, standard = firm(S, X, **options), firm(S, X, standardize=True, **options)
    ddof = 0 if rows == "population" or method == "slope" else 1
    sd = np.sqrt(np.cov(S, fweights=weights, ddof=ddof))
    np.testing.assert_allclose(plain.standardized, plain.importances / sd, rtol=1e-12)
    np.testing.assert_allclose(standard.importances, plain.importances / sd, rtol=1e-9)
    np.testing.assert_allclose(standard.standardized, standard.importances, rtol=1e-15)


def test_standardized_importance_of_the_score_itself_is_one():
    result = firm(S, X, {"score": lambda X: S}, rows="population")
    np.testing.assert_allclose(result.standardized, 1, rtol=1e-12)


def test_importance_is_the_signed_root_of_the_variance(rng):
    noise = rng.normal(size=(N, 30))
    result = firm(S, noise)
    assert (result.variance < 0).any()  # the unbiased estimate of nothing is often negative
    np.testing.assert_array_equal(result.importances[result.variance <= 0], 0)
    positive = result.variance > 0
    np.testing.assert_allclose(
        result.importances[positive] ** 2, result.variance[positive], rtol=1e-12
    )


def test_to_frame_is_sorted_by_size():
    result = firm(lambda X: X @ [1, -3, 2], np.eye(3), rows="population")
    frame = result.to_frame()
    assert list(frame.index) == ["x1", "x2", "x0"]
    assert frame.index.name == "feature"
    assert list(frame.columns) == [
        "importance",
        "standard_error",
        "ci_low",
        "ci_high",
        "pvalue",
        "standardized",
        "variance",
        "method",
        "kind",
        "missing",
    ]
    order = [1, 2, 0]
    np.testing.assert_array_equal(frame["importance"], result.importances[order])
    np.testing.assert_array_equal(frame["standardized"], result.standardized[order])
    np.testing.assert_array_equal(frame["variance"], result.variance[order])
    assert (frame["method"] == "discrete").all()


def test_to_frame_keeps_the_order_of_ties():
    frame = firm(S, X, {"b": 0, "a": 0, "c": 1}).to_frame()
    assert [name for name in frame.index if name != "c"] == ["b", "a"]


# Edges of the numbers


@pytest.mark.parametrize("value", [0.1, 0.1 + 0.2, 1 / 3, 1e-300, 1e100, -7.7])
@pytest.mark.parametrize("n", [3, 10, 49, 1000])
@pytest.mark.parametrize(("method", "rows"), COMBINATIONS)
def test_constants_have_importance_exactly_zero(rng, method, rows, n, value):
    """The mean of n times 0.1 is seldom 0.1, which must not show."""
    table = np.column_stack([np.full(n, value), rng.normal(size=n)])
    score = rng.normal(size=n)
    weights = rng.random(n) + 1
    options = {"method": method, "rows": rows, "sample_weight": weights}
    flat_feature = firm(score, table, [0], **options)
    flat_score = firm(np.full(n, value), table, **options)
    flat_standard = firm(np.full(n, value), table, standardize=True, **options)
    for result in (flat_feature, flat_score, flat_standard):
        assert not result.importances.any()
        assert not result.standardized.any()
        assert not result.variance.any()


@pytest.mark.parametrize("unit", [1e200, 1e-200])
@pytest.mark.parametrize(("method", "rows"), COMBINATIONS)
def test_units_of_a_feature_do_not_matter(method, rows, unit):
    options = {"method": method, "rows": rows}
    np.testing.assert_allclose(
        firm(S, X * unit, **options).importances, firm(S, X, **options).importances, rtol=1e-12
    )


def test_a_large_mean_of_the_score_does_not_matter():
    plain, lifted = firm(S, X), firm(S + 1e8, X)
    np.testing.assert_allclose(lifted.importances, plain.importances, rtol=1e-6)


def test_features_given_as_arrays_of_values():
    values = X[:, 1] ** 2
    expected = firm(S, X, [lambda T: T[:, 1] ** 2]).importances
    for given in ({"square": values}, {"square": pd.Series(values)}, values[:, None]):
        np.testing.assert_array_equal(firm(S, X, given).importances, expected)
