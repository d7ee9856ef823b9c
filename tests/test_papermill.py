"""papermill on its own: every notebook, from any folder, with help and with advice."""

import os
import subprocess
import sys

import nbformat
import papermill
import papermill.cli
import pytest
from click.testing import CliRunner

from workflow import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GATTACA = str(ROOT / "notebooks" / "08_gattaca.ipynb")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_has_a_type_a_default_and_a_meaning(path):
    parameters = papermill.inspect_notebook(path)
    assert parameters
    for parameter in parameters.values():
        assert parameter["inferred_type_name"].split("[")[0] in {
            "int",
            "float",
            "bool",
            "str",
            "list",
        }
        assert parameter["default"]
        assert len(parameter["help"]) > 5


def test_help_shows_them():
    shown = CliRunner().invoke(papermill.cli.papermill, [GATTACA, "--help-notebook"]).output
    expected = "degree: int (default 8) longest substring that the kernel compares"
    assert expected in " ".join(shown.split())


def test_it_runs_from_another_folder(tmp_path):
    few = ["-p", "degree", "6", "-p", "n", "200", "-y", "full: false"]
    ran = subprocess.run(
        [sys.executable, "-m", "papermill", GATTACA, "out.ipynb", *few],
        cwd=tmp_path,
        env=os.environ | {"FIRMLIB_OUTPUT": str(tmp_path / "made")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert any("rank_firm" in str(cell.get("outputs")) for cell in cells)
    assert (tmp_path / "made" / "metrics.json").exists()


def test_text_for_a_truth_value_stops_with_advice(output):
    arguments = [GATTACA, str(output / "out.ipynb"), "-p", "full", "false"]
    error = str(CliRunner().invoke(papermill.cli.papermill, arguments).exception)
    assert "parameter full='false' is text, expected bool" in error
    assert '-y "full: false"' in error
