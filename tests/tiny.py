"""Tiny notebooks, and a compendium for one of them."""

from pathlib import Path

import nbformat

from workflow.run import tidy


def write_notebook(path: Path, *sources: str, parameters: bool = True) -> None:
    """Write a notebook of code cells, the first of which holds the parameters."""
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    if parameters:
        cells[0].metadata["tags"] = ["parameters"]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(tidy(nbformat.v4.new_notebook(cells=cells)), path)


def write_compendium(folder: Path) -> None:
    """Write what surrounds the notebooks: folders, pages and an empty list of misprints."""
    for kind in ("notebooks", "figures", "data", "docs"):
        (folder / kind).mkdir(parents=True)
    (folder / "README.md").write_text("<!-- claims -->\n<!-- /claims -->\n")
    (folder / "docs" / "guide.md").touch()
    (folder / "data" / "misprints.json").write_text("[]")
