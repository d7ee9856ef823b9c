"""`firm` for rows that come in chunks: only sums are kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.rows import rows_of
from firmlib.estimation.scan import joined, measured, read
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Sums, summed
from firmlib.features import Group, Pairs, Place, check_names, resolve
from firmlib.measure import as_how
from firmlib.result import FirmResult
from firmlib.scores import Score, respond
from firmlib.tables import sources
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import UNKNOWN, Column
from firmlib.tables.table import Table

__all__ = ["StreamingFirm"]

PerRow = ArrayLike | str | None  # values, or the name of a column


class State(NamedTuple):
    """What is kept of rows. The bins of a stream are a state without rows."""

    options: dict[str, Any]  # of the stream, and the names of the features
    columns: dict[str, Column]  # the kind and labels of each feature
    sums: dict[str, Sums | Line]
    given: dict[str, Any]  # how scores and units are
    total: Any = None  # a Line, for Var(s)
    n: int = 0

    def bins(self) -> State:
        """Return the state without rows."""
        sums = {name: replace(one, sums=one.sums[..., :0]) for name, one in self.sums.items()}
        return State(self.options, self.columns, sums, {})

    def merged(self, new: State, what: str = "other") -> State:
        """Return the state of all rows of both, in the bins of this one."""
        check_alike(what, new.options | new.given, self.options | self.given)
        if not (self.n and new.n):
            return new if new.n else self
        columns, sums = {}, {}
        for name, before in self.columns.items():
            one, other = self.sums[name], new.sums[name]
            if before.kind == "unknown":  # only missing values so far
                one, other = other, one
            codes = new.columns[name].joined(f"feature {name!r}", before)
            columns[name], sums[name] = codes.scale, one.merged(other, codes)
        total, n = self.total.merged(new.total), self.n + new.n
        return State(self.options, columns, sums, self.given, total, n)


def check_alike(what: str, theirs: dict[str, Any], own: dict[str, Any]) -> None:
    """Raise if two values of the same option differ."""
    for option, value in theirs.items():
        if option in own and value != own[option]:
            raise ValueError(f"{what} has {option}={value!r}, expected {own[option]!r}")


class StreamingFirm:
    """`firm` for rows that come in chunks; only sums are kept.

    The first chunk determines the bins; it should have 2000 rows or more, from everywhere.
    Importances equal those of `firm` if the bins are the same, except with 32 units or fewer, which
    share folds here, or units that span chunks, which count in each. Streams with the same bins can
    be merged.

    Parameters
    ----------
    features, categorical, missing, rows, method, n_bins, response_method, target, feature_names, \
confidence_level
        As for `firm`, except for groups of columns and pairs, which need all rows at once.
    bins : object, default None
        `bins` of another stream, so that both can be merged.

    Examples
    --------
    >>> import firmlib
    >>> rng = np.random.default_rng(0)
    >>> stream = firmlib.StreamingFirm()
    >>> for _ in range(20):
    ...     X = rng.normal(size=(1000, 2))
    ...     stream = stream.partial_fit(X, X[:, 0] - X[:, 1])
    >>> stream.result().signed.round(1)
    array([ 1., -1.])

    Two streams, possibly on two computers, use the bins of a sample.

    >>> sample = firmlib.StreamingFirm().partial_fit(X, X[:, 1])
    >>> left, right = (firmlib.StreamingFirm(bins=sample.bins) for _ in range(2))
    >>> both = left.partial_fit(X[:500], X[:500, 1]).merge(right.partial_fit(X[500:], X[500:, 1]))
    >>> bool(np.allclose(both.result().importances, sample.result().importances))
    True
    """

    def __init__(
        self,
        features: Any = None,
        *,
        categorical: Sequence[Place] | None = None,
        missing: str = "level",
        rows: str = "sample",
        method: str = "auto",
        n_bins: int | str = "auto",
        response_method: str = "auto",
        target: Any = None,
        feature_names: Sequence[str] | None = None,
        confidence_level: float = 0.95,
        bins: State | None = None,
    ) -> None:
        self._how = as_how(method, rows, missing, n_bins, confidence_level)
        options = {"rows": rows, "method": method, "n_bins": n_bins}
        if bins is not None and not isinstance(bins, State):
            raise ValueError(f"bins={bins!r} must be the bins of another StreamingFirm")
        first = bins or State({}, {}, {}, {})
        check_alike("bins", first.options, options)
        options["missing"] = missing
        options["categorical"] = [] if categorical is None else [*categorical]
        self._first = self._state = first._replace(options=first.options | options)
        self.features, self.feature_names, self.categorical = features, feature_names, categorical
        self.response_method, self.target = response_method, target
        self.rows, self.confidence_level = rows, confidence_level

    def partial_fit(
        self, X: Any, score: Score, *, sample_weight: PerRow = None, groups: PerRow = None
    ) -> Self:
        """Add the rows of X: a table with the same columns every time, or as for `fit`.

        Units of `groups` may span chunks. An error leaves the stream unchanged.
        """
        self._state = self._with(self._state, X, score, sample_weight, groups)
        return self

    def fit(
        self, X: Any, score: Score, *, sample_weight: PerRow = None, groups: PerRow = None
    ) -> Self:
        """Start over with the rows of X, chunk by chunk.

        Parameters
        ----------
        X : table, iterator over tables, dask collection, polars LazyFrame, dataset or path
            A path is that of a Parquet file, a folder or a glob pattern. Rows drawn at random from
            sixteen row groups or partitions determine the bins.
        score, sample_weight, groups
            A model or callable, and names of columns; for one table also arrays.
        """
        self._state = self._with(self._first, X, score, sample_weight, groups)
        return self

    def _with(self, state: State, X: Any, score: Any, sample_weight: Any, groups: Any) -> State:
        """Return a state with the rows of a table or, part by part, of a source."""
        given: Any = {"score": score, "sample_weight": sample_weight, "groups": groups}
        if not sources.is_source(X):
            return state.merged(self._state_of(X, state, state.n, **given), "X")
        sources.check_named(**given)
        parts = sources.parts(X)
        if not state.columns and (some := sources.sample(parts)) is not None:
            state = self._state_of(some, state, 0, np.zeros(len(some)), None, groups).bins()
        if sources.is_dask(X):
            one, bins = copy.copy(self), state.bins()
            one._first = one._state = bins  # sums need not be sent
            function = partial(one._state_of, before=bins, **given)
            return state.merged(sources.merged(State.merged, function, parts), "X")
        for table in sources.progress(sources.tables(parts), "chunks"):
            state = self._with(state, table, **given)
        return state

    def _state_of(
        self, X: Any, before: State, start: int, score: Any, sample_weight: Any, groups: Any
    ) -> State:
        """Return the state of the rows of a table, in the bins so far; `start` rows came before."""
        table = Table(X, at_least=0).with_categorical(self.categorical)
        if table.n == 0:
            return before.bins()
        response = respond(score, table, response_method=self.response_method, target=self.target)
        options: Any = {"population": self.rows == "population", "start": start}
        rows = rows_of(response.values, table, sample_weight, groups, **options)
        found = [] if isinstance(self.features, Pairs) else resolve(self.features, table)
        if not found or any(isinstance(f, Group) or f.ready for f in found):
            wanted = "pairs, groups and ready values need all rows at once; use firm on a table"
            raise ValueError(f"features={self.features!r}: {wanted}")
        names = check_names([f.name for f in found], self.feature_names)
        if not rows.n:
            return before.bins()
        columns, sums = {}, {}
        for name, feature in zip(names, found, strict=True):
            known = before.columns.get(name, UNKNOWN)
            column = read(feature, table, rows, self._how).joined(f"feature {name!r}", known)
            axis = None if known.kind == "unknown" else before.sums[name].axis
            numbers = column.kind != "nominal" and not self._how.slope
            if axis is None and numbers and (self._how.n_bins or 0) > rows.n:
                most = f"at most {rows.n}, the rows of the first chunk, which determines the bins"
                raise ValueError(f"n_bins={self._how.n_bins} must be {most}")
            one, columns[name] = summed(column, rows, self._how, axis=axis), column.scale
            sums[name] = one if axis or isinstance(one, Line) else one.noted()
        given = {"response": response.method, "target": response.target}
        given["groups given"] = rows.unit is not None
        options = before.options | {"features": names}
        return State(options, columns, sums, given, Line.of(rows.s, rows), rows.n)

    def merge(self, other: StreamingFirm) -> Self:
        """Add another stream with the same features, options and, if both have rows, bins."""
        if not isinstance(other, StreamingFirm):
            raise ValueError(f"other={other!r} must be a StreamingFirm")
        self._state = self._state.merged(other._state)
        return self

    @property
    def bins(self) -> State:
        """The bins, for use in another stream."""
        if not self._state.columns:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        return self._state.bins()

    def result(self) -> FirmResult:
        """Return the importances for all rows so far."""
        _, columns, sums, given, total, n = self._state
        if not n:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        units = given["groups given"]
        if units and np.count_nonzero(total.sums[0]) < 2:
            raise ValueError("groups has too few labels for errors; expected more units")
        if coarse := [name for name, one in sums.items() if isinstance(one, Sums) and one.coarse()]:
            warn(
                f"importances of {short(coarse)} are too small: the first chunk, which determines "
                "the bins, is small or unlike later ones; shuffle the rows, begin with a larger "
                "chunk, or pass bins= of a stream that saw rows from all parts"
            )
        scales = [Column(c.values) if c.kind == "unknown" else c for c in columns.values()]
        each = enumerate(zip(sums.values(), scales, strict=True))
        found = measured(each, total.sums[0].sum(), self.rows == "population", units)
        estimate, kept = joined([*found], [*columns])
        return FirmResult(
            estimate=estimate,
            feature_names=tuple(columns),
            sources=tuple(kept),
            n=n,
            rows=self.rows,
            total=total.variance(self.rows, units),
            response=given["response"],
            target=given["target"],
            confidence_level=self.confidence_level,
        )
