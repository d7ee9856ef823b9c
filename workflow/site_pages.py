"""A notebook as a page of the site or of the PDF: its box, its figures and its tables."""

import ast
import json
import re
import shlex
from functools import cache
from itertools import cycle
from pathlib import Path

import nbformat
import yaml
from matplotlib.image import imread

from firmlib.compendium.figures import STYLE
from workflow import ROOT
from workflow.manifest import makers

PARAMETER = re.compile(r"^(\w+): ([\w\[\]]+) = (.+?)  # (.+)$", re.M)
NUMERIC = re.compile(r"[-−+±×%.,:e()\d\s]*|NaN|nan|inf|–")


def page(path: Path, *, one_page: bool) -> nbformat.NotebookNode:
    """Return the notebook with captions, aligned tables and, on the site, how to run it."""
    notebook = nbformat.read(path, as_version=4)
    saved = {at.cell: name for name, at in makers().items() if at.notebook == path.stem}
    cells = []
    for i, cell in enumerate(notebook.cells):
        name = saved.get(i)
        if name:
            cells.append(_markdown(f'<a id="cell-{name}"></a>'))
            cell.outputs = [o for o in cell.outputs if "image/png" not in o.get("data", {})]
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = table(output.data["text/html"])
        if one_page and re.match("import |from ", cell.source):
            cell.metadata.tags = ["remove-input"]
        elif one_page:
            cell.metadata.pop("tags", None)
        cells += [cell, _markdown(figure(name, one_page))] if name else [cell]
    if not one_page:
        cells.insert(1, _markdown(how_to_run(path, notebook)))
    notebook.cells = cells
    return notebook


@cache
def captions() -> dict[str, dict[str, str]]:
    """Return number, caption and description of every figure, in the order of the notebooks."""
    words = yaml.safe_load((ROOT / "site" / "figures.yml").read_text())
    found, before = {}, {}
    for name, at in sorted(makers().items(), key=lambda item: item[1]):
        before[at.notebook] = before.get(at.notebook, 0) + 1
        found[name] = {"number": f"{int(at.notebook[:2])}.{before[at.notebook]}"} | words[name]
    return found


def figure(name: str, one_page: bool) -> str:
    """Return a figure with its number, caption, description and, on the site, its files."""
    about = captions()[name]
    width = imread(ROOT / "figures" / f"{name}.png").shape[1] / STYLE["savefig.dpi"]
    files = "".join(
        f' · <a href="../downloads/{name}.{kind}" download>{kind}<span class="of"> of figure '
        f"{about['number']}</span></a>"
        for kind in ("svg", "csv")
    )
    links = f' <span class="files"><a href="#cell-{name}">cell</a>{files}</span>'
    return f"""\
<a id="figure-{name}"></a>

```{{figure}} ../figures/{name}.png
:alt: {about["alt"]}
:width: {width:.3g}in

**Figure {about["number"]}.** {about["caption"]}{"" if one_page else links}
```"""


def table(html: str) -> str:
    """Return pandas' tables with columns of numbers marked, and dollars turned into math."""
    html = re.sub(r"<table.*?</table>", lambda match: _aligned(match[0]), html, flags=re.S)
    dollars = re.compile(r"\$([^<$]+)\$(?=[^<]*</t[hd]>)")
    return dollars.sub(r'<span class="math">\\(\1\\)</span>', html)


def _aligned(table: str) -> str:
    head, end, body = table.partition("</thead>")
    rows = re.findall(r"<tr.*?</tr>", body, re.S)
    columns = zip(*(re.findall(r"<td.*?>(.*?)</td>", row, re.S) for row in rows), strict=False)
    marks = [' class="number"' * bool(all(map(NUMERIC.fullmatch, column))) for column in columns]
    each = cycle(marks or [""])
    body = re.sub("<td", lambda _: f"<td{next(each)}", body)

    def heading(row: re.Match) -> str:
        names = iter([""] * (row[0].count("<th") - len(marks)) + marks)
        return re.sub("<th", lambda _: f"<th{next(names)}", row[0])

    return re.sub(r"<tr.*?</tr>", heading, head, flags=re.S) + end + body


def parameters(notebook: nbformat.NotebookNode) -> list[tuple[str, str, str, str]]:
    """Return name, type, default and meaning of a notebook's parameters, as its cell has them."""
    [cell] = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    return PARAMETER.findall(cell.source)


def how_to_run(path: Path, notebook: nbformat.NotebookNode) -> str:
    """Return the box under a notebook's title: download, change, run."""
    given = parameters(notebook)
    words = [".venv/bin/papermill", f"notebooks/{path.name}", "out.ipynb"]
    lines = [" ".join(words)]
    for name, kind, default, _ in given:
        value = ast.literal_eval(default)
        option = ("-r", name, value) if kind == "str" else ("-y", f"{name}: {json.dumps(value)}")
        lines.append("  " + shlex.join(option))
    command = " \\\n".join(lines)
    rows = "\n".join(
        f"| `{name}` | {kind} | `{default}` | {meaning} |" for name, kind, default, meaning in given
    )
    return f"""\
<a class="download" href="../downloads/{path.name}" download>Download {path.name}</a>

<details class="run"><summary>Run with these parameters</summary>

In JupyterLab: `make lab`, open `{path.name}`, change the first cell, and choose *Run*, *Run All \
Cells*. What it writes goes to `build/scratch`. From a shell, with the values to change:

```sh
{command}
```

| parameter | type | here | meaning |
|---|---|---|---|
{rows}

</details>"""


def _markdown(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text)
