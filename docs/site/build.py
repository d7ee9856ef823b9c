"""Build the site from what is committed: nothing is executed, nothing is fetched.

Sphinx reads build/site-source, which is written here: the pages of docs/site, the notebooks with a
line on how to run them, and the ledger, the figures and the API as HTML or Markdown.
"""

import html
import importlib
import inspect
import json
import re
import shutil
from functools import cache
from importlib import resources
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import nbformat
import yaml
from matplotlib.image import imread
from nbformat.v4 import new_markdown_cell
from sphinx.cmd.build import main as sphinx

import firmlib
from firmlib.compendium.claims import VERDICTS
from firmlib.compendium.figures import STYLE
from workflow import BUILD, ROOT
from workflow.ledger import tally
from workflow.manifest import makers

SITE = ROOT / "docs" / "site"
MATH = r'<span class="math">\\(\1\\)</span>'
DOLLARS = re.compile(r"\$([^<$]+)\$(?=[^<]*</t[hd]>)")
SHOWN = ("definition", "boolean_svm", "gattaca", "peers_proxy", "discovery_given", "how_sure_ranks")
RUN = """\
<p class="run"><a class="download" href="../downloads/{name}" download>Download</a> · with other
parameters: <code>papermill {name} out.ipynb -p NAME VALUE</code></p>"""
FIRST = """\
<a class="first-figure" href="#figure-{name}">
<img src="../_static/figures/{name}.png" alt="{alt}">
<span>Figure {number}. {caption}</span></a>"""
FIGURE = """\
<a id="figure-{name}"></a>

```{{figure}} ../figures/{name}.png
:alt: {alt}
:width: {width:.3g}in

**Figure {number}.** {caption} <span class="files"><a href="#cell-{name}">cell</a>{files}</span>
```"""
MODULES = {  # a page for each; the public names of a module are its __all__
    "firmlib": "The measure",
    "firmlib.features": "Features",
    "firmlib.scores": "Scores",
    "firmlib.binary": "Binary features",
    "firmlib.normal": "Normal inputs",
    "firmlib.expansion": "Kernel expansions",
    "firmlib.strings": "Sequences",
    "firmlib.datasets": "Data sets",
    "firmlib.compendium.claims": "The ledger",
}


def stage(source: Path) -> None:
    """Write everything Sphinx reads to `source`."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(SITE, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for folder in ("figures", "benchmarks"):
        (source / folder).mkdir(exist_ok=True)
        for picture in (ROOT / folder).glob("*.png"):
            shutil.copy(picture, source / folder)
    shutil.copy(ROOT / "docs" / "example.png", source)
    ledger = json.loads((ROOT / "data" / "claims.json").read_text())
    citation = (ROOT / "CITATION.cff").read_text()
    parts = {
        "version": firmlib.__version__,
        "date": str(yaml.safe_load(citation)["date-released"]),
        "tally": tally(ledger),
        "use": readme("```python", "\n\nThe score may"),
        "findings": readme("1. **", "\n\n## Reproduce"),
        "map": verdict_map(ledger),
        "claims": claims_table(ledger),
        "errata": errata_table(ledger),
        "misprints": misprints_table(),
        "six": gallery(SHOWN),
        "gallery": gallery(tuple(captions())),
        "citation": citation,
    }
    for file in source.glob("*.md"):
        file.write_text(re.sub(r"@(\w+)@", lambda match: parts[match[1]], file.read_text()))
    guide = (ROOT / "docs" / "guide.md").read_text()
    guide = guide.replace("](../", "](")
    (source / "guide.md").write_text(guide.replace("benchmarks/README.md", "benchmarks/index.md"))
    for name, named in (("README", "index"), ("results", "results")):
        text = (ROOT / "benchmarks" / f"{name}.md").read_text().replace("(README.md)", "(index.md)")
        (source / "benchmarks" / f"{named}.md").write_text(text)
    (source / "api").mkdir()
    for name in MODULES:
        (source / "api" / f"{name}.md").write_text(api(name))
    listed = "\n".join(MODULES)
    (source / "api" / "index.md").write_text(f"# API\n\n```{{toctree}}\n{listed}\n```\n")
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
    """Return the notebook with captions, equations in its tables, how to run it, a figure first.

    The first figure moves to the top, or is shown twice if words lead up to it.
    """
    notebook = nbformat.read(path, as_version=4)
    saved = {at.cell: name for name, at in makers().items() if at.notebook == path.stem}
    first = min(saved)
    moves = all(cell.cell_type == "code" for cell in notebook.cells[1:first])
    cells = []
    for i, cell in enumerate(notebook.cells[1:], 1):
        name = saved.get(i)
        if name:
            cells.append(new_markdown_cell(f'<a id="cell-{name}"></a>'))
            cell.outputs = [o for o in cell.outputs if "image/png" not in o.get("data", {})]
            prompt = f"Show the code of figure {captions()[name]['number']}"
            cell.metadata["mystnb"] = {"code_prompt_show": prompt}
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = DOLLARS.sub(MATH, output.data["text/html"])
        cells.append(cell)
        if name and not (moves and i == first):
            cells.append(new_markdown_cell(figure(name)))
    shown = figure(saved[first]) if moves else first_figure(saved[first])
    question, *answer = re.split(r"(?=\*\*Answer\.)", notebook.cells[0].source)
    top = [question, shown, *answer, RUN.format(name=path.name)]
    notebook.cells = [*map(new_markdown_cell, top), *folded(cells)]
    return notebook


def folded(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Fold parameters too, and make one cell of neighbours that are folded and show nothing."""
    joined: list[nbformat.NotebookNode] = []
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            tags.append("hide-input")
            cell.metadata["mystnb"] = {"code_prompt_show": "Show parameters and imports"}
        if "hide-input" in tags and joined and _silent(joined[-1]):
            joined[-1].source += "\n\n" + cell.source
            joined[-1].outputs = cell.outputs
        else:
            joined.append(cell)
    return joined


def _silent(cell: nbformat.NotebookNode) -> bool:
    return "hide-input" in cell.metadata.get("tags", []) and not cell.outputs


def api(module: str) -> str:
    """Return the page of a module: its docstring, and every public name."""
    found = importlib.import_module(module)
    lines = [f"# {MODULES[module]}, `{module}`", "```{eval-rst}", f".. automodule:: {module}"]
    lines += ["   :no-members:", f".. currentmodule:: {module}"]
    public = getattr(found, "__all__", None) or [
        name for name, value in vars(found).items() if getattr(value, "__module__", "") == module
    ]
    for name in sorted(public, key=lambda name: inspect.isclass(getattr(found, name))):
        value = getattr(found, name)
        if inspect.isclass(value):
            lines += [f".. autoclass:: {name}", "   :members:"]
        elif inspect.isfunction(value):
            lines.append(f".. autofunction:: {name}")
    return "\n".join([*lines, "```", ""])


@cache
def captions() -> dict[str, dict[str, str]]:
    """Return number, caption and description of every figure, in the order of the notebooks."""
    words = yaml.safe_load((SITE / "figures.yml").read_text())
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


def first_figure(name: str) -> str:
    """Return a figure for the top of its page, with a link to its place in the notebook."""
    about = captions()[name]
    caption, alt = _formulas(about["caption"]), html.escape(about["alt"])
    return FIRST.format(name=name, number=about["number"], caption=caption, alt=alt)


def readme(first: str, last: str) -> str:
    """Return the README from `first` up to `last`, with links to the site's own pages."""
    text = (ROOT / "README.md").read_text()
    text = text[text.index(first) : text.index(last)]
    return text.replace("(docs/claims.md#errata)", "(errata.md)").replace("(docs/", "(")


def verdict_map(ledger: list[dict]) -> str:
    """Return the sections as rows of tiles, one for each claim; verdicts.js shows what is in it."""
    figures = figures_of_claims()
    titles = yaml.safe_load((SITE / "sections.yml").read_text())
    rows = []
    for section, group in groupby(ledger, itemgetter("section")):
        tiles = "".join(
            f'<a class="tile" href="{_address(claim)}" data-verdict="{claim["verdict"]}" '
            f'data-says="{html.escape(claim["statement"])}" '
            f'data-found="{html.escape(claim["finding"])}" '
            f'data-figure="{figures.get(claim["id"], "")}">'
            f"{VERDICTS[claim['verdict']]}"
            f'<span class="of"> {claim["id"]}, {claim["verdict"]}</span></a>'
            for claim in group
        )
        name = f'<span class="section">{section} {titles[section]}</span>'
        rows.append(f'<div class="tiles">{name}{tiles}</div>')
    panel = '<div id="verdict" aria-live="polite">Point at a tile or tap it.</div>'
    return '<div id="verdicts">\n' + "\n".join([*rows, panel]) + "\n</div>"


def figures_of_claims() -> dict[str, str]:
    """Return for each claim the figure that follows its heading, if there is one."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        drawn = {at.cell: name for name, at in makers().items() if at.notebook == path.stem}
        claims: list[str] = []
        for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
            if here := re.findall(r'<a id="([\d.]+-[\w-]+)"></a>', cell.source):
                claims = here
            found |= {claim: drawn[i] for claim in claims if i in drawn}
    return found


def claims_table(ledger: list[dict]) -> str:
    """Return the ledger as a table."""
    rows = [(c, c["statement"], c["finding"] or "–", c["verdict"]) for c in ledger]
    heads = ("claim", "what the paper says", "what came out", "verdict")
    return _table("claims-table", heads, rows)


def errata_table(ledger: list[dict]) -> str:
    """Return what is corrected: printed form, corrected form, what was found."""
    corrected = [claim for claim in ledger if claim["verdict"] == "corrected"]
    rows = [(c, c["expected"], c["correction"], c["finding"]) for c in corrected]
    heads = ("claim", "as printed", "corrected", "found")
    return _table("errata-table", heads, rows, " cards")


def misprints_table() -> str:
    """Return the misprints as a table."""
    slips = json.loads((ROOT / "data" / "misprints.json").read_text())
    texts = [map(_formulas, (slip["place"], slip["printed"], slip["meant"])) for slip in slips]
    rows = "\n".join("<tr>" + "".join(f"<td>{t}</td>" for t in row) + "</tr>" for row in texts)
    return f'<table id="misprints-table" class="table cards"><tbody>\n{rows}\n</tbody></table>'


def gallery(names: tuple[str, ...]) -> str:
    """Return figures with their captions, each with a link to its place in the notebook."""
    places = makers()
    cards = [
        f'<a class="card-figure" href="notebooks/{places[name].notebook}.html#figure-{name}">'
        f'<img src="_static/figures/{name}.png" alt="{html.escape(about["alt"])}" '
        f'loading="lazy"><span>Figure {about["number"]}. {_formulas(about["caption"])}</span></a>'
        for name, about in captions().items()
        if name in names
    ]
    return '<div class="gallery">\n' + "\n".join(cards) + "\n</div>"


def _formulas(text: str) -> str:
    """Return text as HTML, its formulas as MathJax reads them."""
    return re.sub(r"\$(.+?)\$", MATH, html.escape(text))


def _address(claim: dict) -> str:
    return f"notebooks/{Path(claim['notebook']).stem}.html#{claim['id']}"


def _table(id: str, heads: tuple[str, ...], rows: list[tuple], shape: str = "") -> str:
    """Return rows of a claim and texts; each has its section and verdict, for the filter."""
    lines = [f'<table id="{id}" class="table{shape}">', "<thead><tr>"]
    lines += [f"<th>{name}</th>" for name in heads] + ["</tr></thead>", "<tbody>"]
    for claim, *texts in rows:
        link = f"<code>{claim['id']}</code>"
        if claim["verdict"] != "open":
            link = f'<a href="{_address(claim)}">{link}</a>'
        cells = [_formulas(text) for text in texts]
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


if __name__ == "__main__":
    raise SystemExit(main())
