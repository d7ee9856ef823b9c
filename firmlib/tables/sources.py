"""Rows that come in chunks: Parquet files, datasets, lazy frames, iterables and Dask."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from firmlib.tables.checks import check_array, check_memory

__all__ = ["chunks", "dask_reduce", "is_source", "partitions", "sample"]

T = TypeVar("T")

_SAMPLED = 16  # row groups or partitions that a sample is drawn from
_FAN_IN = 8  # parts that one task merges


def is_source(X: Any) -> bool:
    """Whether the rows of X come in chunks: a path, a dataset, a LazyFrame, Dask, an iterator."""
    lazy = hasattr(X, "__dask_graph__") or hasattr(X, "collect_batches")
    return lazy or isinstance(X, str | os.PathLike | Iterator) or _is_dataset(X)


def chunks(X: Any) -> Iterator[Any]:
    """Yield the rows of a source as tables in memory; those of Dask go to `dask_reduce`.

    Parameters
    ----------
    X : path of Parquet files, pyarrow dataset, polars LazyFrame or iterable of tables
        A path names a file, a folder or a pattern. Row groups become pandas frames.
    """
    if isinstance(X, str | os.PathLike) or _is_dataset(X):
        return (_frame(group) for group in _row_groups(X))
    if hasattr(X, "collect_batches"):
        return iter(X.collect_batches())
    if hasattr(X, "columns") or hasattr(X, "dtype") or not isinstance(X, Iterable):
        raise ValueError(
            f"X={type(X).__name__} must be an iterable of tables, a LazyFrame, a dataset, or a "
            "path of Parquet files; for one table use partial_fit or firm"
        )
    return iter(X)


def sample(X: Any, n: int) -> Any:
    """Draw about n rows at random, to find bins from; None if X can be read only once.

    Parameters
    ----------
    X : source, or list of `partitions`
        Of row groups and partitions, up to sixteen are read: the first, the last and random ones.
        Partitions are kept where they are, in the list, so that each is computed once.
    n : int
    """
    if hasattr(X, "__dask_graph__"):
        X = partitions(X)
    if isinstance(X, list) and X and isinstance(X[0], tuple):
        from dask.base import compute, persist
        from dask.delayed import delayed

        some = _drawn(len(X))
        for i, table in zip(some, persist(*(X[i][0] for i in some)), strict=True):
            X[i] = (table, *X[i][1:])
        few = -(-n // len(some))
        return _stacked(list(compute(*(delayed(_some_rows)(X[i][0], few, i) for i in some))))
    if isinstance(X, str | os.PathLike) or _is_dataset(X):
        groups = _row_groups(X)
        some = _drawn(len(groups))
        return _stacked([_some_rows(_frame(groups[i]), -(-n // len(some)), i) for i in some])
    if hasattr(X, "collect_batches"):
        polars: Any = sys.modules["polars"]
        total = X.select(polars.len()).collect().item()
        rows = np.random.default_rng(0).choice(total, min(n, total), replace=False)
        kept = polars.int_range(polars.len()).is_in(polars.Series(rows).implode())
        return X.filter(kept).collect()
    return None


def _drawn(count: int) -> list[int]:
    """Return the chunks that a sample is drawn from: both ends of sorted rows, and random ones."""
    if not count:
        raise ValueError("X has no rows: no row group or partition")
    inner = 1 + np.random.default_rng(0).permutation(max(count - 2, 0))[: _SAMPLED - 2]
    return sorted({0, count - 1, *inner.tolist()})


def _some_rows(table: Any, n: int, seed: int) -> Any:
    total = table.shape[0]
    rows = np.sort(np.random.default_rng(seed).choice(total, min(n, total), replace=False))
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _stacked(tables: list[Any]) -> Any:
    """Return the rows of several tables as one; parts without rows do not matter."""
    tables = [table for table in tables if table.shape[0]] or tables[:1]
    if hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    from scipy import sparse

    return sparse.vstack(tables, format="csr")


def _is_dataset(X: Any) -> bool:
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(X, dataset.Dataset)


def _row_groups(X: Any) -> list[tuple[Any, Any]]:
    """Return the row groups of a dataset or of the Parquet files of a path, with its schema."""
    data = X if _is_dataset(X) else _dataset(os.fspath(X))
    groups = [g for fragment in data.get_fragments() for g in fragment.split_by_row_group()]
    for group in groups:
        rows = sum(part.num_rows for part in group.row_groups or [])
        check_memory(f"a row group of {group.path}", (rows, len(data.schema)))
    return [(group, data.schema) for group in groups]


def _frame(group: tuple[Any, Any]) -> Any:
    fragment, schema = group
    return fragment.to_table(schema=schema).to_pandas()


def _dataset(name: str) -> Any:
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    if Path(name).is_dir():
        return dataset.dataset(name, format="parquet", partitioning="hive")
    files = sorted(glob.glob(name))
    if not files:
        raise ValueError(f"X={name!r} is not a file, folder or pattern that matches Parquet files")
    return dataset.dataset(files, format="parquet")


def partitions(X: Any, vectors: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Return the row blocks of a Dask collection, each with its part of some vectors, delayed.

    Parameters
    ----------
    X : dask array or data frame
    vectors : dict of name to array of shape (n,), dask array, dask series or None
        Such as scores and weights. Beside partitions of unknown length they must come from Dask, in
        as many partitions.
    """
    if len(X.shape) != 2:
        raise ValueError(f"X must be a table with 2 axes (rows, columns), got shape {X.shape}")
    lengths = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    if not np.isnan(lengths).any():
        check_memory("a partition of X", (max(lengths), X.shape[1]), X.dtype.itemsize)
    tables = X.rechunk({1: -1}) if hasattr(X, "rechunk") else X
    tables = np.ravel(tables.to_delayed()).tolist()
    cut = [_cut(name, v, lengths, len(tables)) for name, v in (vectors or {}).items()]
    return list(zip(tables, *cut, strict=True))


def _cut(name: str, vector: Any, lengths: tuple[float, ...], count: int) -> list:
    """Return a vector in blocks like those of X."""
    if vector is None:
        return [None] * count
    known, lazy = not np.isnan(lengths).any(), hasattr(vector, "to_delayed")
    if not lazy:
        if not known:
            raise ValueError(
                f"{name} is {type(vector).__name__}, but the partitions of X have unknown lengths; "
                f"expected a dask array or series in the same {count} partitions"
            )
        vector = check_array(name, vector, 1, (sum(lengths),))
        return np.split(vector, np.cumsum(lengths)[:-1])
    if known and hasattr(vector, "rechunk") and not np.isnan(vector.shape).any():
        if vector.shape != (sum(lengths),):
            raise ValueError(f"{name} has shape {vector.shape}, expected {(sum(lengths),)}")
        vector = vector.rechunk((lengths,))
    blocks = np.ravel(vector.to_delayed()).tolist()
    if len(blocks) != count:
        raise ValueError(f"{name} has {len(blocks)} partitions, expected {count} as X has")
    return blocks


def dask_reduce(
    parts: list[tuple[Any, ...]],
    one: Callable[..., T],
    two: Callable[[T, T], T],
    *,
    progress: bool = False,
) -> T:
    """Return two(two(one(block 0), one(block 1)), ...); blocks are computed where they are.

    Parameters
    ----------
    parts : list of `partitions`
    one : function (table, index, *vectors) -> T
        Of the rows of partition `index`. Pickled once, not for each partition.
    two : function (T, T) -> T
        Must not change its arguments, since a task that was lost runs again.
    progress : bool, default False
        Show the bar of Dask.
    """
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar

    shared = delayed(one, traverse=False)  # one key in the graph
    found = [delayed(_applied)(shared, block[0], i, *block[1:]) for i, block in enumerate(parts)]
    while len(found) > 1:
        groups = (found[i : i + _FAN_IN] for i in range(0, len(found), _FAN_IN))
        found = [delayed(_merged)(two, group) for group in groups]
    with ProgressBar() if progress else nullcontext():
        return found[0].compute()


def _applied(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def _merged(two: Callable[[T, T], T], parts: list[T]) -> T:
    total = parts[0]
    for part in parts[1:]:
        total = two(total, part)
    return total
