"""`firm` for rows that come in chunks: only sums are kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.rows import rows_of
from firmlib.estimation.scan import known, measured, read
from firmlib.estimation.slope import Line
from firmlib.estimation.sums import Axis, Sums, summed
from firmlib.features import Group, Pairs, Place, check_names, resolve
from firmlib.measure import as_how
from firmlib.result import FirmResult
from firmlib.scores import Score, respond
from firmlib.tables import sources as chunked
from firmlib.tables.checks import short, warn
from firmlib.tables.columns import Column
from firmlib.tables.sources import chunks, is_source, progress, sample
from firmlib.tables.table import Table

__all__ = ["StreamingFirm"]

UNKNOWN = Column(np.empty(0), "unknown")  # until there is a value


class Bins(NamedTuple):
    """Kinds, labels and bins of the features, shared by all chunks."""

    names: list[str]
    columns: list[Column]
    axes: list[Axis | None]  # None: of a slope
    options: dict[str, Any]  # that decide on bins


class State(NamedTuple):
    """What is kept of rows: `total` is for Var(s), `score` has its method and target."""

    bins: Bins
    sums: list[Sums | Line]
    total: Line
    n: int
    units: bool
    score: tuple[str, Any]


def check_alike(what: str, theirs: dict[str, Any], own: dict[str, Any]) -> None:
    """Raise unless options are the same."""
    for option, value in theirs.items():
        if value != own[option]:
            raise ValueError(f"{what} has {option}={value!r}, expected {own[option]!r}")


def on_scale(what: str, names: list[str], columns: list[Column], bins: Bins | None) -> list[Column]:
    """Return columns with the labels of earlier chunks."""
    if bins is None:
        return columns
    if names != bins.names:
        raise ValueError(f"{what} has the features {names}, expected {bins.names}")
    return [
        column if old.kind == "unknown" else column.joined(f"feature {name!r}", old)
        for name, column, old in zip(names, columns, bins.columns, strict=True)
    ]


def merged(old: State, new: State, what: str) -> State:
    """Return what is kept of all rows of two states, whose bins are those of the old one."""
    (names, columns, *_), before = new.bins, old.bins.columns
    columns = [column._replace(values=column.codes) for column in columns]
    columns, sums = on_scale(what, names, columns, old.bins), []
    if new.score != old.score:
        raise ValueError(f"score is (method, target) {new.score}, expected {old.score} as before")
    if new.units != old.units:
        raise ValueError("groups must be given for all chunks or for none")
    for one, other, codes, kind in zip(old.sums, new.sums, columns, before, strict=True):
        nothing = kind.kind == "unknown"  # but missing values so far
        sums.append(other.merged(one, codes) if nothing else one.merged(other, codes))
    columns = [column.empty for column in columns]
    bins = new.bins._replace(columns=columns, axes=[one.axis for one in sums])
    return State(bins, sums, old.total.merged(new.total), old.n + new.n, new.units, new.score)


class StreamingFirm:
    """`firm` for rows that come in chunks; only sums are kept.

    The first chunk determines the bins; it should have 2000 rows or more, from everywhere.
    Importances equal those of `firm` if the bins are the same. Streams with the same bins can be
    merged.

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
        bins: Bins | None = None,
    ) -> None:
        self._how = as_how(method, rows, missing, n_bins, confidence_level)
        if bins is not None and not isinstance(bins, Bins):
            raise ValueError(f"bins={bins!r} must be the bins of another StreamingFirm")
        self._kind = {"rows": rows, "method": method, "n_bins": n_bins}  # of bins
        self._options = self._kind | {"missing": missing, "categorical": [*(categorical or [])]}
        if bins is not None:
            check_alike("bins", bins.options, self._options)
        self.features, self.feature_names, self.categorical = features, feature_names, categorical
        self.response_method, self.target = response_method, target
        self.rows, self.confidence_level, self._given = rows, confidence_level, bins
        self._state: State | None = None
        self._start = 0  # position of the first row

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
            columns = {"sample_weight": sample_weight, "groups": groups}
            chunked.named(score, **columns)
            return self.merge(chunked.summed(self, X, score, columns))
        table = Table(X, at_least=0).with_categorical(self.categorical)
        if table.n == 0:
            return self
        response = respond(score, table, response_method=self.response_method, target=self.target)
        weights: Any = sample_weight, groups
        start = self._start + (self._state.n if self._state else 0)
        population = self.rows == "population"
        rows = rows_of(response.values, table, *weights, population=population, start=start)
        found = [] if isinstance(self.features, Pairs) else resolve(self.features, table)
        if not found or any(isinstance(f, Group) or f.ready for f in found):
            wanted = "pairs, groups and ready values need all rows at once; use firm on a table"
            raise ValueError(f"features={self.features!r}: {wanted}")
        names = check_names([f.name for f in found], self.feature_names)
        if not rows.n:
            return self
        columns = [read(f, table, rows, self._how) for f in found]
        columns = on_scale("X", names, columns, self._bins)
        before, axes = [UNKNOWN] * len(names), [None] * len(names)
        if self._bins is not None:
            _, before, axes, _ = self._bins
        sums, kinds = [], []
        for column, old, axis in zip(columns, before, axes, strict=True):
            axis = None if old.kind == "unknown" else axis
            sums.append(summed(column, rows, self._how, axis=axis))
            missing = np.isnan(column.values).all()
            kinds.append(old if missing else column.empty)
        bins = Bins(names, kinds, [one.axis for one in sums], self._kind)
        total, units = Line.of(rows.s, rows), rows.unit is not None
        return self._add("X", State(bins, sums, total, rows.n, units, response[1:]))

    def merge(self, other: StreamingFirm) -> Self:
        """Add another stream with the same features, options and, if both have rows, bins."""
        if not isinstance(other, StreamingFirm):
            raise ValueError(f"other={other!r} must be a StreamingFirm")
        check_alike("other", other._options, self._options)
        return self._add("other", other._state) if other._state else self

    def _add(self, what: str, new: State) -> Self:
        on_scale(what, new.bins.names, new.bins.columns, self._bins)
        self._state = merged(self._state, new, what) if self._state else new
        return self

    def fit(
        self,
        X: Any,
        score: Score,
        *,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
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
        columns = {"sample_weight": sample_weight, "groups": groups}
        if is_source(X):
            chunked.named(score, **columns)
        self._state = None
        if hasattr(X, "__dask_graph__") or not is_source(X):
            return self.partial_fit(X, score, **columns)
        stream = self._emptied()
        if self._given is None:
            stream._find_bins(sample(X), groups)
        for part in progress(chunks(X), "chunks"):
            stream.partial_fit(part, score, **columns)
        self._state = stream._state
        return self

    def _find_bins(self, some: Any, groups: Any) -> None:
        """Determine the bins from a sample of rows."""
        if some is not None and some.shape[0]:
            other = self._emptied().partial_fit(some, np.zeros(some.shape[0]), groups=groups)
            self._given = other._bins

    def _emptied(self) -> Self:
        """Return a stream without rows that has the same bins, if any."""
        other = copy.copy(self)
        other._given, other._state = self._bins, None
        return other

    @property
    def _bins(self) -> Bins | None:
        return self._state.bins if self._state else self._given

    @property
    def bins(self) -> Bins:
        """The bins, for use in another stream."""
        if self._bins is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        return self._bins

    def result(self) -> FirmResult:
        """Return the importances for all rows so far."""
        if self._state is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        (names, columns, *_), sums, total, n, units, (method, target) = self._state
        if units and np.count_nonzero(total.sums[0]) < 2:
            raise ValueError("groups has one label; expected at least 2 units")
        columns = [Column(c.values) if c.kind == "unknown" else c for c in columns]
        each = zip(names, sums, strict=True)
        if coarse := [name for name, one in each if isinstance(one, Sums) and one.coarse()]:
            warn(
                f"importances of {short(coarse)} are too small: the first chunk, from which bins "
                "were found, had few rows or few of the values that came later; shuffle the rows, "
                "begin with a larger chunk, or pass bins= of a stream that saw rows from all parts"
            )
        each, weight = zip(sums, columns, strict=True), total.sums[0].sum()
        estimate, sources = measured(each, weight, self.rows == "population", units)
        return FirmResult(
            estimate=known(estimate, names),
            feature_names=tuple(names),
            sources=tuple(sources),
            n=n,
            rows=self.rows,
            total=total.variance(self.rows, units),
            response=method,
            target=target,
            confidence_level=self.confidence_level,
        )
