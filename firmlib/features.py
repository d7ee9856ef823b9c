"""The feature f(x): any function of the inputs, used by the model or not (Section 2).

Each builder returns a callable ``f(X) -> (n,)`` whose name labels it in tables and figures. Columns
are given by name or position.

>>> X = np.array([[1, 2, 2], [3, 4, 0]])
>>> coordinate(1)(X), product(0, 1, 1)(X), linear([1, -1, 0])(X)
(array([2., 4.]), array([ 4., 48.]), array([-1., -1.]))
>>> threshold(0, 2)(X), literal(0, 3)(X), conjunction({0: 1, 1: 2})(X), xor(1, 2)(X)
(array([0., 1.]), array([0., 1.]), array([1., 0.]), array([0., 1.]))
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib.tables.checks import check_array, check_memory, check_option, check_shape, is_integer
from firmlib.tables.columns import Column, read
from firmlib.tables.table import Table, is_sparse

__all__ = [
    "Group", "Pairs", "conjunction", "coordinate", "exclude", "linear", "literal", "product",
    "threshold", "xor",
]  # fmt: skip

Place = int | str  # of a column


class Feature:
    """A named function (table, *args), or (*args) if it is `ready`: the values of these rows."""

    def __init__(self, name: str, function: Callable, *args: Any, ready: bool = False) -> None:
        self.name = self.__name__ = name
        self.function, self.args, self.ready = function, args, ready

    def __call__(self, X: Any) -> np.ndarray:
        column = self.of(Table.of(X))
        return column.shown(column.values)

    def of(self, table: Table) -> Column:
        found = self.function(*self.args) if self.ready else self.function(table, *self.args)
        return found if isinstance(found, Column) else Column(found)

    @property
    def places(self) -> tuple[int, ...]:
        """The position of the column that this is; () if it is no column."""
        return self.args if self.function is Table.column else ()

    def __repr__(self) -> str:
        return f"<feature {self.name}>"


def coordinate(j: Place) -> Feature:
    """Return the feature f(x) = x_j."""
    return Feature(_label(j), _column, j)


def product(*js: Place) -> Feature:
    """Return the feature f(x) = x_j x_k ..., an interaction of any order."""
    if not js:
        raise ValueError("product() has no columns; expected at least one")
    return Feature("·".join(map(_label, js)), _multiplied, js)


def threshold(j: Place, tau: Any) -> Feature:
    """Return the feature f(x) = 1 where x_j > tau (number, date or level), else 0; or missing."""
    return Feature(f"{_label(j)}>{_written(tau)}", _above, j, tau)


def literal(j: Place, value: Any) -> Feature:
    """Return the feature f(x) = 1 where x_j = value, else 0; the value None means missing."""
    return conjunction({j: value})


def conjunction(values: Mapping[Place, Any]) -> Feature:
    """Return the feature f(x) = 1 where x_j = value for every {j: value}, else 0."""
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"values={values!r} must be a dict from columns to values")
    name = " ∧ ".join(f"{_label(j)}={_written(value)}" for j, value in values.items())
    return Feature(name, _all_hold, dict(values))


def xor(j: Place, k: Place) -> Feature:
    """Return the feature f(x) = 1 where x_j and x_k differ, else 0; missing where one is."""
    return Feature(f"{_label(j)} ⊕ {_label(k)}", _differ, j, k)


def linear(a: ArrayLike) -> Feature:
    """Return the feature f(x) = a'x, a direction in input space."""
    a = check_array("a", a, 1)
    return Feature(f"a'x[{', '.join(f'{v:g}' for v in a[:4])}{', …' * (len(a) > 4)}]", _along, a)


def _label(j: Place) -> str:
    return j if isinstance(j, str) else f"x{j}"


def _written(value: Any) -> str:
    """Return a value as words: whole numbers with all digits, others with six."""
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if value % 1 == 0 and abs(value) < 2**53 else f"{value:g}"
    return "missing" if value is None else str(value)


def _column(table: Table, j: Place) -> Column:
    return table.column(table.place(j))


def _numbers(column: Column, j: Place) -> np.ndarray:
    """Return the values of a column to calculate with."""
    if column.kind == "nominal":
        raise ValueError(f"{j!r} is a category, whose levels are not numbers; use features.literal")
    return column.values


def _multiplied(table: Table, js: Sequence[Place]) -> np.ndarray:
    return np.prod([_numbers(_column(table, j), j) for j in js], axis=0)


def _above(table: Table, j: Place, tau: Any) -> np.ndarray:
    column = _column(table, j)
    x, least = _numbers(column, j), column.number(f"tau of column {j!r}", tau)
    return np.where(np.isnan(x), np.nan, x > least)


def _all_hold(table: Table, values: Mapping[Place, Any]) -> np.ndarray:
    hold = np.ones(table.n)
    for j, value in values.items():
        column = _column(table, j)
        missing, number = np.isnan(column.values), np.nan
        if value is not None and not missing.all():  # in a chunk without values, no kind is known
            number = column.number(f"value of column {j!r}", value, known=table.whole)
        hold *= missing if value is None else column.values == number
    return hold


def _differ(table: Table, j: Place, k: Place) -> np.ndarray:
    one, other = _column(table, j), _column(table, k)
    x, y = _numbers(one, j), _numbers(other, k)
    if one.labels is not None and other.labels is not None:  # equal levels may have other codes
        y = other.nominal().joined(f"column {k!r}", one.nominal()).values
    return np.where(np.isnan(x) | np.isnan(y), np.nan, x != y)


def _along(table: Table, a: np.ndarray) -> np.ndarray:
    check_shape("a", a.shape, (table.width,))
    if is_sparse(table.data) and not table.categorical:
        return read("X @ a", table.data @ a, table.n).values
    columns = (_numbers(table.column(j), name) for j, name in enumerate(table.names))
    return sum((c * x for c, x in zip(a, columns, strict=True)), np.zeros(table.n))


class Group:
    """Several columns as one feature: ``firm(score, X, features={"size": ["radius", "area"]})``."""

    def __init__(self, columns: Sequence[Place], name: str | None = None) -> None:
        if isinstance(columns, str) or len(set(columns)) < max(len(columns), 1):
            raise ValueError(f"columns={columns!r} of a group must be a list of different columns")
        self.places = tuple(columns)
        self.name = name or " + ".join(map(_label, columns))


class exclude:
    """All columns except these: ``firm(score, X, features=exclude("id"))``."""

    def __init__(self, *columns: Place) -> None:
        self.columns = columns


class Pairs:
    """All pairs of columns or features: ``firm(score, X, features=Pairs("xor"))``.

    `kind` is "interaction", the part of E[s | x_j, x_k] that no sum g(x_j) + h(x_k) explains, or,
    for features with two values, "conjunction", the four conjunctions of their values, or "xor",
    whether one of the two has its larger value; both are missing where one of the two features is.
    `columns` are as `features` of `firm`.

    >>> import firmlib
    >>> firmlib.firm([0, 1, 1, 0], [[0, 0], [0, 1], [1, 0], [1, 1]], Pairs("xor")).feature_names
    ('x0 ⊕ x1',)
    """

    def __init__(self, kind: str, columns: Any = None) -> None:
        check_option("kind", kind, ("interaction", "conjunction", "xor"))
        self.kind, self.columns = kind, columns

    def parts(self, X: Any) -> list[Feature]:
        """Return the features of a table to pair, at least two."""
        found = resolve(self.columns, Table.of(X))
        names = check_names([part.name for part in found])
        parts = [part for part in found if isinstance(part, Feature)]
        if len(parts) < max(2, len(found)):
            raise ValueError(f"columns={names} of Pairs must be two columns or more, and no group")
        return parts


def _of_pairs(pairs: Pairs, table: Table) -> Iterator[Feature]:
    """Yield the xor, or the four conjunctions, of each pair of features with two values."""
    if pairs.kind == "interaction":
        raise ValueError("interactions are no features to combine with others; use 'xor'")
    parts = pairs.parts(table)
    check_memory(f"each {pairs.kind} of {len(parts)} columns", (len(parts), len(parts), 100))
    each = [(f.name, *_two_values(f, table)) for f in parts]
    for (f, u, x), (g, v, y) in combinations(each, 2):
        if pairs.kind == "xor":
            yield Feature(f"{f} ⊕ {g}", lambda x, y: np.abs(x - y), x, y, ready=True)
            continue
        for i, j in np.ndindex(2, 2):
            both = lambda x, y, i, j: (1 - np.abs(x - i)) * (1 - np.abs(y - j))  # noqa: E731
            yield Feature(f"{f}={u[i]} ∧ {g}={v[j]}", both, x, y, i, j, ready=True)


def _two_values(feature: Feature, table: Table) -> tuple[list[str], np.ndarray]:
    """Return the two values of a feature as words, and 0, 1 or nan for each row."""
    column = feature.of(table)
    x = column.values
    seen = np.unique(x[~np.isnan(x)])
    shown = column.shown(seen[:3]).tolist()
    if not 0 < len(seen) <= 2:
        raise ValueError(f"{feature.name!r} must have two values, got {len(seen)}, such as {shown}")
    return [*map(_written, shown), "other"][:2], np.where(np.isnan(x), np.nan, x != seen[0])


def resolve(features: Any, table: Table, what: str = "feature") -> Sequence[Feature | Group]:
    """Return the `features` of `firm` as functions of a table; `what` they are, for messages."""
    if features is None or isinstance(features, exclude):
        without = {table.place(j) for j in features.columns} if features else ()
        left = [j for j in range(table.width) if j not in without]
        found = [Feature(table.names[j], Table.column, j) for j in left]
    elif isinstance(features, Pairs):
        found = list(_of_pairs(features, table))
    elif isinstance(features, Mapping):
        found = [_of_item(f, table, what, str(name)) for name, f in features.items()]
    elif len(getattr(features, "shape", ())) == 2:
        values = Table(features, "features", at_least=0)
        check_shape("features", values.data.shape, (table.n, None))
        table.check_rows("features", features)
        found = [Feature(name, values.column, j, ready=True) for j, name in enumerate(values.names)]
    else:
        several = np.iterable(features) and not isinstance(features, str)
        found = [_of_item(f, table, what) for f in (features if several else [features])]
    if not found:
        raise ValueError(f"{what}s are empty; expected at least one")
    return found


def check_names(names: Sequence[str], feature_names: Sequence[str] | None = None) -> list[str]:
    """Return the names of features, or `feature_names` instead; all must differ."""
    if feature_names is not None:
        check_shape("feature_names", np.shape(feature_names), (len(names),))
        names = feature_names
    [(name, count)] = Counter(map(str, names)).most_common(1)
    if count > 1:
        raise ValueError(
            f"feature names must differ, got {name!r} {count} times; rename, or pass a dict"
        )
    return list(map(str, names))


def is_place(j: Any) -> bool:
    """Return whether this may be the name or position of a column."""
    return isinstance(j, str) or is_integer(j)


def _of_item(f: Any, table: Table, what: str, name: str | None = None) -> Feature | Group:
    """Return a column, a callable, a group or, under a name, values as a feature."""
    listed = name is not None and isinstance(f, list | tuple) and len(f) > 0
    if listed and all(map(is_place, f)) and len(set(f)) == len(f):  # repeated, they are values
        f = Group(f)
    if isinstance(f, Group):
        return Group([table.place(j) for j in f.places], name or f.name)
    if isinstance(f, Feature):
        return Feature(name or f.name, f.function, *f.args, ready=f.ready)
    if callable(f):
        name = name or str(getattr(f, "__name__", repr(f)))
        return Feature(name, lambda table: read(f"feature {name!r}", f(table.data), table.n))
    if is_place(f):
        place = table.place(f, what)
        return Feature(name or table.names[place], Table.column, place)
    if name is None:
        raise ValueError(f"{what} {f!r} must be a column, a callable or, in a dict, values")
    return Feature(name, Column, *table.vector(f"feature {name!r}", f), ready=True)
