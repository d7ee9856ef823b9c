"""FIRM of dask arrays and data frames: partitions are summed up where they are."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from firmlib._checks import check_array
from firmlib._sources import drawn
from firmlib.scores import is_model

if TYPE_CHECKING:
    from dask.delayed import Delayed

    from firmlib.streaming import StreamingFirm

_FAN_IN = 8  # parts that are merged by one task


def fitted(
    before: StreamingFirm, F: Any, s: Any, sample_weight: Any, *, progress: bool = False
) -> StreamingFirm:
    """Return what `before` becomes with the rows of all partitions; no more than sums are sent.

    First the leading partitions, until there are bins; then all others at once. Of a model, bins
    are found from partitions drawn at random, which are kept until they are scored.
    """
    from dask.base import compute, persist
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar

    blocks = _partitions(F, s, sample_weight)
    part, after = delayed(_part), copy.copy(before)
    if is_model(s) and not after.has_bins:
        some = drawn(len(blocks))
        tables = persist(*(blocks[i][0] for i in some))
        for i, table in zip(some, tables, strict=True):
            blocks[i] = (table, *blocks[i][1:])
        sampled = delayed(_sampled)
        after.take_bins(list(compute(*(sampled(after, table, len(some)) for table in tables))))
    while blocks and not after.has_bins:
        after = part(after, *blocks.pop(0)).compute()
    if blocks:
        empty = delayed(after.emptied(), traverse=False)  # once in the graph, not in each task
        parts = [part(empty, *block) for block in blocks]
        while len(parts) > 1:
            groups = (parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN))
            parts = [delayed(_merged)(group) for group in groups]
        with ProgressBar() if progress else nullcontext():
            after.merge(parts[0].compute())
    return after


def _part(before: StreamingFirm, *block: Any) -> StreamingFirm:
    """With the rows of a partition. Arguments stay as they are: a lost task is run again."""
    return copy.copy(before).partial_fit(*block)


def _sampled(before: StreamingFirm, table: Any, parts: int) -> StreamingFirm:
    return before.sampled(table, parts)


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
    if is_model(vector):
        from dask.delayed import delayed

        return [delayed(vector, traverse=False)] * count  # once in the graph
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
