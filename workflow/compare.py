"""How far what was made is from what is committed; each difference is a sentence."""

import base64
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import nbformat
import numpy as np
import pandas as pd

RTOL, ATOL = 1e-6, 1e-9  # of csv: results move in the 14th digit between machines
PIXELS = 0.01  # root mean square over a picture's channels, which lie in [0, 1]
POINTS = 0.1  # of positions in an svg, each 1/72 inch
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
NAME = re.compile(r"\b[a-zA-Z]?[0-9a-f]{10}\b")
PNG = re.compile(r"(?<=data:image/png;base64,)[\sA-Za-z0-9+/=]+")


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
    """Compare element by element, numbers with a tolerance; what is drawn by a name, by its order.

    Matplotlib makes names of paths from their numbers, so that they follow the last digit.
    """
    (new, new_numbers, new_pngs), (old, old_numbers, old_pngs) = map(_parts, (made, committed))
    if new != old or len(new_numbers) != len(old_numbers) or len(new_pngs) != len(old_pngs):
        return [f"{made.name} draws something else"]
    gap = np.abs(np.subtract(new_numbers, old_numbers)).max(initial=0)
    if gap > POINTS:
        return [f"{made.name}: positions differ by up to {gap:.2g} points"]
    pngs = map(_pixels, new_pngs, old_pngs)
    return [f"{made.name}: {difference}" for difference in pngs if difference][:1]


def _parts(svg: Path) -> tuple[str, list[float], list[bytes]]:
    """Return the text of an svg without its numbers, the numbers, and the pictures inside."""
    text, names = svg.read_text(), {}
    ElementTree.fromstring(text)
    pngs = [base64.b64decode(png) for png in PNG.findall(text)]
    text = PNG.sub("png", text)
    text = NAME.sub(lambda name: f"name{names.setdefault(name[0], len(names))} ", text)
    return NUMBER.sub("number", text), [float(number) for number in NUMBER.findall(text)], pngs


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
