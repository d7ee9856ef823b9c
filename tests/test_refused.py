"""Refusals of options and closed forms: a ValueError that names argument, value and expectation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

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


CASES = [
    (lambda: firm(S * 1e200, X), r"^score has values up to .*e\+20\d"),
    (lambda: firm(S * 1e78, X), r"^score has values .*e\+7\d .* to 1e\+30"),
    (lambda: firm(S * 1e-100, X), "^score has values .*e-(99|100); .* rescale"),
    (lambda: firm_by_class(np.ma.column_stack([S, MASKED]), X), "^score must not be masked, got"),
    (lambda: firm(S, X, sample_weight=abs(MASKED)), "^sample_weight must not be masked"),
    (
        lambda: firm(pd.Series(S, index=range(1, 21)), pd.DataFrame(X)),
        r"^score has the index \[1, .*, but X has \[0, ",
    ),
    (lambda: firm(S, changed(X, (3, 1), np.nan), missing="raise"), "^feature 'x1'.* must not be"),
    (
        lambda: conditional_expected_score(S, X, changed(S, 0, np.inf)),
        "^feature.* must be finite or missing, got 1 infinite",
    ),
    (lambda: firm(S, X, missing="skip"), "^missing='skip' is unknown; expected"),
    (lambda: firm(S, X, method="bins"), r"^method='bins' is unknown; expected one of \['auto'"),
    (lambda: firm(S, X, rows="all"), r"^rows='all' is unknown; expected one of \['sample'"),
    (lambda: firm(S, X, sample_weight=changed(ONES, 7, np.nan)), "^sample_weight must be"),
    (lambda: firm(S, X, sample_weight=changed(ONES, 7, -2)), "^sample_weight must not be"),
    (lambda: firm(S, X, sample_weight=0 * ONES), "^sample_weight must not all be zero"),
    (lambda: firm(S, X, sample_weight=1.0), r"^sample_weight must have 1 axis, got shape \(\)"),
    (lambda: firm(S, X, sample_weight=["much", "little"] * 10), "^sample_weight must hold"),
    (lambda: firm(S, X, groups=[1, 2]), r"^groups has shape \(2,\), expected"),
    (lambda: firm(S, X, groups=0 * ONES), "has one label; expected at least 2"),
    (lambda: firm(S, X, groups=np.c_[S, S]), "^groups must have 1 axis"),
    (lambda: firm(S, X, ["x0"], given="x0"), "^feature 'x0' is also in given="),
    (
        lambda: gradient(RandomForestClassifier(3).fit(X, LABELS), X),
        "^score=RandomForestClassifier has no",
    ),
    (lambda: gradient(LogisticRegression().fit(X, THREE), X), "^score has several outputs"),
    (lambda: gradient(LinearRegression().fit(X, S), X[:, :2]), r"^X has shape \(20, 2\)"),
    (lambda: KernelExpansion([1.0], [[0.0, 0.0]], "rbf")(X), r"^X has shape \(20, 3\), expected"),
    (lambda: KernelExpansion([1.0], [[0.0]], "sigmoid"), "^kernel='sigmoid' is unknown"),
    (lambda: KernelExpansion([1.0], [[0.0]], "rbf", scale=0), "^scale must be a finite number"),
    (lambda: KernelExpansion([1.0, 2.0], [[0.0]], "rbf"), r"^centers has shape \(1, 1\)"),
    (lambda: KernelExpansion([1.0], [[0.0]], "rbf").unfold(), "^kernel='rbf' has infinitely"),
    (lambda: KernelExpansion([1.0], [[0.0]], "poly", degree=3, coef0=-1).unfold(), "^coef0.*-1"),
    (
        lambda: KernelExpansion([1.0], np.ones((1, 3000)), "poly", degree=3).unfold(),
        r"^the unfolded features of shape \(\d+, \d+\) would take \d+\.\d GiB",
    ),
    (
        lambda: KernelExpansion.from_estimator(RandomForestClassifier()),
        "^estimator=RandomForestClassifier.* is not a fitted kernel model",
    ),
    (lambda: binary.firm_binary(1, 2, 1.2), r"^p_a must lie in \[0, 1\], got 1.2"),
    (lambda: binary.firm_binary(1, 2, np.nan), "^p_a must be finite, got 1 NaN"),
    (lambda: binary.firm_binary([1, np.nan], 2, 0.5), "^q_a must be finite"),
    (lambda: binary.firm_binary([1, 2, 3], [1, 2], 0.5), r"q_a.*\(3,\).*\(2,\)"),
    (lambda: binary.firm_uniform_conjunction([1, 2], [[1, 2]]), "^values must hold only -1, 0"),
    (lambda: binary.firm_uniform_conjunction([1, 2, 3], [[1, 1]]), r"^values has shape \(1"),
    (lambda: binary.firm_empirical([1, 2], (B + 1) / 2), "^X must hold only -1 and 1, got 0"),
    (lambda: binary.firm_conjunctions([1, 2, 3], [[0], [1], [2]]), "^X must hold only 0 and 2"),
    (lambda: binary.firm_conjunctions([0, 1], np.eye(2, 20_000)), "^the table of conjunctions"),
    (lambda: binary.firm_from_poim([np.nan], 0.5), "^poim must be finite"),
    (lambda: normal.firm_taylor(lambda x: x, np.ones((2, 3))), "^cov must be square, got shape"),
    (lambda: normal.firm_linear([1, 2, 3], EYE), r"^cov has shape \(2, 2\), expected \(3, 3\)"),
    (lambda: normal.firm_linear([1, 2], EYE * np.nan), "^cov must be finite, got 4 NaN"),
    (lambda: normal.firm_linear([1, 2], [[1, 0.5], [0.2, 1]]), "^cov must be symmetric, got .*"),
    (lambda: normal.firm_linear([1, 2], [[1, 2], [2, 1]]), "^cov must be positive"),
    (lambda: normal.firm_linear([0, 1, -1], FAR), "^cov must be positive semi-definite"),
    (lambda: normal.firm_linear([1, 2], [[0, 1e-5], [1e-5, 1]]), "^cov must be positive"),
    (lambda: normal.firm_linear([1, 2], np.diag([1, -1])), "^cov must be positive semi-definite"),
    (
        lambda: normal.firm_linear([1, 2], EYE, directions=[[1, 2, 3]]),
        r"^directions has shape \(1, 3\), expected \('any', 2\)",
    ),
    (lambda: normal.firm_taylor([1, 2], EYE, mean=[0, 0]), "^mean requires a callable gradient"),
    (lambda: normal.firm_taylor(lambda x: x, EYE, mean=[0.0]), r"^mean has shape \(1,\)"),
    (lambda: normal.firm_taylor(lambda x: x * np.nan, EYE), "^gradient must be finite, got 2"),
    (
        lambda: normal.firm_rbf(KernelExpansion([1.0], [[0.0]], "linear"), [0.0], [[1.0]]),
        r"^expansion=KernelExpansion\(.* must be a KernelExpansion with kernel='rbf'",
    ),
    (lambda: normal.shrinkage_covariance(X[:2]), "^X must have at least 3 rows to estimate a"),
    (
        lambda: normal.shrinkage_intensity(changed(X, (1, 2), np.nan)),
        r"^X must be finite, got 1 NaN or inf, the first nan at \(1, 2\)",
    ),
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
