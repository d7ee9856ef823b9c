"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
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
    if method == "callable" and target is not None:
        raise ValueError(f"target={target!r} is for estimators and labels, not for a callable")
    if method in RESPONSE_METHODS:
        response = _of_target(score, method, values, target)
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
    method, answer = _answer(score, table, response_method)
    values = np.asarray(answer if method not in RESPONSE_METHODS else [])
    if method in RESPONSE_METHODS:
        found = {
            target: s
            for output in _outputs(score, answer)
            for target, s in _by_target(score, method, *output).items()
        }
    elif values.ndim == 2:
        names = Table(answer).names if hasattr(answer, "columns") else range(values.shape[1])
        found = dict(zip(names, values.T, strict=True))
    else:
        labels = np.unique(values).tolist() if values.dtype.kind in "biuUO" else []
        found = {label: values == label for label in labels}
    if not found:
        raise ValueError(
            f"estimator={type(score).__name__} has no classes and one output; expected several "
            "(for one score, use firm)"
        )
    return [
        Response(check_array("score", s, 1, (table.n,)), method, target)
        for target, s in found.items()
    ]


def is_model(score: Score) -> bool:
    """Return whether a score has still to be evaluated: an estimator or a callable."""
    return callable(score) or any(hasattr(score, method) for method in (*RESPONSE_METHODS, "fit"))


def _answer(score: Score, table: Table, response_method: str) -> tuple[str, Any]:
    """Return how a score was asked for the rows of a table, and its answer."""
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    if score is None or isinstance(score, str):
        raise ValueError(
            f"score={score!r} must be a fitted model, a function of X, or an array of a score per "
            "row; it comes first: firm(model, X)"
        )
    if isinstance(score, type):
        raise ValueError(f"score={score.__name__} is a class; expected a fitted instance of it")
    method = "values"
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        method = _method(score, response_method)
        score = getattr(score, method)(table.data)
    elif callable(score):
        method, torch = "callable", sys.modules.get("torch")
        module = torch is not None and isinstance(score, torch.nn.Module)
        score = _of_module(score, table, torch) if module else score(table.data)
    elif hasattr(score, "fit") or any(name.startswith("predict_") for name in dir(score)):
        own = [f"score.{name}" for name in dir(score) if name.startswith("predict_")]
        raise ValueError(
            f"score={type(score).__name__} has none of the methods {list(RESPONSE_METHODS)}; "
            f"expected a function of X, such as {' or '.join(own[:3]) or 'lambda X: ...'}"
        )
    else:
        table.check_rows("score", score)
    check_unmasked("score", score)
    return method, as_numpy(score)


def _of_module(module: Any, table: Table, torch: Any) -> Any:
    """Return what a torch module gives for a tensor of the rows."""
    kind, X = type(module).__name__, table.data
    if module.training:
        raise ValueError(f"score={kind} is in training mode; call its eval() first")
    if not isinstance(X, torch.Tensor):
        weight = next(iter(module.parameters()), None)
        like = {} if weight is None else {"dtype": weight.dtype, "device": weight.device}
        check_memory("X as a dense tensor", X.shape)
        try:
            dense = X.toarray() if is_sparse(X) else X
            X = torch.as_tensor(np.asarray(dense, dtype=float), **like)
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
    if hasattr(estimator, "__sklearn_tags__"):
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


def _is_clusterer(estimator: Any) -> bool:
    tags = getattr(estimator, "__sklearn_tags__", None)
    own = tags().estimator_type if tags else getattr(estimator, "_estimator_type", None)
    return own == "clusterer"


def _outputs(estimator: Any, answer: Any) -> list[tuple[np.ndarray, list, Any]]:
    """Return values, classes and number of each output that has classes of its own, or of all."""
    classes: Any = getattr(estimator, "classes_", [])
    if not (isinstance(classes, list) and classes and np.ndim(classes[0]) == 1):
        return [(np.asarray(answer), np.asarray(classes).tolist(), None)]
    columns = answer if isinstance(answer, list) else np.asarray(answer).T
    several = enumerate(zip(columns, classes, strict=True))
    return [(np.asarray(values), np.asarray(own).tolist(), j) for j, (values, own) in several]


def _by_target(
    estimator: Any, method: str, values: np.ndarray, classes: list, output: Any = None
) -> dict[Any, np.ndarray]:
    """Return the score of each class or column; nothing for a single score without classes."""
    targets = classes
    if values.ndim == 2 and (classes or values.shape[1] > 1):
        targets, scores = classes or list(range(values.shape[1])), values.T
        if len(targets) != len(scores):
            raise ValueError(
                f"score={type(estimator).__name__} has {len(scores)} values per row for "
                f"{len(targets)} classes; expected one per class"
            )
    elif method == "predict":
        if not classes and _is_clusterer(estimator):
            targets = np.unique(values).tolist()
        scores = [values == target for target in targets]
    else:  # two classes: positive for the second
        scores = [1 - values if method == "predict_proba" else -values, values] if classes else []
    return {
        target if output is None else (output, target): s
        for target, s in zip(targets, scores, strict=True)
    }


def _of_target(estimator: Any, method: str, answer: Any, target: Any) -> Response:
    """Take the score of one class or output from the answer of an estimator."""
    kind, outputs = type(estimator).__name__, _outputs(estimator, answer)
    if outputs[0][2] is not None:
        pair = isinstance(target, tuple) and len(target) == 2
        output: Any = target[0] if pair else target
        if output not in range(len(outputs)):
            raise ValueError(
                f"score={kind} has several outputs with classes of their own and target={target!r};"
                f" expected one of {list(range(len(outputs)))}, or (output, class)"
            )
        outputs, target = [outputs[output]], target if pair else None
    [(values, classes, output)] = outputs
    found = _by_target(estimator, method, values, classes, output)
    targets = list(found)
    if target is None:
        labels = values.ndim == 1 and method == "predict"
        if not found or (labels and len(classes) == 2 and values.dtype.kind in "biuf"):
            return Response(values, method)
        if len(classes) != 2:
            raise ValueError(
                f"target is needed: {kind} has several classes or outputs; expected one of "
                f"{short(targets, 8)}, or firm_by_class for all of them"
            )
        target = targets[1]
    elif not found:
        raise ValueError(f"target={target!r} is for classifiers; {kind} has no classes")
    check_target(target, targets)
    return Response(found[target], method, target)


def check_target(target: Any, targets: list) -> None:
    """Raise unless `target` is among the classes or columns of a score."""
    if target not in targets:
        raise ValueError(f"target={target!r} is unknown; expected one of {short(targets, 8)}")


def _label_score(labels: Any, target: Any) -> np.ndarray:
    """Return numbers as they are, and labels as the indicator of the target."""
    labels = np.asarray(labels)
    if target is not None:
        check_target(target, np.unique(labels).tolist())
        return labels == target
    numbers = labels.dtype.kind in "biuf" or all(isinstance(v, Real | Decimal) for v in labels.flat)
    if labels.ndim == 1 and not numbers:
        seen = np.unique(labels.astype(str))[:5].tolist()
        raise ValueError(f"score holds labels such as {seen}; name the one that is meant as target")
    return labels
