"""Rows that come in chunks: files, datasets, lazy frames, iterables, Dask; bars for long work."""

import glob
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from firmlib.tables.checks import check_memory, check_shape, is_array

_ROWS = 10_000  # of a sample
_SAMPLED = 16  # row groups or partitions that a sample is drawn from
_FAN_IN = 8  # parts that one task merges


def progress(items: Iterable[Any], what: str) -> Iterable[Any]:
    """Return the items, with a bar on stderr once a loop over them takes 4 s, if there is tqdm."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=what, delay=4, leave=False)


def is_source(X: Any) -> bool:
    """Return whether rows come in chunks: a path, dataset, LazyFrame, iterator, or Dask."""
    lazy = hasattr(X, "__dask_graph__") or hasattr(X, "collect_batches")
    return lazy or isinstance(X, Iterator) or _is_on_disk(X)


def _is_on_disk(X: Any) -> bool:
    return isinstance(X, str | os.PathLike) or hasattr(X, "get_fragments")


def check_named(**given: Any) -> None:
    """Raise if scores, weights or groups of rows in chunks are arrays."""
    for name, value in given.items():
        if is_array(value) and not isinstance(value, str):
            wanted = "be a fitted model or callable" if name == "score" else "name a column"
            kind = type(value).__name__
            raise ValueError(f"{name}={kind} must {wanted}, because the rows come in chunks")


def chunks(X: Any) -> Iterable[Any]:
    """Return the tables of a source one by one; any other table or Dask collection is one."""
    if _is_on_disk(X):
        return (read() for read in _row_groups(X))
    if hasattr(X, "collect_batches"):
        return X.collect_batches()
    return X if isinstance(X, Iterator) else [X]


def sample(X: Any) -> Any:
    """Return a table of random rows of a source; None for any other table or collection."""
    if hasattr(X, "collect_batches"):
        import polars as pl

        return X.filter(pl.int_range(pl.len()).shuffle(seed=0) < _ROWS).collect()
    if not _is_on_disk(X):
        return None
    groups = _row_groups(X)
    return _stacked([_some_rows(groups[i](), m, i) for i, m in _drawn(len(groups)).items()])


def sample_of(parts: list[Any]) -> Any:
    """Return a table of random rows of Dask partitions, which are then computed only once."""
    from dask.base import persist
    from dask.delayed import delayed

    some = _drawn(len(parts))
    for i, part in zip(some, persist(*(parts[i] for i in some)), strict=True):
        parts[i] = part
    rows = [delayed(_some_rows)(parts[i], m, i) for i, m in some.items()]
    return delayed(_stacked)(rows).compute()


def _drawn(count: int) -> dict[int, int]:
    """Return the parts to draw rows from, the first, the last and some, with the rows of each."""
    inner = 1 + np.random.default_rng(0).permutation(max(count - 2, 0))[: _SAMPLED - 2]
    some = sorted({0, count - 1, *inner.tolist()})
    return dict.fromkeys(some, math.ceil(_ROWS / len(some)))


def _some_rows(table: Any, n: int, seed: int) -> Any:
    """Return at most n random rows of a table."""
    rows = np.random.default_rng(seed).permutation(table.shape[0])[:n]
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _stacked(tables: Sequence[Any]) -> Any:
    frames = hasattr(tables[0], "iloc")
    return pd.concat(tables, ignore_index=True) if frames else np.concatenate(tables)


def partitions(X: Any) -> list[Any]:
    """Return the partitions of a Dask collection."""
    check_shape("X", X.shape, (None, None))
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
        check_memory("a part of X", (int(np.nanmax([0, *X.chunks[0]])), X.shape[1]), X.itemsize)
    return np.ravel(X.to_delayed()).tolist()


def merged(merge: Callable, function: Callable, parts: Sequence[Any]) -> Any:
    """Return what a function of partitions and positions of their first rows returns, merged."""
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar

    sent = delayed(function, traverse=False)  # once
    # Rows of several partitions have different positions, and so folds.
    found = [delayed(operator.call)(sent, part, i << 32) for i, part in enumerate(parts)]
    while len(found) > 1:
        some = (found[i : i + _FAN_IN] for i in range(0, len(found), _FAN_IN))
        found = [delayed(reduce)(merge, few) for few in some]
    with ProgressBar(minimum=4):
        return found[0].compute()


def _row_groups(X: Any) -> list[Callable[[], Any]]:
    """Return functions that read the row groups of a dataset, or of the Parquet files of a path."""
    from pyarrow import dataset

    try:
        data: Any = X
        if isinstance(X, str | os.PathLike):
            folder = os.path.isdir(X)
            files = os.fspath(X) if folder else sorted(glob.glob(os.fspath(X))) or os.fspath(X)
            data = dataset.dataset(files, format="parquet", partitioning="hive" if folder else None)
        groups = [g for fragment in data.get_fragments() for g in fragment.split_by_row_group()]
    except (OSError, ValueError) as error:  # of pyarrow
        raise ValueError(f"X={X!r} must be a Parquet file, folder or pattern: {error}") from error
    if not groups:
        raise ValueError(f"X={X!r} has no rows")
    check_memory("a row group of X", (max(g.row_groups[0].total_byte_size for g in groups),), 1)
    return [lambda group=group: group.to_table(schema=data.schema).to_pandas() for group in groups]
