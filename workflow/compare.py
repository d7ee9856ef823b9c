"""Compare what was made with what is committed; each difference is a sentence."""

import json
from pathlib import Path

import matplotlib.image
import nbformat
import numpy as np
import pandas as pd

RTOL, ATOL = 1e-6, 1e-9  # of csv: results move in the 14th digit between machines
PIXELS = 0.01  # root mean square over a picture's channels, which lie in [0, 1]


def compare(made: Path, committed: Path) -> list[str]:
    """Return what differs between two files of one name."""
    if not committed.exists():
        return [f"{made.name} is not committed yet"]
    if made.suffix == ".svg" or made.read_bytes() == committed.read_bytes():
        return []  # what an svg draws is in the png and the csv
    kinds = {".csv": _csv, ".png": _png, ".ipynb": _notebook, ".json": _ledger}
    try:
        return kinds[made.suffix](made, committed)
    except Exception as error:  # of whatever reads it
        return [f"{made.name}: what is committed cannot be read: {type(error).__name__}: {error}"]


def _csv(made: Path, committed: Path) -> list[str]:
    new, old = pd.read_csv(made), pd.read_csv(committed)
    try:
        pd.testing.assert_frame_equal(new, old, check_dtype=False, rtol=RTOL, atol=ATOL)
    except AssertionError as error:
        return [f"{made.name}: {' '.join(str(error).split())[:200]}"]
    return []


def _png(made: Path, committed: Path) -> list[str]:
    new, old = map(matplotlib.image.imread, (made, committed))
    if new.shape != old.shape:
        return [f"{made.name}: {new.shape[:2]} pixels, committed {old.shape[:2]}"]
    rms = float(np.sqrt(np.mean((new - old) ** 2)))
    return [f"{made.name}: pixels differ by {rms:.3f} (rms)"] if rms > PIXELS else []


def _notebook(made: Path, committed: Path) -> list[str]:
    """Compare the cells and what they print; their pictures are compared as files."""
    new, old = (nbformat.read(path, as_version=4).cells for path in (made, committed))
    if [cell.source for cell in new] != [cell.source for cell in old]:
        return [f"{made.name}: the cells themselves differ"]
    pairs = enumerate(zip(map(_printed, new), map(_printed, old), strict=True))
    differing = ", ".join(str(i) for i, (a, b) in pairs if a != b)
    return [f"{made.name}: output of cell {differing} differs"] if differing else []


def _printed(cell: nbformat.NotebookNode) -> list[dict]:
    outputs = [{**output} for output in cell.get("outputs", [])]
    for output in outputs:
        output.pop("execution_count", None)
        output["data"] = {k: k == "image/png" or v for k, v in output.get("data", {}).items()}
    return outputs


def _ledger(made: Path, committed: Path) -> list[str]:
    new, old = ({c["id"]: c for c in json.loads(p.read_text())} for p in (made, committed))
    differing = [id for id in new | old if new.get(id) != old.get(id)]
    return [f"{made.name}: {', '.join(differing)} differ"] if differing else []
