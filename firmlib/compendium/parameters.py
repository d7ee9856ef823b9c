"""Checks of a notebook's parameters, with messages for people who set them through papermill."""

import math
from typing import Any

from firmlib.tables.checks import check_number, check_option

_EXAMPLES = {bool: "false", list: "[1, 2]", int: "10", float: "0.5", str: "word"}


def require(
    name: str, value: Any, kind: type, *,
    low: float = -math.inf, high: float = math.inf, options: tuple | None = None,
) -> None:  # fmt: skip
    """Raise unless a parameter has the right type and lies within its bounds.

    `kind` is int, float (an int will do), bool, str or list. The bounds are included; for a list,
    bounds and `options` apply to every entry.
    """
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        wanted = f'{kind.__name__}; with papermill write, say, -y "{name}: {_EXAMPLES[kind]}"'
        raise ValueError(f"parameter {name}={value!r} is {type(value).__name__}, expected {wanted}")
    if kind is list and not value:
        raise ValueError(f"parameter {name}=[] is empty, expected at least one entry")
    for entry in value if isinstance(value, list) else [value]:
        if (low, high) != (-math.inf, math.inf):
            check_number(f"parameter {name}", entry, low, high)
        if options is not None:
            check_option(f"parameter {name}", entry, options)
