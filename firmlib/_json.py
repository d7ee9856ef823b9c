"""Results as text that any program reads: numbers, names and options, without rows."""

from __future__ import annotations

import datetime
import json
from dataclasses import fields
from typing import Any

import numpy as np

from firmlib._inference import Estimate

_DATES = {"date": "datetime64[us]", "duration": "timedelta64[us]"}


def dumps(result: Any, version: str) -> str:
    """Return a result as JSON; what is not a number becomes null."""
    left_out = ("kept", "curves", "_places", "estimate")
    values = {f.name: getattr(result, f.name) for f in fields(result) if f.name not in left_out}
    values["estimate"] = {f.name: getattr(result.estimate, f.name) for f in fields(Estimate)}
    values["curves"] = {name: vars(curve) for name, curve in result.curves.items()}
    return json.dumps({"firmlib": version} | _plain(values), ensure_ascii=False, allow_nan=False)


def loads(text: str, result: type, curve: type) -> Any:
    """Return the result that `dumps` wrote."""
    try:
        values = json.loads(text, object_hook=_moment)
        values.pop("firmlib")
        estimate = Estimate(**{k: _array(v) for k, v in values.pop("estimate").items()})
        curves = {k: curve(**_curve(v)) for k, v in values.pop("curves").items()}
        for name in ("methods", "kinds", "feature_names", "given"):
            values[name] = tuple(values.get(name, ()))
        if isinstance(values.get("target"), list):  # of several outputs, (output, class)
            values["target"] = tuple(values["target"])
        values = {k: _array(v) if isinstance(v, list) else v for k, v in values.items()}
        return result(**values, estimate=estimate, curves=curves)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"text must be what FirmResult.to_json wrote: {error!r}") from error


def _moment(values: dict[str, Any]) -> Any:
    """Return the moment that an object stands for, or the object."""
    if values.keys() != {"moment"} or not isinstance(values["moment"], str):
        return values
    import pandas as pd

    return pd.Timestamp(values["moment"])


def _curve(values: dict[str, Any]) -> dict[str, Any]:
    kind, t = values["kind"], values["t"]
    arrays = {k: _array(v) if isinstance(v, list) else v for k, v in values.items() if k != "t"}
    if kind in _DATES:
        missing = np.iinfo("int64").min  # which is NaT
        return arrays | {"t": np.array([missing if v is None else v for v in t]).view(_DATES[kind])}
    numbers = all(v is None or isinstance(v, float) for v in t)
    return arrays | {"t": _array(t) if kind == "number" and numbers else np.array(t, dtype=object)}


def _array(values: Any) -> np.ndarray:
    array = np.array([np.nan if v is None else v for v in values])
    return array if array.dtype == bool else array.astype(float)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        return [None if np.isnat(v) else int(v.astype("int64")) for v in value.astype(value.dtype)]
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, datetime.datetime):
        return {"moment": value.isoformat()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
