"""What is measured: the scores and weights of the rows of a table, and how to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import (
    check_memory,
    check_n_bins,
    check_option,
)
from firmlib._columns import Column, check_present
from firmlib._given import estimate_given
from firmlib._interaction import estimate_interactions
from firmlib._moments import (
    FINE,
    METHODS,
    Estimate,
    Tally,
    summarize,
)
from firmlib._pairs import PairTallies, estimate_pairs
from firmlib._rows import (
    check_differences,
    check_groups,
    check_rows,
    check_scores,
    check_weight_type,
)
from firmlib._scored import Scores
from firmlib._slope import Slope
from firmlib._table import Table
from firmlib._together import SMALL, tally_by_rank
from firmlib.features import Pairs, Values
from firmlib.scores import Response, Score, respond

MISSING = ("level", "drop", "raise")
_BLOCK = 64  # features that a thread takes at a time


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of a table with their scores; those without weight are left out.

    Weights are in units of `weight`, a power of two, which is 1 if they count rows.
    """

    table: Table
    scores: Scores
    response: Response
    method: str
    rows: str
    n_bins: int | str
    missing: str = "level"
    weight: float = 1.0

    @classmethod
    def of(
        cls,
        score: Score,
        X: Any,
        *,
        method: str,
        rows: str,
        response_method: str,
        target: Any,
        n_bins: int | str,
        sample_weight: ArrayLike | None,
        categorical: Iterable[Any] | None,
        missing: str,
        weight_type: str = "auto",
        groups: ArrayLike | None = None,
    ) -> Self:
        """Check all arguments, and evaluate the score."""
        check_option("method", method, METHODS)
        rows = check_rows(rows)
        check_n_bins(n_bins)
        check_option("missing", missing, MISSING)
        table = Table.of(X).with_categorical(categorical)
        table.check_rows("sample_weight", sample_weight)
        response = respond(score, table, response_method=response_method, target=target)
        s, w, keep = check_scores("score", response.values, sample_weight)
        check_differences("score", float(np.ptp(s)), rows)
        weight_type = check_weight_type(weight_type, w, rows, method)
        copies, exponent = weight_type == "count" and bool((w != 1).any()), 0
        if weight_type == "sampling" or rows == "population":  # then any unit will do
            exponent = int(np.frexp(w.max())[1]) - 1
            w = np.ldexp(w, -exponent)
        scores = Scores.of(
            s,
            w,
            sampling=weight_type == "sampling",
            unit=check_groups(groups, table, keep, copies) if rows == "sample" else None,
            fine=rows == "sample" and (w.sum() if weight_type == "count" else len(w)) < FINE,
        )
        table = table.of_rows(keep)
        weight = float(np.ldexp(1.0, exponent))
        return cls(table, scores, response, method, rows, n_bins, missing, weight)

    @property
    def options(self) -> dict[str, Any]:
        """How bins are found."""
        return {"method": self.method, "rows": self.rows, "n_bins": self.n_bins}

    def divided(self, sd: float) -> Self:
        """Return the same data with the scores divided by a number."""
        return replace(self, scores=self.scores.divided(sd))

    def tally(self, column: Column) -> Tally | Slope:
        """Sum up the scores by the values of a feature."""
        scores, dropped = self.scores, 0.0
        if self.missing != "level" or self.method == "slope":
            column, scores = self._present(column)
            dropped = float(self.scores.total.w - scores.total.w)
        if self.method == "slope":
            found = Slope.of(scores, column.dense(len(scores.r)), self.rows, column.scale)
            return replace(found, missing=dropped / float(self.scores.total.w))
        found = Tally.of(scores, column, **self.options)
        found.check(self.rows)
        return found._replace(dropped=dropped) if dropped else found

    def _present(self, column: Column) -> tuple[Column, Scores]:
        """Return a feature and the scores in the rows in which it is known."""
        if self.method == "slope" and column.scale.kind == "nominal":
            raise ValueError("method='slope' needs an order, but its levels have none")
        missing = np.isnan(column.values)
        if not missing.any():
            return column, self.scores
        if self.missing != "drop":
            check_present(
                "its values" + " with method='slope'" * (self.method == "slope"), column.values
            )
        column = column._replace(values=column.dense(len(self.scores.r)), rows=None)
        known = ~np.isnan(column.values)
        if np.count_nonzero(known) < 2:
            raise ValueError("missing='drop' leaves fewer than two rows")
        return column.taken(known), self.scores.taken(known)

    def estimate(
        self, names: Sequence[str], functions: Sequence[Values], n_jobs: int | None
    ) -> tuple[Estimate, list[Tally | Slope | None], list[str]]:
        """Estimate each feature; return also what its curve is made from, and its method."""
        values = 0 if self.method == "slope" else len(self.scores.r) * len(names)  # to be binned
        most = 2 * len(names) > self.table.width  # of the columns are asked for
        compiled, size = replace(self, scores=self.scores.compiled(values)), _BLOCK
        if n_jobs not in (None, 1):
            from joblib import effective_n_jobs

            size = min(_BLOCK, -(-len(names) // effective_n_jobs(n_jobs)))

        def block(start: int) -> list[Tally | Slope | Estimate]:
            data, part = compiled, slice(start, start + size)
            if most:
                data = replace(data, table=self.table.in_order())
            values = (f(data.table) for f in functions[part])
            ready: Iterable[Tally | None] = repeat(None)
            if len(self.scores.r) <= SMALL:
                values = list(values)
                ready = tally_by_rank(data.scores, values, **data.options)
            parts = zip(names[part], values, ready, strict=False)
            return [one or data._one(name, column) for name, column, one in parts]

        starts = range(0, len(names), size)
        if n_jobs in (None, 1):
            found = [one for start in starts for one in block(start)]
        else:
            from joblib import Parallel, delayed

            blocks: Any = Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(block)(i) for i in starts
            )
            found = [one for part in blocks for one in part]
        estimate = Estimate.empty(len(found))
        tallies = {i: one for i, one in enumerate(found) if isinstance(one, Tally)}
        if tallies:
            estimate.put(list(tallies), summarize(list(tallies.values()), self.rows))
        methods, sources = [], []
        for i, one in enumerate(found):
            if not isinstance(one, Tally):
                estimate.put([i], one.estimate if isinstance(one, Slope) else one)
            drawn = isinstance(one, Tally | Slope)
            sources.append(one if drawn else None)
            methods.append(one.method if drawn else _GROUP_METHODS[self.rows])
        return estimate, sources, methods

    def _one(self, name: str, values: Column | list[Column]) -> Tally | Slope | Estimate:
        try:
            return self.tally(values) if isinstance(values, Column) else self._group(values)
        except ValueError as error:
            raise ValueError(f"feature {name!r}: {error}") from error

    def _group(self, columns: list[Column]) -> Estimate:
        scores, n = self.scores, self.table.count
        missing = np.any([np.isnan(column.dense(n)) for column in columns], axis=0)
        if self.missing == "raise":
            check_present("its values", np.where(missing, np.nan, 0.0))
        if self.missing == "drop" and missing.any():
            columns, scores = [c.taken(~missing) for c in columns], scores.taken(~missing)
            n = len(scores.r)
        if self.rows == "population":
            column = _joint([Column(column.dense(n)) for column in columns], n)
            found = Tally.of(scores, column, method="discrete", rows=self.rows, n_bins="auto")
            return replace(summarize([found], self.rows), sign=1.0)
        from firmlib._groups import estimate_group  # scikit-learn, only if it is needed

        return estimate_group(scores, numeric(columns, n))

    def estimate_pairs(self, pairs: Pairs) -> tuple[list[str], Estimate, PairTallies] | None:
        """Estimate all pairs of binary features at once; None if one has more values."""
        parts = pairs.parts(self.table)
        check_memory("the table of pairs", (len(parts), len(parts), 12))
        check_memory("X as a dense table", (self.table.count, len(parts)))
        table = np.column_stack([f.numbers(self.table) for f in parts])
        names = [f.__name__ for f in parts]
        return estimate_pairs(self.scores, table, names, pairs.kind, self.rows)

    def estimate_interactions(self, pairs: Pairs) -> tuple[list[str], Estimate, list[str]]:
        """Estimate what no sum of two curves explains, of all pairs; with names and methods."""
        parts = pairs.parts(self.table)
        check_memory("X as columns with bins", (self.table.count, len(parts), 6))
        names, columns = [f.__name__ for f in parts], [f.of(self.table) for f in parts]
        self._check_cells("Pairs('interaction')", names, columns)
        if self.scores.unit is not None:
            raise ValueError("Pairs('interaction') with groups of rows: expected none")
        return estimate_interactions(self.scores, columns, names, self.rows)

    def _check_cells(self, what: str, names: Sequence[str], columns: Sequence[Column]) -> None:
        """Raise where options do not go with cells of several columns."""
        if self.method == "slope" or self.missing == "drop":
            raise ValueError(
                f"{what} with method={self.method!r} and missing={self.missing!r}: expected "
                "neither 'slope' nor 'drop'"
            )
        for name, column in zip(names, columns, strict=True):
            if self.missing == "raise":
                check_present(f"{name!r}", column.values)

    def estimate_given(
        self, names: Sequence[str], functions: Sequence[Values], given: Sequence[str]
    ) -> tuple[Estimate, list[tuple[str, str, float]]]:
        """Estimate what each feature adds to columns; return also method, kind, share missing."""
        known = [self.table.column(name) for name in given]
        self._check_cells("given", given, known)
        estimate, told = Estimate.empty(len(names)), []
        for i, (name, f) in enumerate(zip(names, functions, strict=True)):
            values = f(self.table)
            columns = [values] if isinstance(values, Column) else values
            self._check_cells("given", [name] * len(columns), columns)
            one, method = self._given(name, columns, known, given)
            estimate.put(i, one)
            alone = len(columns) == 1
            missing = np.isnan(columns[0].dense(self.table.count)) if alone else np.nan
            share = float(np.average(missing, weights=self.scores.w)) if alone else np.nan
            told.append((method, columns[0].scale.kind if alone else "group", share))
        return estimate, told

    def _given(
        self, name: str, columns: list[Column], known: list[Column], given: Sequence[str]
    ) -> tuple[Estimate, str]:
        """Estimate what the columns of a feature add, by cells where these are few, else learnt."""
        n = self.table.count
        for g, called in zip(known, given, strict=True):
            if any(np.array_equal(c.dense(n), g.dense(n), equal_nan=True) for c in columns):
                raise ValueError(f"feature {name!r} is {called!r}, which is given")
        if self.rows == "population":
            return estimate_given(self.scores, _joint(columns, n), known, self.rows)
        if len(columns) == 1 and len(known) <= _FEW_GIVEN and self.scores.unit is None:
            try:
                return estimate_given(self.scores, columns[0], known, self.rows)
            except ValueError as error:
                raise ValueError(f"feature {name!r} given {', '.join(given)}: {error}") from error
        from firmlib._groups import estimate_group  # scikit-learn, only if it is needed

        found = estimate_group(self.scores, numeric(columns, n), numeric(known, n))
        return found, _GROUP_METHODS[self.rows]


def _joint(columns: Sequence[Column], n: int) -> Column:
    """Return columns as one, of which every combination of values is a level."""
    if len(columns) == 1:
        return columns[0]
    codes = [np.unique(column.dense(n), return_inverse=True)[1] for column in columns]
    _, level = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    return Column(level.ravel().astype(float))


def describe(source: Tally | Slope | None) -> tuple[str, float]:
    """Return what a feature holds, and the share of rows in which it is missing."""
    if source is None:
        return "group", np.nan
    scale = source.bins.scale if isinstance(source, Tally) else source.scale
    return scale.kind, source.missing


_FEW_GIVEN = 2  # columns whose cells are taken; more are learnt
_GROUP_METHODS = {"sample": "boosted", "population": "discrete"}


_MOST_LEVELS = 32  # of a category in a group that are told apart


def numeric(some: Sequence[Column], n: int) -> np.ndarray:
    """Return columns of n rows as numbers that any learner takes, an array (n, k).

    A nominal column becomes one column per level, of the most frequent ones; missing values are
    told by a column of their own.
    """
    columns = []
    for column in some:
        f = column.dense(n)
        missing = np.isnan(f)
        if column.scale.kind == "nominal":
            seen, rows = np.unique(f[~missing], return_counts=True)
            order = np.argsort(-rows, kind="stable")
            columns += [f == level for level in seen[order][:_MOST_LEVELS]]
        elif not missing.all():
            columns.append(np.where(missing, np.median(f[~missing]), f))
        if missing.any():
            columns.append(missing)
    return np.column_stack(columns).astype(float)
