"""Write codecheck.yml: which notebook makes which figure and table, for https://codecheck.org.uk."""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from workflow import ROOT, write

SAVE = re.compile(r'\bsave\(\s*[\w.]+,\s*"(\w+)"')


class Maker(NamedTuple):
    """The cell that draws a figure and writes the numbers behind it."""

    notebook: str  # without .ipynb
    cell: int
    id: str


def makers(folder: Path = ROOT / "notebooks") -> dict[str, Maker]:
    """Return, for each figure's name, the notebook and the cell that save it."""
    found = {}
    for path in sorted(folder.glob("*.ipynb")):
        for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
            for name in SAVE.findall(cell.source) if cell.cell_type == "code" else []:
                found[name] = Maker(path.stem, i, cell.id)
    return found


def manifest() -> list[dict[str, str]]:
    """Return every figure and table with what makes or reads it."""
    made = makers()
    sources = {path.stem: path.read_text() for path in sorted(ROOT.glob("notebooks/*.ipynb"))}
    rows = [{"file": "data/claims.json", "comment": "the ledger, made by all notebooks together"}]
    for path in sorted([*ROOT.glob("figures/*"), *ROOT.glob("data/*.csv")]):
        if maker := made.get(path.stem):
            comment = f"made by notebooks/{maker.notebook}.ipynb#cell-id={maker.id}"
        elif readers := [stem for stem, text in sources.items() if path.name in text]:
            comment = f"input, read by notebooks/{readers[0]}.ipynb"
        else:
            raise ValueError(f"{path.relative_to(ROOT)} is made and read by no notebook")
        rows.append({"file": str(path.relative_to(ROOT)), "comment": comment})
    return rows


def codecheck() -> str:
    """Return codecheck.yml with its manifest made anew; what stands above it is kept."""
    head = (ROOT / "codecheck.yml").read_text().partition("manifest:\n")[0]
    rows = {"manifest": manifest()}
    return head + yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=100)


def main() -> int:
    """Write codecheck.yml."""
    write(ROOT / "codecheck.yml", codecheck())
    return 0
