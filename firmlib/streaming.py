"""The same sums over chunks of rows: streams, files, clusters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib.estimation.bins import Axes
from firmlib.estimation.rows import FOLDS, Rows, rows_of
from firmlib.estimation.scan import Scan, Sums, new_sums
from firmlib.estimation.sums import (
    Levels,
    Numbers,
    fold_totals,
    moved_totals,
    parts,
    total_variance,
)
from firmlib.features import Group, Pairs, Place, check_names, resolve
from firmlib.measure import check_options
from firmlib.result import FirmResult
from firmlib.scores import Response, Score, is_model, respond
from firmlib.tables.checks import check_integer, check_memory
from firmlib.tables.columns import Column, check_present
from firmlib.tables.sources import chunks, dask_reduce, is_source, partitions, sample
from firmlib.tables.table import Table

__all__ = ["StreamingFirm"]

_OPTIONS = ("categorical", "missing", "rows", "method", "n_bins", "response_method", "target")


class Bins(NamedTuple):
    """What chunks share: the kinds and labels of the columns, and the slots of the numbers."""

    names: list[str]
    columns: list[Column]
    axes: Axes | None


class StreamingFirm:
    """`firm` for rows that come in chunks; only sums are kept.

    Bins are found from the first rows, so importances agree with those of `firm` up to the place of
    the bins, and exactly if the bins are the same. Sums of streams with the same bins add up.

    Parameters
    ----------
    features, categorical, missing, rows, method, n_bins, response_method, target, feature_names, \
confidence_level
        As for `firm`; groups of columns and pairs need all rows at once.
    bins : object, default None
        `bins` of another stream, so that both can be merged.
    first_rows : int, default 10000
        Rows that are gathered before bins are found.

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

    Two parts, say of two machines, with the bins of a sample.

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
        self._given_bins = bins
        self._reset()

    def _reset(self) -> None:
        self._shared = self._given_bins
        self._waiting: list[tuple[list[Column], Rows]] = []
        self._numbers: Numbers | None = None
        self._others: dict[int, Sums] = {}
        self._totals = np.zeros((6, FOLDS))
        self._centre: float | None = None
        self._n, self._units = 0, np.zeros(0, np.uint64)
        self._response: Response | None = None

    def partial_fit(
        self,
        X: Any,
        score: Score,
        *,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
    ) -> Self:
        """Take in more rows. After an error the stream is as it was.

        Parameters
        ----------
        X : table with the same columns every time, or dask collection
        score : fitted estimator, callable X -> (n,), or array of shape (n,)
        sample_weight, groups : array of shape (n,) or column, default None
            As for `firm`. A unit may continue in other chunks.
        """
        if hasattr(X, "__dask_graph__"):
            columns = _named(score, sample_weight=sample_weight, groups=groups)
            return self._add_dask(X, score, **columns)
        table = Table(X, at_least=0).with_categorical(self.categorical)
        if table.n == 0:
            return self
        response = respond(
            score, table, response_method=self.response_method, target=self.target
        )
        self._check_response(response)
        rows = rows_of(
            response.values,
            table,
            sample_weight,
            groups,
            population=self.rows == "population",
            start=self._n,
        )
        if self._n and rows.n and (rows.key is None) != (len(self._units) == 0):
            raise ValueError("groups must be given for all chunks or for none")
        names, columns = self._columns(table, rows)
        self._response = response._replace(values=np.empty(0))
        if self._shared is None:
            self._shared = Bins(names, columns, None)
        if rows.n:
            self._take(columns, rows)
        return self

    def _columns(self, table: Table, rows: Rows) -> tuple[list[str], list[Column]]:
        """Return the features of a chunk, on the scales of those before."""
        found = resolve(self.features, table)
        for f in found:
            if isinstance(f, Group) or f.ready:
                raise ValueError(
                    f"feature {f.name!r} is a group or ready values, which need all rows at once; "
                    "use firm on a table"
                )
        names = check_names([f.name for f in found], self.feature_names)
        if self._shared is not None and names != self._shared.names:
            raise ValueError(f"X has the features {names}, expected {self._shared.names}")
        columns = [f.of(table).take(rows.keep) for f in found]  # type: ignore[union-attr]
        columns = [c._replace(values=c.dense(rows.n), rows=None) for c in columns]
        if self.missing == "raise":
            for name, column in zip(names, columns, strict=True):
                check_present(f"feature {name!r}", column.values)
        return names, columns if self._shared is None else self._joined(columns)

    def _joined(self, columns: list[Column]) -> list[Column]:
        """Return columns on the scales of those before."""
        assert self._shared is not None
        before = zip(self._shared.names, columns, self._shared.columns, strict=True)
        return [column.joined(f"feature {name!r}", old) for name, column, old in before]

    def _check_response(self, response: Response) -> None:
        before = self._response
        if before is not None and (before.method, before.target) != (response.method, response.target):
            raise ValueError(
                f"score is {response.method} of {response.target!r}, expected {before.method} of "
                f"{before.target!r} as before"
            )

    def _take(self, columns: list[Column], rows: Rows) -> None:
        """Gather rows until bins can be found, and sum them up from then on."""
        assert self._shared is not None
        kinds = [c._replace(values=np.empty(0)) for c in columns]
        self._shared = self._shared._replace(columns=kinds)
        self._n += rows.n
        if rows.key is not None:
            self._units = np.union1d(self._units, rows.key)
        if self._settled or self._given_bins is not None:
            self._settle(self._given_bins)
            self._add(columns, rows)
            return
        columns = [c._replace(values=c.values.copy()) for c in columns]  # the caller may reuse X
        self._waiting.append((columns, replace(rows, s=rows.s.copy())))
        if sum(r.n for _, r in self._waiting) >= self.first_rows:
            self._settle()

    @property
    def _settled(self) -> bool:
        return self._numbers is not None or bool(self._others)

    def _settle(self, bins: Bins | None = None) -> None:
        """Take bins, or find them from the rows that wait, and sum these rows up."""
        self._shared = bins if self._shared is None else self._shared
        assert self._shared is not None
        waiting, self._waiting = self._waiting, []
        if not self._settled:
            columns = [c for c, _ in waiting] or [self._shared.columns]
            numbers = []
            for j, column in enumerate(self._shared.columns):
                values = np.concatenate([c[j].values for c in columns])
                sums = new_sums(
                    column._replace(values=values),
                    len(values),
                    population=self.rows == "population" and self.n_bins == "auto",
                    slope=self.method == "slope",
                )
                if sums is None:
                    numbers.append(values)
                else:
                    self._others[j] = sums
            if numbers:
                n_bins = None if self.n_bins == "auto" else int(self.n_bins)
                keys = [rows.key for _, rows in waiting if rows.key is not None]
                unit = np.concatenate(keys) if keys else None
                axes = None if bins is None else bins.axes
                axes = axes or Axes.of(np.array(numbers), self._n, n_bins, roomy=True, unit=unit)
                check_memory("the sums of all features", (5, FOLDS, len(axes.start), axes.slots))
                self._numbers = Numbers(axes)
        for each, rows in waiting:
            self._add(each, rows)

    def _add(self, columns: list[Column], rows: Rows) -> None:
        """Add rows to the sums."""
        if self._centre is None:
            self._centre = rows.centre
        r = rows.s - self._centre
        each = parts(r, rows.w if rows.weighted or rows.w[0] != 1 else None)
        if self._numbers is not None:
            F = np.array([c.values for j, c in enumerate(columns) if j not in self._others])
            self._numbers.add(F, each, rows.fold)
        for j, sums in self._others.items():
            sums.add(columns[j] if isinstance(sums, Levels) else columns[j].values, each, rows.fold)
        self._totals += fold_totals(r, rows.w, rows.fold)

    def fit(
        self,
        X: Any,
        score: Score,
        *,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        progress: bool = False,
    ) -> Self:
        """Start anew with the rows of X, each chunk scored and summed up where it is.

        Parameters
        ----------
        X : table, iterable of tables, dask collection, polars LazyFrame, dataset or path
            A path names a Parquet file, a folder of them or a pattern. Bins are found from rows
            drawn at random out of sixteen row groups or partitions.
        score : fitted estimator or callable X -> (n,); of one table also scores
        sample_weight, groups : column, default None
            Of one table also arrays.
        progress : bool, default False
            Show a bar (needs tqdm).
        """
        after = copy.copy(self)
        after._reset()
        if hasattr(X, "__dask_graph__"):
            columns = _named(score, sample_weight=sample_weight, groups=groups)
            after._add_dask(X, score, progress=progress, **columns)
        elif not is_source(X) and (hasattr(X, "shape") or _is_rows(X)):
            after.partial_fit(X, score, sample_weight=sample_weight, groups=groups)
        else:
            _named(score, sample_weight=sample_weight, groups=groups)
            if after._shared is None:
                after._find_bins(sample(X, self.first_rows), groups)
            parts_of = chunks(X)
            if progress:
                from tqdm import tqdm

                parts_of = tqdm(parts_of, unit="chunk")
            for part in parts_of:
                after.partial_fit(part, score, sample_weight=sample_weight, groups=groups)
        self.__dict__ = after.__dict__
        return self

    def _find_bins(self, some: Any, groups: str | None) -> None:
        """Take the bins of a sample of rows."""
        if some is not None and some.shape[0]:
            other = copy.copy(self)
            other._reset()
            other.partial_fit(some, np.zeros(some.shape[0]), groups=groups)
            self._shared = self._given_bins = other.bins

    def _add_dask(
        self, X: Any, score: Score, *, progress: bool = False, **columns: str | None
    ) -> Self:
        """Take in the partitions of a dask collection, each summed up where it is."""
        blocks, empty = partitions(X), copy.copy(self)
        empty._reset()
        if self._shared is None:
            empty._find_bins(sample(blocks, self.first_rows), columns["groups"])
        else:
            empty._shared = empty._given_bins = self.bins
        found = dask_reduce(blocks, _Task(empty, score, columns), _merged, progress=progress)
        return self.merge(found)

    @property
    def bins(self) -> Bins:
        """What another stream needs to have the same bins."""
        if self._shared is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        if not self._n:
            return self._shared
        now = copy.deepcopy(self) if self._waiting else self
        now._settle()
        return self._shared._replace(axes=now._numbers.axes if now._numbers else None)

    def merge(self, other: StreamingFirm) -> Self:
        """Take in the rows of another stream with the same features, options and bins.

        If either has not found its bins yet, they need not be the same.
        """
        if not isinstance(other, StreamingFirm):
            raise ValueError(f"other={other!r} must be a StreamingFirm")
        for option in _OPTIONS:
            theirs, own = getattr(other, option), getattr(self, option)
            if theirs != own:
                raise ValueError(f"other has {option}={theirs!r}, expected {own!r}")
        if not other._n or other._shared is None or other._response is None:
            return self
        self._check_response(other._response)
        names = other._shared.names if self._shared is None else self._shared.names
        if names != other._shared.names:
            raise ValueError(f"other has the features {other._shared.names}, expected {names}")
        if self._n and (len(self._units) > 0) != (len(other._units) > 0):
            raise ValueError("groups must be given for all streams or for none")
        after = copy.deepcopy(self)
        after._shared = after._shared or other._shared
        for columns, rows in other._waiting:
            after._take(after._joined(columns), rows)
        if not other._waiting:
            after._settle(other.bins)
            after._merge_sums(other)
        after._response = other._response
        self.__dict__ = after.__dict__
        return self

    def _merge_sums(self, other: StreamingFirm) -> None:
        self._centre = other._centre if self._centre is None else self._centre
        move = (other._centre or 0.0) - (self._centre or 0.0)
        if self._numbers is not None and other._numbers is not None:
            self._numbers.merge(other._numbers, move)
        for j, sums in self._others.items():
            sums.merge(other._others[j], move)  # type: ignore[arg-type]
        self._totals = self._totals + moved_totals(other._totals, move)
        self._n += other._n
        self._units = np.union1d(self._units, other._units)

    def result(self) -> FirmResult:
        """Return the importances of the rows so far, as `firm` does; more rows may follow."""
        if not self._n or self._shared is None or self._response is None:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        now = copy.deepcopy(self) if self._waiting else self
        now._settle()
        found = Scan(
            self._shared.names,
            self._n,
            population=self.rows == "population",
            units=len(self._units) > 0,
            drop=self.missing == "drop",
        )
        columns = now._shared.columns  # type: ignore[union-attr]
        if now._numbers is not None:
            places = [j for j in range(len(columns)) if j not in now._others]
            found.take(places, now._numbers, [columns[j] for j in places])
        for j, sums in now._others.items():
            found.take([j], sums, [columns[j]])
        estimate, sources = found.done()
        return FirmResult(
            estimate=estimate,
            feature_names=tuple(self._shared.names),
            sources=tuple(sources),
            n=self._n,
            rows=self.rows,
            centre=now._centre or 0.0,
            total=total_variance(now._totals, self.rows == "population", len(self._units) > 0),
            response=self._response.method,
            target=self._response.target,
            confidence_level=self.confidence_level,
        )


def _is_rows(X: Any) -> bool:
    """Return whether a list holds the rows of one table, not tables."""
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], list | tuple)


def _named(score: Score, **columns: Any) -> dict[str, str | None]:
    """Return weights and groups of rows that come in chunks; raise unless they name columns."""
    if not is_model(score):
        raise ValueError(
            f"score={type(score).__name__} must be a fitted model or a callable, because the rows "
            "come in chunks; pass scores chunk by chunk to partial_fit"
        )
    for name, value in columns.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must name a column, because the rows come in chunks")
    return columns


class _Task(NamedTuple):
    """Sums up one partition; pickled to where it is."""

    stream: StreamingFirm
    score: Score
    columns: dict[str, str | None]

    def __call__(self, table: Any, index: int) -> StreamingFirm:
        return copy.deepcopy(self.stream).partial_fit(table, self.score, **self.columns)


def _merged(one: StreamingFirm, two: StreamingFirm) -> StreamingFirm:
    return copy.deepcopy(one).merge(two)
