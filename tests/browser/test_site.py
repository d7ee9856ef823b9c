"""The built site in a real browser: `make test-browser`."""

import io
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import numpy as np
import pytest
from axe_core_python.sync_playwright import Axe
from matplotlib.image import imread

from firmlib.normal import firm_linear
from workflow import ROOT
from workflow.manifest import makers

from .conftest import SITE

PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_static")]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CLOSE_UPS = "index claims guide explorer errata api/firmlib benchmarks/index notebooks/08_gattaca"
CLOSE_UPS = CLOSE_UPS.split()


def test_every_notebook_has_a_page_and_its_download():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"notebooks/{path.stem}.html" in PAGES
        assert (SITE / "downloads" / path.name).read_bytes() == path.read_bytes()


def assert_whole(page):
    """Every formula is typeset and every image is drawn."""
    maths = page.evaluate(
        """() => [...document.querySelectorAll('.math')].map(e => e.querySelector(
            'mjx-container svg') && !e.querySelector('[data-mjx-error]') ? '' : e.textContent)"""
    )
    assert [math for math in maths if math] == []
    prose = page.locator("article p, article li, article td").all_inner_texts()
    assert [text for text in prose if re.search(r"\$[^$]*\\\w", text)] == []
    empty = page.evaluate(
        """async () => {
            const images = [...document.images];
            images.forEach(image => image.loading = 'eager');
            await Promise.all(images.map(image => image.decode().catch(() => null)));
            return images.filter(i => !i.naturalWidth || !i.width || !i.height).map(i => i.src);
        }"""
    )
    assert empty == []


def show(page, scheme, size):
    """Switch to a colour scheme, which the page follows a little later, and to a size."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
    page.set_viewport_size(size)


def assert_accessible(page):
    """By axe-core, contrast among its rules."""
    found = Axe().run(page, options={"resultTypes": ["violations"]})["violations"]
    serious = [f for f in found if f["impact"] in ("serious", "critical")]
    assert [(f["id"], node["html"]) for f in serious for node in f["nodes"]] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_is_whole_fits_a_phone_and_everyone_can_read_it(name, server, open_page, screenshot):
    """In one load: light on a desktop, then dark, then dark on a phone."""
    page, label = open_page(f"{server}/{name}"), name.removesuffix(".html").replace("/", "-")
    close_up = name.removesuffix(".html") in CLOSE_UPS
    assert_whole(page)
    screenshot(page, f"desktop-{label}")
    show(page, "dark", DESKTOP)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background)[:3])) < 150
    if close_up:
        screenshot(page, f"dark-{label}")
    show(page, "dark", PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    if close_up:
        screenshot(page, f"phone-{label}")
    page.evaluate(  # of what a page has often, axe-core gets the first five
        """() => {
            for (const kind of ['mjx-container', '.highlight', 'dl.py', '.cell', '.toctree-l1']) {
                [...document.querySelectorAll(kind)].slice(5).forEach(e => e.remove());
            }
        }"""
    )
    assert_accessible(page)
    show(page, "light", DESKTOP)
    assert_accessible(page)


def test_a_figure_stays_on_white_in_the_dark_and_says_what_it_is(server, open_page):
    page = open_page(f"{server}/notebooks/08_gattaca.html", scheme="dark")
    figure = page.locator("figure").first
    figure.scroll_into_view_if_needed()
    assert len(figure.locator("img").get_attribute("alt")) > 40
    assert figure.locator("figcaption").inner_text().startswith("Figure 8.1.")
    pixels = imread(io.BytesIO(figure.locator("img").screenshot()))[..., :3]
    assert np.median(pixels) > 0.9


def test_the_landing_page_moves_with_the_correlation_and_says_what_is_behind_a_tile(
    server, open_page
):
    page = open_page(f"{server}/index.html")
    for rho in (-0.6, 0.0, 1.0):
        page.locator("#proxy input").fill(str(rho))
        Q = firm_linear([1, 0], [[1, rho], [rho, 1]])[1]
        values = [float(e.get_attribute("data-value")) for e in page.locator("#proxy .value").all()]
        np.testing.assert_allclose(values, [abs(Q), 0], atol=1e-12)
        assert f"slope {rho:.2f}" in page.locator("#proxy svg").get_attribute("aria-label")
    tile = page.locator(".tile[href*='2.3-poim-scale']")
    tile.hover()
    text = page.inner_text("#verdict")
    assert "2.3-poim-scale" in text
    assert tile.get_attribute("data-found") in text
    assert page.locator("#verdict .verdict").inner_text() == tile.get_attribute("data-verdict")


class Anchors(HTMLParser):
    """Ids of a page, and where it links to."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])


def test_links_lead_somewhere():
    parsed = {name: Anchors((SITE / name).read_text()) for name in PAGES}
    broken = []
    for name, page in parsed.items():
        for link in page.links:
            path, fragment = urldefrag(unquote(link))
            if ":" in path:
                continue
            target = ((SITE / name).parent / path).resolve() if path else SITE / name
            known = parsed.get(str(target.relative_to(SITE)))
            if not target.exists() or (fragment and known and fragment not in known.ids):
                broken.append((name, link))
    assert broken == []
    assert all(f"#figure-{n}" in " ".join(parsed["figures.html"].links) for n in makers())


def test_claims_are_filtered_and_fit_any_width_with_the_verdict_first_on_a_phone(server, open_page):
    page = open_page(f"{server}/claims.html")
    rows = page.locator("#claims-table tbody tr")
    shown = page.locator("#claims-table tbody tr:visible")
    assert shown.count() == rows.count() > 50
    page.select_option("#filter-verdict", "corrected")
    assert 0 < shown.count() < rows.count()
    assert set(shown.locator(".verdict").all_inner_texts()) == {"corrected"}
    page.select_option("#filter-section", "2.3")
    assert all(row.get_attribute("data-section") == "2.3" for row in shown.all())
    assert page.inner_text("#filter-count") == f"{shown.count()} of {rows.count()}"
    page.select_option("#filter-verdict", "")
    page.select_option("#filter-section", "")
    page.fill("#filter-words", "gattaca")
    assert 0 < shown.count() < 15
    page.fill("#filter-words", "")
    assert shown.count() == rows.count()
    for width in (1280, 1000, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for box in page.locator(".wide").all():
            assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 1, width
    tops = [rows.first.locator("td").nth(i).bounding_box()["y"] for i in (3, 0, 1, 2)]
    assert tops == sorted(tops)


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_search_finds_a_notebook_and_a_function(scheme, server, open_page):
    site = SITE.as_uri() if scheme == "file" else server
    for word, found in (("GATTACA", "08_gattaca"), ("motif_importance", "api/")):
        page = open_page(f"{site}/search.html?q={word}")
        page.wait_for_selector(f"#search-results li a[href*='{found}']")
