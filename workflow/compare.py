"""How far what was made is from what is committed; each difference is a sentence."""

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
    if made.read_bytes() == committed.read_bytes():
        return []
    compare_kind = {".csv": _csv, ".png": _png, ".ipynb": _notebook, ".json": _ledger}
    return compare_kind.get(made.suffix, lambda made, committed: [])(made, committed)


def _csv(made: Path, committed: Path) -> list[str]:
    new, old = pd.read_csv(made), pd.read_csv(committed)
    if list(new.columns) != list(old.columns) or len(new) != len(old):
        return [f"{made.name} has shape {new.shape}, committed {old.shape}, or other columns"]
    differences = []
    for name in new:
        a, b = new[name], old[name]
        if not (pd.api.types.is_numeric_dtype(a) and pd.api.types.is_numeric_dtype(b)):
            if not a.equals(b):
                differences.append(f"{made.name}: column {name} has other entries")
        elif not np.allclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=True):
            gap = np.nanmax(np.abs(a - b) / np.maximum(np.abs(b), ATOL))
            differences.append(f"{made.name}: column {name} differs by up to {gap:.2g} (relative)")
    return differences


def _png(made: Path, committed: Path) -> list[str]:
    new, old = matplotlib.image.imread(made), matplotlib.image.imread(committed)
    if new.shape != old.shape:
        return [f"{made.name} is {new.shape[:2]} pixels, committed {old.shape[:2]}"]
    rms = float(np.sqrt(np.mean((new - old) ** 2)))
    return [f"{made.name}: pixels differ by {rms:.3f} (rms)"] if rms > PIXELS else []


def _notebook(made: Path, committed: Path) -> list[str]:
    new, old = (nbformat.read(path, as_version=4).cells for path in (made, committed))
    if [cell.source for cell in new] != [cell.source for cell in old]:
        return [f"{made.name}: the cells themselves differ"]
    differing = [
        str(i)
        for i, (a, b) in enumerate(zip(new, old, strict=True))
        if a.cell_type == "code" and _texts(a) != _texts(b)
    ]
    return [f"{made.name}: output of cell {', '.join(differing)} differs"] if differing else []


def _texts(cell: nbformat.NotebookNode) -> list:
    """Return the textual outputs of a cell; pictures are compared as files."""
    return [
        output.get("text") or {k: v for k, v in output.get("data", {}).items() if "text" in k}
        for output in cell.outputs
    ]


def _ledger(made: Path, committed: Path) -> list[str]:
    new, old = ({c["id"]: c for c in json.loads(p.read_text())} for p in (made, committed))
    differing = [id for id in new if new[id] != old.get(id)]
    return [f"{made.name}: {', '.join(differing)} differ"] if differing else []
