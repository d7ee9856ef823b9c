"""FIRM for rows in chunks: streams, files, clusters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.bins import Axes
from firmlib.estimation.rows import Rows, joined, rows_of
from firmlib.estimation.scan import How, Tally, block, known, read, stacked
from firmlib.estimation.sums import Total
from firmlib.features import Group, Pairs, Place, check_names, resolve
from firmlib.measure import check_options
from firmlib.result import FirmResult
from firmlib.scores import Response, Score, respond
from firmlib.tables import sources as chunked
from firmlib.tables.checks import check_integer
from firmlib.tables.columns import Column
from firmlib.tables.sources import chunks, is_source, sample
from firmlib.tables.table import Table

__all__ = ["StreamingFirm"]

_OPTIONS = ("categorical", "missing", "rows", "method", "n_bins", "response_method", "target")


class Bins(NamedTuple):
    """Kinds and labels of the columns and slots of the numbers, shared by all chunks."""

    names: list[str]
    columns: list[Column]
    axes: list[Axes | None]


def emptied(column: Column) -> Column:
    """Return a column with its kind and labels only."""
    return column._replace(values=np.empty(0))


def joined_to(shared: Bins, columns: Sequence[Column]) -> list[Column]:
    """Return columns with the labels of earlier chunks."""
    before = zip(shared.names, columns, shared.columns, strict=True)
    return [
        column if old.kind == "unknown" else column.joined(f"feature {name!r}", old)
        for name, column, old in before
    ]


class StreamingFirm:
    """`firm` for rows that come in chunks; only sums are kept.

    The first rows determine the bins. Importances equal those of `firm` if the bins are the same.
    Streams with the same bins can be merged.

    Parameters
    ----------
    features, categorical, missing, rows, method, n_bins, response_method, target, feature_names, \
confidence_level
        As for `firm`, except for groups of columns and pairs, which need all rows at once.
    bins : object, default None
        `bins` of another stream, so that both can be merged.
    first_rows : int, default 10000
        Number of rows that determine the bins.

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
        bins: Bins | None = None,
        first_rows: int = 10_000,
    ) -> None:
        check_options(method, rows, missing, n_bins, confidence_level)
        check_integer("first_rows", first_rows, 2)
        if isinstance(features, Pairs | Group):
            raise ValueError(f"features={features!r} needs all rows at once; use firm on a table")
        if bins is not None and not isinstance(bins, Bins):
            raise ValueError(f"bins={bins!r} must be the bins of another StreamingFirm")
        self.features, self.feature_names, self.categorical = features, feature_names, categorical
        self.missing, self.rows, self.method, self.n_bins = missing, rows, method, n_bins
        self.response_method, self.target = response_method, target
        self.confidence_level, self.first_rows = confidence_level, first_rows
        self._given = bins
        self._reset()

    def _reset(self, bins: Bins | None = None) -> None:
        """Forget all rows; `bins` replace those that were passed to the constructor."""
        self._shared = bins or self._given
        self._waiting: list[tuple[list[Column], Rows]] = []
        self._tally: Tally | None = None
        self._total = Total()
        self._n, self._has_groups = 0, False
        self._start = 0  # position of the first row
        self._response: Response | None = None

    def partial_fit(
        self,
        X: Any,
        score: Score,
        *,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
    ) -> Self:
        """Add a chunk: a table with the same columns every time, or a dask collection.

        Units of `groups` may span chunks. An error leaves the stream unchanged.
        """
        if hasattr(X, "__dask_graph__"):
            columns = chunked.named(score, sample_weight=sample_weight, groups=groups)
            return self.merge(chunked.summed(self, X, score, columns))
        table = Table(X, at_least=0).with_categorical(self.categorical)
        if table.n == 0:
            return self
        response = respond(score, table, response_method=self.response_method, target=self.target)
        self._check_response(response)
        rows = rows_of(
            response.values,
            table,
            sample_weight,
            groups,
            population=self.rows == "population",
            start=self._start + self._n,
        )
        if self._n and rows.n and (rows.key is not None) != self._has_groups:
            raise ValueError("groups must be given for all chunks or for none")
        found = resolve(self.features, table)
        for f in found:
            if isinstance(f, Group) or f.ready:
                raise ValueError(
                    f"feature {f.name!r} is a group or ready values, which need all rows at once; "
                    "use firm on a table"
                )
        names = check_names([f.name for f in found], self.feature_names)
        unknown = Column(np.empty(0), kind="unknown")  # until there is a value
        shared = self._shared or Bins(names, [unknown] * len(names), [])
        if names != shared.names:
            raise ValueError(f"X has the features {names}, expected {shared.names}")
        if self.features is None and table.plain and self.missing != "raise":
            values = block(table, rows, 0, table.width)
            columns = [Column(f) for f in values(slice(0, rows.n))]
        else:
            columns = [read(f, table, rows, self._how) for f in found]
        self._take(joined_to(shared, columns), rows, shared)
        self._response = response._replace(values=np.empty(0))
        return self

    def _check_response(self, response: Response) -> None:
        before = self._response
        if before is not None and before[1:] != response[1:]:
            raise ValueError(
                f"score is {response.method} of {response.target!r}, expected {before.method} of "
                f"{before.target!r} as before"
            )

    def _take(self, columns: list[Column], rows: Rows, shared: Bins) -> None:
        """Add rows to the sums, or collect them until there are enough to determine the bins."""
        kinds = [
            old if self._tally is None and np.isnan(c.values).all() else emptied(c)
            for c, old in zip(columns, shared.columns, strict=True)
        ]
        if self._tally is not None:
            self._tally.add(stacked(columns), rows)
        elif rows.n:  # the caller may reuse X
            columns = [c._replace(values=c.values.copy()) for c in columns]
            waiting = [*self._waiting, (columns, replace(rows, s=rows.s.copy()))]
            if any(shared.axes) or self._n + rows.n >= self.first_rows:
                self._tally, waiting = self._sums(waiting, shared.axes), []
            self._waiting = waiting
        self._shared = shared._replace(columns=kinds)
        if rows.n:
            self._n, self._has_groups = self._n + rows.n, rows.key is not None
            self._total.add(rows)

    def _sums(self, waiting: list[tuple[list[Column], Rows]], axes: list[Axes | None]) -> Tally:
        """Return the sums of rows that wait."""
        columns, rows = waiting[-1][0], joined([rows for _, rows in waiting])
        if len(waiting) > 1:
            each = zip(*(columns for columns, _ in waiting), strict=True)
            values = [np.concatenate([c.values for c in some]) for some in each]
            columns = [c._replace(values=v) for c, v in zip(columns, values, strict=True)]
        values = stacked(columns)
        tally = Tally(columns, values, rows, self._how, axes=axes, roomy=True)
        return tally.add(values, rows)

    def _tallied(self) -> Tally:
        """Return the sums of all rows so far."""
        assert self._shared is not None
        return self._tally or self._sums(self._waiting, self._shared.axes)

    @property
    def _how(self) -> How:
        n_bins = None if self.n_bins == "auto" else int(self.n_bins)
        return How(n_bins, self.missing, self.method == "slope")

    def fit(
        self,
        X: Any,
        score: Score,
        *,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        progress: bool = False,
    ) -> Self:
        """Start over with the rows of X, chunk by chunk.

        Parameters
        ----------
        X : table, iterable of tables, dask collection, polars LazyFrame, dataset or path
            A path is that of a Parquet file, a folder or a glob pattern. Rows drawn at random from
            sixteen row groups or partitions determine the bins.
        score, sample_weight, groups
            A model or callable, and names of columns; for one table also arrays.
        progress : bool, default False
            Show a bar (needs tqdm).
        """
        rows = isinstance(X, list) and len(X) > 0 and isinstance(X[0], list | tuple)
        if not is_source(X) and (hasattr(X, "shape") or rows):
            self._reset()
            return self.partial_fit(X, score, sample_weight=sample_weight, groups=groups)
        columns = chunked.named(score, sample_weight=sample_weight, groups=groups)
        self._reset()
        if hasattr(X, "__dask_graph__"):
            return self.merge(chunked.summed(self, X, score, columns, progress))
        if self._shared is None:
            self._find_bins(sample(X, self.first_rows), groups)
        parts: Any = chunks(X)
        if progress:
            from tqdm import tqdm

            parts = tqdm(parts, unit="chunk")
        for part in parts:
            self.partial_fit(part, score, sample_weight=sample_weight, groups=groups)
        return self

    def _find_bins(self, some: Any, groups: Any) -> None:
        """Determine the bins from a sample of rows."""
        if some is not None and some.shape[0]:
            other = self._emptied().partial_fit(some, np.zeros(some.shape[0]), groups=groups)
            self._reset(other.bins)

    def _emptied(self) -> Self:
        """Return a stream without rows that has the same bins, if any."""
        other = copy.copy(self)
        other._reset(self.bins if self._n else self._shared)
        return other

    @property
    def bins(self) -> Bins:
        """The bins, for use in another stream."""
        if self._shared is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        return self._shared._replace(axes=self._tallied().axes) if self._n else self._shared

    def merge(self, other: StreamingFirm) -> Self:
        """Add another stream with the same features, options and, if both have bins, bins."""
        if not isinstance(other, StreamingFirm):
            raise ValueError(f"other={other!r} must be a StreamingFirm")
        for option in _OPTIONS:
            theirs, own = getattr(other, option), getattr(self, option)
            if theirs != own:
                raise ValueError(f"other has {option}={theirs!r}, expected {own!r}")
        if not other._n or other._shared is None or other._response is None:
            return self
        self._check_response(other._response)
        if self._shared is not None and self._shared.names != other._shared.names:
            raise ValueError(
                f"other has the features {other._shared.names}, expected {self._shared.names}"
            )
        if self._n and self._has_groups != other._has_groups:
            raise ValueError("groups must be given for all streams or for none")
        after = copy.deepcopy(self)  # an error leaves this stream unchanged
        for columns, rows in other._waiting:
            shared = after._shared or other._shared
            after._take(joined_to(shared, columns), rows, shared)
        if other._tally is not None and not after._n:
            after._tally, after._shared = copy.deepcopy(other._tally), other._shared
        elif other._tally is not None and after._shared is not None:
            codes = [c._replace(values=c.codes) for c in other._shared.columns]
            codes = joined_to(after._shared, codes)
            if after._tally is None:
                axes = after._shared.axes
                after._tally = self._sums(after._waiting, axes if any(axes) else other.bins.axes)
            after._tally.merge(other._tally, codes)
            after._shared = after._shared._replace(columns=[emptied(c) for c in codes])
            after._waiting = []
        if other._tally is not None:
            after._n, after._has_groups = self._n + other._n, other._has_groups
            after._total.merge(other._total)
        after._response = other._response
        self.__dict__ = after.__dict__
        return self

    def result(self) -> FirmResult:
        """Return the importances for all rows so far."""
        if not self._n or self._shared is None or self._response is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        tally, columns = self._tallied(), self._shared.columns
        names, population = self._shared.names, self.rows == "population"
        tally.check_bins(names)
        estimate, sources = tally.found(columns, population=population, units=self._has_groups)
        return FirmResult(
            estimate=known(estimate, names),
            feature_names=tuple(names),
            sources=tuple(sources),
            n=tally.n,
            rows=self.rows,
            total=self._total.variance(population, self._has_groups),
            response=self._response.method,
            target=self._response.target,
            confidence_level=self.confidence_level,
        )
