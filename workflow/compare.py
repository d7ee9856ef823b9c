"""Compare what was made with what is committed; each difference is a sentence."""

import base64
import io
import json
from pathlib import Path
from xml.etree import ElementTree

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
    kinds = {".csv": _csv, ".png": _png, ".svg": _svg, ".ipynb": _notebook, ".json": _ledger}
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
    difference = _pixels(made.read_bytes(), committed.read_bytes())
    return [f"{made.name}: {difference}"] if difference else []


def _pixels(made: bytes, committed: bytes) -> str:
    """Return how two pictures differ, or nothing."""
    new, old = (matplotlib.image.imread(io.BytesIO(png)) for png in (made, committed))
    if new.shape != old.shape:
        return f"{new.shape[:2]} pixels, committed {old.shape[:2]}"
    rms = float(np.sqrt(np.mean((new - old) ** 2)))
    return f"pixels differ by {rms:.3f} (rms)" if rms > PIXELS else ""


def _svg(made: Path, committed: Path) -> list[str]:
    """Check only that it is whole: what it draws is in the png and the csv."""
    ElementTree.parse(committed)
    return []


def _notebook(made: Path, committed: Path) -> list[str]:
    new, old = (nbformat.read(path, as_version=4).cells for path in (made, committed))
    if [cell.source for cell in new] != [cell.source for cell in old]:
        return [f"{made.name}: the cells themselves differ"]
    differing = [
        str(i)
        for i, (a, b) in enumerate(zip(new, old, strict=True))
        if a.cell_type == "code" and _outputs_differ(a, b)
    ]
    return [f"{made.name}: output of cell {', '.join(differing)} differs"] if differing else []


def _outputs_differ(made: nbformat.NotebookNode, committed: nbformat.NotebookNode) -> bool:
    """Compare what cells show: pictures with a tolerance, all else exactly."""
    (new, new_pngs), (old, old_pngs) = map(_shown, (made, committed))
    return new != old or any(map(_pixels, new_pngs, old_pngs))


def _shown(cell: nbformat.NotebookNode) -> tuple[list, list[bytes]]:
    """Return a cell's outputs, a picture by its name only, and the pictures."""
    datas = [output.get("data", {}) for output in cell.outputs]
    pngs = [base64.b64decode(data["image/png"]) for data in datas if "image/png" in data]
    rest = [
        {k: v for k, v in output.items() if k not in ("data", "execution_count")}
        | {kind: kind == "image/png" or shown for kind, shown in data.items()}
        for output, data in zip(cell.outputs, datas, strict=True)
    ]
    return rest, pngs


def _ledger(made: Path, committed: Path) -> list[str]:
    new, old = ({c["id"]: c for c in json.loads(p.read_text())} for p in (made, committed))
    differing = [id for id in new | old if new.get(id) != old.get(id)]
    return [f"{made.name}: {', '.join(differing)} differ"] if differing else []
