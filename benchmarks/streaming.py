"""Rows a second and memory of StreamingFirm: python benchmarks/streaming.py [--rows 100000000].

A memory map and a Parquet file, made here chunk by chunk in a temporary folder (--folder), are
read once. Each reading has a process of its own, whose peak of memory is that of the reading (for
that, Linux is needed); a tenth of the rows comes before all of them, to compare.
"""

import argparse
import mmap
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from timing import Row, cpu_seconds, show
from tqdm import tqdm

from firmlib import StreamingFirm, firm

FEATURES = 20
CHUNK = 50_000
WEIGHTS = np.linspace(2, 0, FEATURES, dtype=np.float32)

Rows = tuple[np.ndarray, np.ndarray]


def made(rows: int) -> Iterator[Rows]:
    """Features in float32, the last two with few levels, and a score of 18 of them."""
    rng = np.random.default_rng(0)
    for start in tqdm(range(0, rows, CHUNK), "making", unit="chunk", leave=False):
        F = rng.standard_normal((min(CHUNK, rows - start), FEATURES), dtype=np.float32)
        F[:, -2:] = np.floor(F[:, -2:])
        yield F, F @ WEIGHTS


def write_map(rows: int, folder: Path) -> None:
    shapes = {"F": (rows, FEATURES), "s": (rows,)}
    files = {name: open(folder / f"{name}.npy", "wb") for name in shapes}  # noqa: SIM115
    for name, file in files.items():
        header = {"descr": "<f4", "fortran_order": False, "shape": shapes[name]}
        np.lib.format.write_array_header_1_0(file, header)
    for F, s in made(rows):
        F.tofile(files["F"])
        s.tofile(files["s"])
    for file in files.values():
        file.close()


def read_map(folder: Path, rows: int) -> Iterator[Rows]:
    maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in "Fs"]
    for start in range(0, rows, CHUNK):
        F, s = (each[start : min(start + CHUNK, rows)] for each in maps)
        yield F, s
        for each in maps:  # or the pages read before would count as memory in use
            each._mmap.madvise(mmap.MADV_DONTNEED)


def write_parquet(rows: int, folder: Path) -> None:
    names = [*(f"x{j}" for j in range(FEATURES)), "s"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as file:
        for F, s in made(rows):
            file.write_table(pa.table([*F.T.copy(), s], schema=schema))


def read_parquet(folder: Path, rows: int) -> Iterator[Rows]:
    with pq.ParquetFile(folder / "rows.parquet") as file:
        for group in range(min(file.num_row_groups, -(-rows // CHUNK))):
            frame = file.read_row_group(group).to_pandas()
            yield frame.drop(columns="s"), frame["s"]


def memory(what: str) -> float:
    """MiB in use now (VmRSS), or at most so far (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+)", status)[1]) / 1024


def run(read: Callable, folder: Path, rows: int) -> tuple[float, float, float, list[float]]:
    """Seconds on the clock and of CPU, MiB beyond what was there before, importances."""
    before, clock, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    stream = StreamingFirm()
    for F, s in tqdm(read(folder, rows), read.__name__, -(-rows // CHUNK), False, unit="chunk"):
        stream.partial_fit(F, s)
    importances = stream.result().importances
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return clock, cpu, memory("VmHWM") - before, importances.tolist()


def compare(write: Callable, read: Callable, rows: int, folder: Path) -> Iterator[Row]:
    write(rows, folder)
    for n in (rows // 10, rows):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            clock, cpu, peak, importances = fresh.submit(run, read, folder, n).result()
        np.testing.assert_allclose(importances[:18], WEIGHTS[:18], atol=25 / np.sqrt(n))
        what = f"{read.__name__[5:]}, {n:,} × {FEATURES}"
        yield Row(what, clock, "s on the clock")
        yield Row(f"{what}: processor", cpu)
        yield Row(f"{what}: memory beyond the start", peak, "MiB")


def in_memory(rows: int = 10**6) -> Row:
    """CPU seconds of rows in chunks, without a disk, beside those of the same rows at once."""
    F, s = map(np.concatenate, zip(*made(rows), strict=True))

    def stream() -> None:
        stream = StreamingFirm()
        for i in range(0, rows, CHUNK):
            stream.partial_fit(F[i : i + CHUNK], s[i : i + CHUNK])
        stream.result()

    batch, chunks = (cpu_seconds(call, 2) for call in (lambda: firm(s, F), stream))
    what = f"in memory, {rows:,} × {FEATURES}, in chunks"
    return Row(what, chunks, ratio=chunks / batch, to="firm at once")


def rows(n: int = 10**7, n_parquet: int = 2 * 10**6, in_folder: str | None = None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=in_folder) as name:
        need = 4 * (FEATURES + 1) * max(n, n_parquet) / 2**30
        free = shutil.disk_usage(name).free / 2**30
        if need > 0.9 * free:
            sys.exit(
                f"--rows {n} needs {need:.1f} GiB in {Path(name).parent}, "
                f"but {free:.1f} GiB are free; take fewer rows or another --folder"
            )
        yield in_memory()
        yield from compare(write_map, read_map, n, Path(name))
        for path in Path(name).iterdir():
            path.unlink()
        yield from compare(write_parquet, read_parquet, n_parquet, Path(name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**7, help="of the memory map")
    parser.add_argument("--parquet-rows", type=int, default=2 * 10**6)
    parser.add_argument("--folder", help="where to make the temporary folder")
    arguments = parser.parse_args()
    show(rows(arguments.rows, arguments.parquet_rows, arguments.folder))
