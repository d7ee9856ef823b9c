"""Rows that come in chunks: files, datasets, lazy frames, iterables, Dask; bars for long work."""

import glob
import math
import operator
import os
import sys
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
    chunked = is_dask(X) or _is_lazy(X) or hasattr(X, "get_fragments")
    return chunked or isinstance(X, str | os.PathLike | Iterator)


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "collect_batches")  # of polars


def check_named(**given: Any) -> None:
    """Raise if scores, weights or groups of rows in chunks are arrays."""
    for name, value in given.items():
        if is_array(value) and not isinstance(value, str):
            wanted = "be a fitted model or callable" if name == "score" else "name a column"
            kind = type(value).__name__
            raise ValueError(f"{name}={kind} must {wanted}, because the rows come in chunks")


def parts(X: Any) -> Any:
    """Return what gives the tables of a source: a function each, or what Dask will compute."""
    if is_dask(X):
        return _partitions(X)
    return X if _is_lazy(X) or isinstance(X, Iterator) else _row_groups(X)


def tables(parts: Any) -> Iterator[Any]:
    """Yield the tables of a source that is not Dask's."""
    for part in parts.collect_batches() if _is_lazy(parts) else parts:
        yield part() if callable(part) else part


def sample(parts: Any) -> Any:
    """Return a table of random rows, from the first part, the last one and some others.

    Dask then computes these parts only once. None for an iterator, which cannot start again.
    """
    if isinstance(parts, Iterator):
        return None
    if _is_lazy(parts):
        import polars as pl

        return parts.filter(pl.int_range(pl.len()).shuffle(seed=0) < _ROWS).collect()
    inner = 1 + np.random.default_rng(0).permutation(max(len(parts) - 2, 0))[: _SAMPLED - 2]
    some = sorted({0, len(parts) - 1, *inner.tolist()})
    n = math.ceil(_ROWS / len(some))
    if is_dask(parts[0]):
        from dask.base import compute, persist
        from dask.delayed import delayed

        parts[some] = persist(*parts[some])
        drawn = compute(*(delayed(_some_rows)(parts[i], n, i) for i in some))
    else:
        drawn = [_some_rows(parts[i](), n, i) for i in some]
    frames = hasattr(drawn[0], "iloc")
    return pd.concat(drawn, ignore_index=True) if frames else np.concatenate(drawn)


def _some_rows(table: Any, n: int, seed: int) -> Any:
    """Return at most n random rows of a table."""
    rows = np.random.default_rng(seed).permutation(table.shape[0])[:n]
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _partitions(X: Any) -> np.ndarray:
    """Return the partitions of a Dask collection."""
    check_shape("X", X.shape, (None, None))
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
        check_memory("a part of X", (int(np.nanmax([0, *X.chunks[0]])), X.shape[1]), X.itemsize)
    return np.ravel(X.to_delayed())


def merged(merge: Callable, function: Callable, parts: Sequence[Any]) -> Any:
    """Return what a function of partitions and positions of their first rows returns, merged."""
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar

    sent = delayed(function, traverse=False)  # once
    # Rows of several partitions have different positions, and so folds.
    found = [delayed(operator.call)(sent, part, start=i << 32) for i, part in enumerate(parts)]
    while len(found) > 1:
        some = (found[i : i + _FAN_IN] for i in range(0, len(found), _FAN_IN))
        found = [delayed(reduce)(merge, few) for few in some]
    with ProgressBar(minimum=4, out=sys.stderr):
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
