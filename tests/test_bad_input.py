"""Every refusal is a ValueError that names the argument, the value and what was expected."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

from firmlib import (
    StreamingFirm,
    binary,
    conditional_expected_score,
    features,
    firm,
    firm_by_class,
    normal,
)
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


def gaussian(centers):
    return KernelExpansion([1.0], centers, "rbf")


EYE = np.eye(2)
FAR = np.array([[1e10, 0, 0], [0, 1, 2], [0, 2, 1]])  # the first input in a small unit
LOPSIDED = np.array([[1e10, 0, 0], [0, 1, 0.5], [0, 0, 1]])


def changed(array, where, value):
    array = np.array(array, dtype=float)
    array[where] = value
    return array


SCORES = {
    "score nan": (
        lambda: firm(changed(S, 4, np.nan), X),
        r"^score must be finite, got 1 NaN or inf, the first nan at \(4,\)",
    ),
    "score inf": (
        lambda: firm(changed(S, [1, 2], np.inf), X),
        r"^score must be finite, got 2 NaN or inf, the first inf at \(1,\)",
    ),
    **{
        f"masked {name}": (call, f"^{name.split()[0]} must not be masked, got 2 masked values")
        for name, call in {
            "score": lambda: firm(MASKED, X),
            "score of labels": lambda: firm(MASKED > 0, X, target=True),
            "score of a callable": lambda: firm(lambda X: MASKED[:, None], X),
            "score of classes": lambda: firm_by_class(np.ma.column_stack([S, MASKED]), X),
            "s of a stream": lambda: StreamingFirm().partial_fit(X, MASKED),
            "sample_weight": lambda: firm(S, X, sample_weight=abs(MASKED)),
            "groups": lambda: firm(S, X, groups=MASKED),
        }.items()
    },
    "score of a callable nan": (lambda: firm(lambda X: S * np.nan, X), "^score must be finite"),
    "score short": (lambda: firm(S[:-1], X), r"^score has shape \(19,\), expected \(20,\)"),
    "score 2-d": (
        lambda: firm(X, X),
        r"^score gives 3 numbers per row, of shape \(20, 3\); expected one, or firm_by_class",
    ),
    "score of a callable scalar": (
        lambda: firm(lambda X: 3.0, X),
        r"^score must have 1 axes, got shape \(\)",
    ),
    "score words": (
        lambda: firm(["ham", "spam"] * 10, X),
        r"^score holds labels such as \['ham', 'spam'\]; name .* target",
    ),
    "score of a callable words": (
        lambda: firm(lambda X: ["ham"] * 20, X),
        "^score must hold numbers, got list",
    ),
    "score too large": (lambda: firm(S * 1e200, X), r"^score=\S+e\+200 overflows"),
    "score large": (lambda: firm(S * 1e78, X), r"^score differs by \S+e\+78; .* to 1e\+30"),
    "score small": (lambda: firm(S * 1e-100, X), "^score differs by .*e-100; expected 1e-30 to"),
    "score lost": (lambda: firm(S * 1e-170, X), "^score differs by .*e-170; .* rescale"),
    "class": (lambda: firm(SVC, X), "^score=SVC is a class; expected a fitted instance"),
    "unfitted": (lambda: firm(SVC(), X), "^score=SVC is not fitted; call its fit first"),
    "unfitted pipeline": (
        lambda: firm(make_pipeline(StandardScaler(), SVC()), X),
        "^score=Pipeline is not fitted",
    ),
    "response_method unknown": (
        lambda: firm(S, X, response_method="proba"),
        r"^response_method='proba' is unknown; expected one of \['auto', 'decision_function'",
    ),
    "response_method missing": (
        lambda: firm(LinearRegression().fit(X, S), X, response_method="predict_proba"),
        "^response_method='predict_proba': LinearRegression has no such method",
    ),
    "target of two classes": (
        lambda: as_score(LogisticRegression().fit(X, LABELS), X, target=2),
        r"^target=2 is unknown; expected one of \[0, 1\]",
    ),
    "target of words": (
        lambda: as_score(["ham", "spam"] * 10, X, target="eggs"),
        r"^target='eggs' is unknown; expected one of \['ham', 'spam'\]",
    ),
    "target of many numbers": (  # not all 20 of them: a message is one line
        lambda: as_score(S, X, target=7),
        r"^target=7 is unknown; expected one of .{,200}$",
    ),
    "target of outputs": (
        lambda: as_score(LinearRegression().fit(X, X), X, target=3),
        r"^target=3 is unknown; expected one of \[0, 1, 2\]",
    ),
    "target without classes": (
        lambda: as_score(OneClassSVM().fit(X), X, target=1),
        "^target=1 .*OneClassSVM",
    ),
    "no target of three classes": (
        lambda: as_score(LogisticRegression().fit(X, THREE), X),
        r"^target is needed with several outputs; expected one of \[0, 1, 2\]",
    ),
    "no target of several outputs": (
        lambda: as_score(LinearRegression().fit(X, X), X),
        r"^target is needed with several outputs; expected one of \[0, 1, 2\]",
    ),
    "several labels a row": (
        lambda: as_score(RandomForestClassifier(3).fit(X, np.c_[LABELS, LABELS]), X),
        "^score=RandomForestClassifier has several outputs",
    ),
    "several labels a row with classes of their own": (
        lambda: as_score(RandomForestClassifier(3).fit(X, np.c_[LABELS, THREE]), X),
        "^score=RandomForestClassifier has several outputs",
    ),
    "one decision value a pair of classes": (
        lambda: as_score(SVC(decision_function_shape="ovo").fit(X, np.arange(20) % 4), X, target=1),
        "^score=SVC gives one decision value per pair of classes; .*ovr",
    ),
    "gradient of a forest": (
        lambda: gradient(RandomForestClassifier(3).fit(X, LABELS), X),
        "^score=RandomForestClassifier has no known gradient",
    ),
    "gradient of an unfitted machine": (lambda: gradient(SVC(), X), "^score=SVC has no known grad"),
    "gradient of several outputs": (
        lambda: gradient(LogisticRegression().fit(X, THREE), X),
        r"^score has several outputs, coef_ of shape \(3, 3\); expected one",
    ),
    "gradient at too few columns": (
        lambda: gradient(LinearRegression().fit(X, S), X[:, :2]),
        r"^X has shape \(20, 2\), expected \('any', 3\)",
    ),
    "expansion at too few columns": (
        lambda: KernelExpansion([1.0], [[0.0, 0.0]], "rbf")(X),
        r"^X has shape \(20, 3\), expected \('any', 2\)",
    ),
    "expansion kernel": (
        lambda: KernelExpansion([1.0], [[0.0]], "sigmoid"),
        r"^kernel='sigmoid' is unknown; expected one of \['linear', 'poly', 'rbf'\]",
    ),
    "expansion scale zero": (
        lambda: KernelExpansion([1.0], [[0.0]], "rbf", scale=0),
        "^scale must be a finite number above 0, got 0",
    ),
    "expansion scale of scikit-learn": (
        lambda: KernelExpansion([1.0], [[0.0]], "rbf", scale="auto"),
        "^scale must be a finite number above 0, got 'auto'",
    ),
    "expansion sizes": (
        lambda: KernelExpansion([1.0, 2.0], [[0.0]], "rbf"),
        r"^centers has shape \(1, 1\), expected \(2, 'any'\)",
    ),
    "unfolded Gaussian kernel": (
        lambda: KernelExpansion([1.0], [[0.0]], "rbf").unfold(),
        "^kernel='rbf' has infinitely many features",
    ),
    "unfolded roots": (
        lambda: KernelExpansion([1.0], [[0.0]], "poly", degree=2.5).unfold(),
        "^degree=2.5 has no finite feature space",
    ),
    "unfolded differences": (  # (x'y - 1)^3 is no inner product
        lambda: KernelExpansion([1.0], [[0.0]], "poly", degree=3, coef0=-1).unfold(),
        "^coef0.*-1",
    ),
    "unfolded beyond memory": (
        lambda: KernelExpansion([1.0], np.ones((1, 3000)), "poly", degree=3).unfold(),
        r"^the unfolded features of shape \(\d+, \d+\) would take \d+\.\d GiB",
    ),
    "expansion of a forest": (
        lambda: KernelExpansion.from_estimator(RandomForestClassifier()),
        "^estimator=RandomForestClassifier.* is not a fitted kernel model",
    ),
}

DAYS = pd.DataFrame(
    {"day": pd.to_datetime(["2009-09-07", "2009-09-11"]), "city": ["Rome", "Oslo"], "n": [1, 2]}
)
TABLES = {
    "X nan": (
        lambda: firm(S, changed(X, (3, 1), np.nan), missing="raise"),
        r"^feature 'x1': its values must not be missing, got 1 .*, the first at row 3; missing='l",
    ),
    "X inf": (lambda: firm(S, changed(X, (3, 1), -np.inf)), "^column 'x1' of X must be finite"),
    "X None": (lambda: firm(S, None), r"^X must be a table with 2 axes .*, got NoneType"),
    "X 1-d": (lambda: firm(S, S), r"^X must be a table with 2 axes .*, got shape \(20,\)"),
    "X 3-d": (lambda: firm(S, X[None]), r"^X must be a table .*, got shape \(1, 20, 3\)"),
    "X ragged": (lambda: firm([1, 2], [[1], [2, 3]]), "^X must be a table"),
    "X empty": (lambda: firm([], []), r"^X must be a table .*, got shape \(0,\)"),
    "X without rows": (
        lambda: firm([], np.empty((0, 3))),
        r"^X must have at least 2 rows and 1 column, got shape \(0, 3\)",
    ),
    "X without columns": (lambda: firm(S, X[:, :0]), r"^X must have .*, got shape \(20, 0\)"),
    "X one row": (
        lambda: firm(S[:1], X[:1]),
        r"^X must have at least 2 rows .*, got shape \(1, 3\)",
    ),
    "X pandas mixed": (
        lambda: firm([1, 2], pd.DataFrame({"city": ["Rome", 3]})),
        r"^column 'city' of X holds values of different kind, such as 'Rome' \(str\) and 3 \(int\)",
    ),
    "X mixed": (
        lambda: firm([1, 2, 3], np.array([[None], ["Oslo"], [2.5]], dtype=object)),
        r"^column 'x0' of X holds .*, such as 'Oslo' \(str\) and 2.5 \(float\); expected numbers",
    ),
    "X rows of words and numbers": (
        lambda: firm([1, 2], [["Rome", 1], [2, 2]]),
        r"^column 'x0' of X holds .*, such as 'Rome' \(str\) and 2 \(int\)",
    ),
    "X lists": (
        lambda: firm([1, 2], pd.DataFrame({"tags": [["a"], ["b"]]})),
        r"^column 'tags' of X holds list such as \['a'\]; expected numbers, words, dates",
    ),
    "X polars lists": (
        lambda: firm([1, 2], pl.DataFrame({"tags": [["a"], ["b"]]})),
        "^column 'tags' of X holds",
    ),
    "X truth and numbers": (
        lambda: firm([1, 2], pd.DataFrame({"a": [True, 2]}, dtype=object)),
        r"^column 'a' of X holds .*, such as True \(bool\) and 2 \(int\)",
    ),
    "X dates and words": (
        lambda: firm([1, 2], pd.DataFrame({"a": [pd.Timestamp("2009-09-07"), "soon"]})),
        "^column 'a' of X holds .*Timestamp.* and 'soon'",
    ),
    "X complex": (
        lambda: firm([1, 2], np.array([[1j], [2]])),
        "^column 'x0' of X must hold numbers, words or dates, got complex128",
    ),
    "X intervals": (
        lambda: firm([1, 2], pd.DataFrame({"a": pd.interval_range(0, 2)})),
        "^column 'a' of X holds Interval such as",
    ),
    "X decimal infinity": (
        lambda: firm([1, 2], pd.DataFrame({"a": [Decimal("inf"), Decimal(1)]})),
        "^column 'a' of X must be finite or missing, got 1 infinite values, the first inf",
    ),
    "X pandas missing": (
        lambda: firm(
            [1, 2], pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}), missing="raise"
        ),
        "^feature 'n': its values must not be missing, got 1",
    ),
    "X polars missing": (
        lambda: firm([1, 2], pl.DataFrame({"n": ["a", None]}), missing="raise"),
        "^feature 'n': its values must not be missing, got 1",
    ),
    "X missing date": (
        lambda: firm(
            [1, 2], pd.DataFrame({"day": pd.to_datetime(["2009-09-07", None])}), missing="raise"
        ),
        "^feature 'day': its values must not be missing, got 1",
    ),
    "X missing in a group": (
        lambda: firm(S, changed(X, (3, 1), np.nan), {"two": [0, 1]}, missing="raise"),
        "^feature 'two': its values must not be missing, got 1",
    ),
    "X missing, slope": (
        lambda: firm(S, changed(X, (3, 1), np.nan), method="slope"),
        "^feature 'x1': its values with method='slope' must not be missing",
    ),
    "slope of a category": (
        lambda: firm([1, 2, 3], pd.DataFrame({"a": list("xyz")}), method="slope"),
        "^feature 'a': method='slope' needs an order, but its levels have none",
    ),
    "drop of all": (
        lambda: firm([1, 2], [[np.nan], [1]], missing="drop"),
        "^feature 'x0': missing='drop' leaves fewer than two rows",
    ),
    "missing unknown": (lambda: firm(S, X, missing="skip"), "^missing='skip' is unknown; expected"),
    "categorical unknown": (
        lambda: firm(S, X, categorical=["month"]),
        r"^categorical=\['month'\]: feature 'month' is no column of X",
    ),
    "categorical word": (
        lambda: firm(S, X, categorical="x0"),
        "^categorical='x0' must be a list of columns",
    ),
    "categorical true": (
        lambda: firm(S, X, categorical=True),
        "^categorical=True",
    ),
    "every row a level": (
        lambda: firm([1, 2, 3], pd.DataFrame({"name": ["a", "b", "c"]})),
        "^feature 'name': a sample needs two rows in some level.*leave it out of features=",
    ),
    "every row a given level": (
        lambda: firm(
            S, pd.DataFrame({"id": [f"p{i}" for i in range(20)], "x": S}), ["x"], given="id"
        ),
        "^feature 'x' given id: 20 rows in 20 cells of the columns are too few to tell an effect",
    ),
    "levels beyond floats": (
        lambda: firm([0, 1], pd.DataFrame({"id": [2**53, 2**53 + 1]}), categorical=["id"]),
        r"^categorical: column 'id' has levels such as 9007199254740992, .*astype\(str\)",
    ),
    "X sparse inf": (
        lambda: firm(S, sparse.csr_array(changed(X, (0, 0), np.inf))),
        "^column 'x0' of X must be finite or missing, got 1 infinite values",
    ),
}

FEATURES = {
    "column unknown": (
        lambda: firm(S, X, ["age"]),
        r"^feature 'age' is no column of X; expected one of the 3: \['x0', 'x1', 'x2'\]",
    ),
    "column beyond": (lambda: firm(S, X, 3), "^feature 3 is no column of X"),
    "column before": (lambda: firm(S, X, [-4]), "^feature -4 is no column of X"),
    "column bool": (
        lambda: firm(S, X, [True]),
        "^features is a mask of truth values; expected columns",
    ),
    "column float": (lambda: firm(S, X, [1.0]), "^feature 1.0 is no column of X"),
    "column of many": (
        lambda: firm([1, 2], np.eye(2, 50), "age"),
        r"^feature 'age' is no column of X; expected one of the 50: .*'x7'\] …$",
    ),
    "column of a builder": (
        lambda: firm(S, X, features.threshold("age", 0)),
        "^feature 'age' is no column of X",
    ),
    "features unknown": (
        lambda: firm(S, X, 1.5),
        r"^features=1\.5 must be columns by name or position, callables, a dict or a table",
    ),
    "features 3-d": (lambda: firm(S, X, X[None]), "(?s)^features=.*must be columns"),
    "features ragged": (lambda: firm(S, X, [0, [1, 2]]), "^features must be a table"),
    "features none": (lambda: firm(S, X, []), "^features is empty; expected at least one"),
    "features empty dict": (lambda: firm(S, X, {}), "^features is empty"),
    "features short": (lambda: firm(S, X, X[:5]), "^features has 5 rows, but X has 20"),
    "features inf": (
        lambda: firm(S, X, changed(X, (2, 0), np.inf)),
        r"^column 'x0' of features must be finite or missing, got 1 infinite",  # X is fine
    ),
    "feature inf": (
        lambda: firm(S, X, {"ratio": lambda X: X[:, 0] + np.inf}),
        "^feature 'ratio' must be finite or missing, got 20 infinite values",
    ),
    "feature short": (
        lambda: firm(S, X, {"head": lambda X: X[:5, 0]}),
        r"^feature 'head' has shape \(5,\), expected \(20,\)",
    ),
    "feature 2-d": (
        lambda: firm(S, X, {"all": lambda X: X}),
        r"^feature 'all' must have 1 axes, got shape \(20, 3\)",
    ),
    "feature words": (
        lambda: firm(S, X, {"city": lambda X: ["Rome"] * 19 + [3]}),
        r"^feature 'city' holds values of different kind, such as 'Rome' \(str\) and 3 \(int\)",
    ),
    "feature array inf": (
        lambda: conditional_expected_score(S, X, changed(S, 0, np.inf)),
        "^feature.* must be finite or missing, got 1 infinite",
    ),
    "feature array short": (
        lambda: conditional_expected_score(S, X, S[:3]),
        r"^feature.* has shape \(3,\), expected \(20,\)",
    ),
    "names repeated": (
        lambda: firm(S, X, [0, "x0", 1]),
        "^feature names must differ, got 'x0' 2 times",
    ),
    "names repeated in a frame": (
        lambda: firm(S, pd.DataFrame(X, columns=["a", "b", "a"])),
        "^feature names must differ, got 'a' 2 times",
    ),
    "names too few": (
        lambda: firm(S, X, feature_names=["a", "b"]),
        "^feature_names has 2 names for 3 features",
    ),
    "product of none": (lambda: features.product(), "^product needs at least one column, got none"),
    "conjunction of none": (
        lambda: features.conjunction({}),
        r"^conjunction needs a dict of column to value, got \{\}",
    ),
    "conjunction with a word": (
        lambda: firm(S, X, features.conjunction({"x0": "Rome"})),
        "^value of column 'x0' must be a finite number, got 'Rome'",
    ),
    "conjunction with nan": (
        lambda: features.conjunction({0: np.nan}),
        "^value of column 0 must be a finite number, got nan",
    ),
    "conjunction of a list": (
        lambda: features.conjunction([0, 1]),
        r"^conjunction needs a dict of column to value, got \[0, 1\]",
    ),
    "tau nan": (lambda: features.threshold(0, np.nan), "^tau must be a finite number, got nan"),
    "tau word": (
        lambda: firm(S, X, features.threshold(0, "high")),
        "^tau must be a finite number, got 'high'",
    ),
    "tau no date": (
        lambda: firm([1, 2], DAYS, features.threshold("day", "soon")),
        "^tau='soon' must be a date",
    ),
    "tau of a category": (
        lambda: firm([1, 2], DAYS, features.threshold("city", 1)),
        "^'city' is a category, whose levels are no numbers",
    ),
    "product with a category": (
        lambda: firm([1, 2], DAYS, features.product("city", "n")),
        "^'city' is a category",
    ),
    "pairs of categories": (
        lambda: firm([1, 2], DAYS, features.Pairs("xor", ["city", "n"])),
        "'city' is a category, whose levels are no numbers",
    ),
    "linear with a category": (
        lambda: firm([1, 2], DAYS, features.linear([1, 1, 1])),
        "'city' is a category|'x1' is a category",
    ),
    "literal of no level": (
        lambda: firm([1, 2], DAYS, features.literal("city", "Roma")),
        r"^value 'Roma' is no level of column 'city': \['Oslo', 'Rome'\]",
    ),
    "literal of a list": (
        lambda: features.literal("city", ["Rome"]),
        r"^value of column 'city' must be a finite number, got \['Rome'\]",
    ),
    "literal of a date that is none": (
        lambda: firm([1, 2], DAYS, features.literal("day", "Monday")),
        "^value of column 'day'='Monday' must be a date",
    ),
    "direction nan": (lambda: features.linear([1, np.nan]), "^a must be finite, got 1 NaN"),
    "direction empty": (lambda: features.linear([]), r"^a is empty, got shape \(0,\)"),
    "direction short": (
        lambda: firm(S, X, features.linear([1, 2])),
        "^a has 2 entries, but X has 3 columns",
    ),
}

OPTIONS = {
    "method unknown": (
        lambda: firm(S, X, method="bins"),
        r"^method='bins' is unknown; expected one of \['auto', 'discrete', 'binned', 'slope'\]",
    ),
    "method None": (lambda: firm(S, X, method=None), "^method=None is unknown"),
    "rows unknown": (
        lambda: firm(S, X, rows="all"),
        r"^rows='all' is unknown; expected one of \['auto', 'sample', 'population'\]",
    ),
    **{
        f"n_bins {value!r}": (
            lambda value=value: firm(S, X, n_bins=value),
            f"^n_bins={value!r} must be 'auto' or an integer of at least 2",
        )
        for value in (0, 1, -3, 2.5, True, "ten", None)
    },
    "n_bins of the curve": (
        lambda: conditional_expected_score(S, X, 0, n_bins=1),
        "^n_bins=1 must be 'auto' or an integer of at least 2",
    ),
    "too many bins": (
        lambda: firm(S, X, n_bins=20, method="binned"),
        "^feature 'x0': a sample needs two rows in some level or bin.*fewer n_bins",
    ),
    "two rows": (lambda: firm(S[:2], X[:2]), "^feature 'x0': a sample needs two rows"),
    "weights nan": (
        lambda: firm(S, X, sample_weight=changed(ONES, 7, np.nan)),
        r"^sample_weight must be finite, got 1 NaN or inf, the first nan at \(7,\)",
    ),
    "weights inf": (
        lambda: firm(S, X, sample_weight=changed(ONES, 7, np.inf)),
        "^sample_weight must be finite",
    ),
    "weights negative": (
        lambda: firm(S, X, sample_weight=changed(ONES, 7, -2)),
        "^sample_weight must not be negative, got -2.0 at row 7",
    ),
    "weights zero": (
        lambda: firm(S, X, sample_weight=0 * ONES),
        "^sample_weight must not all be zero",
    ),
    "weights short": (
        lambda: firm(S, X, sample_weight=ONES[:5]),
        r"^sample_weight has shape \(5,\), expected \(20,\)",
    ),
    "weights scalar": (
        lambda: firm(S, X, sample_weight=1.0),
        r"^sample_weight must have 1 axes, got shape \(\)",
    ),
    "weights words": (
        lambda: firm(S, X, sample_weight=["much"] * 20),
        "^sample_weight must hold numbers",
    ),
    "weights are probabilities": (
        lambda: firm(S, X, sample_weight=ONES / 32, weight_type="count"),
        "^sample_weight sums to 0.625, but if it counts rows it must exceed 1; .*rows='population'",
    ),
}

BINARY = {
    "p_a": (lambda: binary.firm_binary(1, 2, 1.2), r"^p_a must lie in \[0, 1\], got 1.2"),
    "p_a nan": (lambda: binary.firm_binary(1, 2, np.nan), "^p_a must be finite, got 1 NaN"),
    "p_a word": (lambda: binary.firm_binary(1, 2, "half"), "^p_a must hold numbers.*half"),
    "q_a nan": (lambda: binary.firm_binary([1, np.nan], 2, 0.5), "^q_a must be finite"),
    "q_b inf": (lambda: binary.firm_binary(1, np.inf, 0.5), "^q_b must be finite"),
    "q_a and q_b": (lambda: binary.firm_binary([1, 2, 3], [1, 2], 0.5), r"q_a.*\(3,\).*\(2,\)"),
    "literal of 2": (
        lambda: binary.firm_uniform_conjunction([1, 2], [[1, 2]]),
        "^values must hold only -1, 0 and 1, got 2",
    ),
    "no literal": (
        lambda: binary.firm_uniform_conjunction([1, 2], [[1, 0], [0, 0]]),
        "^values must name a variable in each row, got none in row 1",
    ),
    "too few literals": (
        lambda: binary.firm_uniform_conjunction([1, 2, 3], [[1, 1]]),
        r"^values has shape \(1, 2\), expected \('any', 3\)",
    ),
    "X in 0 and 1": (
        lambda: binary.firm_empirical([1, 2], (B + 1) / 2),
        "^X must hold only -1 and 1, got 0",
    ),
    "too many weights": (
        lambda: binary.firm_empirical([1, 2, 3], B),
        r"^weights has shape \(3,\), expected \(2,\)",
    ),
    "row weights": (
        lambda: binary.firm_empirical([1, 2], B, sample_weight=[1, 1, -1, 1]),
        "^sample_weight must not be negative, got -1.0 at row 2",
    ),
    "X in three values": (
        lambda: binary.firm_conjunctions([1, 2, 3], [[0], [1], [2]]),
        "^X must hold only 0 and 2, got 1",
    ),
    "conjunction score short": (
        lambda: binary.firm_conjunctions([1, 2], B),
        r"^score has shape \(2,\), expected \(4,\)",
    ),
    "conjunctions beyond memory": (
        lambda: binary.firm_conjunctions([0, 1], np.eye(2, 20_000)),
        r"^the table of conjunctions of shape \(20000, 20000, 2, 2\) would take 11\.9 GiB, .*8 GiB",
    ),
    "poim nan": (lambda: binary.firm_from_poim([np.nan], 0.5), "^poim must be finite"),
    "poim p": (lambda: binary.firm_from_poim([1.0], -0.1), r"^p must lie in \[0, 1\], got -0.1"),
}

NORMAL = {
    "cov not square": (
        lambda: normal.firm_taylor(lambda x: x, np.ones((2, 3))),
        r"^cov must be square, got shape \(2, 3\)",
    ),
    "cov size": (
        lambda: normal.firm_linear([1, 2, 3], EYE),
        r"^cov has shape \(2, 2\), expected \(3, 3\)",
    ),
    "cov 1-d": (lambda: normal.firm_linear([1], [1.0]), r"^cov must have 2 axes, got shape \(1,\)"),
    "cov nan": (lambda: normal.firm_linear([1, 2], EYE * np.nan), "^cov must be finite, got 4 NaN"),
    "cov asymmetric": (
        lambda: normal.firm_linear([1, 2], [[1, 0.5], [0.2, 1]]),
        r"^cov must be symmetric, got .* differ by 0\.3",
    ),
    "cov asymmetric in other units": (
        lambda: normal.firm_linear([1, 2, 3], LOPSIDED),
        "^cov must be symmetric",
    ),
    "cov indefinite": (
        lambda: normal.firm_linear([1, 2], [[1, 2], [2, 1]]),
        "^cov must be positive semi-definite, .*eigenvalue -1",
    ),
    "cov indefinite in other units": (
        lambda: normal.firm_linear([0, 1, -1], FAR),
        "^cov must be positive semi-definite",
    ),
    "cov with a covariance but no variance": (
        lambda: normal.firm_linear([1, 2], [[0, 1e-5], [1e-5, 1]]),
        "^cov must be positive semi-definite",
    ),
    "cov with a negative variance": (
        lambda: normal.firm_linear([1, 2], np.diag([1, -1])),
        "^cov must have variances >= 0, got -1",
    ),
    "weights inf": (lambda: normal.firm_linear([1, np.inf], EYE), "^weights must be finite"),
    "directions size": (
        lambda: normal.firm_linear([1, 2], EYE, directions=[[1, 2, 3]]),
        r"^directions has shape \(1, 3\), expected \('any', 2\)",
    ),
    "directions 1-d": (
        lambda: normal.firm_rbf(gaussian([[0, 0]]), [0, 0], EYE, directions=[1, 0]),
        r"^directions must have 2 axes, got shape \(2,\)",
    ),
    "mean of an array": (
        lambda: normal.firm_taylor([1, 2], EYE, mean=[0, 0]),
        "^mean is for a callable gradient",
    ),
    "mean size": (
        lambda: normal.firm_taylor(lambda x: x, EYE, mean=[0.0]),
        r"^mean has shape \(1,\), expected \(2,\)",
    ),
    "gradient size": (
        lambda: normal.firm_taylor(lambda x: np.zeros(5), EYE),
        r"^gradient has shape \(5,\), expected \(2,\)",
    ),
    "gradient nan": (
        lambda: normal.firm_taylor(lambda x: x * np.nan, EYE),
        "^gradient must be finite, got 2 NaN",
    ),
    "expansion of another kernel": (
        lambda: normal.firm_rbf(KernelExpansion([1.0], [[0.0]], "linear"), [0.0], [[1.0]]),
        r"^expansion=KernelExpansion\(.* must be a KernelExpansion with kernel='rbf'",
    ),
    "expansion in three arguments": (
        lambda: normal.firm_rbf([1.0], [0.0], [[1.0]]),
        r"^expansion=\[1.0\] must be a KernelExpansion with kernel='rbf'",
    ),
    "rbf mean size": (
        lambda: normal.firm_rbf(gaussian([[0.0]]), [0.0, 1.0], [[1.0]]),
        r"^mean has shape \(2,\), expected \(1,\)",
    ),
    **{
        f"intensity {value!r}": (
            lambda value=value: normal.shrinkage_covariance(X, intensity=value),
            f"^intensity must be a finite number from 0 to 1, got {value!r}",
        )
        for value in (-0.1, 1.1, np.nan, "auto")
    },
    "shrinkage of two rows": (
        lambda: normal.shrinkage_covariance(X[:2]),
        "^X must have at least 3 rows to estimate a covariance, got 2",
    ),
    "shrinkage nan": (
        lambda: normal.shrinkage_intensity(changed(X, (1, 2), np.nan)),
        r"^X must be finite, got 1 NaN or inf, the first nan at \(1, 2\)",
    ),
}

CASES = [
    pytest.param(call, message, id=f"{group}: {name}")
    for group, cases in [
        ("scores", SCORES),
        ("tables", TABLES),
        ("features", FEATURES),
        ("options", OPTIONS),
        ("binary", BINARY),
        ("normal", NORMAL),
    ]
    for name, (call, message) in cases.items()
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
