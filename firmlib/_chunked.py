"""Rows in chunks: what may come with them, and partitions of Dask summed up where they are."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from firmlib.scores import Score, is_model
from firmlib.tables.sources import dask_reduce, partitions, sample

if TYPE_CHECKING:
    from firmlib.streaming import StreamingFirm


def named(score: Score, **columns: Any) -> dict[str, Any]:
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


def is_rows(X: Any) -> bool:
    """Return whether a list holds the rows of one table, not tables."""
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], list | tuple)


def summed(
    stream: StreamingFirm, X: Any, score: Score, columns: dict[str, Any], progress: bool = False
) -> StreamingFirm:
    """Return a stream of the partitions of a dask collection, with the bins of `stream` if any."""
    blocks, empty = partitions(X), stream.emptied()
    if empty.shared is None:
        empty.find_bins(sample(blocks, stream.first_rows), columns["groups"])
    return dask_reduce(blocks, _Task(empty, score, columns), _merged, progress=progress)


class _Task(NamedTuple):
    """Sums up one partition; pickled to where it is."""

    stream: StreamingFirm
    score: Score
    columns: dict[str, Any]

    def __call__(self, table: Any, index: int) -> StreamingFirm:
        return copy.deepcopy(self.stream).partial_fit(table, self.score, **self.columns)


def _merged(one: StreamingFirm, two: StreamingFirm) -> StreamingFirm:
    return copy.deepcopy(one).merge(two)
