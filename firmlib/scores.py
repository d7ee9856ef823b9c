"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from firmlib.tables.checks import (
    RESPONSE_METHODS,
    as_numpy,
    check_array,
    check_option,
    is_model,
    short,
)
from firmlib.tables.table import Table, is_sparse

__all__ = ["as_score", "class_scores"]

Score = Any  # a fitted estimator, a callable X -> (n,), or an array (n,)


class Response(NamedTuple):
    """A score for every row, the method that gave it, and the class or output it is for."""

    values: np.ndarray
    method: str
    target: Any = None


def as_score(
    score: Score, X: Any, *, response_method: str = "auto", target: Any = None
) -> np.ndarray:
    """Evaluate a score on every row of `X`.

    `score` is a fitted estimator, a callable X -> (n,), a torch module, or an array of scores or
    labels. `response_method` is "decision_function", "predict_proba", "predict" or "score_samples";
    by default the first of these that the estimator has. `target` is a class (by default the second
    of two), a cluster, an output or (output, class); or a label, which becomes its indicator.

    >>> as_score(["ham", "spam"], np.zeros((2, 1)), target="spam")
    array([0., 1.])
    """
    return respond(score, Table.of(X), response_method=response_method, target=target).values


def class_scores(
    estimator: Score, X: Any, *, response_method: str = "auto"
) -> dict[Any, np.ndarray]:
    """Evaluate the score of every class, cluster, output or label, in one pass of predictions.

    `estimator` is a fitted estimator, a callable X -> (n, k), an array (n, k) or labels (n,); all
    else is as for `as_score`, such as `response_method`.

    >>> class_scores(["low", "top", "mid"], np.zeros((3, 1)))["top"]
    array([0., 1., 0.])
    """
    found = respond_all(estimator, Table.of(X), response_method)
    return {response.target: response.values for response in found}


def respond(score: Score, table: Table, *, response_method: str, target: Any) -> Response:
    """Return the score of every row of a table, with its method and target."""
    if isinstance(score, Response):  # one of `respond_all`
        return score
    method, answer = _answer(score, table, response_method)
    several = method in RESPONSE_METHODS or np.shape(answer)[1:] not in [(), (1,)]
    found = {}
    if several or target is not None:
        found = _by_target(score, method, answer, getattr(score, "classes_", []))
    if target is None and found:
        if len(found) != 2 or not hasattr(score, "classes_"):
            raise ValueError(
                f"target is needed, because {type(score).__name__} has several classes or outputs; "
                f"expected one of {short([*found], 8)}, or firm_by_class for all of them"
            )
        numbers = method == "predict" and np.asarray(answer).dtype.kind in "biuf"
        target = None if numbers else [*found][1]  # the second of two classes
    elif target is not None and target not in found:
        known = f"{short([*found], 8)}, the targets of score={type(score).__name__}"
        raise ValueError(f"target={target!r} is unknown; expected one of {known}")
    values = np.asanyarray(answer if target is None else found[target])  # which keeps a mask
    values = values[:, 0] if values.shape[1:] == (1,) else values
    if method not in RESPONSE_METHODS and values.dtype.kind in "OUST":
        words = sorted({str(v) for v in values if isinstance(v, str | bytes)})
        if words:
            raise ValueError(f"score holds labels such as {words[:5]}; pass one of them as target=")
    return Response(check_array("score", values, 1, (table.n,)), method, target)


def respond_all(score: Score, table: Table, response_method: str) -> list[Response]:
    """Return the score of every class or output, with its method and target."""
    method, answer = _answer(score, table, response_method)
    found = _by_target(score, method, answer, getattr(score, "classes_", []))
    numbers = method not in RESPONSE_METHODS and np.asarray(answer).dtype.kind == "f"
    if not found or (numbers and np.ndim(answer) == 1):
        kind = type(score).__name__
        raise ValueError(f"estimator={kind} has no classes and one output; use firm")
    n = (table.n,)
    return [Response(check_array("score", s, 1, n), method, key) for key, s in found.items()]


def _answer(score: Score, table: Table, response_method: str) -> tuple[str, Any]:
    """Evaluate a score on the rows of a table; return the method and its values."""
    check_option("response_method", response_method, ("auto", *RESPONSE_METHODS))
    methods = [name for name in RESPONSE_METHODS if hasattr(score, name)]
    if hasattr(score, "__len__") and not isinstance(score, str) and not is_model(score):
        table.check_rows("score", score)
        return "values", as_numpy(score)
    if isinstance(score, type) or not (methods or callable(score)):
        own = [f"score.{name}" for name in dir(score) if name.startswith("predict_")]
        raise ValueError(
            f"score={score!r} must be a fitted model, a function of X (such as "
            f"{' or '.join(own[:3]) or 'lambda X: ...'}) or an array (n,), as in firm(model, X)"
        )
    if methods:
        method = methods[0] if response_method == "auto" else response_method
        if method not in methods:
            kind = type(score).__name__
            raise ValueError(f"response_method={method!r}: {kind} has no such method")
        if method == "decision_function":
            _check_one_per_class(score)
        return method, as_numpy(getattr(score, method)(table.data))
    function: Any = score
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(score, torch.nn.Module):
        return "callable", as_numpy(_of_module(function, torch, table.data))
    return "callable", as_numpy(function(table.data))


def _check_one_per_class(estimator: Any) -> None:
    """Raise if an estimator of several classes has a decision value for each pair of them."""
    options = getattr(estimator, "get_params", dict)()
    pairs = [k for k, v in options.items() if k.endswith("decision_function_shape") and v == "ovo"]
    if pairs and len(getattr(estimator, "classes_", ())) > 2:
        raise ValueError(
            f"score={type(estimator).__name__} gives one decision value per pair of classes; "
            "expected one per class, as with decision_function_shape='ovr'"
        )


def _of_module(module: Any, torch: Any, X: Any) -> Any:
    """Evaluate a torch module on a tensor of the rows."""
    kind = type(module).__name__
    if module.training:
        raise ValueError(f"score={kind} is in training mode; call eval() on it first")
    if not isinstance(X, torch.Tensor):
        like = next(iter(module.parameters()), None)
        dtype, device = getattr(like, "dtype", None), getattr(like, "device", None)
        try:
            dense = np.asarray(X.toarray() if is_sparse(X) else X, dtype=float)
        except (TypeError, ValueError) as error:
            wanted = "takes a tensor of numbers, so pass a function: lambda X: model(encode(X))"
            raise ValueError(f"score={kind} {wanted} ({error})") from error
        X = torch.as_tensor(dense, dtype=dtype, device=device)
    with torch.no_grad():
        return module(X)


def _by_target(score: Score, method: str, answer: Any, classes: Any) -> dict[Any, np.ndarray]:
    """Return the score of each class, column, (output, class) or label; nothing if there is one."""
    if isinstance(classes, list) and classes and np.ndim(classes[0]) == 1:
        columns = answer if isinstance(answer, list) else np.asarray(answer).T
        return {
            (j, target): s
            for j, (values, own) in enumerate(zip(columns, classes, strict=True))
            for target, s in _by_target(score, method, values, own).items()
        }
    values, from_model = np.asanyarray(answer), method in RESPONSE_METHODS  # which keeps a mask
    targets = np.asarray(classes).tolist() if from_model else []
    if values.ndim == 2 and (targets or values.shape[1] > 1 or not from_model):
        named = Table(answer).names if hasattr(answer, "columns") else range(values.shape[1])
        return dict(zip(targets or named, values.T, strict=True))
    if method == "predict" or not from_model:
        tags = getattr(score, "__sklearn_tags__", None)
        clusters = tags is not None and tags().estimator_type == "clusterer"
        if clusters or not from_model:
            targets = np.unique(values).tolist()
        return {label: values == label for label in targets}
    first = 1 - values if method == "predict_proba" else -values  # two classes: for the second
    return dict(zip(targets, (first, values), strict=True)) if targets else {}
