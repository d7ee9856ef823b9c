"""The two pages to play with, the explorer of motifs and the sliders, against firmlib."""

import re

import numpy as np
import pytest
from sklearn.linear_model import Lasso, Ridge

from docs.site import export
from firmlib import firm
from firmlib.datasets import two_gaussians
from firmlib.normal import firm_linear, firm_taylor
from firmlib.strings import encode, motif_importance
from workflow import ROOT

from .conftest import SITE


@pytest.fixture
def weights():
    return next(export.machines())[2].weights_


def expected(weights, motif):
    """Q at each position, and w, of a motif longer than the model's words of its best part."""
    Q = motif_importance(weights, [motif], scale="firm")[0]
    parts = [motif[i : i + 6] for i in range(max(1, len(motif) - 5))]
    codes = [int("".join(map(str, encode([part])[0])), 4) for part in parts]
    w = [weights.dense(len(parts[i]))[i : i + len(Q), code] for i, code in enumerate(codes)]
    return Q, np.max(w, axis=0)


def test_explorer_shows_q_and_w_of_a_motif_and_the_best_motifs_at_a_position(
    open_page, screenshot, weights
):
    page = open_page(f"{SITE.as_uri()}/explorer.html#motif=GATTACA&position=20")
    assert page.input_value("#position") == "20"
    page.fill("#motif", "")
    page.type("#motif", "gattaca")
    assert page.input_value("#motif") == "GATTACA"
    for motif in ("ATT", "GATTAC", "AGATTACAGATT", "GATTACA"):
        page.fill("#motif", motif)
        page.fill("#position", "20")
        Q, w = expected(weights, motif)
        peak, value = re.search(
            r"position (\d+): Q = ([\d.e-]+),", page.inner_text("#message")
        ).groups()
        assert float(value) == pytest.approx(Q.max(), rel=0.01)
        assert Q[int(peak)] == pytest.approx(Q.max(), rel=0.01)
        assert page.input_value("#length") == str(len(motif))
        box = page.locator("#plot svg").bounding_box()
        for j in (0, 33, len(Q) - 1):
            x = box["x"] + 56 + (box["width"] - 66) * j / (len(Q) - 1)
            page.mouse.move(x, box["y"] + 100)
            text = page.inner_text("#values").replace("−", "-")
            at, *found = re.match(r"At (\d+): Q = (\S+), w = (\S+);", text).groups()
            assert int(at) == j
            np.testing.assert_allclose([*map(float, found)], [Q[j], w[j]], rtol=0.01, atol=2e-5)
        page.mouse.move(box["x"] + 10, box["y"] - 50)
        assert page.inner_text("#values").startswith("At 20:")
    assert abs(int(peak) - 35) <= 3
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


def test_explorer_has_every_model_and_shows_nothing_old_after_an_error(open_page):
    page = open_page(f"{SITE.as_uri()}/explorer.html")
    page.fill("#motif", " GAUU aca ")
    text = page.inner_text("#message")
    assert text.startswith("GATTACA is most important")
    assert "Spaces are left out. U is read as T." in text
    wrong = [("#motif", "GATTAXA", "not X"), ("#motif", "A" * 21, "this one has 21")]
    wrong += [("#motif", bad, "each of A, C, G, T") for bad in ("GATTAXA", "")]
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
    options = page.locator("#machine option").all_inner_texts()
    assert len(options) == 2 + len(list((ROOT / "data").glob("splice_[ad]*.tsv.gz")))
    for i in range(len(options)):
        page.select_option("#machine", str(i))
        assert "most important at position" in page.inner_text("#message")
    page.select_option("#machine", label=options[1])
    position = int(re.search(r"position (\d+)", page.inner_text("#message"))[1])
    assert abs(position - 35) <= 3  # of a motif in no training example


# The sliders


def proxy(rho):
    Q = firm_linear([1, 0], [[1, rho], [rho, 1]])
    return {"Q of x₁": Q[0], "Q of x₂": Q[1]}


def copy(rho, penalty):
    rng = np.random.default_rng(0)
    Z = np.linalg.qr(rng.normal(size=(1000, 3)))[0] * np.sqrt(1000)  # exactly uncorrelated
    X = np.column_stack([Z[:, 0], rho * Z[:, 0] + np.sqrt(1 - rho**2) * Z[:, 1]])
    options = {"fit_intercept": False, "tol": 1e-12}
    models = {"lasso": Lasso(penalty, **options), "ridge": Ridge(1000 * penalty, **options)}
    bars = {}
    for name, model in models.items():
        w = model.fit(X, Z[:, 0] + Z[:, 2]).coef_
        for what, values in {"w": w, "Q": firm_linear(w, [[1, rho], [rho, 1]])}.items():
            bars |= {f"{name}, {what} of x{i}": v for i, v in zip("₁₂", values, strict=True)}
    return bars


def distance(*shifts):
    X, y = two_gaussians(100_000, shift=(*shifts, 0), random_state=0)
    Q = firm(y, X, features=[0, 1], method="slope").importances
    slopes = {f"slope of x{i}": q / sd for i, q, sd in zip("₁₂", Q, X.std(axis=0), strict=False)}
    return {f"slope times sd of x{i}": q for i, q in zip("₁₂", Q, strict=True)} | slopes


def bend(factor, mean):
    x, weight = np.polynomial.hermite_e.hermegauss(20)
    X = (x + mean)[:, None]
    exact = firm(X[:, 0] + factor * X[:, 0] ** 2, X, rows="population", sample_weight=weight)
    taylor = firm_taylor([1 + 2 * factor * mean], [[1.0]])
    return {"exact Q": exact.importances[0], "first order": abs(taylor[0])}


def test_sliders_show_what_firmlib_computes(open_page):
    page = open_page(f"{SITE.as_uri()}/sliders.html")
    settings = {
        proxy: [(-0.6,), (0.0,), (0.8,)],
        copy: [(0.9, 0.3), (0.5, 0.05)],
        distance: [(1, 6), (0.5, 2)],
        bend: [(0.5, 0.0), (-0.3, 1.5)],
    }
    for world, values in settings.items():
        box = page.locator(f".slider[data-world={world.__name__}]")
        for each in values:
            for slider, value in zip(box.locator("input").all(), each, strict=True):
                slider.fill(str(value))
            numbers = [float(e.get_attribute("data-value")) for e in box.locator(".value").all()]
            bars = dict(zip(box.locator(".name").all_inner_texts(), numbers, strict=True))
            for name, value in world(*each).items():
                near = 0.01 if world is distance else 1e-9  # a sample of 100 000 rows
                assert bars[name] == pytest.approx(value, abs=near), (each, name)
