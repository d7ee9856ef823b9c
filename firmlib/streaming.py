"""FIRM in one pass over rows that come in parts, from a disk, a stream or many computers.

A feature's bins are fixed once, its sums in them add up over parts of the data in any order
(`firmlib._sums`), and `StreamingFirm.result` is the batch result with those bins.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from firmlib._bins import Bins
from firmlib._checks import (
    check_array,
    check_confidence_level,
    check_integer,
    check_n_bins,
    check_number,
    check_option,
)
from firmlib._columns import Column, check_present
from firmlib._curves import Curves
from firmlib._data import MISSING, describe
from firmlib._gather import Gatherer, both, each_of
from firmlib._inference import Influence
from firmlib._moments import summarize
from firmlib._paired import GROUPS, Jackknife
from firmlib._resolve import check_names, resolve
from firmlib._rows import WEIGHT_TYPES, check_rows, check_scores, units
from firmlib._sources import drawn, parts_of
from firmlib._sums import Chunk, check_bins, check_same
from firmlib._table import Table
from firmlib.features import Group, Pairs, Place, Values
from firmlib.result import FirmResult, make_result
from firmlib.scores import Response, Score, is_model, respond

__all__ = ["StreamingFirm"]

METHODS = ("auto", "discrete", "binned")

_HEAVIEST = 1e30  # row of a chunk; powers of the weight overflow or vanish beyond


class StreamingFirm(Gatherer):
    """`firm` in one pass over chunks of rows, in memory that does not grow with their number.

    Chunks may have any size, down to one row, and any order; parts computed apart, by other
    processes or machines, are merged in any order or tree. The result is that of `firm` with
    the same bins.

    Parameters
    ----------
    n_bins : int or "auto", default "auto"
        Number of bins of a feature with many values; "auto" is the square root of the number of
        rows they are found from, since nobody knows how many will come. Give more to a long
        stream: 100 bins understate the importance of a normal feature in a linear score by
        up to 0.1 %, 1000 bins by 0.01 %.
    bins : mapping of str to Bins, default None
        The `bins` of another `StreamingFirm`. Parts to be merged must have the same.
    feature_names : sequence of str, default None
        Names to use instead of those of the columns, which are then told by position.
    method : {"auto", "discrete", "binned"}, default "auto"
        As for `firm`. The slope needs no bins and is not offered here.
    rows : {"auto", "sample", "population"}, default "auto"
        As for `firm`: "auto" is "sample".
    confidence_level : float, default 0.95
        Of the intervals.
    weight_type : {"auto", "count", "sampling"}, default "auto"
        What weights mean, as for `firm`.
    features : columns, callables or dict of them, default None
        As for `firm`, but for groups, pairs and ready values, which need all rows at once; all
        columns by default.
    categorical : list of columns, default None
        As for `firm`.
    missing : {"level", "drop", "raise"}, default "level"
        As for `firm`.
    standardize : bool, default False
        Divide the scores by their standard deviation, at the end; as in `firm`, errors know that
        it is estimated. Not with weights of sampling, for which that needs all rows at once.
    response_method : str, default "auto"
        What a model is asked; see `firmlib.scores.as_score`.
    target : label or column, default None
        The class or output that is meant; see `firmlib.scores.as_score`.
    first_rows : int, default 10_000
        Rows are gathered until there are so many (the chunk that completes them is taken whole),
        and bins are found from them; if fewer come, from all, so that the result is that of
        `firm`. Hence the first rows should be a random sample of all, or give `bins` from one.
    keep : bool, default False
        Sum up 25 groups of rows apart, too, which `compare` and `ranks` of the result need: their
        errors come from leaving out each group in turn (a jackknife). That takes 25 times the
        memory, and longer, the more so the smaller the chunks are.

    Notes
    -----
    A feature with few values in the first rows is "discrete", with one bin per level. Levels that
    appear later get bins of their own, up to 1024 levels in all; beyond them the feature becomes
    "binned", every level counts with the nearest of the first levels below it, and `result`
    warns. (With method="discrete" there is no limit, and memory grows with the levels.) Values
    of a "binned" feature outside the range of the first rows fall into the outermost bins, and
    `result` warns if they are more than chance explains, as those of sorted rows are. Once there
    are bins, nothing depends on the order of chunks or merges, but for what keep=True is for: its
    groups of rows do.

    Examples
    --------
    >>> import firmlib
    >>> rng = np.random.default_rng(0)
    >>> stream = firmlib.StreamingFirm(first_rows=1000)
    >>> for _ in range(20):
    ...     F = rng.normal(size=(500, 2))
    ...     stream = stream.partial_fit(F, 2 * F[:, 0])
    >>> stream.result().to_frame()[["ci_low", "importance", "ci_high"]].round(2)
             ci_low  importance  ci_high
    feature
    x0         1.96        1.99     2.02
    x1         0.00        0.00     0.09

    Two parts, say of two machines, with the bins of a sample.

    >>> sample = firmlib.StreamingFirm().partial_fit(F, F[:, 1])
    >>> left = firmlib.StreamingFirm(bins=sample.bins).partial_fit(F[:200], F[:200, 1])
    >>> right = firmlib.StreamingFirm(bins=sample.bins).partial_fit(F[200:], F[200:, 1])
    >>> left.merge(right).result().importances[1].round(1)
    np.float64(1.0)
    """

    def __init__(
        self,
        *,
        n_bins: int | str = "auto",
        bins: Mapping[str, Bins] | None = None,
        feature_names: Sequence[str] | None = None,
        method: str = "auto",
        rows: str = "auto",
        confidence_level: float = 0.95,
        weight_type: str = "auto",
        features: Any = None,
        categorical: Sequence[Place] | None = None,
        missing: str = "level",
        standardize: bool = False,
        response_method: str = "auto",
        target: Any = None,
        first_rows: int = 10_000,
        keep: bool = False,
    ) -> None:
        check_n_bins(n_bins)
        check_option("method", method, METHODS)
        check_confidence_level(confidence_level)
        check_integer("first_rows", first_rows, 2)
        check_option("weight_type", weight_type, WEIGHT_TYPES)
        self.weight_type = weight_type
        check_option("missing", missing, MISSING)
        _check_features(features)
        self.n_bins, self.feature_names, self.method = n_bins, feature_names, method
        self.features, self.categorical, self.missing = features, categorical, missing
        self.standardize, self.response_method, self.target = standardize, response_method, target
        self._response: Response | None = None
        self.rows, self.confidence_level, self.first_rows = (
            check_rows(rows),
            confidence_level,
            first_rows,
        )
        self.keep = keep
        self._labels: Any = ()  # of the units in the last chunk
        if bins is not None:
            self._bins = check_bins(bins, method)
            self._names = check_names(list(bins), feature_names)
            if self._names != list(bins):
                raise ValueError(f"feature_names={self._names} must be those of bins, {list(bins)}")

    def partial_fit(
        self,
        F: Any,
        s: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Take in more rows.

        Parameters
        ----------
        F : array, sparse matrix or data frame of shape (n, m), or of dask
            Values of the features, in the same columns every time. Partitions of a dask array or
            data frame are summed up where they are, on whatever scheduler is active (first the
            leading ones, until there are bins), and no more than the sums is sent.
        s : array of shape (n,), fitted estimator or callable X -> (n,)
            Scores of these rows, or what gives them. Beside partitions of F of unknown length, of
            dask, in as many.
        sample_weight : array of shape (n,), default None
            By default all are 1; what others mean, `weight_type` says.
        groups : array of shape (n,), default None
            Labels of units, of several rows each, as for `firm`; with keep=True, whose groups of
            rows, here of units, give the errors. All rows of a unit must come in one chunk: one
            that goes on in the next chunk is refused, but not everyone that comes again is noticed.
            There must be 25 units at least, and of streams that are merged in one of them.

        Returns
        -------
        StreamingFirm
            Itself. After an error it is as it was before the call.

        Examples
        --------
        >>> import dask.array as da
        >>> from firmlib import StreamingFirm
        >>> F = da.random.default_rng(0).normal(size=(20_000, 2), chunks=(5000, 2))
        >>> StreamingFirm().partial_fit(F, F[:, 0] - F[:, 1]).result().importances.round(1)
        array([ 1., -1.])
        """
        if hasattr(F, "__dask_graph__"):
            from firmlib import _dask

            if groups is not None:
                raise ValueError("groups need chunks in memory, but F is one of dask")
            self.__dict__ = _dask.fitted(self, F, s, sample_weight).__dict__
            return self
        table = Table(F, "F", at_least=0).with_categorical(self.categorical)
        if table.n == 0:
            self._checked_names(table, None)
            if is_model(s) or np.size(s) == 0:
                return self
        s = self._scores(s, table)
        s, w, keep = check_scores("s", s, sample_weight, zeros=True)
        if len(s):
            check_number("sample_weight", float(w.max()), 1 / _HEAVIEST, _HEAVIEST)
            table_of_all, table = table, table.of_rows(keep).in_order()
            names, functions = zip(*resolve(self.features, table), strict=True)
            names = self._checked_names(table, names)
            columns = (
                self._column(name, f, table) for name, f in zip(names, functions, strict=True)
            )
            labels, unit = self._labels, None
            if groups is not None and self.rows == "sample":
                labels, unit = self._checked_units(groups, table_of_all, keep)
            self._take(Chunk(columns, s, w, unit), names)
            self._labels = labels
        return self

    def _checked_units(self, groups: ArrayLike, table: Table, keep: Any) -> tuple[list, np.ndarray]:
        """Return the labels of units and the unit of each row; none was in the chunk before."""
        if not self.keep or self.missing == "drop":
            raise ValueError(
                f"groups of a stream need keep=True and missing='level' or 'raise', but keep="
                f"{self.keep} and missing={self.missing!r}"
            )
        labels, unit = units(groups, table, keep)
        before = set(self._labels)
        again = [label for label in labels.tolist() if label in before]
        if again:
            raise ValueError(
                f"groups={again[0]!r} was in the chunk before, too; expected all rows of "
                "a unit in one chunk"
            )
        return labels.tolist(), unit

    def _scores(self, s: Any, table: Table) -> np.ndarray:
        if not is_model(s):
            table.check_rows("s", s)
            return check_array("s", s, 1, (table.n,))
        response = respond(s, table, response_method=self.response_method, target=self.target)
        self._response = response._replace(values=np.empty(0))
        return response.values

    def _column(self, name: str, f: Values, table: Table) -> Column:
        column = f(table)
        if not isinstance(column, Column):
            raise ValueError(f"feature {name!r}: {_NO_GROUPS}")
        if self.missing == "raise":
            check_present(f"feature {name!r}", column.values)
        return column

    def fit(self, score: Score, chunks: Any, *, progress: bool = False) -> Self:
        """Take in the rows of many chunks, each scored and summed up where it is.

        Parameters
        ----------
        score : fitted estimator or callable X -> (n,)
        chunks : iterable of tables, dask array or data frame, polars LazyFrame, dataset or path
            A path names a Parquet file, a folder of them or a pattern; its row groups become
            pandas frames, and so do those of a `pyarrow.dataset`. Bins are found from
            `first_rows` rows, drawn at random out of sixteen row groups or partitions: the first,
            the last and random ones; of other iterables from the first rows. Each row is scored
            once.
        progress : bool, default False
            Show a bar, with tqdm; of dask the bar of its own, on this computer.

        Returns
        -------
        StreamingFirm
            Itself. After an error it is as it was before the call.

        Examples
        --------
        >>> import firmlib
        >>> rng = np.random.default_rng(0)
        >>> chunks = (rng.normal(size=(500, 2)) for _ in range(20))
        >>> stream = firmlib.StreamingFirm().fit(lambda X: X[:, 0] - X[:, 1], chunks)
        >>> stream.result().importances.round(1)
        array([ 1., -1.])
        """
        if not is_model(score):
            raise ValueError(
                f"score={type(score).__name__} must be a fitted model or a callable, as the rows "
                "come in parts; scores that are there already go with each part to partial_fit"
            )
        after = copy.copy(self)
        if hasattr(chunks, "__dask_graph__"):
            from firmlib import _dask

            after = _dask.fitted(after, chunks, score, None, progress=progress)
        else:
            parts = parts_of(chunks)
            if isinstance(parts, list) and not after.has_bins:
                some = [parts[i] for i in drawn(len(parts))]
                after.take_bins([after.sampled(part(), len(some)) for part in some])
            if progress:
                from tqdm import tqdm

                parts = tqdm(parts, unit="chunk")
            for part in parts:
                after.partial_fit(part(), score)
        self.__dict__ = after.__dict__
        return self

    def merge(self, other: StreamingFirm) -> Self:
        """Take in the rows that another one has seen, which stays as it is.

        Parameters
        ----------
        other : StreamingFirm
            With the same features and bins, or with bins where this one has none yet, or none.

        Returns
        -------
        StreamingFirm
            Itself.
        """
        if not isinstance(other, StreamingFirm):
            raise ValueError(f"other={other!r} must be a StreamingFirm")
        same = ("method", "rows", "weight_type", "missing", "categorical", "standardize", "keep")
        for option in same:
            theirs, own = getattr(other, option), getattr(self, option)
            if theirs != own:
                raise ValueError(f"other has {option}={theirs!r}, expected {own!r}")
        if other._names is None:
            return self
        if self._names not in (None, other._names):
            raise ValueError(f"other has the features {other._names}, expected {self._names}")
        if other._bins is None:
            self._response = self._response or other._response
            self._take(Chunk.of(other._names, other._waiting), other._names)
            return self
        self._response = self._response or other._response
        if self._bins is None:
            self._names, self._bins = other._names, other._bins
            if self._waiting:
                self._take(Chunk.of(self._names, self._waiting), self._names)
        check_same(self._bins, other._bins)
        self._statistics = both(self._statistics, other._statistics)
        self._apart = each_of(self._apart, other._apart)
        return self

    def result(self) -> FirmResult:
        """Return the importances of what was seen so far, as `firm` does; more may follow."""
        total, names = self._current(), self._names or []
        now, kind, sd, tallies = self._tallies(total)
        kinds, missing = zip(*map(describe, tallies), strict=True)
        response = self._response or Response(np.empty(0), "values")
        apart = self._apart
        if self.keep and self._waiting:
            apart = self._summed_apart(Chunk.of(names, self._waiting), total, 0)
        kept = Jackknife(apart, copy.copy(self)._variance) if self.keep else None
        if kept is not None and now.total is not None:
            units = GROUPS - apart.count(None)
            if units < GROUPS:
                raise ValueError(
                    f"errors of a stream with groups need at least {GROUPS} units in a part, got "
                    f"{units}; firm on a table in memory takes fewer"
                )
            moves = kept.influences(range(len(names)), names)[0] * now.weight
            tallies = [
                one._replace(influence=Influence(S, 0.0, 2 * S**2 / kept.df, True))
                for one, S in zip(tallies, (moves**2).sum(axis=0), strict=True)
            ]
        return make_result(
            summarize(tallies, self.rows),
            sd,
            self.confidence_level,
            methods=tuple(one.method for one in tallies),
            kinds=kinds,
            missing=np.array(missing),
            feature_names=tuple(names),
            curves=Curves(names, tallies, now.centre, self.rows),
            n=now.n,
            rows=self.rows,
            weight_type=kind,
            response=response.method,
            target=response.target,
            kept=kept,
        )

    def _checked_names(self, table: Table, names: Sequence[str] | None) -> list[str]:
        """Return the names of the features of a chunk, the same in all; of no rows, the columns."""
        names = table.names if self.features is None or names is None else names
        if self._names is None:
            return check_names(names, self.feature_names)
        if self.features is None and len(names) != len(self._names):
            raise ValueError(
                f"F has {len(names)} columns, expected {len(self._names)}: {self._names}"
            )
        same = self.features is not None or self.feature_names is not None
        if table.is_frame and not same and list(names) != self._names:
            raise ValueError(f"F has the columns {list(names)}, expected {self._names}")
        return self._names

    def sampled(self, F: Any, parts: int) -> Self:
        """Return one that has seen a few random rows of a chunk `F`, one of so many `parts`."""
        other, table = self.emptied(), Table(F, "F", at_least=0)
        other.first_rows = sys.maxsize
        count = min(table.n, -(-self.first_rows // parts))
        rows = np.sort(np.random.default_rng(0).choice(table.n, count, replace=False))
        some = F.iloc[rows] if hasattr(F, "iloc") else F[rows]
        return other.partial_fit(some, np.zeros(count))

    def take_bins(self, samples: Sequence[StreamingFirm]) -> None:
        """Find bins from what `samples` have seen, without taking in their rows."""
        total = samples[0]
        for other in samples[1:]:
            total.merge(other)
        if total._names is not None:
            self._names, self._bins = total._names, total.bins


_NO_GROUPS = "groups, pairs and ready values need all rows at once; use firm on a table in memory"


def _check_features(features: Any) -> None:
    """Raise unless features can be told from the rows of a chunk alone."""
    each = features.values() if isinstance(features, Mapping) else features
    several = each if isinstance(each, list | tuple) or isinstance(features, Mapping) else [each]
    for f in several:
        if isinstance(f, Pairs | Group | list | tuple) or hasattr(f, "__array__"):
            raise ValueError(f"features={features!r} of a stream: {_NO_GROUPS}")
