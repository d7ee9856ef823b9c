"""A support vector classifier with the weighted degree kernel (Section 3.3)."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import check_consistent_length, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.kernel import Kernel
from firmlib.strings.matvec import WDSOperator, solve
from firmlib.strings.weights import PositionalWeights
from firmlib.tables.checks import check_integer, check_number, check_option, check_weights, warn

_SHORTEST = 2.0**-30  # part of a step that is tried
_ROUNDING = 1e-14  # part of the loss that is lost in summing it


@dataclass(eq=False, repr=False)
class WDSClassifier(ClassifierMixin, BaseEstimator):
    """Support vector classifier for sequences with the weighted degree kernel (with shifts).

    The score is s(x) = sum_i alpha_i k(x_i, x) + b, eq. (2); alpha and b minimize, with y_i = -1
    for the first and +1 for the second class,

        1/2 alpha'K alpha + C sum_i v_i loss(1 - y_i s(x_i)),  loss(t) = max(0, t) or max(0, t)^2,

    where v_i is 1 unless there is a `class_weight` or a sample weight. It is for motifs near fixed
    places; for others train another model and use `fit_surrogate`. `weights_` are its
    `PositionalWeights`; other attributes, and `class_weight`, are those of `SVC`.

    Parameters
    ----------
    degree, C, alphabet : the degree of the kernel, the factor above, and DNA if it is None
    shift, shift_weights, normalize, reverse_complement, unknown : as in `wds_kernel`
    loss : {"hinge", "squared_hinge"}, default "hinge"
        "hinge" is the paper's model, scikit-learn's `SVC` on the n x n kernel matrix.
        "squared_hinge" takes time and memory linear in n, by Newton's method without that matrix.
    tol, max_iter : the tolerance of `SVC`, or the relative error of alpha, and the most steps
        -1 means no limit for `SVC` and 100 for Newton's method, which takes about ten.

    Examples
    --------
    >>> from firmlib.strings import WDSClassifier
    >>> X = ["GATTACA", "CATTACC", "GATTAAA", "ACGTACG", "CCGTAGG", "ACGGACC"]
    >>> model = WDSClassifier(degree=3, shift=1).fit(X, ["yes"] * 3 + ["no"] * 3)
    >>> model.predict(["TATTACA", "ACGTTGG"]).tolist()
    ['yes', 'no']
    """

    degree: int = 8
    shift: int = 0
    C: float = 1.0
    _: KW_ONLY
    shift_weights: str = "rase"
    normalize: bool = True
    reverse_complement: bool = False
    loss: str = "hinge"
    class_weight: dict | str | None = None
    alphabet: Alphabet | None = None
    unknown: str = "error"
    tol: float = 1e-6
    max_iter: int = -1

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on n sequences `X`, as strings or codes, and n labels `y` of two classes.

        `sample_weight`, n numbers from 0, says how much the loss of each counts.
        """
        X, labels = self._encode(X), np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(X, labels)
        check_classification_targets(labels)
        weight = check_weights("sample_weight", sample_weight, len(X))
        rows = np.flatnonzero(weight)
        X, labels, weight = X[rows], labels[rows], weight[rows]
        check_option("loss", self.loss, ("hinge", "squared_hinge"))
        check_number("C", self.C, 0, inside=True)
        check_number("tol", self.tol, 0, inside=True)
        check_integer("max_iter", self.max_iter, -1)
        classes, second = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(
                f"y has {len(classes)} class{'es' * (len(classes) > 1)}, {classes[:5].tolist()}, "
                "expected 2. Only binary classification is supported; for more wrap the model in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        options = self.degree, self.shift, self.shift_weights, self.normalize
        kernel = Kernel(X.shape[1], *options, self.reverse_complement, self.alphabet or DNA)
        weight = weight * compute_class_weight(self.class_weight, classes=classes, y=labels)[second]
        sign, alpha = 2.0 * second - 1, np.zeros(len(X))
        if self.loss == "hinge":
            svc = SVC(kernel="precomputed", C=self.C, tol=self.tol, max_iter=self.max_iter)
            svc.fit(kernel.matrix(X), sign, weight)
            alpha[svc.support_] = svc.dual_coef_[0]
            self.intercept_, self.n_iter_ = float(svc.intercept_[0]), int(svc.n_iter_[0])
        else:
            max_iter = 100 if self.max_iter == -1 else self.max_iter
            alpha, self.intercept_, self.n_iter_ = _newton(
                WDSOperator(X, kernel), sign, self.C * weight, self.tol, max_iter
            )
        self.classes_, self.n_features_in_ = classes, X.shape[1]
        self.support_, self._kernel = rows[alpha != 0], kernel
        self.support_vectors_, self.dual_coef_ = X[alpha != 0], alpha[alpha != 0]
        self._unfolded: list[PositionalWeights] = []  # filled when first needed
        return self

    def _encode(self, X: ArrayLike) -> np.ndarray:
        return encode(X, alphabet=self.alphabet or DNA, unknown=self.unknown, name="X")

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """s(x) of every sequence in `X`, in time linear in them, through `weights_`."""
        check_is_fitted(self)
        X = self._encode(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has sequences of length {X.shape[1]}, expected {self.n_features_in_} as in fit"
            )
        return self.weights_.matches(X) / np.sqrt(self._kernel.size(X)) + self.intercept_

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of every sequence in `X`."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    @property
    def weights_(self) -> PositionalWeights:
        """Weights of words; the intercept and, if normalized, 1 / sqrt(k(x, x)) are left out."""
        check_is_fitted(self)
        if not self._unfolded:
            dual = self.support_vectors_, self.dual_coef_
            self._unfolded.append(PositionalWeights.unfold(*dual, self._kernel))
        return self._unfolded[0]

    def __getstate__(self) -> dict:
        """Leave the weights out of copies and pickles: large, and soon computed again."""
        state: dict = super().__getstate__()  # type: ignore[assignment]
        return state | ({"_unfolded": []} if "_unfolded" in state else {})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _newton(
    K: WDSOperator, y: np.ndarray, C: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, float, int]:
    """Minimize 1/2 a'K a + sum_i C_i max(0, 1 - y_i ((K a)_i + b))^2 (Chapelle, 2007).

    At the minimum a = 2 C y max(0, 1 - y (K a + b)), whose distance is the error. Newton's step
    ends at a ridge regression on the sequences with a loss, (K + I / (2C)) a + b = y, sum(a) = 0.
    """
    a, Ka, b, precision, error = np.zeros(len(y)), np.zeros(len(y)), 0.0, 1.0, np.inf
    for n_iter in range(max_iter + 1):
        slack = 1 - y * (Ka + b)
        active = slack > 0
        target = 2 * C * y * np.maximum(0, slack)
        size = max(float(np.linalg.norm(target)), float(np.linalg.norm(a)))
        error = float(np.linalg.norm(target - a)) / size
        if error <= tol or n_iter == max_iter:
            break
        atol = precision * max(min(0.1, error) * error, tol / 2) * size / (2 * C.max())
        da = solve(K, active, 1 / (2 * C[active]), y, a, centred=True, rtol=0, atol=atol) - a
        Kda = K @ da
        db = float(np.average((y - Ka - Kda)[active], weights=C[active])) - b
        t, linear, quadratic, growth = 1.0, Ka @ da, da @ Kda / 2, -y * (Kda + db)
        most = C @ np.maximum(0, slack) ** 2 * (1 + _ROUNDING)
        while t > _SHORTEST and (
            t * linear + t**2 * quadratic + C @ np.maximum(0, slack + t * growth) ** 2 > most
        ):
            t /= 2
        if t <= _SHORTEST:  # the conjugate gradients stopped too early for a descent
            precision /= 10
        a, Ka, b = a + t * da, Ka + t * Kda, b + t * db
    if error > tol:
        found = f"stopped after {n_iter} steps at a relative error of {error:.1e}, above {tol=}"
        warn(found, ConvergenceWarning)
    return a, b, n_iter
