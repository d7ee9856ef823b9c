"""The one page that `make pdf` prints, as Chromium lays it out on paper."""

import subprocess
import sys

from workflow import BUILD, ROOT
from workflow.manifest import makers


def test_contents_new_pages_and_figures_with_their_captions(open_page):
    subprocess.run([sys.executable, "-m", "workflow.pdf"], cwd=ROOT, check=True)
    [printed] = BUILD.glob("firmlib-*.pdf")
    assert printed.read_bytes().startswith(b"%PDF")
    page = open_page((BUILD / "print" / "index.html").as_uri())
    page.emulate_media(media="print")
    notebooks = len(list((ROOT / "notebooks").glob("*.ipynb")))
    style = "nodes => nodes.map(node => getComputedStyle(node)[{!r}])"

    links = page.locator(".contents a").evaluate_all(
        "links => links.map(a => document.getElementById(a.hash.slice(1)) ? '' : a.hash)"
    )
    assert links == [""] * (2 + notebooks)
    sections = page.locator("[id^='document-notebooks'] + section")
    assert sections.evaluate_all(style.format("breakBefore")) == ["page"] * notebooks
    figures = page.locator("figure")
    assert figures.evaluate_all(style.format("breakInside")) == ["avoid"] * len(makers())
    assert page.locator("figure figcaption").count() == len(makers())
    assert page.locator("summary").count() == 0  # nothing is folded on paper
