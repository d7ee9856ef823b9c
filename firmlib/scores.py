"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from firmlib.tables.checks import as_numpy, check_array, check_option, check_unmasked, short
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
    score : fitted estimator, callable X -> (n,), torch module or array of scores (n,)
    X : array or data frame with n rows
    response_method : str, default "auto"
        One of "decision_function", "predict_proba", "predict" and "score_samples", by default the
        first that an estimator has.
    target : label, column or (column, label), default None
        The class (by default the second of two), the cluster, the output, or the output and its
        class. An array of labels becomes the indicator of this label.

    Examples
    --------
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
    estimator : fitted estimator, callable X -> (n, k), or array of shape (n, k) or (n,)
        A score per class, cluster, output, (output, class) or column; of labels (n,), an indicator
        per label.
    X, response_method
        As for `as_score`.

    Examples
    --------
    >>> class_scores(["low", "top", "mid"], np.zeros((3, 1)))["top"]
    array([0., 1., 0.])
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
    if method == "values":
        values = _label_score(values, target)
    elif method != "callable":
        values, target = _of_target(score, method, values, target)
    if np.ndim(values) == 2 and np.shape(values)[1] == 1 and method != "values":
        values = np.asarray(values)[:, 0]
    if np.ndim(values) == 2:
        raise ValueError(
            f"score gives {np.shape(values)[1]} numbers per row, of shape {np.shape(values)}; "
            "expected one, or firm_by_class, which measures every output"
        )
    return Response(check_array("score", values, 1, (table.n,)), method, target)


def respond_all(score: Score, table: Table, *, response_method: str = "auto") -> list[Response]:
    """Return the score of every class or output, with what was asked for."""
    method, answer = _answer(score, table, response_method)
    found: dict[Any, np.ndarray] = {}
    if method in RESPONSE_METHODS:
        found = _by_target(score, method, answer)
    elif np.ndim(answer) == 2:
        names = Table(answer).names if hasattr(answer, "columns") else range(np.shape(answer)[1])
        found = dict(zip(names, np.asarray(answer).T, strict=True))
    elif (values := np.asarray(answer)).dtype.kind in "biuUO":
        found = {label: values == label for label in np.unique(values).tolist()}
    if not found:
        raise ValueError(
            f"estimator={type(score).__name__} has no classes and one output; use firm"
        )
    n = (table.n,)
    return [Response(check_array("score", s, 1, n), method, key) for key, s in found.items()]


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
    own = [f"score.{name}" for name in dir(score) if name.startswith("predict_")]
    method = "values"
    if any(hasattr(score, method) for method in RESPONSE_METHODS):
        method = _method(score, response_method)
        score = getattr(score, method)(table.data)
    elif callable(score):
        method, torch = "callable", sys.modules.get("torch")
        module = torch is not None and isinstance(score, torch.nn.Module)
        score = _of_module(score, table, torch) if module else score(table.data)
    elif hasattr(score, "fit") or own:
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
        try:
            dense = X.toarray() if is_sparse(X) else X
            X = torch.as_tensor(np.asarray(dense, dtype=float), **like)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"score={kind} takes a tensor of numbers, but X holds others ({error}); expected a "
                "function, such as lambda X: model(encode(X))"
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


def _by_target(estimator: Any, method: str, answer: Any) -> dict[Any, np.ndarray]:
    """Return the score of each class, column or (output, class); nothing if there is only one."""
    classes: Any = getattr(estimator, "classes_", [])
    if not (isinstance(classes, list) and classes and np.ndim(classes[0]) == 1):
        return _by_class(estimator, method, np.asarray(answer), np.asarray(classes).tolist())
    columns = answer if isinstance(answer, list) else np.asarray(answer).T
    return {
        (j, target): s
        for j, (values, own) in enumerate(zip(columns, classes, strict=True))
        for target, s in _by_class(estimator, method, np.asarray(values), own.tolist()).items()
    }


def _by_class(
    estimator: Any, method: str, values: np.ndarray, classes: list
) -> dict[Any, np.ndarray]:
    """Return the score of each class, cluster or column of one output."""
    if values.ndim == 2 and (classes or values.shape[1] > 1):
        targets, scores = classes or list(range(values.shape[1])), values.T
        if len(targets) != len(scores):
            kind = type(estimator).__name__
            raise ValueError(f"score={kind} has {len(scores)} values for {len(targets)} classes")
        return dict(zip(targets, scores, strict=True))
    if method == "predict":
        tags = getattr(estimator, "__sklearn_tags__", None)
        if not classes and tags is not None and tags().estimator_type == "clusterer":
            classes = np.unique(values).tolist()
        return {label: values == label for label in classes}
    first = 1 - values if method == "predict_proba" else -values  # two classes: for the second
    return dict(zip(classes, (first, values), strict=True)) if classes else {}


def _of_target(estimator: Any, method: str, answer: Any, target: Any) -> tuple[np.ndarray, Any]:
    """Return the score of one class or output of an estimator's answer, and which one it is."""
    kind, found = type(estimator).__name__, _by_target(estimator, method, answer)
    if not found and target is not None:
        raise ValueError(f"target={target!r} is for classifiers; {kind} has no classes")
    targets = list(found)
    if target is None:
        two = len(found) == 2 and hasattr(estimator, "classes_") and type(targets[0]) is not tuple
        labels = np.asarray(answer) if method == "predict" else np.empty(0, object)
        if not found or (two and labels.ndim == 1 and labels.dtype.kind in "biuf"):
            return np.asarray(answer), None
        if not two:
            raise ValueError(
                f"target is needed: {kind} has several classes or outputs; expected one of "
                f"{short(targets, 8)}, or firm_by_class for all of them"
            )
        target = targets[1]
    check_target(target, targets)
    return found[target], target


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
