"""The built site in a real browser: `make test-browser`."""

import io
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import numpy as np
import pytest
from axe_core_python.sync_playwright import Axe
from matplotlib.image import imread
from sklearn.linear_model import Lasso, Ridge

from docs.site import export
from firmlib import firm
from firmlib.datasets import two_gaussians
from firmlib.normal import firm_linear, firm_taylor
from firmlib.strings import encode, motif_importance
from workflow import ROOT
from workflow.manifest import makers

from .conftest import SITE

PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_static")]
PHONE = {"width": 390, "height": 844}
CLOSE_UPS = [
    "index",
    "claims",
    "guide",
    "explorer",
    "errata",
    "api/firmlib",
    "benchmarks/index",
    "notebooks/08_gattaca",
]


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


def show(page, scheme):
    """Switch to a colour scheme, which the page follows a little later."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
    page.wait_for_timeout(300)  # colours fade


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
    show(page, "dark")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background)[:3])) < 150
    if close_up:
        screenshot(page, f"dark-{label}")
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(700)  # the sidebars slide away
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
    show(page, "light")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_timeout(700)
    assert_accessible(page)


@pytest.mark.parametrize("name", CLOSE_UPS)
def test_page_is_whole_without_a_server(name, open_page):
    assert_whole(open_page(f"{SITE.as_uri()}/{name}.html"))


def test_axe_notices(server, open_page):
    page = open_page(f"{server}/cite.html")
    page.evaluate("document.querySelector('article p').style.color = '#aaa'")
    assert "color-contrast" in [f["id"] for f in Axe().run(page)["violations"]]


def test_a_figure_stays_on_white_in_the_dark_and_says_what_it_is(server, open_page):
    page = open_page(f"{server}/notebooks/08_gattaca.html", scheme="dark")
    figure = page.locator("figure").first
    figure.scroll_into_view_if_needed()
    assert len(figure.locator("img").get_attribute("alt")) > 40
    assert figure.locator("figcaption").inner_text().startswith("Figure 8.1.")
    pixels = imread(io.BytesIO(figure.locator("img").screenshot()))[..., :3]
    assert np.median(pixels) > 0.9


@pytest.mark.parametrize("rho", [-0.6, 0.0, 1.0])
def test_the_landing_page_moves_with_the_correlation(server, open_page, rho):
    page = open_page(f"{server}/index.html")
    page.locator("#proxy input").fill(str(rho))
    Q = firm_linear([1, 0], [[1, rho], [rho, 1]])[1]
    values = [float(e.get_attribute("data-value")) for e in page.locator("#proxy .value").all()]
    np.testing.assert_allclose(values, [abs(Q), 0], atol=1e-12)
    assert f"slope {rho:.2f}" in page.locator("#proxy svg").get_attribute("aria-label")


def test_the_map_of_verdicts_says_what_is_behind_a_tile(server, open_page):
    page = open_page(f"{server}/index.html")
    tile = page.locator(".tile[href*='2.3-poim-scale']")
    tile.hover()
    text = page.inner_text("#verdict")
    assert "2.3-poim-scale" in text
    assert tile.get_attribute("data-found") in text
    assert page.locator("#verdict .verdict").inner_text() == tile.get_attribute("data-verdict")


def test_cells_fold_and_copy(server, open_page):
    page = open_page(f"{server}/notebooks/04_binary.html")
    folded = page.locator("details.hide.above-input")
    assert folded.count() > 5
    assert not folded.first.locator("pre").is_visible()
    folded.first.locator("summary").click()
    assert "require" in folded.first.locator("pre").inner_text()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    folded.first.locator(".copybtn").click()
    assert "require(" in page.evaluate("navigator.clipboard.readText()")
    assert page.locator(".output .copybtn").count() == 0


def test_tables_are_aligned(server, open_page):
    page = open_page(f"{server}/notebooks/07_gaussian_svm.html")
    number, name = (
        page.locator("table.dataframe td").first,
        page.locator("table.dataframe tbody th").first,
    )
    assert number.evaluate("e => getComputedStyle(e).textAlign") == "right"
    assert name.evaluate("e => getComputedStyle(e).textAlign") == "left"
    assert page.locator("table.dataframe th mjx-container").count() >= 1


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


def test_claims_are_filtered_by_section_verdict_and_words(server, open_page):
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


def test_claims_and_errata_fit_any_width_with_the_verdict_first_on_a_phone(server, open_page):
    page = open_page(f"{server}/claims.html")
    for width in (1280, 1000, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        for box in page.locator(".wide").all():
            assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 1, width
    row = page.locator("#claims-table tbody tr").first
    tops = [row.locator("td").nth(i).bounding_box()["y"] for i in (3, 0, 1, 2)]
    assert tops == sorted(tops)


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_search_finds_a_notebook_and_a_function(scheme, server, open_page):
    site = SITE.as_uri() if scheme == "file" else server
    page = open_page(f"{site}/search.html?q=GATTACA")
    page.wait_for_selector("#search-results li a")
    page.wait_for_timeout(500)
    links = page.locator("#search-results li a").all()
    assert any("08_gattaca" in link.get_attribute("href") for link in links)
    page = open_page(f"{site}/search.html?q=motif_importance")
    page.wait_for_selector("#search-results li a[href*='api/']")


def explorer_machine():
    return next(export.machines())[2]


def test_explorer_shows_the_motif_where_it_was_planted(open_page, screenshot):
    page = open_page(f"{SITE.as_uri()}/explorer.html")
    page.fill("#motif", "")
    page.type("#motif", "gattaca")
    assert page.input_value("#motif") == "GATTACA"
    weights = explorer_machine().weights_
    for motif in ("GATTACA", "ATT", "AGATTACAGATT"):
        page.fill("#motif", motif)
        exact = motif_importance(weights, [motif], scale="firm")[0]
        text = page.inner_text("#message")
        peak, value = re.search(r"position (\d+): Q = ([\d.e-]+),", text).groups()
        assert float(value) == pytest.approx(exact.max(), rel=0.01)
        assert exact[int(peak)] == pytest.approx(exact.max(), rel=0.01)
        assert page.input_value("#length") == str(len(motif))
        if motif == "GATTACA":
            assert abs(int(peak) - 35) <= 3
    page.fill("#motif", "GATTACA")
    box = page.locator("#plot svg").bounding_box()
    middle = box["x"] + 56 + (box["width"] - 66) * 40 / 63
    page.mouse.click(middle, box["y"] + 150)
    assert page.inner_text("#best-at") == "40"
    assert page.locator("#best tbody tr").count() == 10
    assert page.locator("#best button").first.inner_text() == "GATTACA"
    page.locator("#best button").nth(1).click()
    assert page.input_value("#motif") == page.locator("#best .chosen").inner_text() != "GATTACA"
    page.fill("#length", "9")
    assert "GATTACA" in page.input_value("#motif")
    assert len(page.input_value("#motif")) == 9
    screenshot(page, "explorer-length-9")


@pytest.mark.parametrize("motif", ["GATTAC", "ATT", "GATTACA"])
def test_explorer_has_w_beside_q_and_says_the_values_under_the_pointer(open_page, motif):
    page = open_page(f"{SITE.as_uri()}/explorer.html#motif={motif}&position=20")
    assert page.input_value("#position") == "20"
    weights = explorer_machine().weights_
    Q = motif_importance(weights, [motif], scale="firm")[0]
    words = [motif[i : i + 6] for i in range(max(1, len(motif) - 5))]
    w = np.max(
        [
            weights.dense(len(word))[i : i + len(Q), int("".join(map(str, encode([word])[0])), 4)]
            for i, word in enumerate(words)
        ],
        axis=0,
    )
    box = page.locator("#plot svg").bounding_box()
    for j in (0, 33, len(Q) - 1):
        x = box["x"] + 56 + (box["width"] - 66) * j / (len(Q) - 1)
        page.mouse.move(x, box["y"] + 100)
        text = page.inner_text("#values").replace("−", "-")
        found = re.match(r"At (\d+): Q = (\S+), w = (\S+);", text).groups()
        assert int(found[0]) == j
        np.testing.assert_allclose(float(found[1]), Q[j], rtol=0.01, atol=2e-5)
        np.testing.assert_allclose(float(found[2]), w[j], rtol=0.01, atol=2e-5)
    page.mouse.move(box["x"] + 10, box["y"] - 50)
    assert page.inner_text("#values").startswith("At 20:")


def test_explorer_keeps_its_state_in_the_address(open_page):
    page = open_page(f"{SITE.as_uri()}/explorer.html")
    page.select_option("#machine", "1")
    page.fill("#motif", "ATTAC")
    page.fill("#position", "30")
    page.wait_for_url("**#machine=1&motif=ATTAC&position=30")  # is told a little later
    again = open_page(page.url)
    for field in ("machine", "motif", "position"):
        assert again.input_value(f"#{field}") == page.input_value(f"#{field}")
    assert again.inner_text("#values") == page.inner_text("#values")
    again.evaluate("location.hash = 'machine=0&motif=GATTACA'")
    again.wait_for_function("document.getElementById('machine').value === '0'")
    assert again.input_value("#motif") == "GATTACA"


def test_explorer_takes_spaces_and_shows_nothing_old_after_an_error(open_page):
    page = open_page(f"{SITE.as_uri()}/explorer.html")
    page.fill("#motif", " GAUU aca ")
    text = page.inner_text("#message")
    assert text.startswith("GATTACA is most important")
    assert "Spaces are left out. U is read as T." in text
    wrong = [("#motif", "GATTAXA", "not X"), ("#motif", "A" * 21, "this one has 21")]
    wrong += [("#length", "0", "from 1 to 20"), ("#length", "21", "from 1 to 20")]
    for field, value, said in wrong:
        page.fill("#motif", "GATTACA")
        assert page.locator("#best tbody tr").count() == 10
        page.fill(field, value)
        assert said in page.inner_text("#message")
        assert page.locator("#best tbody tr, #plot svg").count() == 0
        assert page.inner_text("#values") == ""
        page.set_viewport_size({"width": 900, "height": 900})  # nothing old is drawn again
        assert page.locator("#plot svg").count() == 0
    page.fill("#motif", "GATTACA")
    page.fill("#position", "99")
    assert "are 0 to 63" in page.inner_text("#message")


def test_explorer_says_what_a_motif_is_and_has_the_unseen_motif(open_page):
    page = open_page(f"{SITE.as_uri()}/explorer.html")
    for bad in ("GATTAXA", ""):
        page.fill("#motif", bad)
        assert "each of A, C, G, T" in page.inner_text("#message")
    options = page.locator("#machine option").all_inner_texts()
    assert len(options) == 2 + len(list((ROOT / "data").glob("splice_[ad]*.tsv.gz")))
    for i in range(len(options)):
        page.select_option("#machine", str(i))
        assert "most important at position" in page.inner_text("#message")
    page.select_option("#machine", label=options[1])
    position = int(re.search(r"position (\d+)", page.inner_text("#message"))[1])
    assert abs(position - 35) <= 3


@pytest.fixture
def moved(open_page):
    """A function that moves the sliders of a world, and returns the bars."""
    page = open_page(f"{SITE.as_uri()}/sliders.html")

    def bars(world, *values):
        box = page.locator(f".slider[data-world={world}]")
        for slider, value in zip(box.locator("input").all(), values, strict=True):
            slider.fill(str(value))
        numbers = [float(e.get_attribute("data-value")) for e in box.locator(".value").all()]
        return dict(zip(box.locator(".name").all_inner_texts(), numbers, strict=True))

    return bars


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.8])
def test_slider_of_the_proxy(moved, rho):
    Q = firm_linear([1, 0], [[1, rho], [rho, 1]])
    bars = moved("proxy", rho)
    np.testing.assert_allclose([bars["Q of x₁"], bars["Q of x₂"]], Q, atol=1e-12)


@pytest.mark.parametrize(("rho", "penalty"), [(0.9, 0.3), (0.5, 0.05)])
def test_slider_of_lasso_and_ridge(moved, rho, penalty):
    rng = np.random.default_rng(0)
    Z = np.linalg.qr(rng.normal(size=(1000, 3)) - 0.0)[0] * np.sqrt(1000)  # exactly uncorrelated
    X = np.column_stack([Z[:, 0], rho * Z[:, 0] + np.sqrt(1 - rho**2) * Z[:, 1]])
    y = Z[:, 0] + Z[:, 2]
    options = {"fit_intercept": False, "tol": 1e-12}
    models = {"lasso": Lasso(penalty, **options), "ridge": Ridge(1000 * penalty, **options)}
    bars = moved("copy", rho, penalty)
    for name, model in models.items():
        w = model.fit(X, y).coef_
        found = [bars[f"{name}, {what} of x{i}"] for what in "wQ" for i in "₁₂"]
        expected = [*w, *firm_linear(w, [[1, rho], [rho, 1]])]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("distances", [(1, 6), (0.5, 2)])
def test_slider_of_the_distance(moved, distances):
    X, y = two_gaussians(100_000, shift=(*distances, 0), random_state=0)
    Q = firm(y, X, features=[0, 1], method="slope").importances
    bars = moved("distance", *distances)
    for i, name in enumerate("₁₂"):
        assert bars[f"slope times sd of x{name}"] == pytest.approx(Q[i], abs=0.01)
        assert bars[f"slope of x{name}"] == pytest.approx(Q[i] / X[:, i].std(), abs=0.01)


@pytest.mark.parametrize(("bend", "mean"), [(0.5, 0.0), (-0.3, 1.5)])
def test_slider_of_the_bend(moved, bend, mean):
    x, weight = np.polynomial.hermite_e.hermegauss(20)
    X = (x + mean)[:, None]
    exact = firm(X[:, 0] + bend * X[:, 0] ** 2, X, rows="population", sample_weight=weight)
    taylor = firm_taylor([1 + 2 * bend * mean], [[1.0]])
    bars = moved("bend", bend, mean)
    assert bars["exact Q"] == pytest.approx(abs(exact.importances[0]), abs=1e-9)
    assert bars["first order"] == pytest.approx(abs(taylor[0]), abs=1e-12)
