"""Kernel expansions (eq. 2): exact gradients and unfolded weights."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import comb, factorial
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from firmlib.scores import as_score
from firmlib.tables.checks import check_array, check_memory, check_number, check_option

__all__ = ["KernelExpansion", "gradient"]


@dataclass(eq=False)
class KernelExpansion:
    """A kernel expansion s(x) = sum_i alpha_i k(x_i, x) + b, eq. (2), with its gradient.

    `dual_coef` (m,) are alpha_i, with the sign of the label, `centers` (m, d) are x_i, and
    `intercept` is b. The `kernel` is "linear", x'y, "poly", (scale x'y + coef0)^degree, or "rbf",
    exp(-scale ||x - y||^2): `scale` is scikit-learn's `gamma`, and `width` the paper's.

    >>> s = KernelExpansion([1.0], [[0.0, 1.0]], "rbf", scale=0.5)
    >>> s([[0.0, 0.0]]).round(3), s.gradient([[0.0, 0.0]]).round(3)
    (array([0.607]), array([[0.   , 0.607]]))
    """

    dual_coef: np.ndarray
    centers: np.ndarray
    kernel: str
    scale: float = 1.0
    coef0: float = 0.0
    degree: int = 1
    intercept: float = 0.0

    def __post_init__(self) -> None:
        check_option("kernel", self.kernel, ("linear", "poly", "rbf"))
        self.dual_coef = check_array("dual_coef", self.dual_coef, 1)
        self.centers = check_array("centers", self.centers, 2, (len(self.dual_coef), None))
        if self.kernel == "linear":  # the polynomial kernel of degree 1
            self.scale, self.coef0, self.degree = 1.0, 0.0, 1
        check_number("scale", self.scale, 0, inside=True)
        check_number("degree", self.degree, 1)
        check_number("coef0", self.coef0)
        check_number("intercept", self.intercept)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Return the expansion of a fitted SVM or kernel ridge, or of a linear model."""
        name, dual = type(estimator).__name__, hasattr(estimator, "dual_coef_")
        found = getattr(estimator, "dual_coef_" if dual else "coef_", None)
        if found is None or isinstance(estimator, type):
            raise ValueError(f"estimator={name} is not a fitted SVM, kernel ridge or linear model")
        coef = sparse.coo_matrix(found).toarray().ravel()  # be it sparse or not
        if coef.size > max(found.shape):
            raise ValueError(f"estimator={name} has several outputs, of shape {found.shape}")
        if not dual:  # the only center is the weights
            zero, *unit = as_score(estimator, np.eye(len(coef) + 1, len(coef), -1))
            if not np.allclose(unit - zero, coef):
                raise ValueError(f"estimator={name} is not linear: its score is not X @ coef_ + b")
            return cls(np.ones(1), coef[None], "linear", intercept=zero)
        centers = estimator.X_fit_ if hasattr(estimator, "X_fit_") else estimator.support_vectors_
        centers = sparse.coo_matrix(centers).toarray()
        scale = getattr(estimator, "_gamma", estimator.gamma)
        scale = 1 / centers.shape[1] if scale is None else scale
        kernel = "poly" if estimator.kernel == "polynomial" else estimator.kernel
        b = np.ravel(getattr(estimator, "intercept_", 0.0))[0]
        return cls(coef, centers, kernel, scale, estimator.coef0, estimator.degree, b)

    width = property(lambda self: self.scale**-0.5)  # gamma in exp(-||x - x'||^2 / gamma^2)

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """s at every row of `X`."""
        X = check_array("X", X, 2, (None, self.centers.shape[1]))
        options = {"gamma": self.scale, "coef0": self.coef0, "degree": self.degree}
        K = pairwise_kernels(X, self.centers, self.kernel, filter_params=True, **options)
        return K @ self.dual_coef + self.intercept

    def gradient(self, X: ArrayLike) -> np.ndarray:
        """ds/dx at every row of `X`, shape (n, d)."""
        X = check_array("X", X, 2, (None, self.centers.shape[1]))
        if self.kernel == "rbf":  # dk/dx = 2 scale (x_i - x) k
            A = rbf_kernel(X, self.centers, self.scale) * self.dual_coef
            return 2 * self.scale * (A @ self.centers - A.sum(axis=1, keepdims=True) * X)
        # dk/dx = degree scale (scale x_i'x + coef0)^(degree - 1) x_i
        inner = self.scale * (X @ self.centers.T) + self.coef0
        return self.degree * self.scale * inner ** (self.degree - 1) * self.dual_coef @ self.centers

    def unfold(self) -> tuple[np.ndarray, np.ndarray]:
        """Explicit weights w = sum_i alpha_i Phi(x_i) of a linear or polynomial kernel (Section 1).

        Return the exponents m of the monomials (M, d), and their weights (M,) in feature space,
        where (scale x'y + coef0)^D = Phi(x)'Phi(y), m_0 = D - |m|, and the coefficient of x^m in s
        is w_m times the root in

            Phi_m(x) = sqrt(D! / (m_0! m_1! ... m_d!) coef0^m_0 scale^(D - m_0)) x^m.

        >>> s = KernelExpansion([1.0], [[1.0, 2.0]], "poly", degree=2)  # (x0 + 2 x1)^2
        >>> powers, w = s.unfold()
        >>> dict(zip(map(tuple, powers.tolist()), w.round(3).tolist()))
        {(2, 0): 1.0, (1, 1): 2.828, (0, 2): 4.0}
        """
        if self.kernel == "rbf":
            raise ValueError("kernel='rbf' has infinitely many features; expected linear or poly")
        check_number("coef0", self.coef0, 0)
        (m, d), degree = self.centers.shape, self.degree
        check_memory("the unfolded features", (max(m, d), int(comb(d + degree, degree))))
        features = PolynomialFeatures(degree)  # checks that it is an integer
        monomials, powers = features.fit_transform(self.centers), features.powers_
        rest = degree - powers.sum(axis=1)
        multinomial = factorial(degree) / factorial(np.c_[rest, powers]).prod(axis=1)
        root = np.sqrt(multinomial * self.coef0**rest * self.scale ** (degree - rest))
        some = root > 0  # without coef0, only the highest degree
        return powers[some], (root * (self.dual_coef @ monomials))[some]


def gradient(score: Any, X: ArrayLike) -> np.ndarray:
    """Exact gradient of a score at every row of `X`, shape (n, d).

    `score` is a `KernelExpansion`, or an estimator of which there is one: a fitted SVM or kernel
    ridge with a linear, polynomial or Gaussian kernel, or a model ``X @ coef_`` plus a constant.

    >>> from sklearn.linear_model import LinearRegression
    >>> gradient(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), [[7.0]]).round(6)
    array([[2.]])
    """
    if not isinstance(score, KernelExpansion):
        score = KernelExpansion.from_estimator(score)
    return score.gradient(X)
