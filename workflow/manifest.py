"""What makes each figure and table; written into codecheck.yml by `make accept`'s last step."""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat

from workflow import ROOT

SAVE = re.compile(r'display\.save\(\s*\w+,\s*"(\w+)"')


class Maker(NamedTuple):
    """The cell that draws a figure and writes the numbers behind it."""

    notebook: str  # without .ipynb
    cell: int


def makers(folder: Path = ROOT / "notebooks") -> dict[str, Maker]:
    """Return, for each figure's name, the notebook and the cell that save it."""
    found = {}
    for path in sorted(folder.glob("*.ipynb")):
        for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
            for name in SAVE.findall(cell.source) if cell.cell_type == "code" else []:
                if name in found:
                    raise ValueError(f"{name} is saved by {found[name].notebook} and {path.stem}")
                found[name] = Maker(path.stem, i)
    return found
