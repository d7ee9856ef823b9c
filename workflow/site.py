"""Build the site from what is committed: nothing is executed, nothing is fetched.

Sphinx reads build/site-source, which is written here: the pages of site/, the notebooks with a box
on how to run them, and what the ledger, the figures and the parameters say, as HTML.
"""

import html
import json
import re
import shutil
from functools import cache
from importlib import resources
from pathlib import Path

import nbformat
import pandas as pd
import yaml
from matplotlib.image import imread
from nbformat.v4 import new_markdown_cell
from sphinx.cmd.build import main as sphinx

import firmlib
from firmlib.compendium.claims import tally
from firmlib.compendium.figures import STYLE
from workflow import BUILD, ROOT
from workflow.manifest import makers

SITE = ROOT / "site"
MATH = r'<span class="math">\\(\1\\)</span>'
DOLLARS = re.compile(r"\$([^<$]+)\$(?=[^<]*</t[hd]>)")
RUN = """\
<a class="download" href="../downloads/{name}" download>Download {name}</a>

Run it with other parameters in `make lab`, or by
`.venv/bin/papermill notebooks/{name} out.ipynb -p NAME VALUE` (`--help-notebook` lists them)."""
FIGURE = """\
<a id="figure-{name}"></a>

```{{figure}} ../figures/{name}.png
:alt: {alt}
:width: {width:.3g}in

**Figure {number}.** {caption} <span class="files"><a href="#cell-{name}">cell</a>{files}</span>
```"""


def stage(source: Path) -> None:
    """Write everything Sphinx reads to `source`."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(SITE, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for folder in ("figures", "benchmarks"):
        (source / folder).mkdir(exist_ok=True)
        for picture in (ROOT / folder).glob("*.png"):
            shutil.copy(picture, source / folder)
    ledger = json.loads((ROOT / "data" / "claims.json").read_text())
    citation = (ROOT / "CITATION.cff").read_text()
    parts = {
        "version": firmlib.__version__,
        "date": str(yaml.safe_load(citation)["date-released"]),
        "tally": tally(ledger),
        "minute": minute(),
        "sweep": sweep(),
        "claims": claims_table(ledger),
        "errata": errata_table(ledger),
        "gallery": gallery(),
        "citation": citation,
    }
    for file in source.glob("*.md"):
        file.write_text(re.sub(r"@(\w+)@", lambda match: parts[match[1]], file.read_text()))
    guide = (ROOT / "GUIDE.md").read_text().replace("(site/api.md)", "(api.md)")
    guide = guide.replace("(benchmarks/README.md)", "(benchmarks/index.md)")
    (source / "guide.md").write_text(guide)
    shutil.copy(ROOT / "benchmarks" / "README.md", source / "benchmarks" / "index.md")
    mathjax = source / "_static" / "mathjax" / "tex-svg.js"  # draws equations, fonts included
    mathjax.parent.mkdir()
    package = resources.files("sphinx-mathjax-offline")
    mathjax.write_bytes((package / "static" / "mathjax" / "tex-svg.js").read_bytes())
    downloads = source / "extra" / "downloads"
    for folder in (source / "notebooks", downloads):
        folder.mkdir(parents=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        nbformat.write(page(path), source / "notebooks" / path.name)
        shutil.copy(path, downloads)
    for name in captions():
        for file in (f"figures/{name}.svg", f"data/{name}.csv"):
            shutil.copy(ROOT / file, downloads)


def page(path: Path) -> nbformat.NotebookNode:
    """Return the notebook with captions, equations in its tables and how to run it."""
    notebook = nbformat.read(path, as_version=4)
    saved = {at.cell: name for name, at in makers().items() if at.notebook == path.stem}
    cells = []
    for i, cell in enumerate(notebook.cells):
        name = saved.get(i)
        if name:
            cells.append(new_markdown_cell(f'<a id="cell-{name}"></a>'))
            cell.outputs = [o for o in cell.outputs if "image/png" not in o.get("data", {})]
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = DOLLARS.sub(MATH, output.data["text/html"])
        cells += [cell, new_markdown_cell(figure(name))] if name else [cell]
    cells.insert(1, new_markdown_cell(RUN.format(name=path.name)))
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


def figure(name: str) -> str:
    """Return a figure with its number, caption, description and files."""
    about = captions()[name]
    width = imread(ROOT / "figures" / f"{name}.png").shape[1] / STYLE["savefig.dpi"]
    files = "".join(
        f' · <a href="../downloads/{name}.{kind}" download>{kind}<span class="of"> of figure '
        f"{about['number']}</span></a>"
        for kind in ("svg", "csv")
    )
    return FIGURE.format(name=name, width=width, files=files, **about)


def minute() -> str:
    """Return the README's parts on use and findings, with links to the site's own pages."""
    readme = (ROOT / "README.md").read_text()
    text = readme[readme.index("## Your own model") : readme.index("## All claims")].strip()
    link = r"\[([^]]+)\]\(notebooks/(\w+)\.ipynb((?:#[\w.-]+)?)\)"
    text = re.sub(link, r'<a href="notebooks/\2.html\3">\1</a>', text)
    return text.replace("(GUIDE.md)", "(guide.md)")


def sweep() -> str:
    """Return how many points of the sweep have the motif first, by degree and noise."""
    table = pd.read_csv(ROOT / "data" / "sweep_gattaca.csv")
    table = table.assign(n=1, w=table["rank_w"] == 1, firm=table["rank_firm"] == 1)
    groups = table.groupby(["degree", "mutations"])[["n", "w", "firm"]]
    found = groups.agg({"n": "sum", "w": "mean", "firm": "mean"}).unstack(fill_value=0)
    cells = [
        [[int(r["n", m]), r["w", m], r["firm", m]] for m in found["n"]] for _, r in found.iterrows()
    ]
    return json.dumps({"degrees": [*found.index], "mutations": [*found["n"]], "cells": cells})


def claims_table(ledger: list[dict]) -> str:
    """Return the ledger as a table."""
    rows = [(c, c["statement"], c["finding"] or "–", c["verdict"]) for c in ledger]
    heads = ("claim", "what the paper says", "what came out", "verdict")
    return _table("claims-table", heads, rows)


def errata_table(ledger: list[dict]) -> str:
    """Return what is corrected, printed form beside corrected form."""
    corrected = [claim for claim in ledger if claim["verdict"] == "corrected"]
    rows = [(claim, claim["expected"], claim["correction"]) for claim in corrected]
    return _table("errata-table", ("claim", "as printed", "corrected"), rows)


def gallery() -> str:
    """Return every figure with a link to the cell that made it."""
    places = makers()
    cards = [
        f'<a class="card-figure" href="notebooks/{places[name].notebook}.html#figure-{name}">'
        f'<img src="_static/figures/{name}.png" alt="{html.escape(about["alt"])}" '
        f'loading="lazy"><span>Figure {about["number"]} · {name}</span></a>'
        for name, about in captions().items()
    ]
    return '<div class="gallery">\n' + "\n".join(cards) + "\n</div>"


def _table(id: str, heads: tuple[str, ...], rows: list[tuple]) -> str:
    """Return rows of a claim and texts; each has its section and verdict, for the filter."""
    lines = [f'<table id="{id}" class="table">', "<thead><tr>"]
    lines += [f"<th>{name}</th>" for name in heads] + ["</tr></thead>", "<tbody>"]
    for claim, *texts in rows:
        link = f"<code>{claim['id']}</code>"
        if claim["verdict"] != "open":
            page = f"notebooks/{Path(claim['notebook']).stem}.html"
            link = f'<a href="{page}#{claim["id"]}">{link}</a>'
        cells = [re.sub(r"\$(.+?)\$", MATH, html.escape(text)) for text in texts]
        cells[-1] = f'<span class="{heads[-1]}">{cells[-1]}</span>'
        inner = "".join(f"<td>{cell}</td>" for cell in (link, *cells))
        attributes = f'data-section="{claim["section"]}" data-verdict="{claim["verdict"]}"'
        lines.append(f"<tr {attributes}>{inner}</tr>")
    return '<div class="wide">' + "\n".join(lines) + "\n</tbody></table></div>"


def main() -> int:
    """Build build/site; warnings are errors."""
    source, out = BUILD / "site-source", BUILD / "site"
    stage(source)
    shutil.copytree(source / "figures", source / "_static" / "figures")
    shutil.copy(BUILD / "explorer.js", source / "_static" / "explorer-data.js")
    shutil.rmtree(out, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-E", "-c", str(SITE), "-d", str(BUILD / "doctrees")]
    if sphinx(["-b", "html", *options, str(source), str(out)]):
        return 1
    print(f"build/site/index.html: {len(list(out.rglob('*.html')))} pages")
    return 0
