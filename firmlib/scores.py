"""The score s(x): an estimator, a callable or a vector; exact gradients (eq. 1 and 2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import factorial
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from firmlib._checks import check_array, check_memory, check_number, check_option

Score = Any  # a fitted estimator, a callable X -> (n,), or an array (n,)

RESPONSE_METHODS = ("decision_function", "predict_proba", "predict")


def as_score(
    score: Score, X: Any, *, response_method: str = "auto", target: Any = None
) -> np.ndarray:
    """Evaluate a score on every row of `X`.

    Parameters
    ----------
    score : fitted estimator, callable or array of shape (n,)
        A callable takes `X` and returns n numbers. An array holds them already; labels count
        as scores, and with `target` they become the indicator of that label.
    X : array or data frame with n rows
        Handed to the estimator or callable as it is.
    response_method : {"auto", "decision_function", "predict_proba", "predict"}
        What an estimator is asked; "auto" takes the first of the three that it has.
    target : label or column, optional
        The class whose score is meant (the second of two by default), or the column of a
        multi-output prediction.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from firmlib.scores import as_score
    >>> as_score(lambda X: X[:, 0] - X[:, 1], np.array([[3, 1], [0, 5]]))
    array([ 2., -5.])
    >>> as_score(["ham", "spam"], np.zeros((2, 1)), target="spam")
    array([0., 1.])
    """
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    n = n_rows("X", X)
    if isinstance(score, type):
        raise ValueError(f"score={score.__name__} is a class; expected a fitted instance of it")
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        values = _estimator_score(score, X, response_method, target)
    elif callable(score):
        if target is not None:
            raise ValueError(f"target={target!r} is for estimators and labels, not for a callable")
        values = score(X)
    else:
        values = _label_score(score, target)
    return check_array("score", values, 1, (n,))


def class_scores(estimator: Any, X: Any, *, response_method: str = "auto") -> dict[Any, np.ndarray]:
    """Evaluate the score of every class, from one pass of predictions.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from firmlib.scores import class_scores
    >>> machine = LogisticRegression().fit([[0], [1], [2]], ["low", "mid", "top"])
    >>> class_scores(machine, [[0], [2]], response_method="predict")["top"]
    array([0., 1.])
    """
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    method = _response(estimator, response_method)
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"estimator={type(estimator).__name__} has no classes")
    values = getattr(estimator, method)(X)
    once = SimpleNamespace(classes_=estimator.classes_, **{method: lambda _: values})
    labels = np.asarray(estimator.classes_).tolist()
    return {label: as_score(once, X, target=label) for label in labels}


def n_rows(name: str, X: Any, *, at_least: int = 2) -> int:
    """Return the number of rows of a table, at least two or as asked."""
    try:
        shape = getattr(X, "shape", None) or np.shape(X)
    except ValueError as error:
        raise ValueError(f"{name} must be a table, but its rows differ in length") from error
    if len(shape) != 2:
        raise ValueError(f"{name} must be a table with 2 axes (rows, columns), got shape {shape}")
    if shape[0] < at_least or shape[1] < 1:
        raise ValueError(
            f"{name} must have at least {at_least} rows and 1 column, got shape {shape}"
        )
    return shape[0]


def _response(estimator: Any, response_method: str) -> str:
    """The method that a fitted estimator is asked."""
    kind = type(estimator).__name__
    if isinstance(estimator, BaseEstimator):
        try:
            check_is_fitted(estimator)
        except ValueError as error:
            raise ValueError(f"score={kind} is not fitted; call its fit first") from error
    asked = RESPONSE_METHODS if response_method == "auto" else (response_method,)
    method = next((m for m in asked if hasattr(estimator, m)), None)
    if method is None:
        raise ValueError(f"response_method={response_method!r}: {kind} has no such method")
    return method


def _estimator_score(estimator: Any, X: Any, response_method: str, target: Any) -> np.ndarray:
    kind, method = type(estimator).__name__, _response(estimator, response_method)
    classes = getattr(estimator, "classes_", [])
    if isinstance(classes, list) and classes:
        raise ValueError(
            f"score={kind} has several outputs with classes of their own; expected one"
        )
    classes = np.asarray(classes).tolist()
    values = np.asarray(getattr(estimator, method)(X))

    if values.ndim == 2 and values.shape[1] == 1 and target is None:
        return values[:, 0]
    if method == "predict" and values.ndim == 1:
        return _label_score(values, target, classes)
    if values.ndim == 1:  # decision function of two classes: positive for the second
        if target is None:
            return values
        if not classes:
            raise ValueError(f"target={target!r} is for classifiers; {kind} has no classes")
        check_target(target, classes)
        return values if target == classes[1] else -values
    if method == "decision_function" and len(classes) != values.shape[1]:
        raise ValueError(
            f"score={kind} has {values.shape[1]} decision values for {len(classes)} classes; "
            "expected one a class (decision_function_shape='ovr')"
        )
    columns = classes or list(range(values.shape[1]))
    if target is None:
        if len(columns) > 2 or method == "predict":
            raise ValueError(f"target is needed with several outputs; expected one of {columns}")
        target = columns[-1]
    check_target(target, columns)
    return values[:, columns.index(target)]


def check_target(target: Any, columns: list) -> None:
    """Raise unless `target` is among the classes or columns of a score."""
    if target not in columns:
        some = f"{columns[:8]}{' …' * (len(columns) > 8)}"
        raise ValueError(f"target={target!r} is unknown; expected one of {some}")


def _label_score(labels: ArrayLike, target: Any, classes: Sequence = ()) -> np.ndarray:
    labels = np.asarray(labels)
    if target is not None:
        check_target(target, classes or np.unique(labels).tolist())
        return (labels == target).astype(float)
    if labels.dtype.kind not in "biuf":
        seen = np.unique(labels.astype(str))[:5].tolist()
        raise ValueError(f"score holds labels such as {seen}; name the one that is meant as target")
    return labels


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """A kernel machine s(x) = sum_i alpha_i k(x_i, x) + b, eq. (2), with its gradient.

    Parameters
    ----------
    dual_coef : array of shape (m,)
        alpha_i; for a scikit-learn classifier this already contains the label's sign.
    centers : array of shape (m, d)
        The x_i.
    kernel : {"linear", "poly", "rbf"}
        x'y, (scale x'y + coef0)^degree, or exp(-scale ||x - y||^2).
    scale, coef0, degree, intercept : float
        scikit-learn's `gamma` is `scale`; the paper's is ``width`` = scale^(-1/2).

    Examples
    --------
    >>> from firmlib.scores import KernelExpansion
    >>> s = KernelExpansion([1.0], [[0.0, 1.0]], "rbf", scale=0.5)
    >>> s([[0.0, 0.0]]).round(3), s.gradient([[0.0, 0.0]]).round(3)
    (array([0.607]), array([[0.   , 0.607]]))
    """

    dual_coef: np.ndarray
    centers: np.ndarray
    kernel: str
    scale: float = 1.0
    coef0: float = 0.0
    degree: float = 1
    intercept: float = 0.0

    def __post_init__(self) -> None:
        check_option("kernel", self.kernel, ("linear", "poly", "rbf"))
        dual_coef = check_array("dual_coef", self.dual_coef, 1)
        centers = check_array("centers", self.centers, 2, (len(dual_coef), None))
        check_number("scale", self.scale, 0, above=True)
        check_number("degree", self.degree, 1)
        check_number("coef0", self.coef0)
        check_number("intercept", self.intercept)
        object.__setattr__(self, "dual_coef", dual_coef)
        object.__setattr__(self, "centers", centers)

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator) -> Self:
        """Read the expansion off a fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge."""
        kind = type(estimator).__name__
        kernel = getattr(estimator, "kernel", None)
        if not hasattr(estimator, "dual_coef_") or kernel not in _KERNELS:
            raise ValueError(
                f"estimator={kind}(kernel={kernel!r}) is no fitted kernel machine with one of the "
                f"kernels {sorted(_KERNELS)}"
            )
        dual_coef = _dense(estimator.dual_coef_)
        if dual_coef.ndim == 2 and min(dual_coef.shape) > 1:
            raise ValueError(
                f"estimator={kind} has several outputs, dual_coef_ of shape {dual_coef.shape}; "
                "expected one (two classes or a single regression target)"
            )
        centers = estimator.X_fit_ if hasattr(estimator, "X_fit_") else estimator.support_vectors_
        scale = getattr(estimator, "_gamma", estimator.gamma)
        return cls(
            dual_coef=dual_coef.ravel(),
            centers=_dense(centers),
            kernel=_KERNELS[kernel],
            scale=float(1 / centers.shape[1] if scale is None else scale),
            coef0=float(estimator.coef0),
            degree=estimator.degree,
            intercept=float(np.ravel(getattr(estimator, "intercept_", 0.0))[0]),
        )

    @property
    def width(self) -> float:
        """The paper's gamma: k(x, x') = exp(-||x - x'||^2 / gamma^2)."""
        return self.scale**-0.5

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """s at every row of `X`."""
        X = check_array("X", X, 2, (None, self.centers.shape[1]))
        return self._kernel(X) @ self.dual_coef + self.intercept

    def gradient(self, X: ArrayLike) -> np.ndarray:
        """ds/dx at every row of `X`, shape (n, d)."""
        X = check_array("X", X, 2, (None, self.centers.shape[1]))
        if self.kernel == "rbf":  # dk/dx = 2 scale (x_i - x) k
            A = self._kernel(X) * self.dual_coef
            return 2 * self.scale * (A @ self.centers - A.sum(axis=1, keepdims=True) * X)
        if self.kernel == "poly":  # dk/dx = degree scale (scale x_i'x + coef0)^(degree - 1) x_i
            inner = self.scale * linear_kernel(X, self.centers) + self.coef0
            A = self.degree * self.scale * inner ** (self.degree - 1) * self.dual_coef
            return A @ self.centers
        return np.tile(self.dual_coef @ self.centers, (len(X), 1))

    def unfold(self) -> tuple[np.ndarray, np.ndarray]:
        """Explicit weights w = sum_i alpha_i Phi(x_i) of a linear or polynomial kernel (Section 1).

        Returns
        -------
        powers : ndarray of shape (M, d)
            The exponents of the monomials, a row each.
        w : ndarray of shape (M,)
            Their weights in feature space, where (scale x'y + coef0)^D = Phi(x)'Phi(y) with
            Phi_m(x) = sqrt(D! / (m_0! m_1! ... m_d!) coef0^m_0 scale^(D - m_0)) x^m and
            m_0 = D - |m|: what the machine regularizes. Multiply by that root once more for
            the coefficient of x^m in s.

        Examples
        --------
        >>> from firmlib.scores import KernelExpansion
        >>> s = KernelExpansion([1.0], [[1.0, 2.0]], "poly", degree=2)  # (x0 + 2 x1)^2
        >>> powers, w = s.unfold()
        >>> dict(zip(map(tuple, powers.tolist()), w.round(3).tolist()))
        {(2, 0): 1.0, (1, 1): 2.828, (0, 2): 4.0}
        """
        if self.kernel == "rbf":
            raise ValueError("kernel='rbf' has infinitely many features; expected linear or poly")
        degree = 1 if self.kernel == "linear" else self.degree
        if degree != int(degree):
            raise ValueError(f"degree={degree} has no finite feature space; expected an integer")
        d, degree = self.centers.shape[1], int(degree)
        scale, coef0 = (1.0, 0.0) if self.kernel == "linear" else (self.scale, self.coef0)
        check_number("coef0", coef0, 0)
        check_memory("the unfolded features", (max(self.centers.shape), comb(d + degree, degree)))
        powers = PolynomialFeatures(degree).fit(self.centers).powers_
        if coef0 == 0:
            powers = powers[powers.sum(axis=1) == degree]
        rest = degree - powers.sum(axis=1)
        multinomial = factorial(degree) / factorial(np.c_[rest, powers]).prod(axis=1)
        root = np.sqrt(multinomial * coef0**rest * scale ** (degree - rest))
        monomials = np.column_stack([(self.centers**m).prod(axis=1) for m in powers])
        return powers, root * (self.dual_coef @ monomials)

    def _kernel(self, X: np.ndarray) -> np.ndarray:
        if self.kernel == "rbf":
            return rbf_kernel(X, self.centers, gamma=self.scale)
        if self.kernel == "poly":
            return polynomial_kernel(
                X, self.centers, degree=self.degree, gamma=self.scale, coef0=self.coef0
            )
        return linear_kernel(X, self.centers)


def _dense(array: Any) -> np.ndarray:
    return array.toarray() if sparse.issparse(array) else np.asarray(array)


_KERNELS = {"linear": "linear", "poly": "poly", "polynomial": "poly", "rbf": "rbf"}


def gradient(score: BaseEstimator | KernelExpansion | Callable, X: ArrayLike) -> np.ndarray:
    """Exact gradient of a linear, polynomial-kernel or Gaussian-kernel machine.

    Parameters
    ----------
    score : KernelExpansion or fitted scikit-learn estimator
        An SVM or kernel ridge with a linear, polynomial or Gaussian kernel, or any estimator
        whose score is ``X @ coef_ + intercept_``.
    X : array of shape (n, d)
        Where to take it.

    Returns
    -------
    ndarray of shape (n, d)

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from firmlib.scores import gradient
    >>> gradient(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), [[7.0]]).round(6)
    array([[2.]])
    """
    if isinstance(score, KernelExpansion):
        return score.gradient(X)
    if hasattr(score, "dual_coef_"):
        return KernelExpansion.from_estimator(score).gradient(X)
    if not hasattr(score, "coef_"):
        raise ValueError(
            f"score={type(score).__name__} has no known gradient; expected a fitted linear model, "
            "SVM or kernel ridge"
        )
    w = np.asarray(score.coef_, dtype=float)
    if w.size != w.shape[-1]:
        raise ValueError(f"score has several outputs, coef_ of shape {w.shape}; expected one")
    X = check_array("X", X, 2, (None, w.size))
    points = np.vstack([np.zeros_like(X[:1]), np.eye(w.size), X])
    s = as_score(score, points)
    if not np.allclose(s - s[0], points @ w.ravel()):
        raise ValueError(
            f"score={type(score).__name__} is not linear in X: its output is not X @ coef_ + b"
        )
    return np.tile(w.ravel(), (len(X), 1))
