"""FIRM in one pass over rows that come in parts, from a disk, a stream or many machines.

A feature's bins are fixed once; what its rows add up to in them (`FeatureSums`) adds up over
parts of the data in any order, and `StreamingFirm.result` is the batch result with those bins.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from firmlib._checks import (
    check_array,
    check_integer,
    check_n_bins,
    check_number,
    check_option,
    check_weights,
)
from firmlib.estimators import (
    Binned,
    Bins,
    Estimates,
    Rows,
    check_paired,
    find_bins,
    summarize,
    tally,
)
from firmlib.features import column, column_names
from firmlib.measure import FirmResult, check_names, make_result
from firmlib.scores import n_rows

if TYPE_CHECKING:
    from dask.delayed import Delayed

METHODS = ("auto", "discrete", "binned")
MAX_LEVELS = 1024
"""Levels up to which those that appear later get bins of their own, if method="auto"."""

_CELLS = 16  # a bin, to look it up
_SHARED = 4  # first values in a cell from which a binary search is faster
_FAN_IN = 8  # parts of a cluster that are merged by one task


class SoughtBins(Bins):
    """Bins with any first values, found in about linear time, too.

    Cells of equal width tell how many first values lie before each; if no more than a few share
    a cell, only these remain to be compared.
    """

    @cached_property
    def _cells(self) -> tuple[float, float, np.ndarray, int]:
        low, cells = self.first[0], _CELLS * len(self.first)
        with np.errstate(over="ignore", divide="ignore"):
            scale = cells / (self.first[-1] - low)
        if not 0 < scale < np.inf:
            return low, scale, np.zeros(0, np.int32), _SHARED + 1
        shared = np.bincount(_cell(self.first, low, scale, cells), minlength=cells)
        before = (np.cumsum(shared) - shared).astype(np.int32)
        return low, scale, before, int(shared.max())

    def index(self, f: np.ndarray) -> np.ndarray:
        """The bin of each value; those below the first go to it."""
        low, scale, before, shared = self._cells
        if shared > _SHARED:
            return super().index(f)
        index = before[_cell(f, low, scale, len(before))]
        ends = np.append(self.first, np.inf)
        for _ in range(shared):
            index += f >= ends[index]
        return np.maximum(index - 1, 0)


def _cell(f: np.ndarray, low: float, scale: float, cells: int) -> np.ndarray:
    return np.clip((f - low) * scale, 0, cells - 1).astype(np.int32)


class FeatureSums(NamedTuple):
    """What `tally` found for a feature, in the bins it started with and levels that came later."""

    start: Bins
    limit: float
    bins: Bins
    sums: np.ndarray

    @classmethod
    def empty(cls, start: Bins, limit: float) -> Self:
        """Of no rows."""
        limit = max(limit, len(start.first))
        return cls(start, limit, start, np.zeros((4, len(start.first))))

    def of(self, f: np.ndarray, rows: Rows) -> Self:
        """The sums of other rows, in these bins and those of new levels."""
        bins = self.bins
        with np.errstate(over="ignore"):  # far beyond the cells is beyond them
            index = bins.index(f)
            if bins.method == "discrete" and np.any(bins.first[index] != f):
                bins = self._widened(np.unique(f))
                index = bins.index(f)
        return self._replace(bins=bins, sums=tally(index, len(bins.first), rows, f))

    def merged(self, other: FeatureSums) -> Self:
        """The sums of both."""
        bins = self.bins
        if bins.method == "discrete" and bins is not other.bins:
            late = other.bins.method == "discrete"
            bins = self._widened(other.bins.first) if late else other.bins
        return self._replace(bins=bins, sums=self._in(bins) + other._in(bins))

    def shifted(self, d: float) -> Self:
        """The sums with r + d instead of r."""
        w, wr, wrr, wf = self.sums
        return self._replace(sums=np.array([w, wr + d * w, wrr + d * (2 * wr + d * w), wf]))

    def _widened(self, levels: np.ndarray) -> Bins:
        """Bins of more levels, or from one of the first levels to the next if they are too many."""
        union = np.union1d(self.bins.first, levels)
        if len(union) == len(self.bins.first):
            return self.bins
        if len(union) > self.limit:
            return SoughtBins(self.start.first, "binned")
        return SoughtBins(union, "discrete")

    def _in(self, bins: Bins) -> np.ndarray:
        if self.bins is bins or self.bins.method == "binned":
            return self.sums
        index = bins.index(self.bins.first)
        return np.array([np.bincount(index, values, len(bins.first)) for values in self.sums])


class Statistics(NamedTuple):
    """The sums of all features, of scores less `centre`."""

    centre: float
    features: list[FeatureSums]

    @property
    def weight(self) -> float:
        """Of all rows."""
        return float(self.features[0].sums[0].sum())

    def merged(self, other: Statistics) -> Self:
        """Of the rows of both, around the mean of both: so no digits are lost far from 0."""
        share = other.weight / (self.weight + other.weight)
        centre = self.centre + share * (other.centre - self.centre)
        # By how far it really moved, which is not what was added: far from 0 that was rounded.
        steps = self.centre - centre, other.centre - centre
        pairs = zip(self.features, other.features, strict=True)
        features = [a.shifted(steps[0]).merged(b.shifted(steps[1])) for a, b in pairs]
        return type(self)(centre, features)


class Chunk(NamedTuple):
    """Rows that have been checked but for the features' values; all have a weight."""

    F: Any
    s: np.ndarray
    w: np.ndarray
    keep: slice | np.ndarray = slice(None)

    def column(self, j: int) -> np.ndarray:
        """The values of a feature, finite."""
        return column(self.F, j, "F")[self.keep]

    def dense(self) -> Self:
        """A copy that nobody else holds."""
        F = np.column_stack([self.column(j) for j in range(self.F.shape[1])])
        return type(self)(F, self.s.copy(), self.w.copy())

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Self:
        """The rows of all, which are dense."""
        return cls(*map(np.concatenate, zip(*(chunk[:3] for chunk in chunks), strict=True)))


class StreamingFirm:
    """`firm` in one pass over chunks of rows, in memory that does not grow with their number.

    Chunks may have any size, down to one row, and any order; parts computed apart, by other
    processes or machines, are merged in any order or tree. The result is that of `firm` with
    the same bins.

    Parameters
    ----------
    n_bins : int or "auto"
        Number of bins of a feature with many values; "auto" is the square root of the number of
        rows they are found from, since nobody knows how many will come. Give more to a long
        stream: 100 bins understate the importance of a normal feature in a linear score by
        up to 0.1 %, 1000 bins by 0.01 %.
    bins : mapping of str to Bins, optional
        The `bins` of another `StreamingFirm`. Parts to be merged must have the same.
    feature_names : sequence of str, optional
        Names to use instead of those of the columns, which are then told by position.
    method : {"auto", "discrete", "binned"}
        As for `firm`; "discrete" likewise takes the rows for the whole distribution. The slope
        needs no bins and is not offered here.
    confidence_level : float
        Of the intervals.
    first_rows : int
        Rows are gathered until there are so many (the chunk that completes them is taken whole),
        and bins are found from them; if fewer come, from all, so that the result is that of
        `firm`. Hence the first rows should be a random sample of all, or give `bins` from one.

    Notes
    -----
    A feature with few values in the first rows is "discrete", with a bin a level. Levels that
    appear later get bins of their own, up to 1024 levels in all; beyond them the feature becomes
    "binned", every level counts with the nearest of the first levels below it, and `result`
    warns. (With method="discrete" there is no limit, and memory grows with the levels.) Values
    of a "binned" feature outside the range of the first rows fall into the outermost bins. Once
    there are bins, nothing depends on the order of chunks or merges.

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
    x0         1.96        1.99     2.01
    x1         0.00        0.00     0.06

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
        confidence_level: float = 0.95,
        first_rows: int = 10_000,
    ) -> None:
        check_n_bins(n_bins)
        check_option("method", method, METHODS)
        check_number("confidence_level", confidence_level, 0, 1, above=True)
        check_integer("first_rows", first_rows, 2)
        self.n_bins, self.feature_names, self.method = n_bins, feature_names, method
        self.confidence_level, self.first_rows = confidence_level, first_rows
        self._names: list[str] | None = None
        self._bins: dict[str, Bins] | None = None
        self._waiting: tuple[Chunk, ...] = ()  # rows seen before there were bins
        self._n_waiting = 0
        self._statistics: Statistics | None = None
        if bins is not None:
            self._bins = _check_bins(bins, method)
            self._names = check_names(list(bins), feature_names)
            if self._names != list(bins):
                raise ValueError(f"feature_names={self._names} must be those of bins, {list(bins)}")

    @property
    def bins(self) -> dict[str, Bins]:
        """The bins of each feature, without levels that came later; for `bins` of other parts."""
        if self._bins is not None:
            return dict(self._bins)
        return {k: v.start for k, v in zip(self._names, self._current().features, strict=True)}

    def partial_fit(self, F: Any, s: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take in more rows.

        Parameters
        ----------
        F : array, sparse matrix or data frame of shape (n, m), or of dask
            Values of the features, in the same columns every time. Partitions of a dask array or
            data frame are summed up where they are, on whatever scheduler is active (first the
            leading ones, until there are bins), and no more than the sums is sent.
        s : array of shape (n,)
            Scores of these rows. Beside partitions of F of unknown length, of dask, in as many.
        sample_weight : array of shape (n,), optional
            A weight k is the same as the row k times.

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
            return self._partial_fit_dask(F, s, sample_weight)
        F = F.tocsc() if sparse.issparse(F) else F if hasattr(F, "shape") else np.asarray(F)
        n, names = n_rows("F", F, at_least=0), self._checked_names(F)
        if n == 0 and np.size(s) == 0:
            return self
        s = check_array("s", s, 1, (n,))
        if np.abs(s).max() > 1e150:
            raise ValueError(f"s={np.abs(s).max():.3g} overflows when squared; rescale the scores")
        w = check_weights("sample_weight", sample_weight, n, zeros=True)
        keep = slice(None) if w.all() else w > 0  # rows without weight do not count
        if w.any():
            self._take(Chunk(F, s[keep], w[keep], keep), names)
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
        if other.method != self.method:
            raise ValueError(f"other has method={other.method!r}, expected {self.method!r}")
        if other._names is None:
            return self
        if self._names not in (None, other._names):
            raise ValueError(f"other has the features {other._names}, expected {self._names}")
        if other._bins is None:
            self._take(Chunk.of(other._waiting), other._names)
            return self
        if self._bins is None:
            self._names, self._bins = other._names, other._bins
            if self._waiting:
                self._take(Chunk.of(self._waiting), self._names)
        _check_same(self._bins, other._bins)
        self._add(other._statistics)
        return self

    def result(self) -> FirmResult:
        """Return the importances of what was seen so far, as `firm` does; more may follow."""
        now = self._current()
        kind, W = self._kind, now.weight
        if kind == "sample" and W <= 1:
            raise ValueError(
                f"sample_weight sums to {W:g}, but in a sample it counts rows and must exceed 1"
            )
        found = []
        for name, (start, limit, bins, sums) in zip(self._names, now.features, strict=True):
            if bins.method != start.method:
                warnings.warn(
                    f"feature {name!r} has more than {limit} levels, but the rows that its bins "
                    f"were found from had {len(start.first)}: it is binned at these; if they are "
                    "too few, take more rows, at random, as the first ones",
                    stacklevel=2,
                )
            taken = sums[0] > 0
            found.append(Binned(Bins(bins.first[taken], bins.method), sums[:, taken]))
            try:
                if kind == "sample":
                    check_paired(found[-1].sums)
            except ValueError as error:
                raise ValueError(f"feature {name!r}: {error}") from error
        each = summarize(found, now.centre, kind)
        _, sr, srr, _ = now.features[0].sums.sum(axis=1)
        sd = np.sqrt(max(srr - sr**2 / W, 0.0) / (W - (kind == "sample")))
        return make_result(Estimates.of(self._names, each), sd, self.confidence_level)

    @property
    def _kind(self) -> str:
        return "population" if self.method == "discrete" else "sample"

    def _checked_names(self, F: Any) -> list[str]:
        names = column_names(F)
        if self._names is None:
            return check_names(names, self.feature_names)
        if len(names) != len(self._names):
            raise ValueError(
                f"F has {len(names)} columns, expected {len(self._names)}: {self._names}"
            )
        if hasattr(F, "columns") and self.feature_names is None and names != self._names:
            raise ValueError(f"F has the columns {names}, expected {self._names}")
        return self._names

    def _take(self, chunk: Chunk, names: list[str]) -> None:
        """Gather rows until they are enough to find bins from, and sum them up from then on."""
        if self._bins is None:
            if self._n_waiting + len(chunk.s) < self.first_rows:
                self._waiting, self._names = (*self._waiting, chunk.dense()), names
                self._n_waiting += len(chunk.s)
                return
            if self._waiting:
                chunk = Chunk.of((*self._waiting, chunk.dense()))
        self._add(self._summed(chunk))
        self._names, self._waiting, self._n_waiting = names, (), 0
        if self._bins is None:
            starts = (feature.start for feature in self._statistics.features)
            self._bins = dict(zip(names, starts, strict=True))

    def _summed(self, chunk: Chunk) -> Statistics:
        constant = np.ptp(chunk.s) == 0  # then exactly: two such chunks must not seem to differ
        mean = chunk.s[0] if constant else (chunk.w * chunk.s).sum() / chunk.w.sum()
        rows = Rows.of(chunk.s, chunk.w, float(mean))
        limit = MAX_LEVELS if self._kind == "sample" else np.inf
        features = []
        for j in range(chunk.F.shape[1]):
            f = chunk.column(j)
            if self._statistics is not None:
                so_far = self._statistics.features[j]
            elif self._bins is not None:
                so_far = FeatureSums.empty(self._bins[self._names[j]], limit)
            else:
                options = {"method": self.method, "kind": self._kind, "n_bins": self.n_bins}
                bins, _ = find_bins(f, chunk.w, **options)
                if bins.grid is None:
                    bins = SoughtBins(bins.first, bins.method)
                so_far = FeatureSums.empty(bins, limit)
            features.append(so_far.of(f, rows))
        return Statistics(rows.mean, features)

    def _add(self, more: Statistics | None) -> None:
        if self._statistics is None or more is None:
            self._statistics = self._statistics or more
        else:
            self._statistics = self._statistics.merged(more)

    def _current(self) -> Statistics:
        if self._statistics is not None:
            return self._statistics
        if not self._waiting:
            raise ValueError("there are no rows yet; expected partial_fit or merge before")
        return self._summed(Chunk.of(self._waiting))

    def _empty(self) -> Self:
        """One that has seen no rows, with the same bins."""
        other = copy.copy(self)
        other._waiting, other._n_waiting, other._statistics = (), 0, None
        return other

    def _partial_fit_dask(self, F: Any, s: Any, sample_weight: Any) -> Self:
        from dask import delayed

        blocks = _partitions(F, s, sample_weight)
        part = delayed(_part)
        after = copy.copy(self)
        while blocks and after._bins is None:
            after = part(after, *blocks.pop(0)).compute()
        if blocks:
            empty = delayed(after._empty(), traverse=False)  # once in the graph, not in each task
            parts = [part(empty, *block) for block in blocks]
            while len(parts) > 1:
                groups = (parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN))
                parts = [delayed(_merged)(group) for group in groups]
            after.merge(parts[0].compute())
        self.__dict__ = after.__dict__
        return self


def _part(before: StreamingFirm, *block: Any) -> StreamingFirm:
    """With the rows of a partition. Arguments stay as they are: a lost task is run again."""
    return copy.copy(before).partial_fit(*block)


def _merged(parts: list[StreamingFirm]) -> StreamingFirm:
    total = copy.copy(parts[0])
    for part in parts[1:]:
        total.merge(part)
    return total


def _partitions(F: Any, s: Any, w: Any) -> list[tuple[Delayed, Any, Any]]:
    """Blocks of rows of dask collections, with their scores and weights."""
    if len(F.shape) != 2:
        raise ValueError(f"F must be a table with 2 axes (rows, columns), got shape {F.shape}")
    lengths = F.chunks[0] if hasattr(F, "chunks") else (np.nan,)
    tables = F.rechunk({1: -1}) if hasattr(F, "rechunk") else F
    tables = np.ravel(tables.to_delayed()).tolist()
    vectors = [_cut(name, v, lengths, len(tables)) for name, v in [("s", s), ("sample_weight", w)]]
    return list(zip(tables, *vectors, strict=True))


def _cut(name: str, vector: Any, lengths: tuple[float, ...], count: int) -> list:
    """A vector in blocks like those of F."""
    if vector is None:
        return [None] * count
    known, lazy = not np.isnan(lengths).any(), hasattr(vector, "to_delayed")
    if known and not lazy:
        vector = check_array(name, vector, 1, (sum(lengths),))
        return np.split(vector, np.cumsum(lengths)[:-1])
    if not lazy:
        raise ValueError(
            f"{name} is {type(vector).__name__}, but the partitions of F have unknown lengths; "
            f"expected a dask array or series in the same {count} partitions"
        )
    if known and hasattr(vector, "rechunk") and not np.isnan(vector.shape).any():
        if vector.shape != (sum(lengths),):
            raise ValueError(f"{name} has shape {vector.shape}, expected {(sum(lengths),)}")
        vector = vector.rechunk((lengths,))
    blocks = np.ravel(vector.to_delayed()).tolist()
    if len(blocks) != count:
        raise ValueError(f"{name} has {len(blocks)} partitions, expected {count} as F has")
    return blocks


def _check_bins(bins: Any, method: str) -> dict[str, Bins]:
    if not isinstance(bins, Mapping) or not bins:
        raise ValueError(f"bins={bins!r} must be the bins of a StreamingFirm, a mapping from names")
    for name, each in bins.items():
        if not isinstance(each, Bins):
            raise ValueError(f"bins[{name!r}]={each!r} must be Bins, as in those of StreamingFirm")
        if method not in ("auto", each.method):
            raise ValueError(f"bins[{name!r}] are {each.method}, but method={method!r}")
    return dict(bins)


def _check_same(mine: dict[str, Bins], others: dict[str, Bins]) -> None:
    for name, a in mine.items():
        b = others[name]
        if a is not b and not (a.method == b.method and np.array_equal(a.first, b.first)):
            raise ValueError(
                f"other has {len(b.first)} {b.method} bins of feature {name!r} that differ from "
                f"the {len(a.first)} {a.method} ones here; expected parts made with the same "
                "bins=, for example those of one of them"
            )
