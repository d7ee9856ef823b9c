"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_array, check_option, short
from firmlib._table import Table

__all__ = ["as_score", "class_scores"]

Score = Any  # a fitted estimator, a callable X -> (n,), or an array (n,)

RESPONSE_METHODS = ("decision_function", "predict_proba", "predict", "score_samples")


class Response(NamedTuple):
    """A score on every row, and what it is: the method that was asked, and for which class."""

    values: np.ndarray
    method: str
    target: Any = None


def as_score(
    score: Score, X: Any, *, response_method: str = "auto", target: Any = None
) -> np.ndarray:
    """Evaluate a score on every row of `X`.

    Parameters
    ----------
    score : fitted estimator, callable or array of shape (n,)
        A callable takes `X` and returns n numbers. An array holds them already; labels count
        as scores, and with `target` they become the indicator of that label. A pandas Series must
        have the index of `X`.
    X : array or data frame with n rows
        Handed to the estimator or callable as it is.
    response_method : str, default "auto"
        What an estimator is asked: "decision_function", "predict_proba", "predict" or
        "score_samples". "auto" takes the first of these that it has.
    target : label, column or (column, label), default None
        The class whose score is meant (the second of two by default), the cluster, or the column
        of a multi-output prediction; for a classifier with several outputs, the output and its
        class.

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
    return respond(score, Table.of(X), response_method=response_method, target=target).values


def class_scores(estimator: Any, X: Any, *, response_method: str = "auto") -> dict[Any, np.ndarray]:
    """Evaluate the score of every class, from one pass of predictions.

    Parameters
    ----------
    estimator : fitted classifier
    X : array or data frame with n rows
    response_method : str, default "auto"
        As for `as_score`.

    Returns
    -------
    dict of class to ndarray of shape (n,)

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from firmlib.scores import class_scores
    >>> model = LogisticRegression().fit([[0], [1], [2]], ["low", "mid", "top"])
    >>> class_scores(model, [[0], [2]], response_method="predict")["top"]
    array([0., 1.])
    """
    table, method = Table.of(X), _method(estimator, response_method)
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"estimator={type(estimator).__name__} has no classes")
    values = np.asarray(getattr(estimator, method)(table.data))
    labels = np.asarray(estimator.classes_).tolist()
    scores = {c: _of_class(estimator, method, values, labels, c).values for c in labels}
    return {label: check_array("score", s, 1, (table.n,)) for label, s in scores.items()}


def respond(
    score: Score, table: Table, *, response_method: str = "auto", target: Any = None
) -> Response:
    """Return the score of every row of a table, with what was asked."""
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    if isinstance(score, type):
        raise ValueError(f"score={score.__name__} is a class; expected a fitted instance of it")
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        response = _ask(score, table, response_method, target)
    elif callable(score):
        if target is not None:
            raise ValueError(f"target={target!r} is for estimators and labels, not for a callable")
        answer: Any = score(table.data)
        response = Response(answer, "callable")
    elif hasattr(score, "fit"):
        raise ValueError(
            f"score={type(score).__name__} has none of the methods {list(RESPONSE_METHODS)}; "
            "expected a model that gives each row a number"
        )
    else:
        table.check_rows("score", score)
        response = Response(_label_score(score, target), "values", target)
    values = response.values
    if np.ndim(values) == 2 and np.shape(values)[1] == 1 and response.method != "values":
        values = np.asarray(values)[:, 0]
    return response._replace(values=check_array("score", values, 1, (table.n,)))


def is_model(score: Score) -> bool:
    """Whether a score has still to be evaluated: an estimator or a callable."""
    return callable(score) or any(hasattr(score, method) for method in (*RESPONSE_METHODS, "fit"))


def _method(estimator: Any, response_method: str) -> str:
    """Return the method that a fitted estimator is asked."""
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    kind = type(estimator).__name__
    if _is_sklearn(estimator):
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(estimator)
        except ValueError as error:
            raise ValueError(f"score={kind} is not fitted; call its fit first") from error
    asked = RESPONSE_METHODS if response_method == "auto" else (response_method,)
    method = next((m for m in asked if hasattr(estimator, m)), None)
    if method is None:
        raise ValueError(f"response_method={response_method!r}: {kind} has no such method")
    if method == "decision_function" and _is_one_against_one(estimator):
        raise ValueError(
            f"score={kind} gives one decision value per pair of classes; expected one per class "
            "(decision_function_shape='ovr', or response_method='predict_proba')"
        )
    return method


def _is_sklearn(estimator: Any) -> bool:
    """Whether it is an estimator of scikit-learn, which is not imported to find out."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(estimator, base.BaseEstimator)


def _is_one_against_one(estimator: Any) -> bool:
    """Whether a classifier, perhaps at the end of a pipeline or a search, compares pairs."""
    while (inner := getattr(estimator, "best_estimator_", None)) is not None or (
        inner := getattr(estimator, "_final_estimator", None)
    ) is not None:
        estimator = inner
    several = len(getattr(estimator, "classes_", ())) > 2
    return several and getattr(estimator, "decision_function_shape", None) == "ovo"


def _ask(estimator: Any, table: Table, response_method: str, target: Any) -> Response:
    """Return what an estimator answers for one class or output."""
    method = _method(estimator, response_method)
    values: Any = getattr(estimator, method)(table.data)
    classes: Any = getattr(estimator, "classes_", [])
    if not (isinstance(classes, list) and classes and np.ndim(classes[0]) == 1):
        classes = np.asarray(classes).tolist()
        return _of_class(estimator, method, np.asarray(values), classes, target)
    pair: Any = target if isinstance(target, tuple) and len(target) == 2 else (target, None)
    output, label = pair
    if output not in range(len(classes)):
        raise ValueError(
            f"score={type(estimator).__name__} has several outputs with classes of their own and "
            f"target={target!r}; expected one of {list(range(len(classes)))}, or (output, class)"
        )
    values = values[output] if isinstance(values, list) else np.asarray(values)[:, output]
    classes = np.asarray(classes[output]).tolist()
    response = _of_class(estimator, method, np.asarray(values), classes, label)
    return response._replace(target=(output, response.target))


def _of_class(
    estimator: Any, method: str, values: np.ndarray, classes: list, target: Any
) -> Response:
    """Take the score of one class, or one column, from the answer of an estimator."""
    kind = type(estimator).__name__
    if values.ndim == 2 and values.shape[1] == 1 and target is None:
        return Response(values[:, 0], method)
    if values.ndim == 1 and method == "predict":
        if target is None and len(classes) == 2 and values.dtype.kind not in "biuf":
            target = classes[1]
        if target is None and (len(classes) > 2 or _is_a(estimator, "clusterer")):
            raise ValueError(
                f"target is needed: the predictions of {kind} are labels, not numbers on a scale; "
                f"expected one of {short(classes or np.unique(values).tolist())}"
            )
        if target is not None and _is_a(estimator, "regressor"):
            raise ValueError(f"target={target!r} is for classifiers; {kind} has no classes")
        return Response(_label_score(values, target, classes), method, target)
    if values.ndim == 1:  # two classes: positive for the second
        if target is None:
            return Response(values, method, classes[1] if len(classes) == 2 else None)
        if not classes:
            raise ValueError(f"target={target!r} is for classifiers; {kind} has no classes")
        check_target(target, classes)
        return Response(values if target == classes[1] else -values, method, target)
    if method == "decision_function" and len(classes) != values.shape[1]:
        raise ValueError(
            f"score={kind} has {values.shape[1]} decision values for {len(classes)} classes; "
            "expected one per class"
        )
    columns = classes or list(range(values.shape[1]))
    if target is None:
        if len(columns) > 2 or method == "predict":
            raise ValueError(f"target is needed with several outputs; expected one of {columns}")
        target = columns[-1]
    check_target(target, columns)
    return Response(values[:, columns.index(target)], method, target)


def _is_a(estimator: Any, kind: str) -> bool:
    """Whether an estimator calls itself a "regressor" or a "clusterer"."""
    if not _is_sklearn(estimator):
        return getattr(estimator, "_estimator_type", None) == kind
    from sklearn.utils import get_tags

    return get_tags(estimator).estimator_type == kind


def check_target(target: Any, columns: list) -> None:
    """Raise unless `target` is among the classes or columns of a score."""
    if target not in columns:
        raise ValueError(f"target={target!r} is unknown; expected one of {short(columns, 8)}")


def _label_score(labels: ArrayLike, target: Any, classes: Sequence = ()) -> np.ndarray:
    labels = np.asarray(labels)
    if target is not None:
        check_target(target, list(classes) or np.unique(labels).tolist())
        return (labels == target).astype(float)
    if labels.ndim == 1 and labels.dtype.kind not in "biuf":
        seen = np.unique(labels.astype(str))[:5].tolist()
        raise ValueError(f"score holds labels such as {seen}; name the one that is meant as target")
    return labels
