"""The feature f(x): any function of the inputs, used by the model or not (Section 2).

Each builder returns a callable ``f(X) -> (n,)`` whose ``__name__`` labels it in tables and figures.
Columns are named by position or, in a data frame, by name. How `firm` reads its `features` is in
`firmlib._resolve`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from itertools import product as cartesian
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_array, check_number, check_option, short
from firmlib._columns import Column, read
from firmlib._table import Table, is_sparse

__all__ = [
    "Group",
    "Pairs",
    "conjunction",
    "coordinate",
    "linear",
    "literal",
    "product",
    "threshold",
    "xor",
]

Place = int | str  # of a column
Level = Any  # a number, a word, a date, a truth value, or None for missing
Values = Callable[[Table], Column | list[Column]]  # of a feature, or of the columns of a group

_MOMENTS = (str, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


class Feature:
    """A function of the columns of a table, with a name; pickled if the function can be."""

    def __init__(self, name: str, function: Callable[[Table], Column | np.ndarray]) -> None:
        self.__name__, self._function = name, function

    def __call__(self, X: Any) -> np.ndarray:
        """Return the value of every row of X."""
        table = Table.of(X)
        column = self.of(table)
        return column.scale.shown(column.dense(table.count))

    def of(self, table: Table) -> Column:
        """Return its values in the rows of a table that are kept."""
        found = self._function(table)
        return found if isinstance(found, Column) else Column(found)

    def numbers(self, table: Table) -> np.ndarray:
        """Return its values, if they are numbers or stand for an order."""
        column = self.of(table)
        if column.scale.kind == "nominal":
            raise ValueError(
                f"{self.__name__!r} is a category, whose levels are no numbers; expected a number, "
                "or one level of it by features.literal"
            )
        return column.dense(table.count)

    def __repr__(self) -> str:
        return f"<feature {self.__name__}>"


def coordinate(j: Place) -> Feature:
    """Return the feature f(x) = x_j.

    Parameters
    ----------
    j : column name or position

    Examples
    --------
    >>> from firmlib.features import coordinate
    >>> coordinate(1)(np.array([[1, 2], [3, 4]]))
    array([2., 4.])
    """
    return Feature(_label(j), partial(Table.column, j=j))


def product(*js: Place) -> Feature:
    """Return the feature f(x) = x_j x_k ..., an interaction of any order.

    Parameters
    ----------
    *js : column names or positions

    Examples
    --------
    >>> from firmlib.features import product
    >>> product(0, 1, 1)(np.array([[1, 2], [3, 4]]))
    array([ 4., 48.])
    """
    if not js:
        raise ValueError("product needs at least one column, got none")
    return _product([coordinate(j) for j in js])


def threshold(j: Place, tau: Any) -> Feature:
    """Return the feature f(x) = 1 where x_j > tau, else 0; missing where x_j is.

    Parameters
    ----------
    j : column name or position
    tau : float, or date, duration or ordered level, as the column holds them

    Examples
    --------
    >>> from firmlib.features import threshold
    >>> threshold(0, 2)(np.array([[1, 2], [3, 4]]))
    array([0., 1.])
    >>> import pandas as pd
    >>> days = pd.DataFrame({"day": pd.to_datetime(["2009-09-07", "2009-09-11"])})
    >>> threshold("day", "2009-09-08")(days)
    array([0., 1.])
    """
    if not isinstance(tau, _MOMENTS):
        check_number("tau", tau)
    return Feature(f"{_label(j)}>{_written(tau)}", partial(_above, j, tau))


def literal(j: Place, value: Level) -> Feature:
    """Return the feature f(x) = 1 where x_j = value, else 0.

    A variable or, with the other value, its negation; a level of a category; with None, whether
    the column is missing.

    Parameters
    ----------
    j : column name or position
    value : float, word, date, truth value or None

    Examples
    --------
    >>> from firmlib.features import literal
    >>> literal(0, 3)(np.array([[1, 2], [3, 4]]))
    array([0., 1.])
    >>> import pandas as pd
    >>> literal("species", "Adelie")(pd.DataFrame({"species": ["Adelie", "Gentoo", None]}))
    array([1., 0., 0.])
    """
    return conjunction({j: value})


def conjunction(values: Mapping[Place, Level]) -> Feature:
    """Return the feature f(x) = 1 where x_j = value for every {j: value}, else 0.

    Parameters
    ----------
    values : dict of column name or position to value
        Values as for `literal`.

    Examples
    --------
    >>> from firmlib.features import conjunction
    >>> f = conjunction({0: 1, 1: -1})
    >>> f(np.array([[1, -1], [1, 1]])), f.__name__
    (array([1., 0.]), 'x0=1 ∧ x1=-1')
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"conjunction needs a dict of column to value, got {values!r}")
    for j, value in values.items():
        if not isinstance(value, (bool, np.bool_, bytes, type(None), *_MOMENTS)):
            check_number(f"value of column {j!r}", value)
    return _conjunction([(coordinate(j), value) for j, value in values.items()])


def xor(j: Place, k: Place) -> Feature:
    """Return the feature f(x) = 1 where x_j and x_k differ, else 0.

    Parameters
    ----------
    j, k : column names or positions

    Examples
    --------
    >>> from firmlib.features import xor
    >>> xor(0, 1)(np.array([[1, -1], [1, 1]]))
    array([1., 0.])
    """
    return _xor([coordinate(j), coordinate(k)])


def linear(a: ArrayLike) -> Feature:
    """Return the feature f(x) = a'x, a direction in input space.

    Parameters
    ----------
    a : array of shape (d,)

    Examples
    --------
    >>> from firmlib.features import linear
    >>> linear([1, -1])(np.array([[1, 2], [3, 5]]))
    array([-1., -2.])
    """
    a = check_array("a", a, 1)
    name = f"a'x[{', '.join(f'{v:g}' for v in a[:4])}{', …' * (len(a) > 4)}]"
    return Feature(name, partial(_along, a))


def _above(j: Place, tau: Any, table: Table) -> np.ndarray:
    x = coordinate(j).numbers(table)
    least = table.column(j).scale.number("tau", tau)
    if np.isnan(least):
        raise ValueError(f"tau={tau!r} is no level of column {j!r}")
    return np.where(np.isnan(x), np.nan, x > least)


def _along(a: np.ndarray, table: Table) -> np.ndarray:
    if table.width != len(a):
        raise ValueError(f"a has {len(a)} entries, but X has {table.width} columns")
    if is_sparse(table.data):
        return read("X @ a", table.data @ a, table.n, table.keep).values
    return np.column_stack([coordinate(j).numbers(table) for j in range(len(a))]) @ a


def _product(fs: Sequence[Feature]) -> Feature:
    return Feature("·".join(f.__name__ for f in fs), partial(_multiplied, fs))


def _multiplied(fs: Sequence[Feature], table: Table) -> np.ndarray:
    return np.prod([f.numbers(table) for f in fs], axis=0)


def _conjunction(values: Sequence[tuple[Feature, Level]]) -> Feature:
    name = " ∧ ".join(f"{f.__name__}={_written(value)}" for f, value in values)
    return Feature(name, partial(_all_hold, values))


def _all_hold(values: Sequence[tuple[Feature, Level]], table: Table) -> np.ndarray:
    return np.all([_is(f, value, table) for f, value in values], axis=0).astype(float)


def _is(f: Feature, value: Level, table: Table) -> np.ndarray:
    """Return in which rows a feature has a value."""
    column = f.of(table)
    x = column.dense(table.count)
    if value is None or np.isnan(x).all():  # of a chunk without any, the kind is not known
        return np.isnan(x) & (value is None)
    number = column.scale.number(f"value of column {f.__name__!r}", value)
    if np.isnan(number) and table.whole:
        levels = short(column.scale.shown(np.unique(x[~np.isnan(x)])).tolist())
        raise ValueError(f"value {value!r} is no level of column {f.__name__!r}: {levels}")
    return x == number


def _xor(fs: Sequence[Feature]) -> Feature:
    f, g = fs
    return Feature(f"{f.__name__} ⊕ {g.__name__}", partial(_differ, f, g))


def _differ(f: Feature, g: Feature, table: Table) -> np.ndarray:
    return (f.numbers(table) != g.numbers(table)).astype(float)


def _written(value: Level) -> str:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    return f"{value:g}" if number else "missing" if value is None else str(value)


def _label(j: Place) -> str:
    return j if isinstance(j, str) else f"x{j}"


@dataclass(frozen=True)
class Group:
    """Several columns as one feature: ``firm(score, X, features={"size": ["radius", "area"]})``.

    Parameters
    ----------
    columns : tuple of column names or positions

    Examples
    --------
    >>> from firmlib.features import Group
    >>> Group((0, 2))(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1., 3.], [4., 6.]])
    """

    columns: tuple[Place, ...]

    def __call__(self, X: Any) -> np.ndarray:
        """Return the values of its columns as numbers, (n, k)."""
        table = Table.of(X)
        return np.column_stack([column.dense(table.count) for column in self.of(table)])

    def of(self, table: Table) -> list[Column]:
        """Return its columns of a `table`."""
        return [table.column(j) for j in self.columns]


@dataclass(frozen=True)
class Pairs:
    """All pairs of columns, or of binary features, as features.

    For columns or features of two values, a hundred thousand pairs are ranked by a few matrix
    products. Numbers become binary by thresholds; the model gets X as it is all the same.

    Parameters
    ----------
    kind : {"product", "conjunction", "xor", "interaction"}
        Of each pair the product, the conjunctions of either value of the one with either value
        of the other (two values only), or whether they differ; or their interaction, the part of
        E[s | x_j, x_k] that no sum g(x_j) + h(x_k) explains, for columns of any kind. It is 0 of
        an additive score, whether the columns are correlated or not, has no direction, and comes
        from up to 32 bins of each column.
    columns : sequence of columns or of features, default None
        Columns by name or position, features such as `threshold`. All columns by default.

    Examples
    --------
    >>> from firmlib import firm
    >>> from firmlib.features import Pairs, threshold
    >>> bits = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
    >>> pairs = Pairs("xor")
    >>> result = firm(bits[:, 0] != bits[:, 1], bits, features=pairs, rows="population")
    >>> dict(zip(result.feature_names, result.importances.tolist()))
    {'x0 ⊕ x1': 0.5, 'x0 ⊕ x2': 0.0, 'x1 ⊕ x2': 0.5}

    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> high = Pairs("conjunction", [threshold(0, 1), threshold(1, 1)])
    >>> firm(lambda X: np.maximum(X.min(axis=1), 0), X, features=high).to_frame().index[0]
    'x0>1=1 ∧ x1>1=1'

    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> firm(X[:, 0] * X[:, 1] + X[:, 2], X, features=Pairs("interaction")).to_frame().index[0]
    'x0 × x1'
    """

    kind: str
    columns: Sequence[Place | Feature] | None = None

    def __post_init__(self) -> None:
        check_option("kind", self.kind, ("product", "conjunction", "xor", "interaction"))

    def parts(self, table: Table) -> list[Feature]:
        """Return what is paired of the columns of a `table`, two features or more."""
        some = range(table.width) if self.columns is None else self.columns
        parts = [f if callable(f) else _column_of(table, f) for f in some]
        parts = [f if isinstance(f, Feature) else _wrapped(f) for f in parts]
        names = [f.__name__ for f in parts]
        if len(set(names)) < max(2, len(names)):
            raise ValueError(f"columns={list(some)!r} must be two different columns or more")
        return parts

    def features(self, X: Any) -> list[Feature]:
        """Return each pair as a function of tables like `X`, which an interaction is not."""
        if self.kind == "interaction":
            raise ValueError("kind='interaction' is no function of the rows; give it to firm")
        table = Table.of(X)
        pairs = combinations(self.parts(table), 2)
        if self.kind != "conjunction":
            return [(_product if self.kind == "product" else _xor)(pair) for pair in pairs]
        values = {f: two_values(f.__name__, f.numbers(table)) for f in self.parts(table)}
        values = {f.__name__: two for f, two in values.items()}
        return [
            _conjunction([(f, a), (g, b)])
            for f, g in pairs
            for a, b in cartesian(values[f.__name__], values[g.__name__])
        ]


def two_values(name: str, values: np.ndarray) -> tuple[float, float]:
    """Return the smaller and the larger of two values; raise if there are others."""
    low, high = values.min(), values.max()
    if low == high or np.any((values != low) & (values != high)):
        raise ValueError(
            f"{name!r} must have two values, got {short(np.unique(values)[:6].tolist())}; "
            "make it binary, for example by features.threshold"
        )
    return float(low), float(high)


def _column_of(table: Table, j: Place) -> Feature:
    place = table.position(j)
    return Feature(table.names[place], partial(Table.column, j=place))


def _wrapped(f: Callable) -> Feature:
    name = getattr(f, "__name__", repr(f))
    return Feature(name, partial(called, name, f))


def called(name: str, f: Callable, table: Table) -> Column:
    """Return what a function makes of the rows of a table."""
    return read(f"feature {name!r}", _flat(f(table.data)), table.n, table.keep)


def _flat(values: Any) -> Any:
    """Return values of shape (n, 1) as (n,)."""
    return np.asarray(values)[:, 0] if np.ndim(values) == 2 and np.shape(values)[1] == 1 else values
