"""How `features=` is read: columns, callables, values, groups, pairs, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from firmlib.features.builders import Feature, Place, label, written
from firmlib.tables.checks import check_option, is_integer, short
from firmlib.tables.columns import Column, read
from firmlib.tables.table import Table, is_sparse

__all__ = ["Group", "Pairs", "exclude"]


class Group:
    """Several columns as one feature: ``firm(score, X, features={"size": ["radius", "area"]})``.

    Parameters
    ----------
    columns : sequence of column names or positions
    name : str, default None

    Examples
    --------
    >>> from firmlib.features import Group
    >>> Group(["radius", "area"]).name
    'radius + area'
    """

    def __init__(self, columns: Sequence[Place], name: str | None = None) -> None:
        self.places = tuple(columns)
        self.name = name or " + ".join(map(label, columns))

    def columns(self, table: Table) -> list[Column]:
        """Return its columns of a `table`."""
        return [table.column(j) for j in self.places]


class Pairs:
    """All pairs of columns or features, given to `firm` as it is: ``features=Pairs("xor")``.

    Parameters
    ----------
    kind : {"interaction", "conjunction", "xor"}
        For each pair its interaction, the part of E[s | x_j, x_k] that no sum g(x_j) + h(x_k)
        explains; or, if all have two values, the four conjunctions of their values, or whether
        just one of the two has its larger value.
    columns : columns or features, default None
        What `firm` takes as features, such as a list of names or of `threshold`; by default all.

    Examples
    --------
    >>> from firmlib.features import Pairs
    >>> Pairs("xor").features([[0, 0, 0], [0, 1, 0], [1, 0, 1]])
    [<feature x0 ⊕ x1>, <feature x0 ⊕ x2>, <feature x1 ⊕ x2>]
    """

    def __init__(self, kind: str, columns: Any = None) -> None:
        check_option("kind", kind, ("interaction", "conjunction", "xor"))
        self.kind, self.columns = kind, columns

    def parts(self, X: Any) -> list[Feature]:
        """Return what is paired of the table `X`, two different features or more."""
        found = resolve(self.columns, Table.of(X))
        names = check_names([part.name for part in found])
        parts = [part for part in found if isinstance(part, Feature)]
        if len(parts) < max(2, len(found)):
            raise ValueError(f"columns={names} of Pairs must be two columns or more, and no group")
        return parts

    def features(self, X: Any) -> list[Feature]:
        """Return the conjunctions or the xor of each pair in the rows of `X`."""
        if self.kind == "interaction":
            raise ValueError("kind='interaction' is not a function of the rows; give it to firm")
        table = Table.of(X)
        parts, found = [_two_values(part, table) for part in self.parts(table)], []
        for (f, a, x), (g, b, y) in combinations(parts, 2):
            if self.kind == "xor":
                found.append(Feature(f"{f} ⊕ {g}", _one_of, x, y, ready=True))
                continue
            for i, k in np.ndindex(len(a), len(b)):
                found.append(Feature(f"{f}={a[i]} ∧ {g}={b[k]}", _both, x, i, y, k, ready=True))
        return found


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
    return feature.name, list(map(written, shown)), np.where(np.isnan(x), np.nan, x != seen[0])


def _one_of(_: Table, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(x - y)


def _both(_: Table, x: np.ndarray, i: int, y: np.ndarray, k: int) -> np.ndarray:
    return ((x == i) & (y == k)).astype(float)


class exclude:
    """All columns except these: ``firm(score, X, features=exclude("id"))``.

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

    def __init__(self, *columns: Place) -> None:
        self.columns = columns


def resolve(features: Any, table: Table) -> list[Feature | Group]:
    """Return what `firm` takes as features as functions of the table.

    Strings and integers are columns; a callable is a function of X; a dict names features, in which
    a list of columns is a group; ready values come as a table (n, m), or under a name in a dict.
    """
    found: list[Feature | Group]
    if features is None or isinstance(features, exclude):
        without = {table.place(j) for j in features.columns} if features else ()
        left = [j for j in range(table.width) if j not in without]
        found = [Feature(table.names[j], Table.column, j) for j in left]
    elif isinstance(features, Mapping):
        found = [_of_entry(str(name), f, table) for name, f in features.items()]
    elif isinstance(features, str | int | np.integer | Group) or callable(features):
        found = [_of_item(features, table)]
    elif hasattr(features, "columns") or is_sparse(features) or _is_table(features):
        values = Table(features, "features")
        if values.n != table.n:
            raise ValueError(f"features has {values.n} rows, but X has {table.n}")
        table.check_rows("features", features)
        names = values.names if values.is_frame else [f"f{j}" for j in range(values.width)]
        found = [Feature(name, _of_own, values, j, ready=True) for j, name in enumerate(names)]
    else:
        _refuse_values(features, table)
        found = [_of_item(f, table) for f in features]
    if not found:
        raise ValueError("features is empty; expected at least one")
    return found


def _is_table(features: Any) -> bool:
    if isinstance(features, list | tuple):  # of rows
        return any(isinstance(f, list | tuple | np.ndarray) for f in features)
    return getattr(features, "ndim", 1) == 2


def _refuse_values(features: Any, table: Table) -> None:
    """Raise unless this is a sequence of columns and callables."""
    known = isinstance(features, Sequence) or getattr(features, "ndim", 0) == 1
    some = list(features) if known else []
    if any(isinstance(f, bool | np.bool_) for f in some):
        raise ValueError(
            "features is a mask of truth values; expected columns by name or position, for "
            "example np.flatnonzero(mask)"
        )
    columns = [f for f in some if isinstance(f, str) or is_integer(f)]
    labels = len(some) == table.n and len(set(columns)) < len(columns)
    numbers = hasattr(features, "dtype") and len(columns) < len(some)
    if not known or labels or numbers:
        shown = short(some) if known else repr(features)
        raise ValueError(
            f"features={shown} must be columns by name or position, each once, callables, a dict "
            "or a table (n, m) of values. Labels y are not a feature and not needed; ready values "
            "get a name: features={'name': values}"
        )


def _of_item(f: Any, table: Table, name: str | None = None) -> Feature | Group:
    """Return a column or a callable as a feature."""
    if isinstance(f, Group):
        return Group([table.place(j) for j in f.places], name or f.name)
    if isinstance(f, Feature):
        return f.named(name or f.name)
    if callable(f):
        name = name or str(getattr(f, "__name__", repr(f)))
        return Feature(name, _called, name, f)
    place = table.place(f)
    return Feature(name or table.names[place], Table.column, place)


def _of_entry(name: str, f: Any, table: Table) -> Feature | Group:
    """Return what is given under a name in a dict of features."""
    if callable(f) or isinstance(f, str | int | np.integer | Group):
        return _of_item(f, table, name)
    if isinstance(f, list | tuple) and (len(f) != table.n or _are_columns(f, table)):
        if not f or not all(isinstance(j, str) or is_integer(j) for j in f):
            raise ValueError(
                f"feature {name!r}={short(f)} must be a group, a list of columns by name or "
                f"position, or the values of all {table.n} rows"
            )
        return Group([table.place(j) for j in f], name)
    table.check_rows(f"feature {name!r}", f)
    return Feature(name, _ready, read(f"feature {name!r}", f, table.n), ready=True)


def _are_columns(some: Sequence, table: Table) -> bool:
    """Return whether some values are different columns of a table."""
    try:
        return len({table.position(j) for j in some}) == len(some)
    except ValueError:
        return False


def _called(table: Table, name: str, f: Callable) -> Column:
    values = f(table.data)
    if np.ndim(values) == 2 and np.shape(values)[1] == 1:
        values = np.asarray(values)[:, 0]
    return read(f"feature {name!r}", values, table.n)


def _of_own(_: Table, own: Table, j: int) -> Column:
    return own.column(j)


def _ready(_: Table, column: Column) -> Column:
    return column


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
