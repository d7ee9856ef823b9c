"""The feature f(x): any function of the inputs, used by the model or not (Section 2).

Each builder returns a callable ``f(X) -> (n,)`` whose name labels it in tables and figures. Columns
are given by name or position.
"""

from firmlib.features.builders import (
    Feature,  # noqa: F401 - for other rooms
    conjunction,
    coordinate,
    linear,
    literal,
    product,
    threshold,
    xor,
)
from firmlib.features.reading import (
    Group,
    Pairs,
    check_given,  # noqa: F401
    check_names,  # noqa: F401
    exclude,
    resolve,  # noqa: F401
)

__all__ = [
    "Group", "Pairs", "conjunction", "coordinate", "exclude", "linear", "literal", "product",
    "threshold", "xor",
]  # fmt: skip
