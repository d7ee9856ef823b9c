"""Refusals of options and closed forms: a ValueError that names argument, value and expectation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC

from firmlib import binary, conditional_expected_score, firm, firm_by_class, normal
from firmlib.expansion import KernelExpansion, gradient

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
LOPSIDED = np.array([[1e10, 0, 0], [0, 1, 0.5], [0, 0, 1]])


def gaussian(centers):
    return KernelExpansion([1.0], centers, "rbf")


def changed(array, where, value):
    array = np.array(array, dtype=float)
    array[where] = value
    return array


FIRM = {  # positional arguments after score and X, options: through firm itself
    "score too large": (lambda: firm(S * 1e200, X), r"^score has values up to .*e\+20\d"),
    "score large": (lambda: firm(S * 1e78, X), r"^score has values .*e\+7\d .* to 1e\+30"),
    "score small": (lambda: firm(S * 1e-100, X), "^score has values .*e-(99|100); .* rescale"),
    "masked classes": (
        lambda: firm_by_class(np.ma.column_stack([S, MASKED]), X),
        "^score must not be masked, got 2 masked values",
    ),
    "masked weights": (
        lambda: firm(S, X, sample_weight=abs(MASKED)),
        "^sample_weight must not be masked",
    ),
    "masked groups": (lambda: firm(S, X, groups=MASKED), "^groups must not be masked"),
    "index of the score": (
        lambda: firm(pd.Series(S, index=range(1, 21)), pd.DataFrame(X)),
        r"^score has the index \[1, .*, but X has \[0, ",
    ),
    "X missing": (
        lambda: firm(S, changed(X, (3, 1), np.nan), missing="raise"),
        r"^feature 'x1'.* must not be missing, got 1 .*row 3",
    ),
    "X missing in a frame": (
        lambda: firm([1, 2], pd.DataFrame({"n": ["a", None]}), missing="raise"),
        "^feature 'n'.* must not be missing, got 1",
    ),
    "feature array inf": (
        lambda: conditional_expected_score(S, X, changed(S, 0, np.inf)),
        "^feature.* must be finite or missing, got 1 infinite",
    ),
    "names repeated": (
        lambda: firm(S, pd.DataFrame(X, columns=["a", "b", "a"])),
        "^feature names must differ, got 'a' 2 times",
    ),
    "names too few": (
        lambda: firm(S, X, feature_names=["a", "b"]),
        "^feature_names has 2 names for 3 features",
    ),
    "missing unknown": (lambda: firm(S, X, missing="skip"), "^missing='skip' is unknown; expected"),
    "method unknown": (
        lambda: firm(S, X, method="bins"),
        r"^method='bins' is unknown; expected one of \['auto', 'slope'\]",
    ),
    "rows unknown": (
        lambda: firm(S, X, rows="all"),
        r"^rows='all' is unknown; expected one of \['sample', 'population'\]",
    ),
    "n_bins": (
        lambda: conditional_expected_score(S, X, 0, n_bins=1),
        "^n_bins=1 must be 'auto' or an integer of at least 2",
    ),
    "weights nan": (
        lambda: firm(S, X, sample_weight=changed(ONES, 7, np.nan)),
        "^sample_weight must be finite|^sample_weight must not be missing",
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
        lambda: firm(S, X, sample_weight=["much", "little"] * 10),
        "^sample_weight must hold numbers",
    ),
    "groups short": (lambda: firm(S, X, groups=[1, 2]), r"^groups has shape \(2,\), expected"),
    "groups alike": (lambda: firm(S, X, groups=0 * ONES), "has one label; expected at least 2"),
    "groups 2-d": (lambda: firm(S, X, groups=np.c_[S, S]), "^groups must have 1 axes"),
    "given is a feature": (
        lambda: firm(S, X, ["x0"], given="x0"),
        "^feature 'x0' is also in given=",
    ),
    "given of a population": (
        lambda: firm(S, X, ["x0"], given="x1", rows="population"),
        "^given is learnt from a sample",
    ),
}

EXPANSION = {
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
        ("firm", FIRM),
        ("expansion", EXPANSION),
        ("binary", BINARY),
        ("normal", NORMAL),
    ]
    for name, (call, message) in cases.items()
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
