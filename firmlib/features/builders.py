"""Builders of features: callables ``f(X) -> (n,)`` with a name for tables and figures."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib.tables.checks import check_array, check_number, short
from firmlib.tables.columns import Column, read
from firmlib.tables.table import Table, is_sparse

__all__ = ["conjunction", "coordinate", "linear", "literal", "product", "threshold", "xor"]

Place = int | str  # of a column
Level = Any  # a number, a word, a date, a truth value, or None for missing

_MOMENTS = (str, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


class Feature:
    """A function (table, *args) with a name; `ready` if it has the values of certain rows."""

    def __init__(self, name: str, function: Callable, *args: Any, ready: bool = False) -> None:
        self.name = self.__name__ = name
        self.ready, self._function, self._args = ready, function, args

    def __call__(self, X: Any) -> np.ndarray:
        """Return the value of every row of X."""
        table = Table.of(X)
        column = self.of(table)
        return column.shown(column.dense(table.n))

    def of(self, table: Table) -> Column:
        """Return its values in the rows of a table."""
        found = self._function(table, *self._args)
        return found if isinstance(found, Column) else Column(found)

    def named(self, name: str) -> Feature:
        """Return the same feature under a name."""
        return Feature(name, self._function, *self._args, ready=self.ready)

    def __repr__(self) -> str:
        return f"<feature {self.name}>"


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
    return Feature(label(j), column_of, j)


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
    return Feature("·".join(map(label, js)), _multiplied, js)


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
    """
    if not isinstance(tau, _MOMENTS):
        check_number("tau", tau)
    return Feature(f"{label(j)}>{written(tau)}", _above, j, tau)


def literal(j: Place, value: Level) -> Feature:
    """Return the feature f(x) = 1 where x_j = value, else 0.

    Parameters
    ----------
    j : column name or position
    value : float, word, date, truth value, or None: whether x_j is missing

    Examples
    --------
    >>> from firmlib.features import literal
    >>> literal(0, "Adelie")([["Adelie", 1], ["Gentoo", 2]])
    array([1., 0.])
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
    >>> conjunction({0: 1, 1: -1})(np.array([[1, -1], [1, 1]]))
    array([1., 0.])
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"conjunction needs a dict of column to value, got {values!r}")
    for j, value in values.items():
        if not isinstance(value, (bool, np.bool_, bytes, type(None), *_MOMENTS)):
            check_number(f"value of column {j!r}", value)
    name = " ∧ ".join(f"{label(j)}={written(value)}" for j, value in values.items())
    return Feature(name, _all_hold, dict(values))


def xor(j: Place, k: Place) -> Feature:
    """Return the feature f(x) = 1 where x_j and x_k differ, else 0; missing where one of them is.

    Parameters
    ----------
    j, k : column names or positions

    Examples
    --------
    >>> from firmlib.features import xor
    >>> xor(0, 1)(np.array([[1, -1], [1, 1]]))
    array([1., 0.])
    """
    return Feature(f"{label(j)} ⊕ {label(k)}", _differ, j, k)


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
    return Feature(name, _along, a)


def column_of(table: Table, j: Place) -> Column:
    """Return a column that a user asks for."""
    return table.column(table.place(j))


def _numbers(column: Column, j: Place, n: int) -> np.ndarray:
    """Return the values of a column that are numbers, or stand for an order."""
    if column.kind == "nominal":
        raise ValueError(
            f"{j!r} is a category, whose levels are not numbers; expected a number, or one level "
            "of it by features.literal"
        )
    values = column.dense(n)
    if column.labels is None or column.labels.dtype.kind not in "iu":
        return values
    return np.append(column.labels.astype(float), np.nan)[np.nan_to_num(values, nan=-1).astype(int)]


def _multiplied(table: Table, js: Sequence[Place]) -> np.ndarray:
    return np.prod([_numbers(column_of(table, j), j, table.n) for j in js], axis=0)


def _above(table: Table, j: Place, tau: Any) -> np.ndarray:
    column = column_of(table, j)
    _numbers(column, j, table.n)  # refuses a category
    x, least = column.dense(table.n), column.number("tau", tau)
    if np.isnan(least):
        raise ValueError(f"tau={tau!r} is not a level of column {j!r}")
    return np.where(np.isnan(x), np.nan, x > least)


def _all_hold(table: Table, values: Mapping[Place, Level]) -> np.ndarray:
    return np.all([_is(table, j, value) for j, value in values.items()], axis=0).astype(float)


def _is(table: Table, j: Place, value: Level) -> np.ndarray:
    """Return in which rows a column has a value."""
    column = column_of(table, j)
    x = column.dense(table.n)
    if value is None or np.isnan(x).all():  # in a chunk without values, the kind is not known
        return np.isnan(x) & (value is None)
    number = column.number(f"value of column {j!r}", value)
    if np.isnan(number) and table.whole:
        levels = short(column.shown(np.unique(x[~np.isnan(x)])).tolist())
        raise ValueError(f"value {value!r} is not a level of column {j!r}: {levels}")
    return x == number


def _differ(table: Table, j: Place, k: Place) -> np.ndarray:
    x, y = (_numbers(column_of(table, i), i, table.n) for i in (j, k))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, x != y)


def _along(table: Table, a: np.ndarray) -> np.ndarray:
    if table.width != len(a):
        raise ValueError(f"a has {len(a)} entries, but X has {table.width} columns")
    if is_sparse(table.data):
        return read("X @ a", table.data @ a, table.n).values
    total = np.zeros(table.n)
    for j, name in enumerate(table.names):
        total += a[j] * _numbers(table.column(j), name, table.n)
    return total


def written(value: Level) -> str:
    """Return a value as names of features have it."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    return f"{value:g}" if number else "missing" if value is None else str(value)


def label(j: Place) -> str:
    """Return a column as names of features have it."""
    return j if isinstance(j, str) else f"x{j}"
