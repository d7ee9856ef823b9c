"""Guards around the notebooks and files that nbval and the unit tests do not cover."""

import importlib
import inspect
import json
import os
import re
import tomllib
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
import yaml

import firmlib
from firmlib.compendium import claims
from tests.mutants import MUTANTS, changed
from workflow import ROOT
from workflow import ledger as pages
from workflow.accept import PICTURE, with_strip
from workflow.compare import compare
from workflow.environment import environment
from workflow.examples import picture, with_outputs
from workflow.run import tidy

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LEDGER = json.loads((ROOT / "data" / "claims.json").read_text())


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks_and_figures():
    assert NOTEBOOKS
    assert list((ROOT / "figures").glob("*.png"))


def test_every_code_cell_was_executed_in_order(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


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
    for mutant in MUTANTS:
        assert changed(*mutant)
    assert {name for name, _, _ in MUTANTS} == {path.stem for path in NOTEBOOKS}


def test_recorded_claims_have_a_place_to_link_to():
    for claim in LEDGER:
        if claim["verdict"] != "open":
            assert f'<a id=\\"{claim["id"]}\\"></a>' in (ROOT / claim["notebook"]).read_text()


def test_ledger_lists_all_claims_and_none_is_open_whose_notebook_exists():
    assert [claim["id"] for claim in LEDGER] == [claim.id for claim in claims.registry()]
    for claim in LEDGER:
        assert claim["verdict"] in claims.VERDICTS
        assert len(claim["statement"]) <= claims.LONGEST, claim["id"]
        if claim["verdict"] != "open":
            assert (ROOT / claim["notebook"]).exists(), claim["id"]


def test_readme_shows_the_ledger():
    readme = (ROOT / "README.md").read_text()
    assert with_strip(readme, LEDGER) == readme


def test_readme_shows_what_its_example_prints_and_draws(tmp_path):
    readme = (ROOT / "README.md").read_text()
    assert with_outputs(readme) == readme
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


def test_every_figure_comes_as_png_and_svg_with_its_data():
    for path in (ROOT / "figures").glob("*"):
        assert path.with_suffix(".png").exists()
        assert path.with_suffix(".svg").exists()
        assert (ROOT / "data" / f"{path.stem}.csv").exists()


def locked() -> dict[str, str]:
    lock = (ROOT / "requirements.lock").read_text()
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", lock, re.M))


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.match(r"[\w-]+", entry)[0] for entries in lists for entry in entries}
    return {name.lower().replace("_", "-") for name in names} - {"firmlib"}


def test_environment_pins_what_is_declared_as_the_lock_does():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    pins = dict(d.split("=") for d in conda if "=" in d)
    pins |= dict(d.split("==") for d in pip["pip"] if "==" in d)
    assert pins.pop("python") == "3.11"
    assert pins == {name: locked()[name] for name in declared()}


def test_environment_is_what_make_lock_writes():
    assert (ROOT / "environment.yml").read_text() == environment()


def test_lock_has_hashes_and_no_address():
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert "index-url" not in lock
    for block in re.split(r"\n(?=[a-z0-9])", lock):
        assert "--hash=sha256:" in block, block[:80]


def test_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == firmlib.__version__
    assert citation["references"][0]["title"] == "The Feature Importance Ranking Measure"
    assert f"## [{firmlib.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.filterwarnings("ignore:.*rows are few:UserWarning")
def test_the_guide_shows_what_its_code_prints():
    guide = (ROOT / "docs" / "guide.md").read_text()
    assert guide.count("```text") >= 6
    assert with_outputs(guide) == guide


def test_every_name_on_the_guides_page_has_an_example():
    guide = (ROOT / "docs" / "guide.md").read_text()
    page = guide[guide.index("| the library on a page |") :].split("\n\n")[0]
    names = [n for n in re.findall(r"`(\w+)[`(]", page) if n != "firmlib"]
    assert len(names) > 40
    homes = "", ".binary", ".datasets", ".expansion", ".features", ".normal", ".scores", ".strings"
    modules = [importlib.import_module(f"firmlib{home}") for home in homes]
    for name in names:
        [*homes] = {id(o): o for m in modules if (o := getattr(m, name, None))}.values()
        assert homes, f"{name} does not exist"
        heads = [inspect.getmodule(o).__doc__ or "" for o in homes]  # several builders in one
        shown = any(re.search(rf">>> .*\b{name}\(", head) for head in heads)
        own = any(re.search(r">>> |``.*=", o.__doc__ or "") for o in homes)
        assert shown or own, f"{name} has no example"
    modules = set(re.findall(r"`firmlib\.(\w+)`", page))
    missing = set(firmlib.__all__) | set(firmlib.strings.__all__)
    missing -= {*names, *modules, "ConditionalScore", "Unexplained"}
    assert missing <= {"FirmResult", "decode", "encode", "wds_diagonal"}
