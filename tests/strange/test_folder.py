"""The two commands and a sweep in a folder of any name, under any locale and umask."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.tiny import write_compendium, write_notebook
from workflow import ROOT

CELLS = [
    "n: int = 1  # a number\nname: str = 'ü'  # a letter",
    """from firmlib.compendium import claims, metrics
metrics.record(square=n * n)
print("größer", "σ", name)
claims.record("2.3-variance", True, finding="σ = 1")""",
]
GRID = "notebook: 03_tiny\nparameters: {n: [2, 3], name: [é]}  # größer\nmetrics: [square]\n"


@pytest.fixture(params=["it's a folder, größer als 日本 $HOME {x} #1", "plain"])
def compendium(tmp_path, request):
    """A compendium of one tiny notebook, with this environment and this code."""
    folder = tmp_path / request.param
    for name in ("workflow", "firmlib"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("Makefile", "requirements.lock", "codecheck.yml"):
        shutil.copy(ROOT / name, folder / name)
    write_compendium(folder)
    (folder / ".venv").symlink_to(sys.prefix)
    write_notebook(folder / "notebooks" / "03_tiny.ipynb", *CELLS)
    (folder / "a grid, größer.yaml").write_text(GRID, encoding="utf-8")
    return folder


def make(folder, *arguments, **environment):
    command = ["make", "READY=.venv/pyvenv.cfg", *arguments]  # as if .venv had been made here
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",  # what make says of itself is in the letters of the locale
        check=False,
        umask=0o027,
    )


@pytest.fixture
def latin(tmp_path):
    """A locale whose letters are Latin-1."""
    if not shutil.which("localedef"):
        pytest.skip("no localedef")
    made = tmp_path / "locales"
    made.mkdir()
    command = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", made / "de_DE.ISO-8859-1"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("localedef has no sources to make a locale from (Debian's package locales)")
    return {"LOCPATH": str(made), "LC_ALL": "de_DE.ISO-8859-1"}


def test_reproduce_accept_and_sweep(compendium, request):
    environment = request.getfixturevalue("latin") if compendium.name == "plain" else {}
    new = make(compendium, "reproduce", **environment)
    assert "03_tiny.ipynb: output of cell 1 differs" in new.stdout, new.stdout
    assert make(compendium, "accept", **environment).returncode == 0
    again = make(compendium, "reproduce", "FORCE=1", **environment)
    assert again.returncode == 0, again.stdout
    assert "agrees with what is committed" in again.stdout
    swept = make(compendium, "sweep", "GRID=a grid, größer.yaml", **environment)
    assert swept.returncode == 0, swept.stdout
    [table] = compendium.glob("build/sweeps/*/results.csv")
    assert table.stat().st_mode & 0o777 == 0o640
    rows = table.read_text(encoding="utf-8").splitlines()[1:]
    assert [row.split(",")[1:4] for row in rows] == [["2", "é", "4"], ["3", "é", "9"]]
