"""Build the site from what is committed: nothing is executed, nothing is fetched.

Sphinx reads build/site-source, which is written here: the pages of site/, the notebooks with a box
on how to run them, and what the ledger, the figures and the parameters say, as HTML.
"""

import html
import json
import re
import shutil
import sys
from importlib import resources
from pathlib import Path

import nbformat
import pandas as pd
import yaml
from sphinx.cmd.build import main as sphinx

import firmlib
from firmlib.compendium.claims import tally
from workflow import BUILD, ROOT
from workflow.manifest import makers
from workflow.site_pages import captions, page

SITE = ROOT / "site"


def stage(source: Path, *, one_page: bool = False) -> None:
    """Write everything Sphinx reads to `source`; `one_page` is for the PDF, where links are #…"""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(SITE, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for kind, pattern in (("figures", "*.png"), ("benchmarks", "*.png")):
        shutil.copytree(ROOT / kind, source / kind, ignore=_all_but(pattern))
    ledger = json.loads((ROOT / "data" / "claims.json").read_text())
    parts = {
        "version": firmlib.__version__,
        "date": str(citation()["date-released"]),
        "tally": tally(ledger),
        "minute": minute(),
        "contents": contents(),
        "printed": printed_contents(),
        "sweep": sweep(),
        "claims": claims_table(ledger, one_page),
        "errata": errata_table(ledger, one_page),
        "gallery": gallery(one_page),
        "bibtex": bibtex(),
        "citation": (ROOT / "CITATION.cff").read_text(),
    }
    for file in source.glob("*.md"):
        text = re.sub(r"@(\w+)@", lambda match: parts[match[1]], file.read_text())
        file.write_text(text)
    if one_page:
        for file in ("claims.md", "explorer.md", "index.md", "sliders.md"):
            (source / file).unlink()
        (source / "print.md").rename(source / "index.md")
    else:
        (source / "print.md").unlink()
        mathjax(source / "_static" / "mathjax")
        guide = (ROOT / "GUIDE.md").read_text().replace("(site/api.md)", "(api.md)")
        (source / "guide.md").write_text(
            guide.replace("(benchmarks/README.md)", "(benchmarks/index.md)")
        )
    (source / "benchmarks" / "index.md").write_text((ROOT / "benchmarks/README.md").read_text())
    for folder in ("notebooks", "extra/downloads"):
        (source / folder).mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        nbformat.write(page(path, one_page=one_page), source / "notebooks" / path.name)
        shutil.copy(path, source / "extra" / "downloads")
    for name in captions():
        for file in (f"figures/{name}.svg", f"data/{name}.csv"):
            shutil.copy(ROOT / file, source / "extra" / "downloads")


def mathjax(folder: Path) -> None:
    """Copy the one file of MathJax that draws equations, fonts included, as SVG."""
    folder.mkdir(parents=True)
    package = resources.files("sphinx-mathjax-offline")
    script = (package / "static" / "mathjax" / "tex-svg.js").read_bytes()
    (folder / "tex-svg.js").write_bytes(script)


def citation() -> dict:
    """Return CITATION.cff as a dict."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def bibtex() -> str:
    """Return the entries for the software and for the paper."""
    entry = citation()
    paper = entry["references"][0]
    authors = " and ".join(f"{a['family-names']}, {a['given-names']}" for a in paper["authors"])
    return f"""\
@software{{firmlib,
  title   = {{{entry["title"]}}},
  author  = {{{{{entry["authors"][0]["name"]}}}}},
  version = {{{entry["version"]}}},
  date    = {{{entry["date-released"]}}}
}}
@inproceedings{{zien2009firm,
  title     = {{{paper["title"]}}},
  author    = {{{authors}}},
  booktitle = {{{paper["collection-title"]}}},
  year      = {{{paper["year"]}}}
}}"""


def minute() -> str:
    """Return what the README says of use and findings, with links to the site's own pages."""
    readme = (ROOT / "README.md").read_text()
    text = readme[readme.index("## Your own model") : readme.index("## All claims")].strip()
    link = r"\[([^]]+)\]\(notebooks/(\w+)\.ipynb((?:#[\w.-]+)?)\)"
    text = re.sub(link, r'<a href="notebooks/\2.html\3">\1</a>', text)
    return text.replace("(GUIDE.md)", "(guide.md)")


def contents() -> str:
    """Return the notebooks as the navigation has them: number, section of the paper, title."""
    readme = (ROOT / "README.md").read_text()
    lines = []
    for stem, section in re.findall(r"^\| \[(\w+)\]\(notebooks/.*?\) \| (.*?) \|", readme, re.M):
        notebook = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
        title = re.match("# (.+)", notebook.cells[0].source)[1]  # type: ignore[index]
        place = "" if section == "–" else f"§{section.replace('Figure', 'Fig.')} · "
        lines.append(f"{stem[:2]} · {place}{title} <notebooks/{stem}>")
    return "\n".join(lines)


def printed_contents() -> str:
    """Return the same as links within the one page of the PDF, after the ledger and the errata."""
    entry = '<li><a href="#{}">{}</a></li>'
    lines = [entry.format("claims-table", "Claims"), entry.format("errata-table", "Errata")]
    for line in contents().split("\n"):
        title, _, document = line.rstrip(">").rpartition(" <")
        lines.append(entry.format(f"document-{document}", title))
    return '<ul class="contents">\n' + "\n".join(lines) + "\n</ul>"


def sweep() -> str:
    """Return in how many of the points of the sweep the motif is first, by degree and noise."""
    table = pd.read_csv(ROOT / "data" / "sweep_gattaca.csv")
    first = table.assign(w=table["rank_w"] == 1, firm=table["rank_firm"] == 1)
    degrees, mutations = (sorted(table[name].unique().tolist()) for name in ("degree", "mutations"))

    def cell(d: int, m: int) -> list[float]:
        some = first[(first["degree"] == d) & (first["mutations"] == m)]
        return [len(some), *some[["w", "firm"]].mean().fillna(0).tolist()]

    cells = [[cell(d, m) for m in mutations] for d in degrees]
    return json.dumps({"degrees": degrees, "mutations": mutations, "cells": cells})


def claims_table(ledger: list[dict], one_page: bool) -> str:
    """Return the ledger as a table whose rows say their section and verdict, for the filter."""
    rows = [
        f'<tr data-section="{claim["section"]}" data-verdict="{claim["verdict"]}">'
        f"<td>{_link(claim, one_page)}</td><td>{_text(claim['statement'])}</td>"
        f"<td>{_text(claim['finding'] or '–')}</td>"
        f'<td><span class="verdict">{claim["verdict"]}</span></td></tr>'
        for claim in ledger
    ]
    return _table(
        "claims-table", ("claim", "what the paper says", "what came out", "verdict"), rows
    )


def errata_table(ledger: list[dict], one_page: bool) -> str:
    """Return what is corrected, printed form beside corrected form."""
    rows = [
        f"<tr><td>{_link(claim, one_page)}</td><td>{_text(claim['expected'])}</td>"
        f"<td>{_text(claim['correction'])}</td></tr>"
        for claim in ledger
        if claim["verdict"] == "corrected"
    ]
    return _table("errata-table", ("claim", "as printed", "corrected"), rows)


def gallery(one_page: bool) -> str:
    """Return every figure with a link to the cell that made it."""
    cards, places = [], makers()
    for name, about in captions().items():
        address = "" if one_page else f"notebooks/{places[name].notebook}.html"
        cards.append(
            f'<a class="card-figure" href="{address}#figure-{name}">'
            f'<img src="_static/figures/{name}.png" alt="{html.escape(about["alt"])}" '
            f'loading="lazy"><span>Figure {about["number"]} · {name}</span></a>'
        )
    return '<div class="gallery">\n' + "\n".join(cards) + "\n</div>"


def _all_but(pattern: str):
    return lambda folder, names: [n for n in names if not Path(n).match(pattern)]


def _link(claim: dict[str, str], one_page: bool) -> str:
    if claim["verdict"] == "open":
        return f"<code>{claim['id']}</code>"
    page = "" if one_page else f"notebooks/{Path(claim['notebook']).stem}.html"
    return f'<a href="{page}#{claim["id"]}"><code>{claim["id"]}</code></a>'


def _text(cell: str) -> str:
    """Escape for HTML; what stands between dollar signs is for MathJax."""
    text, *rest = cell.split("$")
    if not rest:
        return html.escape(text)
    math = f'<span class="math">\\({html.escape(rest[0])}\\)</span>'
    return html.escape(text) + math + _text("$".join(rest[1:]))


def _table(id: str, head: tuple[str, ...], rows: list[str]) -> str:
    cells = "".join(f"<th>{name}</th>" for name in head)
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table id="{id}" class="table">\n<thead><tr>{cells}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


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
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"build/site/index.html: {len(list(out.rglob('*.html')))} pages, {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
