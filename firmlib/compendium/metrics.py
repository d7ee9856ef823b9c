"""Scalars that a notebook displays and records for a sweep."""

import json
import math
from typing import Any

import numpy as np

from firmlib.compendium.output import output_dir, write_atomic


class Metrics(dict[str, Any]):
    """Named scalars, displayed one per line with four digits."""

    def __repr__(self) -> str:
        shown = {k: f"{v:.4g}" if isinstance(v, float) else f"{v}" for k, v in self.items()}
        width = max(map(len, shown))
        return "\n".join(f"{name:<{width}}  {value}" for name, value in shown.items())


def record(**scalars: Any) -> Metrics:
    """Add numbers, truth values or strings to metrics.json, for a sweep's table."""
    values = {name: v.item() if isinstance(v, np.generic) else v for name, v in scalars.items()}
    for name, value in values.items():
        if not isinstance(value, int | float | str):
            raise ValueError(f"{name}={value!r} must be a number, a truth value or a text")
    path = output_dir() / "metrics.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    proper = {k: v if isinstance(v, str) or math.isfinite(v) else None for k, v in values.items()}
    write_atomic(path, json.dumps(before | proper, indent=1) + "\n")  # json has no nan
    return Metrics(values)
