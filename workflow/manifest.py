"""Which notebook makes which figure and table; `python -m workflow.manifest` writes codecheck.yml.

The form is CODECHECK's, https://codecheck.org.uk: who checks the paper's computations starts there.
"""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from workflow import ROOT

SAVE = re.compile(r'figures\.save\(\s*\w+,\s*"(\w+)"')
HEAD = """\
# Written by `make accept`. `make reproduce` makes every file again and compares.
# Who checks adds codechecker, report, summary and certificate, and the authors' ORCIDs.
"""


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


def manifest() -> list[dict[str, str]]:
    """Return every figure and table with what makes it; a table that is only read says so."""
    made = makers()
    sources = {path.stem: path.read_text() for path in (ROOT / "notebooks").glob("*.ipynb")}
    rows = [{"file": "data/claims.json", "comment": "the ledger, made by all notebooks together"}]
    for path in sorted([*(ROOT / "figures").iterdir(), *(ROOT / "data").glob("*.csv")]):
        file = str(path.relative_to(ROOT))
        readers = sorted(stem for stem, text in sources.items() if path.name in text)
        if path.stem in made:
            maker = made[path.stem]
            comment = f"made by notebooks/{maker.notebook}.ipynb, cell {maker.cell}"
        elif readers:
            comment = f"input, read by notebooks/{readers[0]}.ipynb"
        else:
            raise ValueError(f"{file} is made and read by no notebook")
        rows.append({"file": file, "comment": comment})
    return rows


def codecheck() -> str:
    """Return the text of codecheck.yml."""
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"][0]
    config = {
        "version": "https://codecheck.org.uk/spec/config/2.0/",
        "paper": {
            "title": paper["title"],
            "authors": [
                {"name": f"{a['given-names']} {a['family-names']}"} for a in paper["authors"]
            ],
            "reference": f"https://doi.org/{paper['doi']}",
        },
        "manifest": manifest(),
    }
    return "---\n" + HEAD + yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=100)


if __name__ == "__main__":
    (ROOT / "codecheck.yml").write_text(codecheck())
