"""Rows that are somewhere else: files, datasets and lazy frames, read part by part."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

_SAMPLED = 16  # row groups or partitions that bins are found from

Part = Callable[[], Any]  # reads some of the rows as a frame in memory


def is_source(X: Any) -> bool:
    """Whether the rows of X are read part by part: dask, polars LazyFrame, Parquet, a dataset."""
    lazy = hasattr(X, "__dask_graph__") or hasattr(X, "collect_batches")
    return lazy or isinstance(X, str | os.PathLike) or _is_dataset(X)


def drawn(count: int) -> list[int]:
    """Return which of some parts bins are found from: random ones, and both ends of sorted rows."""
    inner = 1 + np.random.default_rng(0).permutation(max(count - 2, 0))[: _SAMPLED - 2]
    return sorted({0, count - 1, *inner.tolist()}) if count else []


def parts_of(X: Any) -> Iterable[Part]:
    """Return functions that read the parts of a source, as a list if they can be read again.

    A file of Parquet or a dataset has row groups, which become pandas frames; a LazyFrame comes in
    batches, as polars frames; anything else must be an iterable of tables.
    """
    if isinstance(X, str | os.PathLike):
        X = _dataset(X)
    if _is_dataset(X):
        groups = [g for fragment in X.get_fragments() for g in fragment.split_by_row_group()]
        return [_row_group(group, X.schema) for group in groups]
    if hasattr(X, "collect_batches"):
        return _held(X.collect_batches())
    if hasattr(X, "columns") or hasattr(X, "dtype") or not isinstance(X, Iterable):
        raise ValueError(
            f"chunks={type(X).__name__} must be an iterable of tables, a LazyFrame, a dataset, or "
            "a path of Parquet files; for one table use partial_fit or firm"
        )
    return _held(X)


def _held(tables: Iterable[Any]) -> Iterator[Part]:
    for table in tables:
        yield lambda table=table: table


def _row_group(group: Any, schema: Any) -> Part:
    return lambda: group.to_table(schema=schema).to_pandas()


def _is_dataset(X: Any) -> bool:
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(X, dataset.Dataset)


def _dataset(path: Any) -> Any:
    """Return the Parquet files of a path, a folder or a pattern such as "flights/*.parquet"."""
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    name = os.fspath(path)
    if Path(name).is_dir():
        return dataset.dataset(name, format="parquet", partitioning="hive")
    files = sorted(glob.glob(name))
    if not files:
        raise ValueError(f"X={name!r} is no file, folder or pattern that matches Parquet files")
    return dataset.dataset(files, format="parquet")
