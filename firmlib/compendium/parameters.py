"""Checks of a notebook's parameters, with messages for people who set them through papermill."""

from typing import Any

from firmlib.tables.checks import check_option

_EXAMPLES = {bool: "false", list: "[1, 2]", int: "10", float: "0.5"}


def require(
    name: str, value: Any, kind: type, *,
    low: float | None = None, high: float | None = None, options: tuple | None = None,
) -> None:  # fmt: skip
    """Raise unless a parameter has the right type and lies within its bounds.

    `kind` is int, float (an int will do), bool, str or list. The bounds are included; for a list,
    bounds and `options` apply to every entry.

    Examples
    --------
    >>> from firmlib.compendium.parameters import require
    >>> require("flag", "false", bool)
    Traceback (most recent call last):
    ...
    ValueError: parameter flag='false' is text, expected bool; with papermill write, for example,
    -y "flag: false"
    """
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        given = f"{type(value).__name__}, expected {kind.__name__}"
        if isinstance(value, str):
            given = f"text, expected {kind.__name__}; with papermill write, for example, "
            given += f'-y "{name}: {_EXAMPLES[kind]}"'
        raise ValueError(f"parameter {name}={value!r} is {given}")
    if kind is list and not value:
        raise ValueError(f"parameter {name}=[] is empty, expected at least one entry")
    for entry in value if isinstance(value, list) else [value]:
        if (low is not None and not entry >= low) or (high is not None and not entry <= high):
            bounds = f"at least {low}" if high is None else f"between {low} and {high}"
            bounds = f"at most {high}" if low is None else bounds
            raise ValueError(f"parameter {name}={value!r} must be {bounds}")
        if options is not None:
            check_option(f"parameter {name}", entry, options)
