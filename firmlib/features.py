"""The feature f(x): any function of the inputs, used by the machine or not (Section 2).

Each builder returns a callable ``f(X) -> (n,)`` whose ``__name__`` labels it in tables and figures.
Columns are named by position or, in a data frame, by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from itertools import product as cartesian
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from firmlib._checks import check_array, check_number, check_option

Feature = Callable[[Any], np.ndarray]
Column = int | str


def column(X: Any, j: Column, table: str = "X") -> np.ndarray:
    """Return column `j` of an array, a sparse matrix or a data frame, as finite numbers."""
    index = column_index(X, j)
    if sparse.issparse(X):
        values = X.tocsc()[:, [index]].toarray().ravel()
    elif hasattr(X, "columns"):
        values = (X.iloc[:, index] if hasattr(X, "iloc") else X[:, index]).to_numpy()
    else:
        values = np.asarray(X)[:, index]
    if values.dtype.kind in "biuf":
        values = np.ascontiguousarray(values, dtype=float)
    return check_array(f"column {column_names(X)[index]!r} of {table}", values, 1)


def column_index(X: Any, j: Column) -> int:
    """Return the position of column `j`, given by name or position."""
    names = column_names(X)
    if isinstance(j, str) and j in names:
        return names.index(j)
    if (
        isinstance(j, int | np.integer)
        and not isinstance(j, bool)
        and -len(names) <= j < len(names)
    ):
        return int(j) % len(names)
    some = f"{names[:8]}{' …' * (len(names) > 8)}"
    raise ValueError(f"feature {j!r} is no column of X; expected one of the {len(names)}: {some}")


def column_names(X: Any) -> list[str]:
    """Return the column names of a data frame, or x0, x1, ... for an array."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    return [f"x{j}" for j in range(shape[1])]


def coordinate(j: Column) -> Feature:
    """f(x) = x_j.

    >>> from firmlib.features import coordinate
    >>> coordinate(1)(np.array([[1, 2], [3, 4]]))
    array([2., 4.])
    """
    return _named(lambda X: column(X, j), _label(j))


def product(*js: Column) -> Feature:
    """f(x) = x_j x_k ..., an interaction of any order.

    >>> from firmlib.features import product
    >>> product(0, 1, 1)(np.array([[1, 2], [3, 4]]))
    array([ 4., 48.])
    """
    if not js:
        raise ValueError("product needs at least one column, got none")
    return _named(lambda X: np.prod([column(X, j) for j in js], axis=0), "·".join(map(_label, js)))


def threshold(j: Column, tau: float) -> Feature:
    """f(x) = 1 where x_j > tau, else 0.

    >>> from firmlib.features import threshold
    >>> threshold(0, 2)(np.array([[1, 2], [3, 4]]))
    array([0., 1.])
    """
    check_number("tau", tau)
    return _named(lambda X: (column(X, j) > tau).astype(float), f"{_label(j)}>{tau:g}")


def literal(j: Column, value: float) -> Feature:
    """f(x) = 1 where x_j = value, else 0: a variable, or with the other value its negation.

    >>> from firmlib.features import literal
    >>> literal(0, 3)(np.array([[1, 2], [3, 4]]))
    array([0., 1.])
    """
    return conjunction({j: value})


def conjunction(values: Mapping[Column, float]) -> Feature:
    """f(x) = 1 where x_j = value for every {j: value}, else 0.

    >>> from firmlib.features import conjunction
    >>> f = conjunction({0: 1, 1: -1})
    >>> f(np.array([[1, -1], [1, 1]])), f.__name__
    (array([1., 0.]), 'x0=1 ∧ x1=-1')
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"conjunction needs a dict of column to value, got {values!r}")
    for j, value in values.items():
        check_number(f"value of column {j!r}", value)
    return _named(
        lambda X: np.all([column(X, j) == value for j, value in values.items()], axis=0).astype(
            float
        ),
        " ∧ ".join(f"{_label(j)}={value:g}" for j, value in values.items()),
    )


def xor(j: Column, k: Column) -> Feature:
    """f(x) = 1 where x_j and x_k differ, else 0.

    >>> from firmlib.features import xor
    >>> xor(0, 1)(np.array([[1, -1], [1, 1]]))
    array([1., 0.])
    """
    return _named(
        lambda X: (column(X, j) != column(X, k)).astype(float), f"{_label(j)} ⊕ {_label(k)}"
    )


def linear(a: ArrayLike) -> Feature:
    """f(x) = a'x, a direction in input space.

    >>> from firmlib.features import linear
    >>> linear([1, -1])(np.array([[1, 2], [3, 5]]))
    array([-1., -2.])
    """
    a = check_array("a", a, 1)

    def f(X: Any) -> np.ndarray:
        if len(column_names(X)) != len(a):
            raise ValueError(f"a has {len(a)} entries, but X has {len(column_names(X))} columns")
        table = X if sparse.issparse(X) else np.asarray(X)
        return check_array("X @ a", table @ a, 1)

    return _named(f, f"a'x[{', '.join(f'{v:g}' for v in a[:4])}{', …' * (len(a) > 4)}]")


@dataclass(frozen=True)
class Group:
    """Several columns as one feature: ``firm(score, X, {"size": ["radius", "area"]})``.

    >>> from firmlib.features import Group
    >>> Group((0, 2))(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1., 3.], [4., 6.]])
    """

    columns: tuple[Column, ...]

    def __call__(self, X: Any) -> np.ndarray:
        """The values of its columns, (n, k)."""
        return np.column_stack([column(X, j) for j in self.columns])


@dataclass(frozen=True)
class Pairs:
    """All pairs of columns as features: ``firm(score, X, Pairs("xor"))``.

    For columns of two values, a hundred thousand pairs are ranked by a few matrix products.

    Parameters
    ----------
    kind : {"product", "conjunction", "xor"}
        Of each pair the product, the conjunctions of either value of the one with either value
        of the other (columns of two values only), or whether they differ.
    columns : sequence of columns, optional
        All by default.

    Examples
    --------
    >>> from firmlib import firm
    >>> from firmlib.features import Pairs
    >>> bits = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
    >>> result = firm(bits[:, 0] != bits[:, 1], bits, Pairs("xor"), rows="population")
    >>> dict(zip(result.feature_names, result.importances.tolist()))
    {'x0 ⊕ x1': 0.5, 'x0 ⊕ x2': 0.0, 'x1 ⊕ x2': 0.5}
    """

    kind: str
    columns: Sequence[Column] | None = None

    def __post_init__(self) -> None:
        check_option("kind", self.kind, ("product", "conjunction", "xor"))

    def indices(self, X: Any) -> list[int]:
        """The positions of the columns, at least two."""
        some = range(len(column_names(X))) if self.columns is None else self.columns
        indices = [column_index(X, j) for j in some]
        if len(set(indices)) < 2 or len(set(indices)) < len(indices):
            raise ValueError(f"columns={list(some)!r} must be two different columns or more")
        return indices

    def features(self, X: Any) -> list[Feature]:
        """Each of them as a function of X."""
        names = column_names(X)
        columns = [names[j] if hasattr(X, "columns") else j for j in self.indices(X)]
        pairs = combinations(columns, 2)
        if self.kind == "conjunction":
            values = {j: two_values(X, j) for j in columns}
            return [
                conjunction({j: a, k: b})
                for j, k in pairs
                for a, b in cartesian(values[j], values[k])
            ]
        return [(product if self.kind == "product" else xor)(j, k) for j, k in pairs]


def two_values(X: Any, j: Column) -> tuple[float, float]:
    """The smaller and the larger value of a column that has no others."""
    values = column(X, j)
    low, high = values.min(), values.max()
    if low == high or np.any((values != low) & (values != high)):
        raise ValueError(f"column {j!r} of X must have two values, got {np.unique(values)[:5]}")
    return float(low), float(high)


def _label(j: Column) -> str:
    return j if isinstance(j, str) else f"x{j}"


def _named(f: Feature, name: str) -> Feature:
    f.__name__ = name
    return f
