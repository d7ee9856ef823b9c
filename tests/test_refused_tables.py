"""Refusals of scores, tables and features name the argument, the value and what was expected."""

from decimal import Decimal

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC, OneClassSVM
from test_refused import LABELS, MASKED, THREE, S, X, changed

from firmlib import features, firm, firm_by_class
from firmlib.scores import as_score

ALIKE = RandomForestClassifier(3).fit(X, np.c_[LABELS, THREE])
LINE = LinearRegression().fit(X, S)
WIDE = LinearRegression().fit(X, X)


SCORES = [
    (changed(S, 4, np.nan), {}, r"^score must be finite, got 1 NaN or inf, the first nan at \(4,"),
    (MASKED, {}, "^score must not be masked, got 2 masked values"),
    (lambda X: MASKED[:, None], {}, "^score must not be masked"),
    (S[:-1], {}, r"^score has shape \(19,\), expected \(20,\)"),
    (X, {}, r"^score gives 3 numbers per row \(shape \(20, 3\)\); expected one per row; firm_b"),
    (lambda X: 3.0, {}, r"^score must have 1 axis, got shape \(\)"),
    (
        ["ham", "spam"] * 10,
        {},
        r"^score holds labels such as \['ham', 'spam'\]; pass one of them as target",
    ),
    (lambda X: ["ham"] * 20, {}, "^score must hold numbers, got list"),
    (None, {}, r"^score=None must be a fitted model, a function of X .*firm\(model, X\)"),
    (SVC, {}, "^score=SVC is a class; expected a fitted instance"),
    (SVC(), {}, "^This SVC instance is not fitted yet"),
    (S, {"response_method": "proba"}, r"^response_method='proba' is unknown; expected .*'auto'"),
    (LINE, {"response_method": "predict_proba"}, "LinearRegression has no such method"),
    (LINE, {"target": 1}, "^target=1 is for classifiers; LinearRegression has no classes"),
    (lambda X: S, {"target": 1}, "^target=1 is for estimators and labels, not for a callable"),
    (LogisticRegression().fit(X, LABELS), {"target": 2}, r"^target=2 is unknown; .* \[0, 1\]"),
    (["ham", "spam"] * 10, {"target": "eggs"}, r"^target='eggs' is unknown; .*\['ham', 'spam'\]"),
    (S, {"target": 7}, r"^target=7 is unknown; expected one of .{,200}$"),
    (WIDE, {"target": 3}, r"^target=3 is unknown; expected one of \[0, 1, 2\]"),
    (OneClassSVM().fit(X), {"target": 1}, "^target=1 .*OneClassSVM"),
    (LogisticRegression().fit(X, THREE), {}, r"^target is needed, because Logistic.* \[0, 1, 2\]"),
    (WIDE, {}, r"^target is needed, because LinearRegression .* \[0, 1, 2\]"),
    (ALIKE, {}, "^target is needed, because RandomForestClassifier has several classes or outputs"),
    (
        SVC(decision_function_shape="ovo").fit(X, np.arange(20) % 4),
        {"target": 1},
        "^score=SVC gives one decision value per pair of classes; .*ovr",
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
    (None, r"^X must be a table with 2 axes .*, got NoneType"),
    (S, r"^X must be a table with 2 axes .*, got shape \(20,\)"),
    ([[1], [2, 3]], "^X must be a table, but its rows differ in length"),
    ([], r"^X must be a table .*, got shape \(0,\)"),
    (np.empty((0, 3)), r"^X must have at least 2 rows and 1 column, got shape \(0, 3\)"),
    (X[:1], r"^X must have at least 2 rows .*, got shape \(1, 3\)"),
    (LINE, r"^X=LinearRegression is a model or a function; .*firm\(model, X\)"),
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
    ([["Rome", 1], [2, 2]], r"^column 'x0' of X holds .* such as 'Rome' \(str\) and 2 \(int\)"),
    (pd.DataFrame({"a": [["a"], ["b"]]}), r"^column 'a' of X .* such as \['a'\] .list. and"),
    (pd.DataFrame({"a": [True, 2]}, dtype=object), r"^column 'a' .* True \(bool\) and 2 \(int\)"),
    (pd.DataFrame({"a": [pd.Timestamp(0), "soon"]}), "^column 'a' of X .*Timestamp.* and 'soon'"),
    (np.array([[1j], [2]]), "^column 'x0' of X must hold numbers, words or dates, got complex128"),
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
    (X, 3, "^feature 3 is not a column of X"),
    (X, [True], "^features is a mask of truth values; expected columns"),
    (np.eye(2, 50), "age", r"^feature 'age' is not .* whose 50 columns are .*'x7', …\]$"),
    (X, features.threshold("age", 0), "^feature 'age' is not a column of X"),
    (X, features.exclude(0, 1, 2), "^features is empty"),
    (X, 1.5, r"^features=1.5 must be columns by name or position, each once, callables, a dict"),
    (X, S, r"^features=\[.*, …\] must .* Labels y are not a feature"),
    (X, LABELS.tolist(), r"^features=\[.*, …\] must be columns .*, each once, .* Labels y"),
    (X, [0, [1, 2]], "^features must be a table"),
    (X, [], "^features is empty; expected at least one"),
    (X, X[:5], "^features has 5 rows, but X has 20"),
    (X, changed(X, (2, 0), np.inf), "^column 'x0' of features must be finite or missing"),
    (X, {"ratio": lambda X: X[:, 0] + np.inf}, "^feature 'ratio' must be finite or missing"),
    (X, {"head": lambda X: X[:5, 0]}, r"^feature 'head' has shape \(5,\), expected \(20,\)"),
    (X, {"all": lambda X: X}, r"^feature 'all' must have 1 axis, got shape \(20, 3\)"),
    (X, {"c": lambda X: ["a"] * 19 + [3]}, r"^feature 'c' holds .* 'a' \(str\) and 3 \(int\)"),
    (X, {"f": S[:3]}, r"^feature 'f' has shape \(3,\), expected \(20,\)"),
    (X, {"f": []}, r"^feature 'f'=\[\] must be a group, .* or the values of all 20 rows"),
    (X, [features.Pairs("xor")], "^feature .* is not a column of X|^Pairs must be given"),
    (X, features.conjunction({"x0": "Rome"}), "^value of column 'x0' must be a finite number, got"),
    (X, features.conjunction({0: np.nan}), "^value of column 0 must be a finite number, got nan"),
    (X, features.threshold(0, np.nan), "^tau must be a finite number, got nan"),
    (X, features.threshold(0, "high"), "^tau must be a finite number, got 'high'"),
    (X, features.linear([1, 2]), "^a has 2 entries, but X has 3 columns"),
    (DAYS, features.threshold("day", "soon"), "^tau='soon' must be a date"),
    (DAYS, features.threshold("city", 1), "^'city' is a category, whose levels are not numbers"),
    (DAYS, features.linear([1, 1, 1]), "^'city' is a category|^1 is a category"),
    (DAYS, features.literal("city", ["Rome"]), r"^value \['Rome'\] is not a level of column 'ci"),
    (DAYS, features.literal("city", "Roma"), r"^value 'Roma' is not a level of .*\['Oslo', 'Rome"),
    (DAYS, features.literal("day", "Monday"), "^value of column 'day'='Monday' must be a date"),
]


@pytest.mark.parametrize(("table", "asked", "message"), RESOLVED)
def test_features(table, asked, message):
    with pytest.raises(ValueError, match=message):
        firm(scores(table), table, asked)


CALLS = [
    (lambda: features.product(), "^product needs at least one column, got none"),
    (lambda: features.conjunction({}), r"^conjunction needs a dict of column to value, got \{\}"),
    (lambda: features.linear([1, np.nan]), "^a must be finite, got 1 NaN"),
    (lambda: features.Pairs("product"), "^kind='product' is unknown; expected one of .'interact"),
    (lambda: firm(S, X, features.Pairs("xor")), r"^'x0' must have two values.*threshold\('x0', "),
    (lambda: features.Pairs("xor", [0]).parts(X), r"^columns=\['x0'\] of Pairs must be two col"),
    (lambda: features.Pairs("xor", [0, 0]).parts(X), "^feature names must differ, got 'x0' 2"),
    (lambda: features.Pairs("xor", {"g": [0, 1], "a": 1}).parts(X), "and no group"),
    (lambda: firm(S, X, feature_names=["a", "b", "a"]), "^feature names must differ, got 'a' 2"),
    (lambda: firm(S, X, 0, feature_names=["a", "b"]), "^feature_names has 2 names for 1 features"),
    *[
        (lambda given=given: firm(S, X, [2], given=given), message)
        for given, message in [
            (np.sin, "^given=.* must be names or positions of columns of X; to use a function"),
            (1.5, "^given=1.5 must be names or positions of columns of X"),
            (S, "^feature .* is not a column of X"),
            ([], r"^given=\[\] must name one or more columns of X, each only once"),
            (["x0", 0], "^given=.* must name one or more columns of X, each only once"),
        ]
    ],
    (lambda: firm(S, X, categorical=["m"]), r"^categorical=\['m'\]: feature 'm' is not a col"),
    (lambda: firm(S, X, categorical="x0"), "^categorical='x0' must be a list of columns"),
    (lambda: firm(S, X, groups=MASKED), "^groups must not be masked"),
    (lambda: firm(S, X, groups="plot"), "^groups='plot': feature 'plot' is not a column of X"),
    (
        lambda: firm(S, pd.DataFrame(X), groups=pd.Series(THREE, index=range(1, 21))),
        r"^groups has the index \[1, .*\.loc\[X\.index\]",
    ),
    (lambda: firm_by_class(LINE, X), "^estimator=LinearRegression has no classes and one"),
    (lambda: firm(np.sum, da.ones((10**6, 10**4), chunks=-1)), "^a partition of X .* 74.5 GiB"),
    *[
        (lambda n=n: firm(S, X, n_bins=n), f"^n_bins={n!r} must be 'auto' or an integer")
        for n in (0, 1, -3, 2.5, True, "ten", None)
    ],
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_calls(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_path_must_lead_to_parquet_files(tmp_path):
    (tmp_path / "stay.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"stay.csv' is not a Parquet file; .*read_csv"):
        firm(lambda X: X["a"], str(tmp_path / "stay.csv"))
