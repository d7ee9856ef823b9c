"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_array, check_option, check_unmasked, short
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


def class_scores(
    estimator: Score, X: Any, *, response_method: str = "auto"
) -> dict[Any, np.ndarray]:
    """Evaluate the score of every class or output, from one pass of predictions.

    Parameters
    ----------
    estimator : fitted estimator, callable X -> (n, k), or array of shape (n, k)
        A classifier has a score per class, a clusterer per cluster, a regressor per output; a
        classifier with several outputs per (output, class), a frame per column. Labels, an array
        of shape (n,), have one per label: its indicator.
    X : array or data frame with n rows
    response_method : str, default "auto"
        As for `as_score`.

    Returns
    -------
    dict of class or output to ndarray of shape (n,)

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from firmlib.scores import class_scores
    >>> model = LogisticRegression().fit([[0], [1], [2]], ["low", "mid", "top"])
    >>> class_scores(model, [[0], [2]], response_method="predict")["top"]
    array([0., 1.])
    """
    found = respond_all(estimator, Table.of(X), response_method=response_method)
    return {response.target: response.values for response in found}


def respond_all(score: Score, table: Table, *, response_method: str = "auto") -> list[Response]:
    """Return the score of every class or output, with what was asked."""
    _check_instance(score)
    kind = type(score).__name__
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        method = _method(score, response_method)
        values: Any = getattr(score, method)(table.data)
        found = [_of_output(score, method, values, target) for target in _targets(score, values)]
    else:
        method = "callable" if callable(score) else "values"
        table.check_rows("score", score)
        answer: Any = score(table.data) if callable(score) else score
        check_unmasked("score", answer)
        values = np.asarray(answer)
        if values.ndim == 2:
            names = Table(answer).names if hasattr(answer, "columns") else range(values.shape[1])
            found = [Response(s, method, name) for name, s in zip(names, values.T, strict=True)]
        else:
            labels = np.unique(values).tolist() if values.dtype.kind in "biuUO" else []
            found = [Response(_label_score(values, c), method, c) for c in labels]
    if not found:
        raise ValueError(
            f"estimator={kind} has no classes and one output; expected several (of one score, use "
            "firm)"
        )
    return [
        response._replace(values=check_array("score", response.values, 1, (table.n,)))
        for response in found
    ]


def _targets(estimator: Any, values: Any) -> list:
    """Return all that can be the target in the answer of an estimator."""
    classes: Any = getattr(estimator, "classes_", [])
    if _several_outputs(classes):
        return [(j, c) for j, labels in enumerate(classes) for c in np.asarray(labels).tolist()]
    if len(classes):
        return np.asarray(classes).tolist()
    if np.ndim(values) == 2:
        return list(range(np.shape(values)[1]))
    return np.unique(values).tolist() if _is_a(estimator, "clusterer") else []


def respond(
    score: Score, table: Table, *, response_method: str = "auto", target: Any = None
) -> Response:
    """Return the score of every row of a table, with what was asked."""
    if isinstance(score, Response):  # one of `respond_all`
        return score
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    _check_instance(score)
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        response = _ask(score, table, response_method, target)
    elif callable(score):
        if target is not None:
            raise ValueError(f"target={target!r} is for estimators and labels, not for a callable")
        answer: Any = score(table.data)
        check_unmasked("score", answer)
        response = Response(answer, "callable")
    elif hasattr(score, "fit"):
        raise ValueError(
            f"score={type(score).__name__} has none of the methods {list(RESPONSE_METHODS)}; "
            "expected a model that gives each row a number"
        )
    else:
        table.check_rows("score", score)
        check_unmasked("score", score)
        response = Response(_label_score(score, target), "values", target)
    values = response.values
    if np.ndim(values) == 2 and np.shape(values)[1] == 1 and response.method != "values":
        values = np.asarray(values)[:, 0]
    if np.ndim(values) == 2:
        raise ValueError(
            f"score gives {np.shape(values)[1]} numbers per row, of shape {np.shape(values)}; "
            "expected one, or firm_by_class, which measures every output"
        )
    return response._replace(values=check_array("score", values, 1, (table.n,)))


def _check_instance(score: Score) -> None:
    if isinstance(score, type):
        raise ValueError(f"score={score.__name__} is a class; expected a fitted instance of it")


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


def _several_outputs(classes: Any) -> bool:
    """Whether a classifier has several outputs with classes of their own."""
    return isinstance(classes, list) and bool(classes) and np.ndim(classes[0]) == 1


def _ask(estimator: Any, table: Table, response_method: str, target: Any) -> Response:
    """Return what an estimator answers for one class or output."""
    method = _method(estimator, response_method)
    return _of_output(estimator, method, getattr(estimator, method)(table.data), target)


def _of_output(estimator: Any, method: str, values: Any, target: Any) -> Response:
    """Take the score of one class or output from the answer of an estimator."""
    classes: Any = getattr(estimator, "classes_", [])
    if not _several_outputs(classes):
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
        other = 1 - values if method == "predict_proba" else -values
        return Response(values if target == classes[1] else other, method, target)
    if method == "decision_function" and len(classes) != values.shape[1]:
        raise ValueError(
            f"score={kind} has {values.shape[1]} decision values for {len(classes)} classes; "
            "expected one per class"
        )
    columns = classes or list(range(values.shape[1]))
    if target is None:
        if len(columns) > 2 or method == "predict":
            raise ValueError(
                f"target is needed with several outputs; expected one of {columns}, or "
                "firm_by_class for all of them"
            )
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
    numbers = labels.dtype.kind in "biuf" or all(isinstance(v, Real | Decimal) for v in labels.flat)
    if labels.ndim == 1 and not numbers:
        seen = np.unique(labels.astype(str))[:5].tolist()
        raise ValueError(f"score holds labels such as {seen}; name the one that is meant as target")
    return labels
