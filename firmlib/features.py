"""The feature f(x): any function of the inputs, used by the model or not (Section 2).

Each builder returns a callable ``f(X) -> (n,)`` whose name labels it in tables and figures.
Columns are given by name or position. `resolve` reads what `firm` takes as features.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from itertools import product as cartesian
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib.tables.checks import check_array, check_number, check_option, is_integer, short
from firmlib.tables.columns import Column, read
from firmlib.tables.table import Table, is_sparse

__all__ = [
    "Group",
    "Pairs",
    "conjunction",
    "coordinate",
    "exclude",
    "linear",
    "literal",
    "product",
    "threshold",
    "xor",
]

Place = int | str  # of a column
Level = Any  # a number, a word, a date, a truth value, or None for missing

_MOMENTS = (str, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


class Feature:
    """A function of a table with a name; `ready` if it holds its values, one per row."""

    def __init__(self, name: str, function: Callable[[Table], Any], *, ready: bool = False) -> None:
        self.name = self.__name__ = name
        self.ready, self._function = ready, function

    def __call__(self, X: Any) -> np.ndarray:
        """Return the value of every row of X."""
        table = Table.of(X)
        column = self.of(table)
        return column.shown(column.dense(table.n))

    def of(self, table: Table) -> Column:
        """Return its values in the rows of a table."""
        found = self._function(table)
        return found if isinstance(found, Column) else Column(found)

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
    return Feature(_label(j), partial(_column, j))


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
    return Feature("·".join(map(_label, js)), partial(_multiplied, js))


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
    return Feature(f"{_label(j)}>{_written(tau)}", partial(_above, j, tau))


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
    >>> f = conjunction({0: 1, 1: -1})
    >>> f(np.array([[1, -1], [1, 1]])), f.name
    (array([1., 0.]), 'x0=1 ∧ x1=-1')
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"conjunction needs a dict of column to value, got {values!r}")
    for j, value in values.items():
        if not isinstance(value, (bool, np.bool_, bytes, type(None), *_MOMENTS)):
            check_number(f"value of column {j!r}", value)
    name = " ∧ ".join(f"{_label(j)}={_written(value)}" for j, value in values.items())
    return Feature(name, partial(_all_hold, dict(values)))


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
    return Feature(f"{_label(j)} ⊕ {_label(k)}", partial(_differ, j, k))


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


def exclude(*columns: Place) -> _Exclude:
    """Return all columns except these, for ``firm(score, X, features=exclude("id"))``.

    Parameters
    ----------
    *columns : column names or positions

    Examples
    --------
    >>> from firmlib.features import exclude, resolve
    >>> from firmlib.tables import Table
    >>> resolve(exclude("x1"), Table(np.eye(3)))
    [<feature x0>, <feature x2>]
    """
    return _Exclude(columns)


class _Exclude(tuple):
    """The columns that are left out."""


class Group:
    """Several columns as one feature: ``firm(score, X, features={"size": ["radius", "area"]})``.

    Parameters
    ----------
    columns : sequence of column names or positions
    name : str, optional

    Examples
    --------
    >>> from firmlib.features import Group
    >>> Group([0, 2])(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1., 3.], [4., 6.]])
    """

    def __init__(self, columns: Sequence[Place], name: str | None = None) -> None:
        self.places = tuple(columns)
        self.name = self.__name__ = name or " + ".join(map(_label, columns))

    def __call__(self, X: Any) -> np.ndarray:
        """Return the values of its columns as numbers, (n, k)."""
        table = Table.of(X)
        return np.column_stack([column.dense(table.n) for column in self.columns(table)])

    def columns(self, table: Table) -> list[Column]:
        """Return its columns of a table."""
        return [_column(j, table) for j in self.places]

    def __repr__(self) -> str:
        return f"<group {self.name}>"


class Pairs:
    """All pairs of columns or features, given to `firm` as it is: ``features=Pairs("xor")``.

    Parameters
    ----------
    kind : {"interaction", "conjunction", "xor"}
        For each pair its interaction, the part of E[s | x_j, x_k] that no sum g(x_j) + h(x_k)
        explains; or, if all have two values, the four conjunctions of one value each, or whether
        one of the two has its larger value.
    columns : columns or features, default None
        As for `firm`, such as a list of names or of `threshold`; all columns by default.

    Examples
    --------
    >>> from firmlib.features import Pairs
    >>> bits = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
    >>> Pairs("xor").features(bits)
    [<feature x0 ⊕ x1>, <feature x0 ⊕ x2>, <feature x1 ⊕ x2>]
    """

    def __init__(self, kind: str, columns: Any = None) -> None:
        check_option("kind", kind, ("interaction", "conjunction", "xor"))
        self.kind, self.columns = kind, columns

    def parts(self, X: Any) -> list[Feature]:
        """Return what is paired, two different features or more."""
        parts = resolve(self.columns, Table.of(X))
        names = check_names([part.name for part in parts])
        groups = [part.name for part in parts if not isinstance(part, Feature)]
        if len(names) < 2 or groups:
            raise ValueError(f"columns={names} of Pairs must be two columns or more, and no group")
        return [part for part in parts if isinstance(part, Feature)]

    def features(self, X: Any) -> list[Feature]:
        """Return each pair of values, or whether they differ, as a feature of the rows of X."""
        if self.kind == "interaction":
            raise ValueError("kind='interaction' is not a function of the rows; give it to firm")
        table = Table.of(X)
        pairs = combinations([_two_values(part, table) for part in self.parts(table)], 2)
        if self.kind == "xor":
            return [
                Feature(f"{f} ⊕ {g}", partial(_either, x, y), ready=True)
                for (f, _, x), (g, _, y) in pairs
            ]
        return [
            Feature(f"{f}={a} ∧ {g}={b}", partial(_both, x == i, y == k), ready=True)
            for (f, values, x), (g, others, y) in pairs
            for (i, a), (k, b) in cartesian(enumerate(values), enumerate(others))
        ]


def _two_values(feature: Feature, table: Table) -> tuple[str, list[str], np.ndarray]:
    """Return a feature's name, its two values as words, and 0, 1 or nan for each row."""
    column = feature.of(table)
    x = column.dense(table.n)
    seen = np.unique(x[~np.isnan(x)])
    shown = column.shown(seen[:6]).tolist()
    if not 0 < len(seen) <= 2:
        cure = "literal" if column.kind == "nominal" else "threshold"
        raise ValueError(
            f"{feature.name!r} must have two values, got {short(shown)}; make it binary with "
            f"features.{cure}({feature.name!r}, ...)"
        )
    return feature.name, list(map(_written, shown)), np.where(np.isnan(x), np.nan, x != seen[0])


def _either(x: np.ndarray, y: np.ndarray, table: Table) -> np.ndarray:
    return np.abs(x - y)


def _both(x: np.ndarray, y: np.ndarray, table: Table) -> np.ndarray:
    return (x & y).astype(float)


def resolve(features: Any, table: Table) -> list[Feature | Group]:
    """Return what `firm` takes as features as functions of the table.

    Strings and integers are columns; a callable is a function of X; a dict names features, in which
    a list of columns is a group; ready values come as a table (n, m), or under a name in a dict.
    """
    if features is None or isinstance(features, _Exclude):
        left_out = {table.place(j) for j in features or ()}
        found = [_of_column(j, table) for j in range(table.width) if j not in left_out]
    elif isinstance(features, Pairs):
        raise ValueError("Pairs must be given to firm as features=Pairs(...), not beside others")
    elif isinstance(features, str | int | np.integer) or callable(features):
        found = [_of_item(features, table)]
    elif isinstance(features, Mapping):
        found = [_of_entry(str(name), f, table) for name, f in features.items()]
    elif hasattr(features, "columns") or is_sparse(features) or _is_table(features):
        values = Table(features, "features")
        if values.n != table.n:
            raise ValueError(f"features has {values.n} rows, but X has {table.n}")
        table.check_rows("features", features)
        names = values.names if values.is_frame else [f"f{j}" for j in range(values.width)]
        found = [
            Feature(name, partial(_of_own, j, values), ready=True) for j, name in enumerate(names)
        ]
    else:
        _refuse_values(features, table)
        found = [_of_item(f, table) for f in features]
    if not found:
        raise ValueError("features is empty; expected at least one")
    return found


def check_given(given: Any, table: Table) -> tuple[str, ...]:
    """Return the names of the columns that are given, one or more, all different."""
    some = [given] if isinstance(given, str | int | np.integer) else given
    if not isinstance(some, Sequence | np.ndarray) or any(callable(j) for j in some):
        raise ValueError(
            f"given={given!r} must be columns of X by name or position; add a column to X for a "
            "function of others"
        )
    names = [table.names[table.place(j)] for j in some]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"given={given!r} must be one or more columns of X, each once")
    return tuple(names)


def check_names(names: Sequence[str], feature_names: Sequence[str] | None = None) -> list[str]:
    """Return the features' names, or those to use instead, all different."""
    if isinstance(feature_names, str):
        raise ValueError(f"feature_names={feature_names!r} must be a sequence of names")
    if feature_names is not None and len(feature_names) != len(names):
        raise ValueError(f"feature_names has {len(feature_names)} names for {len(names)} features")
    names = list(map(str, names if feature_names is None else feature_names))
    [(name, count)] = Counter(names).most_common(1)
    if count > 1:
        raise ValueError(
            f"feature names must differ, got {name!r} {count} times; give others with "
            "feature_names=[...], or name functions in a dict: features={'name': function}"
        )
    return names


def _is_table(features: Any) -> bool:
    if isinstance(features, list | tuple):  # of rows
        return any(isinstance(f, list | tuple | np.ndarray) for f in features)
    return getattr(features, "ndim", 1) == 2


def _refuse_values(features: Any, table: Table) -> None:
    """Raise unless this is a sequence of columns and callables."""
    kind = getattr(getattr(features, "dtype", None), "kind", "")
    known = isinstance(features, Sequence) or getattr(features, "ndim", 0) == 1
    if known and (kind == "b" or any(isinstance(f, bool | np.bool_) for f in features)):
        raise ValueError(
            "features is a mask of truth values; expected columns by name or position, for "
            "example np.flatnonzero(mask)"
        )
    shape = getattr(features, "shape", None)
    shown = repr(features) if shape is None else f"{type(features).__name__} of shape {shape}"
    values = (
        "Labels y are not a feature and not needed; ready values get a name: "
        "features={'name': values}"
    )
    if not known or kind not in "iuOUT":
        raise ValueError(
            f"features={shown} must be columns by name or position, callables, a dict or a table "
            f"(n, m) of values. {values}"
        )
    counts = Counter(f for f in features if isinstance(f, str | int | np.integer))
    for f, count in counts.most_common(1):
        if count > 1 and len(features) == table.n:
            raise ValueError(f"features names column {f!r} {count} times; expected once. {values}")


def _of_entry(name: str, f: Any, table: Table) -> Feature | Group:
    """Return what is given under a name in a dict of features."""
    if isinstance(f, Group):
        return Group(f.places, name)
    if isinstance(f, str | int | np.integer | Feature):
        return Feature(name, _of_item(f, table).of)
    if callable(f):
        return Feature(name, partial(_called, name, f))
    if isinstance(f, list | tuple) and not (len(f) == table.n and not _are_columns(f, table)):
        if not f or not all(isinstance(j, str) or is_integer(j) for j in f):
            raise ValueError(
                f"feature {name!r}={short(f)} must be a group, a list of columns by name or "
                f"position, or the values of all {table.n} rows"
            )
        return Group([table.place(j) for j in f], name)
    table.check_rows(f"feature {name!r}", f)
    column = read(f"feature {name!r}", f, table.n)
    return Feature(name, partial(_ready, column), ready=True)


def _are_columns(some: Sequence, table: Table) -> bool:
    """Whether some values are different columns of a table."""
    try:
        return len({table.position(j) for j in some}) == len(some)
    except ValueError:
        return False


def _of_item(f: Any, table: Table) -> Any:
    """Return a column or a callable as a feature."""
    if isinstance(f, Feature | Group):
        return f
    if callable(f):
        name = str(getattr(f, "__name__", repr(f)))
        return Feature(name, partial(_called, name, f))
    return _of_column(table.place(f), table)


def _of_column(j: int, table: Table) -> Feature:
    return Feature(table.names[j], partial(_at, j))


def _at(j: int, table: Table) -> Column:
    return table.column(j)


def _of_own(j: int, own: Table, table: Table) -> Column:
    return own.column(j)


def _ready(column: Column, table: Table) -> Column:
    return column


def _called(name: str, f: Callable, table: Table) -> Column:
    """Return what a function makes of the rows of a table."""
    values = f(table.data)
    if np.ndim(values) == 2 and np.shape(values)[1] == 1:
        values = np.asarray(values)[:, 0]
    return read(f"feature {name!r}", values, table.n)


def _column(j: Place, table: Table) -> Column:
    return table.column(table.place(j))


def _numbers(j: Place, table: Table) -> np.ndarray:
    """Return a column whose values are numbers, or stand for an order."""
    column = _column(j, table)
    if column.kind == "nominal":
        raise ValueError(
            f"{j!r} is a category, whose levels are not numbers; expected a number, or one level "
            "of it by features.literal"
        )
    values = column.dense(table.n)
    if column.labels is None or column.labels.dtype.kind not in "iu":
        return values
    return np.append(column.labels.astype(float), np.nan)[np.nan_to_num(values, nan=-1).astype(int)]


def _multiplied(js: Sequence[Place], table: Table) -> np.ndarray:
    return np.prod([_numbers(j, table) for j in js], axis=0)


def _above(j: Place, tau: Any, table: Table) -> np.ndarray:
    _numbers(j, table)
    column = _column(j, table)
    x, least = column.dense(table.n), column.number("tau", tau)
    if np.isnan(least):
        raise ValueError(f"tau={tau!r} is not a level of column {j!r}")
    return np.where(np.isnan(x), np.nan, x > least)


def _all_hold(values: Mapping[Place, Level], table: Table) -> np.ndarray:
    return np.all([_is(j, value, table) for j, value in values.items()], axis=0).astype(float)


def _is(j: Place, value: Level, table: Table) -> np.ndarray:
    """Return in which rows a column has a value."""
    column = _column(j, table)
    x = column.dense(table.n)
    if value is None or np.isnan(x).all():  # in a chunk without values, the kind is not known
        return np.isnan(x) & (value is None)
    number = column.number(f"value of column {j!r}", value)
    if np.isnan(number) and table.whole:
        levels = short(column.shown(np.unique(x[~np.isnan(x)])).tolist())
        raise ValueError(f"value {value!r} is not a level of column {j!r}: {levels}")
    return x == number


def _differ(j: Place, k: Place, table: Table) -> np.ndarray:
    x, y = _numbers(j, table), _numbers(k, table)
    return np.where(np.isnan(x + y), np.nan, x != y)


def _along(a: np.ndarray, table: Table) -> np.ndarray:
    if table.width != len(a):
        raise ValueError(f"a has {len(a)} entries, but X has {table.width} columns")
    if is_sparse(table.data):
        return read("X @ a", table.data @ a, table.n).values
    total = np.zeros(table.n)
    for j, slope in enumerate(a):
        total += slope * _numbers(j, table)
    return total


def _written(value: Level) -> str:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    return f"{value:g}" if number else "missing" if value is None else str(value)


def _label(j: Place) -> str:
    return j if isinstance(j, str) else f"x{j}"
