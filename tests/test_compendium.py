"""Guards around the notebooks, pages and files that nbval and the unit tests do not cover."""

import base64
import importlib
import json
import os
import re
import subprocess
import tomllib
from copy import deepcopy
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml

import firmlib
from docs.site import export
from docs.site.build import captions, claims_table, errata_table, gallery, stage, verdict_map
from firmlib.compendium import claims
from tests import mutants, mutants_library
from workflow import ROOT
from workflow import ledger as pages
from workflow.accept import PICTURE, with_strip
from workflow.compare import compare
from workflow.environment import environment
from workflow.examples import picture, with_outputs
from workflow.manifest import codecheck, makers, manifest
from workflow.run import tidy

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LEDGER = json.loads((ROOT / "data" / "claims.json").read_text())


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_no_cell_shows_an_error_or_stderr(notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert outputs
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


def test_sorts_are_stable(notebook):
    """What orders equal values otherwise is the CPU."""
    source = "\n".join(cell.source for cell in code_cells(notebook))
    sorts = re.findall(r"\b(?:argsort|sort_values|nlargest|argpartition)\(.*", source)
    assert not [line for line in sorts if 'kind="stable"' not in line]


def test_notebooks_carry_no_traces_of_a_run_and_are_folded_alike(notebook):
    assert nbformat.writes(tidy(deepcopy(notebook))) == nbformat.writes(notebook)
    folded = [
        c.source for c in notebook.cells if c.metadata.get("jupyter", {}).get("source_hidden")
    ]
    assert all(re.search(r"require\(|import |claims\.|figures\.save\(", s) for s in folded)
    assert folded[0] == code_cells(notebook)[1].source  # the parameters themselves stay in sight
    assert not re.search(r"/(home|Users|root|tmp)/", nbformat.writes(notebook))


def test_notebooks_have_commented_parameters_and_a_check(notebook):
    cells = code_cells(notebook)
    assert cells[0].metadata.get("tags") == ["parameters"]
    for line in cells[0].source.splitlines():
        assert re.fullmatch(r"\w+: \w+(\[\w+\])? = .+  # .+", line), line
    names = re.findall(r"^(\w+):", cells[0].source, re.M)
    assert set(re.findall(r'require\("(\w+)"', cells[1].source)) == set(names)


def test_mutants_find_their_place():
    """Whether they are noticed is for `make mutants`, which takes long."""
    for mutant in mutants.MUTANTS:
        assert mutants.changed(*mutant)
    assert {name for name, _, _ in mutants.MUTANTS} == {path.stem for path in NOTEBOOKS}
    assert not mutants_library.lost()
    for tests in mutants_library.MUTANTS:
        for word in tests.partition(" -k ")[0].split():
            assert (ROOT / "tests" / f"test_{word}.py").exists()


def test_ledger_lists_all_claims_and_none_is_open_whose_notebook_exists():
    assert [claim["id"] for claim in LEDGER] == [claim.id for claim in claims.registry()]
    for claim in LEDGER:
        assert claim["verdict"] in claims.VERDICTS
        assert len(claim["statement"]) <= claims.LONGEST, claim["id"]
        if claim["verdict"] != "open":
            assert (ROOT / claim["notebook"]).exists(), claim["id"]


def test_readme_shows_the_ledger_and_what_its_example_prints_and_draws(tmp_path):
    readme = (ROOT / "README.md").read_text()
    assert with_outputs(with_strip(readme, LEDGER)) == readme
    (tmp_path / PICTURE.name).write_bytes(picture())
    assert compare(tmp_path / PICTURE.name, PICTURE) == []


def test_the_page_of_claims_shows_the_ledger_and_the_misprints():
    misprints = json.loads((ROOT / "data" / "misprints.json").read_text())
    assert pages.page(LEDGER, misprints) == (ROOT / "docs" / "claims.md").read_text()


def test_what_nbval_just_made_is_what_is_committed():
    fresh = os.environ.get("FIRMLIB_FRESH")
    if fresh is None:
        pytest.skip("needs the outputs of nbval's run: make test")
    made = sorted(Path(fresh, "data").glob("*.csv")) + sorted(Path(fresh, "figures").glob("*.png"))
    committed = {p.stem for p in (ROOT / "figures").glob("*")}
    assert {path.stem for path in made} == committed
    assert [d for path in made for d in compare(path, ROOT / path.parent.name / path.name)] == []
    ledger = claims.collect(Path(fresh, "claims"))
    assert ledger == LEDGER


def test_environments_are_what_make_lock_writes():
    assert (ROOT / "environment.yml").read_text() == environment()
    assert (ROOT / ".binder" / "environment.yml").read_text() == environment("..")


def test_lock_has_hashes_and_no_address():
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search("://|index-url", lock)
    assert [b for b in re.split(r"\n(?=[a-z0-9])", lock) if "--hash=sha256:" not in b] == []


@pytest.mark.filterwarnings("ignore:.*rows are few:UserWarning")
def test_the_guide_shows_what_its_code_prints():
    guide = (ROOT / "docs" / "guide.md").read_text()
    assert guide.count("```text") >= 6
    assert with_outputs(guide) == guide


def test_the_guides_page_has_every_public_name_and_no_other():
    guide = (ROOT / "docs" / "guide.md").read_text()
    page = guide[guide.index("| the library on a page |") :].split("\n\n")[0]
    names = [n for n in re.findall(r"`(\w+)[`(]", page) if n != "firmlib"]
    homes = "", ".binary", ".datasets", ".expansion", ".features", ".normal", ".scores", ".strings"
    homes = [importlib.import_module(f"firmlib{home}") for home in homes]
    assert [name for name in names if not any(hasattr(home, name) for home in homes)] == []
    modules = set(re.findall(r"`firmlib\.(\w+)`", page))
    missing = set(firmlib.__all__) | set(firmlib.strings.__all__)
    missing -= {*names, *modules, "ConditionalScore", "Unexplained"}
    assert missing <= {"FirmResult", "decode", "encode", "wds_diagonal"}


# What a journal, Zenodo, CODECHECK and Binder read


def test_citation_agrees_with_project_and_changelog():
    """`.ci/run` validates it against its schema, with cffconvert."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version, released = citation["version"], citation["date-released"]
    assert version == firmlib.__version__
    assert f"\n## [{version}] – {released}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert citation["title"].startswith(f"{project['name']}: ")
    assert citation["license"] == "BSD-3-Clause"
    assert "License :: OSI Approved :: BSD License" in project["classifiers"]
    assert set(citation["keywords"]) & set(project["keywords"])
    [paper] = citation["references"]
    assert paper["title"] == "The Feature Importance Ranking Measure"
    assert paper["doi"] in (ROOT / "docs" / "site" / "cite.md").read_text()


def test_codecheck_lists_every_figure_and_table():
    assert (ROOT / "codecheck.yml").read_text() == codecheck(), "python -m workflow manifest"
    listed = {row["file"] for row in manifest()}
    tracked = subprocess.run(
        ["git", "ls-files", "figures", "data/*.csv"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert set(tracked) <= listed  # nothing tracked, if this is no git repository


def test_codecheck_is_what_its_specification_asks_of_authors():
    """By the rules of CODECHECK's specification 2.0; the rest is for who checks."""
    text = (ROOT / "codecheck.yml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    assert text.startswith("---\n")
    assert config["version"] == "https://codecheck.org.uk/spec/config/2.0/"
    assert all(row["comment"] and (ROOT / row["file"]).exists() for row in config["manifest"])
    assert not re.search("FIXME|TODO|XXXXX", text)


def test_the_container_recipe():
    """What can be said of it where no image can be pulled."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    copied = [name for line in lines if line[0] == "COPY" for name in line[2:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert ["USER", "1000"] in lines  # not root
    assert json.loads(" ".join(lines[-1][1:])) == ["make", "reproduce"]


# What the site is made of; the built pages are tested in a browser


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


def test_the_page_of_the_benchmarks_shows_the_results(monkeypatch):
    folder = ROOT / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    import run

    results = json.loads((folder / "results.json").read_text())
    assert set(results) <= set(run.SCRIPTS)
    assert run.page(results) == (folder / "results.md").read_text()
    assert len((folder / "README.md").read_text().split()) < 900
