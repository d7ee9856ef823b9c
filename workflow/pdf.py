"""Print the ledger and all notebooks as one PDF: Sphinx makes one page of them, Chromium prints it.

Version and date are those of CITATION.cff, so that the same commit gives the same text.
"""

import shutil
import sys

from playwright.sync_api import sync_playwright
from sphinx.cmd.build import main as sphinx

from workflow import BUILD
from workflow.browser import launch
from workflow.site import SITE, citation, mathjax, stage

FOOT = """\
<div style="font: 8px sans-serif; width: 100%; padding: 0 16mm; display: flex;
            justify-content: space-between">
  <span>firmlib {version}, {date}</span><span class="pageNumber"></span>
</div>"""


def main() -> int:
    """Write build/firmlib-VERSION.pdf."""
    source, page = BUILD / "print-source", BUILD / "print"
    stage(source, one_page=True)
    mathjax(source / "_static" / "mathjax")
    shutil.rmtree(page, ignore_errors=True)
    options = ["-q", "-E", "-t", "print", "-c", str(SITE), "-d", str(BUILD / "doctrees-print")]
    if sphinx(["-b", "singlehtml", *options, str(source), str(page)]):
        return 1
    entry = citation()
    target = BUILD / f"firmlib-{entry['version']}.pdf"
    with sync_playwright() as playwright:
        browser = launch(playwright)
        tab = browser.new_page()
        tab.goto((page / "index.html").as_uri())
        tab.evaluate("() => MathJax.startup.promise.then(() => true)")
        tab.pdf(
            path=target,
            format="A4",
            margin={"top": "16mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOT.format(version=entry["version"], date=entry["date-released"]),
            outline=True,
            tagged=True,
        )
        browser.close()
    print(f"build/{target.name}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
