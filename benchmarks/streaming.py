"""Does memory stay the same while files are read? python benchmarks/streaming.py [--rows 100000000]

A memory map and a Parquet file, made here chunk by chunk in a temporary folder (--folder), are read
once. Each reading has a process of its own, whose peak of memory is that of the reading (for that,
Linux is needed); a tenth of the rows comes before all of them, to compare.
"""

import argparse
import mmap
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from timing import Row, show

from firmlib import StreamingFirm

D, CHUNK = 20, 50_000
WEIGHTS = np.linspace(2, 0, D, dtype=np.float32)


def made(rows: int) -> Iterator[np.ndarray]:
    """Rows of float32, the last two columns with few levels."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        F = rng.standard_normal((min(CHUNK, rows - start), D), dtype=np.float32)
        F[:, -2:] = np.floor(F[:, -2:])
        yield F


def write(path: Path, rows: int) -> None:
    """Write a memory map or a Parquet file."""
    if path.suffix == ".npy":
        with open(path, "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (rows, D)}
            np.lib.format.write_array_header_1_0(file, header)
            for F in made(rows):
                F.tofile(file)
        return
    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(D)])
    with pq.ParquetWriter(path, schema) as file:
        for F in made(rows):
            file.write_table(pa.table(list(F.T.copy()), schema=schema))


def chunks(path: Path) -> Iterator[np.ndarray]:
    """The rows of a memory map, whose pages are given back: they would count as memory in use."""
    F = np.load(path, mmap_mode="r")
    for start in range(0, len(F), CHUNK):
        yield F[start : start + CHUNK]
        F._mmap.madvise(mmap.MADV_DONTNEED)


def score(X) -> np.ndarray:
    return np.asarray(X, dtype=np.float32) @ WEIGHTS


def memory(what: str) -> float:
    """MB in use now (VmRSS), or at most so far (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+)", status)[1]) * 1024 / 1e6


def read(path: Path) -> tuple[float, float, float, np.ndarray]:
    """Seconds on the clock and of CPU, MB beyond what was there before, importances."""
    before, clock, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    stream = StreamingFirm().fit(chunks(path) if path.suffix == ".npy" else str(path), score)
    importances = stream.result().importances
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return clock, cpu, memory("VmHWM") - before, importances


def rows(n: int = 10**7, n_parquet: int = 2 * 10**6, in_folder: str | None = None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=in_folder) as folder:
        need, free = 4 * D * 1.1 * max(n, n_parquet) / 1e9, shutil.disk_usage(folder).free / 1e9
        if need > 0.9 * free:
            sys.exit(f"{need:.0f} GB are needed in {folder}, but {free:.0f} are free; see --folder")
        for name, size in (("npy", n // 10), ("npy", n), ("parquet", n_parquet)):
            path = Path(folder, f"rows.{name}")
            write(path, size)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
                clock, cpu, peak, importances = fresh.submit(read, path).result()
            path.unlink()
            np.testing.assert_allclose(importances[:18], WEIGHTS[:18], atol=25 / np.sqrt(size))
            what = f"{'memory map' if name == 'npy' else 'Parquet'}, {size:.0e} × {D}"
            yield Row(what, clock, "s on the clock")
            yield Row(f"{what}: processor", cpu)
            yield Row(f"{what}: memory beyond the start", peak, "MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**7, help="of the memory map")
    parser.add_argument("--parquet-rows", type=int, default=2 * 10**6)
    parser.add_argument("--folder", help="where to make the temporary folder")
    arguments = parser.parse_args()
    show(rows(arguments.rows, arguments.parquet_rows, arguments.folder))
