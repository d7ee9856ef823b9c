"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from firmlib._checks import check_array, check_option

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
