"""How `features=` is resolved: everything that `firm` takes becomes functions of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from firmlib._checks import short
from firmlib._columns import Column, read
from firmlib._table import Table, is_sparse
from firmlib.features import Feature, Group, Values, called


def resolve(features: Any, table: Table) -> list[tuple[str, Values]]:
    """Return the names of what `firm` takes as features, with functions of the table.

    Strings and integers are columns; a callable is a function of X; a dict names features, and a
    list of columns in it is a group; ready values come as a table (n, m), or under a name in a
    dict.
    """
    if features is None:
        return [(name, _column(j)) for j, name in enumerate(table.names)]
    if isinstance(features, str | int | np.integer) or callable(features):
        features = [features]
    if isinstance(features, Mapping):
        found = [(str(name), _of_entry(str(name), f, table)) for name, f in features.items()]
    elif hasattr(features, "columns") or is_sparse(features) or _is_table(features):
        values = Table(features, "features").of_rows(table.keep)
        if values.n != table.n:
            raise ValueError(f"features has {values.n} rows, but X has {table.n}")
        table.check_rows("features", features)
        names = values.names if values.is_frame else [f"f{j}" for j in range(values.width)]
        found = [(name, _column(j, values)) for j, name in enumerate(names)]
    else:
        _refuse_values(features, table)
        found = [_of_item(f, table) for f in features]
    if not found:
        raise ValueError("features is empty; expected at least one")
    return found


def check_given(given: Any, table: Table) -> tuple[str, ...]:
    """Return the names of the columns that are given, one or more, all different."""
    given = [given] if isinstance(given, str | int | np.integer) else list(given)
    names = [table.names[table.place(j)] for j in given]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"given={given!r} must be one or more columns of X, each once")
    return tuple(names)


def check_names(names: Sequence[str], feature_names: Sequence[str] | None) -> list[str]:
    """Return the features' names, or those to use instead, all different."""
    if isinstance(feature_names, str):
        raise ValueError(f"feature_names={feature_names!r} must be a sequence of names")
    if feature_names is not None:
        if len(feature_names) != len(names):
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {len(names)} features"
            )
        names = feature_names
    names = list(map(str, names))
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
    if not known or kind not in "iuOUT":
        raise ValueError(
            f"features={_shown(features)} must be columns by name or position, callables, a dict "
            "or a table (n, m) of values. Labels y are no feature and not needed; ready values "
            "get a name: features={'name': values}"
        )
    counts = Counter(f for f in features if isinstance(f, str | int | np.integer))
    for f, count in counts.most_common(1):
        if count > 1 and len(features) == table.n:
            raise ValueError(
                f"features names column {f!r} {count} times; expected each once. Labels y are no "
                "feature and not needed; ready values get a name: features={'name': values}"
            )


def _shown(features: Any) -> str:
    shape = getattr(features, "shape", None)
    if shape is None:
        return repr(features)
    return f"{type(features).__name__} of shape {shape}"


def _of_entry(name: str, f: Any, table: Table) -> Values:
    """Return what stands under a name in a dict of features."""
    if callable(f):
        return _of_callable(name, f)
    if isinstance(f, str | int | np.integer):
        return _column(table.place(f))
    if isinstance(f, list | tuple):
        if not f or not all(isinstance(j, str | int | np.integer) for j in f):
            raise ValueError(
                f"feature {name!r}={short(list(f))} must be a group, a list of columns by name or "
                "position; ready values come as an array"
            )
        return Group(tuple(table.place(j) for j in f)).of
    table.check_rows(f"feature {name!r}", f)
    values = read(f"feature {name!r}", f, table.n, table.keep)
    return partial(_ready, values)


def _of_item(f: Any, table: Table) -> tuple[str, Values]:
    """Return what stands in a list of features, with its name."""
    if callable(f):
        name = str(getattr(f, "__name__", repr(f)))
        return name, _of_callable(name, f)
    place = table.place(f)
    return table.names[place], _column(place)


def _of_callable(name: str, f: Callable) -> Values:
    if isinstance(f, Group | Feature):  # sees the table, whose names are known already
        return f.of
    return partial(called, name, f)


def _column(j: int, own: Table | None = None) -> Values:
    return partial(_column_of, own, j)  # results keep it, and are pickled


def _column_of(own: Table | None, j: int, table: Table) -> Column:
    return (table if own is None else own).column(j)


def _ready(values: Column, table: Table) -> Column:
    return values
