"""The score s(x): an estimator, a callable or a vector (eq. 1)."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from firmlib.tables.checks import as_numpy, check_array, check_option, is_array, refuse, short
from firmlib.tables.table import Table, is_sparse

__all__ = ["as_score", "class_scores"]

RESPONSE_METHODS = ("decision_function", "predict_proba", "predict", "score_samples")
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
    two = len(getattr(score, "classes_", ())) == 2
    plain = method not in RESPONSE_METHODS or (method == "predict" and two)
    one = plain and np.shape(answer)[1:] in [(), (1,)]
    numbers = one and pd.api.types.infer_dtype(np.ravel(answer)) not in ("string", "bytes")
    found = {} if target is None and numbers else _by_target(score, method, answer)
    if target is None and two and len(found) == 2:
        target = [*found][1]  # of two classes, the second
    if (found or target is not None) and target not in [*found]:
        known = f"{short([*found], 8)}, the classes or outputs of score={type(score).__name__}"
        raise ValueError(f"target={target!r} must be one of {known}")
    return _checked(found.get(target, answer), table, method, target)


def respond_all(score: Score, table: Table, response_method: str) -> list[Response]:
    """Return the score of every class or output, with its method and target."""
    method, answer = _answer(score, table, response_method)
    found = _by_target(score, method, answer)
    if not found:
        raise ValueError(f"estimator={type(score).__name__} has no classes and one output")
    return [_checked(values, table, method, target) for target, values in found.items()]


def _checked(values: Any, table: Table, method: str, target: Any) -> Response:
    values = np.asanyarray(values)  # which keeps a mask
    values = values[:, 0] if values.shape[1:] == (1,) else values
    return Response(check_array("score", values, 1, (table.n,)), method, target)


def _answer(score: Score, table: Table, response_method: str) -> tuple[str, Any]:
    """Evaluate a score on the rows of a table; return the method and its values."""
    methods = [name for name in RESPONSE_METHODS if hasattr(score, name)]
    check_option("response_method", response_method, ("auto", *(methods or RESPONSE_METHODS)))
    if isinstance(score, type | str) or not (methods or callable(score) or is_array(score)):
        own = [f"score.{name}" for name in dir(score) if name.startswith("predict_")]
        call = " or ".join(own[:3]) or "lambda X: ..."
        wanted = f"a fitted model, a function of X (such as {call}) or an array (n,)"
        raise ValueError(f"score={score!r} must be {wanted}")
    if methods:
        method = methods[0] if response_method == "auto" else response_method
        options = getattr(score, "get_params", dict)().items()
        ovo = [k for k, v in options if k.endswith("decision_function_shape") and v == "ovo"]
        if ovo and method == "decision_function" and len(score.classes_) > 2:
            raise ValueError(f"score={score!r} has a value per pair of classes; set {ovo[0]}='ovr'")
        return method, as_numpy(getattr(score, method)(table.data))
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(score, torch.nn.Module):
        return "callable", as_numpy(_of_module(score, torch, table.data))
    if callable(score):
        return "callable", as_numpy(score(table.data))
    table.check_rows("score", score)
    return "values", as_numpy(score)


def _of_module(module: Any, torch: Any, X: Any) -> Any:
    """Evaluate a torch module on a tensor of the rows."""
    kind = type(module).__name__
    if module.training:
        raise ValueError(f"score={kind} is in training mode; call eval() on it first")
    if not isinstance(X, torch.Tensor):
        like = next(iter(module.parameters()), torch.zeros(0, dtype=torch.float64))
        dense = check_array(f"X of score={kind}", X.toarray() if is_sparse(X) else X, 2)
        X = torch.as_tensor(dense, dtype=like.dtype, device=like.device)
    with torch.no_grad():
        return module(X)


def _by_target(score: Score, method: str, answer: Any, own: Any = None) -> dict[Any, Any]:
    """Return the score of each class, column, (output, class) or label; nothing if there is one."""
    classes = getattr(score, "classes_", []) if own is None else own
    if isinstance(classes, list) and classes and np.ndim(classes[0]) == 1:
        columns = answer if isinstance(answer, list) else np.asarray(answer).T
        each = [_by_target(score, method, *one) for one in zip(columns, classes, strict=True)]
        return {(j, target): s for j, found in enumerate(each) for target, s in found.items()}
    values, targets = np.asanyarray(answer), np.asarray(classes).tolist()  # which keeps a mask
    if values.ndim == 2 and (targets or values.shape[1] > 1 or method not in RESPONSE_METHODS):
        named = Table(answer).names if hasattr(answer, "columns") else range(values.shape[1])
        return dict(zip(targets or named, values.T, strict=True))
    if method in ("decision_function", "predict_proba"):  # of two classes it is for the second
        first = 1 - values if method == "predict_proba" else -values
        return dict(zip(targets, (first, values), strict=True)) if targets else {}
    tags = getattr(score, "__sklearn_tags__", None)
    clusters = tags is not None and tags().estimator_type == "clusterer"
    if clusters or (method not in RESPONSE_METHODS and values.dtype.kind != "f"):
        refuse("score must not be missing", pd.isna(values), values, "missing labels")
        targets = np.unique(values).tolist()
    return {label: values == label for label in targets}
