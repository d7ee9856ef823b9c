"""Refusals: a ValueError that names the argument, the value and what was expected."""

from decimal import Decimal

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.svm import SVC, OneClassSVM

from firmlib import binary, conditional_expected_score, features, firm, firm_by_class, normal
from firmlib.expansion import KernelExpansion, gradient
from firmlib.scores import as_score

rng = np.random.default_rng(5)
X = rng.normal(size=(20, 3))
S = X @ [1.0, -2.0, 0.5]
LABELS = (S > 0).astype(int)
THREE = np.digitize(S, [-1, 1])
B = np.array([[-1, 1], [1, 1], [1, -1], [1, 1]])
ONES = np.ones(20)
MASKED = np.ma.array(S, mask=np.isin(np.arange(20), [3, 7]))
EYE = np.eye(2)
FAR = np.array([[1e10, 0, 0], [0, 1, 2], [0, 2, 1]])  # the first input in a small unit


def changed(array, where, value):
    array = np.array(array, dtype=float)
    array[where] = value
    return array


CASES = [
    (lambda: firm(S * 1e78, X), r"^score has values .*e\+7\d .* to 1e\+30"),
    (lambda: firm(S * 1e-100, X), "^score has values .*e-(99|100); .* rescale"),
    (lambda: firm_by_class(np.ma.column_stack([S, MASKED]), X), "^score must not be masked, got"),
    (lambda: firm(S, changed(X, (3, 1), np.nan), missing="raise"), "^feature 'x1'.* must not be"),
    (
        lambda: conditional_expected_score(S, X, changed(S, 0, np.inf)),
        "^feature.* must be finite or missing, got 1 infinite",
    ),
    (lambda: firm(S, X, missing="skip"), "^missing='skip' is unknown; expected"),
    (lambda: firm(S, X, method="bins"), r"^method='bins' is unknown; expected one of \['auto'"),
    (lambda: firm(S, X, rows="all"), r"^rows='all' is unknown; expected one of \['sample'"),
    (lambda: firm(S, X, sample_weight=changed(ONES, 7, -2)), "^sample_weight must not be"),
    (lambda: firm(S, X, sample_weight=0 * ONES), "^sample_weight must not all be zero"),
    (lambda: firm(S, X, sample_weight=1.0), r"^sample_weight has shape \(\), expected \(20,\)"),
    (lambda: firm(S, X, sample_weight=["much", "little"] * 10), "^sample_weight must hold"),
    (lambda: firm(S, X, groups=[1, 2]), r"^groups has shape \(2,\), expected"),
    (lambda: firm(S, X, groups=0 * ONES), "has one label; expected at least 2"),
    (lambda: firm(S, X, ["x0"], given="x0"), "^feature 'x0' is in given= already"),
    (lambda: firm(S, X, {"both": [0, 1]}, given="x0"), "^feature 'both' is in given= already"),
    (lambda: firm(S, X, [2], given=["x0", 0]), "^feature 'x0' is in given= already"),
    (lambda: firm(S, X, [2], given={"a": 0, "b": [0, 1]}), "^feature 'b' is in given= already"),
    (lambda: firm(S, X, given=[0, 1, 2]), "^given= has all columns"),
    (lambda: firm(S, X, given=[0, [1, 2]]), r"^given feature \[1, 2\] must be a column"),
    (lambda: firm(S, X, given={"all": [0, 1, 2]}), "^given= has all columns"),
    (lambda: conditional_expected_score(S, X, 0, given=1), "^given=1 has no curve; expected None"),
    (lambda: firm(S, X).compare(["x0"], ["x1"]), r"^features=\(\['x0'\], .* two features"),
    (
        lambda: gradient(RandomForestClassifier(3).fit(X, LABELS), X),
        "^estimator=RandomForestClassifier is not a fitted SVM, kernel ridge or linear",
    ),
    (lambda: gradient(LogisticRegression().fit(X, THREE), X), "several outputs, of shape"),
    (lambda: gradient(SVC().fit(X, THREE), X), "several outputs, of shape"),
    (lambda: gradient(PoissonRegressor().fit(X, abs(S)), X), "PoissonRegressor is not linear: its"),
    (
        lambda: gradient(SVC(kernel="sigmoid").fit(X, LABELS), X),
        "kernel='sigmoid'.*linear.*poly.*rbf",
    ),
    (lambda: KernelExpansion([1.0], [[0.0, 0.0]], "rbf")(X), r"^X has shape \(20, 3\), expected"),
    (lambda: KernelExpansion([1.0], [[0.0]], "rbf").unfold(), "^kernel='rbf' has infinitely"),
    (
        lambda: KernelExpansion([1.0], np.ones((1, 3000)), "poly", degree=3).unfold(),
        r"^the unfolded features of shape \(\d+, \d+\) would take \d+\.\d GiB",
    ),
    (
        lambda: binary.firm_binary(1, 2, 1.2),
        r"^p_a must lie in \[0, 1\], got 1 outside, the first 1.2$",
    ),
    (lambda: binary.firm_binary([1, 2, 3], [1, 2], 0.5), r"broadcast .*\(3,\).*\(2,\)"),
    (
        lambda: binary.firm_empirical([1, 2], (B + 1) / 2),
        "^X must hold only -1 and 1, got .* that differ, the first 0",
    ),
    (lambda: binary.firm_conjunctions([1, 2, 3], [[0], [1], [2]]), "^X must hold only 0 and 2"),
    (lambda: binary.firm_conjunctions([0, 1], np.eye(2, 20_000)), "^the table of conjunctions"),
    (lambda: normal.firm_taylor(lambda x: x, np.ones((2, 3))), r"^cov has shape \(2, 3\), exp"),
    (lambda: normal.firm_linear([1, 2, 3], EYE), r"^cov has shape \(2, 2\), expected \(3, 3\)"),
    (
        lambda: normal.firm_linear([1, 2], [[1, 0.5], [0.2, 1]]),
        "^cov must be symmetric .* 0.3 sd² apart",
    ),
    (lambda: normal.firm_linear([1, 2], EYE, given=2), "^given must be an integer from 0 to 1"),
    (lambda: normal.firm_taylor(np.cos, 1.0), r"^cov has shape \(\), expected \('any', 'any'\)"),
    (lambda: gradient(SVC, X), "is not a fitted SVM, kernel ridge or linear model"),
    (lambda: normal.firm_linear([0, 1, -1], FAR), "^cov must be .* positive semi-definite"),
    (lambda: normal.firm_linear([1, 2], [[0, 1e-5], [1e-5, 1]]), "^cov must be .* positive"),
    (
        lambda: normal.firm_rbf(KernelExpansion([1.0], [[0.0]], "linear"), [0.0], [[1.0]]),
        r"^expansion=KernelExpansion\(.* must be a KernelExpansion with kernel='rbf'",
    ),
    (lambda: normal.shrinkage_covariance(X[:2]), "^X must have at least 3 rows to estimate a"),
    (
        lambda: normal.shrinkage_intensity(changed(X, (1, 2), np.nan)),
        r"^X must be finite, got 1 NaN or inf, the first nan at row 1, 2",
    ),
]


# Scores, tables and features


ALIKE = RandomForestClassifier(3).fit(X, np.c_[LABELS, THREE])
LINE = LinearRegression().fit(X, S)


SCORES = [
    (changed(S, 4, np.nan), {}, r"^score must be finite, got 1 NaN or inf, the first nan at row 4"),
    (MASKED, {}, "^score must not be masked, got 2 masked"),
    (S + 1j, {}, "^score must hold numbers, got ndarray: complex128 values"),
    ([*S[:-1], 10**400], {}, "^score must hold numbers, got ndarray: int too large"),
    (S[:-1], {}, r"^score has shape \(19,\), expected \(20,\)"),
    (X, {}, r"^target=None must be one of \[0, 1, 2\], .* of score=ndarray"),
    (
        ["ham", "spam"] * 10,
        {},
        r"^target=None must be one of \['ham', 'spam'\], the .* of score=list",
    ),
    (lambda X: ["ham"] * 20, {}, "^target=None must be one of .'ham'., the .* of score=function"),
    (None, {}, r"^score=None must be a fitted model, a function of X .such as lambda X: ..."),
    (SVC, {}, "^score=<class '.*SVC'> must be a fitted model"),
    (SVC(), {}, "^This SVC instance is not fitted yet"),
    (S, {"response_method": "proba"}, r"^response_method='proba' is unknown; expected .*'auto'"),
    (
        LINE,
        {"response_method": "predict_proba"},
        r"^response_method='predict_proba' is unknown; .*\['auto', 'predict'\]",
    ),
    (S, {"target": ["ham"]}, r"^target=\['ham'\] must be one of .* of score=ndarray"),
    (LINE, {"target": 1}, r"^target=1 must be one of \[\], .*LinearRegression"),
    (lambda X: S, {"target": 1}, "^target=1 must be one of .* of score=function"),
    (LogisticRegression().fit(X, LABELS), {"target": 2}, r"^target=2 must be .* \[0, 1\]"),
    (["ham", None] * 10, {"target": "ham"}, "^score must not be missing, got 10 .* None at row 1"),
    (["ham", "spam"] * 10, {"target": "eggs"}, r"^target='eggs' must be .*\['ham', 'spam'\]"),
    (S, {"target": 7}, r"^target=7 must be one of .{,250}$"),
    (OneClassSVM().fit(X), {"target": 1}, "^target=1 .*OneClassSVM"),
    (
        LogisticRegression().fit(X, THREE),
        {},
        r"^target=None must be .* \[0, 1, 2\], .*LogisticRegression",
    ),
    (ALIKE, {}, r"^target=None must be one of \[\(0, 0\), .* of score=RandomForestClassifier"),
    (
        SVC(decision_function_shape="ovo").fit(X, np.arange(20) % 4),
        {"target": 1},
        "^score=SVC.* has a value per pair of classes; set decision_function_shape='ovr'",
    ),
    (pd.Series(S, index=range(1, 21)), {}, r"^score has the index \[1, .*, but X has \[0, "),
]


@pytest.mark.parametrize(("score", "options", "message"), SCORES)
def test_scores(score, options, message):
    table = pd.DataFrame(X) if isinstance(score, pd.Series) else X
    with pytest.raises(ValueError, match=message):
        as_score(score, table, **options)


def scores(table):
    """Return as many scores as a table has rows, if that can be told."""
    return np.arange(getattr(table, "shape", [2])[0], dtype=float)


TABLES = [
    (None, r"^X must be a table with 2 axes, .*, got NoneType of shape \(\)"),
    (S, r"^X must be a table with 2 axes, .*, got ndarray of shape \(20,\)"),
    ([[1], [2, 3]], "^X must have rows of one length"),
    (X[:1], r"^X must be a table .* at least 2 rows .*, got ndarray of shape \(1, 3\)"),
    (LINE, r"^X must be a table with 2 axes, .*, got LinearRegression of shape"),
]


COLUMNS = [
    (changed(X, (3, 0), -np.inf), "^column 'x0' of X must be finite or missing, got 1 .* at row 3"),
    (
        sparse.csr_array(changed(np.eye(20), (4, 2), np.inf)),
        "^column 'x2' of X must be finite or missing, got 1 .* at row 4",
    ),
    (pd.DataFrame({"a": [Decimal("inf"), Decimal(1)]}), "^column 'a' of X must be finite .* inf"),
    (pd.DataFrame({"a": ["Rome", 3]}), r"^column 'a' of X .* such as 'Rome' \(str\) and 3 \(int"),
    (np.array([[None], ["O"], [2.5]], dtype=object), r"^column 'x0' .* 'O' \(str\) and 2.5 \(fl"),
    (pd.DataFrame({"a": [["a"], ["b"]]}), r"^column 'a' of X .* such as \['b'\] .list.; expected"),
    (
        np.array([[1j], [2]]),
        "^column 'x0' of X holds values such as .*complex.; expected numbers, words, dates",
    ),
    (pd.DataFrame({"a": [1, 10**400]}), "^column 'a' of X must hold numbers up to 1.8e308: int"),
    (pd.DataFrame({"a": pd.interval_range(0, 2)}), "^column 'a' of X .* such as Interval"),
]


@pytest.mark.parametrize(("table", "message"), TABLES + COLUMNS)
def test_tables(table, message):
    with pytest.raises(ValueError, match=message):
        firm(scores(table), table)


DAYS = pd.DataFrame(
    {"day": pd.to_datetime(["2009-09-07", "2009-09-11"]), "city": ["Rome", "Oslo"], "n": [1, 2]}
)
RESOLVED = [
    (X, ["age"], r"^feature 'age' is not a column of X, whose 3 columns are \['x0', 'x1', 'x2"),
    (X, [True], r"^feature True must be a column"),
    (np.eye(2, 50), "age", r"^feature 'age' is not .* whose 50 columns are .*'x7', …\]$"),
    (X, features.exclude(0, 1, 2), "^features are empty"),
    (X, S, r"^feature .* must be a column, .* in a dict, values"),
    (X, LABELS.tolist(), r"^feature names must differ, got 'x\d' \d+ times"),
    (X, [0, [1, 2]], r"^feature \[1, 2\] must be a column"),
    (X, X[:5], r"^features has shape \(5, 3\), expected \(20, 'any'\)"),
    (X, {"all": lambda X: X}, r"^feature 'all' has shape \(20, 3\), expected \(20,\)"),
    (X, {"f": []}, r"^feature 'f' has shape \(0,\), expected \(20,\)"),
    (X, [features.Pairs("xor")], r"^feature <.*Pairs.* must be a column"),
    (
        X,
        features.conjunction({"x0": "Rome"}),
        "^value of column 'x0' must be a finite number from",
    ),
    (
        X,
        features.threshold(0, "high"),
        "^tau of column 0 must be a finite number from",
    ),
    (X, features.linear([1, 2]), r"^a has shape \(2,\), expected \(3,\)"),
    (DAYS, features.threshold("day", "soon"), "^tau of column 'day' must be a date, got 'soon'"),
    (DAYS, features.threshold("day", None), "^tau of column 'day' must be a date, got None"),
    (DAYS, features.threshold("city", 1), "^'city' is a category, whose levels are not numbers"),
    (DAYS, features.linear([1, 1, 1]), "^'city' is a category|^1 is a category"),
    (
        DAYS,
        features.literal("city", ["Rome"]),
        r"^value of column 'city' must be one of .*, got \['Rome'\]",
    ),
    (
        DAYS,
        features.literal("city", "Roma"),
        r"^value of column 'city' must be one of \['Oslo', 'Rome'\], got 'Roma'",
    ),
    (
        DAYS,
        features.literal("day", "Monday"),
        "^value of column 'day' must be a date, got 'Monday'",
    ),
]


@pytest.mark.parametrize(("table", "asked", "message"), RESOLVED)
def test_features(table, asked, message):
    with pytest.raises(ValueError, match=message):
        firm(scores(table), table, asked)


CASES += [
    (features.product, r"^product\(\) has no columns; expected at least one"),
    (lambda: features.conjunction({}), "^values={} must be a dict from columns to values"),
    (lambda: features.conjunction(["x0"]), r"^values=\['x0'\] must be a dict from columns"),
    (lambda: features.Group("x0"), "^columns='x0' of a group must be a list of different columns"),
    (lambda: firm(S, X, features.Group([])), r"^columns=\[\] of a group must be a list of"),
    (lambda: firm(S, X, {"g": ["x0", 0]}), r"^columns=\[0, 0\] of a group must .* different"),
    (lambda: features.linear([1, np.nan]), "^a must be finite, got 1 NaN"),
    (lambda: features.Pairs("product"), "^kind='product' is unknown; expected one of .'interact"),
    (lambda: firm(S, X, features.Pairs("xor")), r"^'x0' must have two values, got"),
    (lambda: features.Pairs("xor", [0, 0]).parts(X), "^feature names must differ, got 'x0' 2"),
    (lambda: features.Pairs("xor", {"g": [0, 1], "a": 1}).parts(X), "and no group"),
    (lambda: firm(S, X, feature_names=["a", "b", "a"]), "^feature names must differ, got 'a' 2"),
    (
        lambda: firm(S, X, 0, feature_names=["a", "b"]),
        r"^feature_names has shape \(2,\), expected \(1,\)",
    ),
    *[
        (lambda given=given: firm(S, X, [2], given=given), message)
        for given, message in [
            (np.sin, r"^feature 'sin' has shape"),
            (S, "^given feature .* must be a column, a callable or, in a dict, values"),
            ([], "^given features are empty"),
            (["x0", "no"], "^given feature 'no' is not a column of X"),
            (features.Pairs("interaction", [0, 1]), "^interactions are no features to combine"),
        ]
    ],
    (lambda: firm(S, X, categorical=["m"]), "^categorical column 'm' is not a column of X"),
    (lambda: firm(S, X, categorical="x0"), "^categorical='x0' must be a list of columns"),
    (lambda: firm(S, X, groups="plot"), "^groups column 'plot' is not a column of X"),
    (
        lambda: firm(S, pd.DataFrame(X), groups=pd.Series(THREE, index=range(1, 21))),
        r"^groups has the index \[1, .*\.loc\[X\.index\]",
    ),
    (lambda: firm(np.sum, da.ones((10**6, 10**4), chunks=-1)), "^a part of X .* 74.5 GiB"),
    (lambda: firm(S, X, n_bins=21), "^n_bins must be an integer from 2 to 20, got 21"),
    *[
        (lambda n=n: firm(S, X, n_bins=n), rf"^n_bins must be an integer at least 2, got {n!r}")
        for n in (1, 2.5, True, "ten")
    ],
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_calls(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_path_must_lead_to_parquet_files(tmp_path):
    (tmp_path / "stay.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"stay.csv' must be a Parquet file, folder or pattern"):
        firm(lambda X: X["a"], str(tmp_path / "stay.csv"))
