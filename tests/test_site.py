"""What the site is made of; the built pages are tested in a browser, by `make test-browser`."""

import base64
import json

import nbformat
import numpy as np
import yaml

from docs.site import export
from docs.site.build import captions, claims_table, errata_table, gallery, stage, verdict_map
from workflow import ROOT
from workflow.manifest import makers

LEDGER = json.loads((ROOT / "data" / "claims.json").read_text())


def test_tables_and_gallery_have_all_claims_and_figures():
    table = claims_table(LEDGER)
    assert table.count("<tr data-section") == len(LEDGER)
    corrected = [claim for claim in LEDGER if claim["verdict"] == "corrected"]
    assert errata_table(LEDGER).count("<a href=") == len(corrected)
    figures = {path.stem for path in (ROOT / "figures").glob("*.png")}
    assert set(makers()) == figures
    assert gallery(tuple(figures)).count("<img") == len(figures)
    assert verdict_map(LEDGER).count("data-says") == len(LEDGER)


def test_stage_gives_every_figure_its_number_words_and_files(tmp_path):
    stage(tmp_path / "source")
    words = yaml.safe_load((ROOT / "docs" / "site" / "figures.yml").read_text())
    assert set(words) == set(makers())
    for name, maker in makers().items():
        notebook = nbformat.read(tmp_path / "source/notebooks" / f"{maker.notebook}.ipynb", 4)
        cells = [cell.source for cell in notebook.cells]
        at = cells.index(f'<a id="cell-{name}"></a>')
        assert f'"{name}"' in cells[at + 1]
        [shown] = [cell for cell in cells if f'<a id="figure-{name}"></a>' in cell]
        about = captions()[name]
        for text in (f"#cell-{name}", f"{name}.svg", f"{name}.csv", about["alt"], about["caption"]):
            assert text in shown
        assert f"**Figure {int(maker.notebook[:2])}." in shown
        assert not any("image/png" in o.get("data", {}) for o in notebook.cells[at + 1].outputs)
    assert len({about["number"] for about in captions().values()}) == len(words)
    pages = "".join(page.read_text() for page in (tmp_path / "source").glob("*.md"))
    assert "@claims@" not in pages


def test_packed_tables_unpack_to_themselves():
    table = np.random.default_rng(0).normal(size=(5, 16))
    packed = export.packed(table)
    unpacked = np.frombuffer(base64.b64decode(packed["data"]), "<i2") * packed["factor"]
    np.testing.assert_allclose(unpacked, table.ravel(), atol=np.abs(table).max() / 60_000)
