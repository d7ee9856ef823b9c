"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from firmlib.tables.checks import (
    as_numpy,
    check_array,
    check_memory,
    check_option,
    check_unmasked,
    short,
)
from firmlib.tables.table import Table, is_sparse

__all__ = ["as_score", "class_scores"]

Score = Any  # a fitted estimator, a callable X -> (n,), or an array (n,)

RESPONSE_METHODS = ("decision_function", "predict_proba", "predict", "score_samples")


class Response(NamedTuple):
    """A score for every row, the method that gave it, and the class or output it is for."""

    values: np.ndarray
    method: str
    target: Any = None


def as_score(
    score: Score, X: Any, *, response_method: str = "auto", target: Any = None
) -> np.ndarray:
    """Evaluate a score on every row of `X`.

    Parameters
    ----------
    score : fitted estimator, callable, torch module or array of shape (n,)
        A callable takes `X` as it is and returns n numbers. An array holds the scores already;
        labels count as scores, and with `target` they become the indicator of that label.
    X : array or data frame with n rows
    response_method : str, default "auto"
        What an estimator is asked for: "decision_function", "predict_proba", "predict" or
        "score_samples". "auto" takes the first of these that it has.
    target : label, column or (column, label), default None
        The class (by default the second of two), the cluster, or the column of a prediction with
        several outputs; for a classifier with several outputs, the output and its class.

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
        A score per class, cluster, output or column; per (output, class) for a classifier with
        several outputs; per label, its indicator, for an array of labels of shape (n,).
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


def respond(
    score: Score, table: Table, *, response_method: str = "auto", target: Any = None
) -> Response:
    """Return the score of every row of a table, with what was asked for."""
    if isinstance(score, Response):  # one of `respond_all`
        return score
    method, values = _answer(score, table, response_method)
    if method in RESPONSE_METHODS:
        response = _of_output(score, method, values, target)
    elif method == "callable" and target is not None:
        raise ValueError(f"target={target!r} is for estimators and labels, not for a callable")
    else:
        values = values if method == "callable" else _label_score(values, target)
        response = Response(values, method, target)
    values = response.values
    if np.ndim(values) == 2 and np.shape(values)[1] == 1 and method != "values":
        values = np.asarray(values)[:, 0]
    if np.ndim(values) == 2:
        raise ValueError(
            f"score gives {np.shape(values)[1]} numbers per row, of shape {np.shape(values)}; "
            "expected one, or firm_by_class, which measures every output"
        )
    return response._replace(values=check_array("score", values, 1, (table.n,)))


def respond_all(score: Score, table: Table, *, response_method: str = "auto") -> list[Response]:
    """Return the score of every class or output, with what was asked for."""
    method, values = _answer(score, table, response_method)
    if method in RESPONSE_METHODS:
        found = [_of_output(score, method, values, target) for target in _targets(score, values)]
    elif np.ndim(values) == 2:
        frame = hasattr(values, "columns")
        names = Table(values).names if frame else range(np.shape(values)[1])
        columns = np.asarray(values).T
        found = [Response(s, method, name) for name, s in zip(names, columns, strict=True)]
    else:
        values = np.asarray(values)
        labels = np.unique(values).tolist() if values.dtype.kind in "biuUO" else []
        found = [Response(_label_score(values, c), method, c) for c in labels]
    if not found:
        raise ValueError(
            f"estimator={type(score).__name__} has no classes and one output; expected several "
            "(for one score, use firm)"
        )
    return [
        response._replace(values=check_array("score", response.values, 1, (table.n,)))
        for response in found
    ]


def is_model(score: Score) -> bool:
    """Whether a score has still to be evaluated: an estimator or a callable."""
    return callable(score) or any(hasattr(score, method) for method in (*RESPONSE_METHODS, "fit"))


def _answer(score: Score, table: Table, response_method: str) -> tuple[str, Any]:
    """Return what a score gives for the rows of a table, and how it was asked."""
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    kind = type(score).__name__
    if score is None or isinstance(score, str):
        raise ValueError(
            f"score={score!r} must be a fitted model, a function of X, or an array of a score per "
            "row; it comes first: firm(model, X)"
        )
    if isinstance(score, type):
        raise ValueError(f"score={score.__name__} is a class; expected a fitted instance of it")
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        method = _method(score, response_method)
        return method, getattr(score, method)(table.data)
    if callable(score):
        torch = sys.modules.get("torch")
        module = torch is not None and isinstance(score, torch.nn.Module)
        answer = as_numpy(_of_module(score, table, torch) if module else score(table.data))
        check_unmasked("score", answer)
        return "callable", answer
    if hasattr(score, "fit"):
        own = [f"score.{name}" for name in dir(score) if name.startswith("predict_")]
        cure = f"a function of X, such as {' or '.join(own[:3]) or 'lambda X: ...'}"
        raise ValueError(
            f"score={kind} has none of the methods {list(RESPONSE_METHODS)}; expected a model that "
            f"gives each row a number, or {cure}"
        )
    table.check_rows("score", score)
    check_unmasked("score", score)
    return "values", as_numpy(score)


def _of_module(module: Any, table: Table, torch: Any) -> Any:
    """Return what a torch module gives for a tensor of the rows, like its own weights."""
    kind, X = type(module).__name__, table.data
    if module.training:
        raise ValueError(f"score={kind} is in training mode; call its eval() first")
    if not isinstance(X, torch.Tensor):
        weight = next(iter(module.parameters()), None)
        like = {} if weight is None else {"dtype": weight.dtype, "device": weight.device}
        if is_sparse(X):
            check_memory("X as a dense tensor", X.shape)
            X = X.toarray()
        try:
            X = torch.as_tensor(np.asarray(X, dtype=float), **like)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"score={kind} takes a tensor of numbers, but X holds others ({error}); expected a "
                "function that makes a tensor of X, such as lambda X: model(encode(X))"
            ) from error
    with torch.no_grad():
        return module(X)


def _method(estimator: Any, response_method: str) -> str:
    """Return the method that a fitted estimator is asked for."""
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
    inner = estimator
    while hasattr(inner, "best_estimator_") or hasattr(inner, "_final_estimator"):
        inner = getattr(inner, "best_estimator_", None) or inner._final_estimator
    pairwise = getattr(inner, "decision_function_shape", None) == "ovo"
    if method == "decision_function" and pairwise and len(getattr(inner, "classes_", ())) > 2:
        raise ValueError(
            f"score={kind} gives one decision value per pair of classes; expected one per class "
            "(decision_function_shape='ovr', or response_method='predict_proba')"
        )
    return method


def _is_sklearn(estimator: Any) -> bool:
    """Whether it is an estimator of scikit-learn, which is not imported to find out."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(estimator, base.BaseEstimator)


def _is_a(estimator: Any, kind: str) -> bool:
    """Whether an estimator calls itself a "regressor" or a "clusterer"."""
    if not _is_sklearn(estimator):
        return getattr(estimator, "_estimator_type", None) == kind
    from sklearn.utils import get_tags

    return get_tags(estimator).estimator_type == kind


def _several_outputs(classes: Any) -> bool:
    """Whether a classifier has several outputs with classes of their own."""
    return isinstance(classes, list) and bool(classes) and np.ndim(classes[0]) == 1


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


def _of_output(estimator: Any, method: str, values: Any, target: Any) -> Response:
    """Take the score of one class or output from the answer of an estimator."""
    classes: Any = getattr(estimator, "classes_", [])
    if not _several_outputs(classes):
        values = np.asarray(as_numpy(values))
        return _of_class(estimator, method, values, np.asarray(classes).tolist(), target)
    pair: Any = target if isinstance(target, tuple) and len(target) == 2 else (target, None)
    output, label = pair
    if output not in range(len(classes)):
        raise ValueError(
            f"score={type(estimator).__name__} has several outputs with classes of their own and "
            f"target={target!r}; expected one of {list(range(len(classes)))}, or (output, class)"
        )
    values = values[output] if isinstance(values, list) else np.asarray(values)[:, output]
    own = np.asarray(classes[output]).tolist()
    response = _of_class(estimator, method, np.asarray(values), own, label)
    return response._replace(target=(output, response.target))


def _of_class(
    estimator: Any, method: str, values: np.ndarray, classes: list, target: Any
) -> Response:
    """Take the score of one class, or one column, from the answer of an estimator."""
    kind = type(estimator).__name__
    if values.ndim == 2 and values.shape[1] == 1 and target is None:
        return Response(values[:, 0], method)
    if values.ndim == 2:
        return _of_column(kind, method, values, classes, target)
    labels = method == "predict"
    if target is not None and (_is_a(estimator, "regressor") or not (classes or labels)):
        raise ValueError(f"target={target!r} is for classifiers; {kind} has no classes")
    if labels:
        if target is None and len(classes) == 2 and values.dtype.kind not in "biuf":
            target = classes[1]
        if target is None and (len(classes) > 2 or _is_a(estimator, "clusterer")):
            raise ValueError(
                f"target is needed: the predictions of {kind} are labels, not numbers on a scale; "
                f"expected one of {short(classes or np.unique(values).tolist())}"
            )
        return Response(_label_score(values, target, classes), method, target)
    if target is None:  # two classes: positive for the second
        return Response(values, method, classes[1] if len(classes) == 2 else None)
    check_target(target, classes)
    other = 1 - values if method == "predict_proba" else -values
    return Response(values if target == classes[1] else other, method, target)


def _of_column(kind: str, method: str, values: np.ndarray, classes: list, target: Any) -> Response:
    """Take one column, that of a class or an output, from the answer of an estimator."""
    width = values.shape[1]
    if method == "decision_function" and len(classes) != width:
        raise ValueError(
            f"score={kind} has {width} decision values for {len(classes)} classes; expected one "
            "per class"
        )
    columns = classes or list(range(width))
    if target is None and (len(columns) > 2 or method == "predict"):
        raise ValueError(
            f"target is needed with several outputs; expected one of {columns}, or firm_by_class "
            "for all of them"
        )
    target = columns[-1] if target is None else target
    check_target(target, columns)
    return Response(values[:, columns.index(target)], method, target)


def check_target(target: Any, columns: list) -> None:
    """Raise unless `target` is among the classes or columns of a score."""
    if target not in columns:
        raise ValueError(f"target={target!r} is unknown; expected one of {short(columns, 8)}")


def _label_score(labels: Any, target: Any, classes: Sequence = ()) -> np.ndarray:
    labels = np.asarray(labels)
    if target is not None:
        check_target(target, list(classes) or np.unique(labels).tolist())
        return (labels == target).astype(float)
    numbers = labels.dtype.kind in "biuf" or all(isinstance(v, Real | Decimal) for v in labels.flat)
    if labels.ndim == 1 and not numbers:
        seen = np.unique(labels.astype(str))[:5].tolist()
        raise ValueError(f"score holds labels such as {seen}; name the one that is meant as target")
    return labels
