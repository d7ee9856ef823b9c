"""The feature f(x): any function of the inputs, used by the model or not (Section 2).

Each builder returns a callable ``f(X) -> (n,)`` whose name labels it in tables and figures. Columns
are given by name or position.
"""

from firmlib.features.builders import (
    Feature,
    conjunction,
    coordinate,
    linear,
    literal,
    product,
    threshold,
    xor,
)
from firmlib.features.resolve import Group, Pairs, check_given, check_names, exclude, resolve

__all__ = [
    "Feature", "Group", "Pairs", "check_given", "check_names", "conjunction", "coordinate",
    "exclude", "linear", "literal", "product", "resolve", "threshold", "xor",
]  # fmt: skip
