"""What the site is made of; the built pages are tested in a browser, by `make test-browser`."""

import base64
import importlib.util
import json
import re
import shlex

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml

from workflow import ROOT, site_pages
from workflow.manifest import makers
from workflow.site import claims_table, errata_table, gallery, stage
from workflow.site_pages import captions, how_to_run, parameters

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LEDGER = json.loads((ROOT / "data" / "claims.json").read_text())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_instructions_name_every_parameter_and_keep_its_type(path):
    notebook = nbformat.read(path, as_version=4)
    [cell] = [c for c in notebook.cells if c.metadata.get("tags") == ["parameters"]]
    defaults = {}
    exec(cell.source, defaults)
    given = {}
    box = how_to_run(path, notebook)
    words = shlex.split(re.search(r"```sh\n(.*?)```", box, re.S)[1].replace("\\\n", " "))
    options = iter(words[3:])
    for option in options:  # as papermill reads them: -r is text, -y is YAML
        given |= {next(options): next(options)} if option == "-r" else yaml.safe_load(next(options))
    assert given == {name: defaults[name] for name, *_ in parameters(notebook)}
    assert set(given) == set(defaults) - {"__builtins__", "__annotations__"}
    assert f"downloads/{path.name}" in box


def test_tables_and_gallery_have_all_claims_and_figures():
    table = claims_table(LEDGER, one_page=False)
    assert table.count("<tr data-section") == len(LEDGER)
    corrected = [claim for claim in LEDGER if claim["verdict"] == "corrected"]
    assert errata_table(LEDGER, one_page=True).count('<a href="#') == len(corrected)
    figures = {path.stem for path in (ROOT / "figures").glob("*.png")}
    assert set(makers()) == figures
    assert gallery(one_page=False).count("<img") == len(figures)


def test_stage_gives_every_figure_its_number_words_and_files(tmp_path):
    stage(tmp_path / "source")
    words = yaml.safe_load((ROOT / "site" / "figures.yml").read_text())
    assert set(words) == set(makers())
    for name, maker in makers().items():
        notebook = nbformat.read(tmp_path / "source/notebooks" / f"{maker.notebook}.ipynb", 4)
        cells = [cell.source for cell in notebook.cells]
        at = cells.index(f'<a id="cell-{name}"></a>')
        assert f'"{name}"' in cells[at + 1]
        about = captions()[name]
        for text in (f"#cell-{name}", f"{name}.svg", f"{name}.csv", about["alt"], about["caption"]):
            assert text in cells[at + 2]
        assert f"**Figure {int(maker.notebook[:2])}." in cells[at + 2]
        assert not any("image/png" in o.get("data", {}) for o in notebook.cells[at + 1].outputs)
    assert len({about["number"] for about in captions().values()}) == len(words)
    pages = "".join(page.read_text() for page in (tmp_path / "source").glob("*.md"))
    assert "@claims@" not in pages


def test_tables_have_numbers_to_the_right_and_math_in_their_heads():
    frame = pd.DataFrame(
        {"$w$": [1.5, -2], "name": ["a", "b 2"], "share": ["3 %", "–"]}, ["x", "y"]
    )
    html = site_pages.table(frame.to_html())
    right = ' class="number"'
    assert re.findall(r"<td(.*?)>", html) == 2 * [right, "", right]
    w = r'<span class="math">\(w\)</span>'
    heads = re.findall("<th(.*?)>(.*?)</th>", html.split("<thead>")[1])
    assert heads[:4] == [("", ""), (right, w), ("", "name"), (right, "share")]
    assert site_pages.table("<p>5 $ and 6 $</p>") == "<p>5 $ and 6 $</p>"
    assert site_pages.table("<table><tr><td>1</td></tr></table>").count("number") == 0


def test_packed_tables_unpack_to_themselves():
    spec = importlib.util.spec_from_file_location("export", ROOT / "site" / "export.py")
    export = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(export)
    table = np.random.default_rng(0).normal(size=(5, 16))
    packed = export.packed(table)
    unpacked = np.frombuffer(base64.b64decode(packed["data"]), "<i2") * packed["factor"]
    np.testing.assert_allclose(unpacked, table.ravel(), atol=np.abs(table).max() / 60_000)
