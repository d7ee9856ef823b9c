"""Odd surroundings: set-ups that fail, folders of any name, any locale, other line ends."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from importlib.metadata import distribution

import pytest

from tests.tiny import write_compendium, write_notebook
from workflow import ROOT

FLIT = distribution("flit_core")  # which installs this folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder that needs flit_core alone, found in a folder of wheels and not on the network."""
    wheels, folder = tmp_path / "wheels", tmp_path / "a folder, größer"
    wheel = wheels / f"flit_core-{FLIT.version}-py3-none-any.whl"
    wheels.mkdir()
    with zipfile.ZipFile(wheel, "w") as zipped:
        for file in FLIT.files:
            if file.suffix != ".pyc":
                zipped.write(FLIT.locate_file(file), str(file))
    needed = "workflow/__init__.py workflow/__main__.py workflow/setup.py firmlib/__init__.py"
    for name in f"{needed} Makefile pyproject.toml README.md LICENSE".split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "requirements.lock").write_text(f"flit-core=={FLIT.version} --hash=sha256:{digest}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", wheels.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    return folder


def start(folder, *options):
    return subprocess.Popen(
        ["make", "setup", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def setup(folder, *options):
    process = start(folder, *options)
    out, _ = process.communicate()
    return process.returncode, out


def works(folder):
    python = folder / ".venv" / "bin" / "python"
    return subprocess.run([python, "-c", "import flit_core"], check=False).returncode == 0


def environments(folder):
    return sorted(path.name for path in folder.glob(".venv-*"))


def test_it_is_made_once_and_survives_a_set_up_that_fails(project):
    assert re.search(r"Setting up \.venv with Python 3\.1\d", setup(project)[1])
    assert works(project)
    [made] = environments(project)
    # Neither a new time stamp nor one in the future is a reason.
    for ahead in (1, 3600):
        os.utime(project / "requirements.lock", (time.time() + ahead,) * 2)
        os.utime(project / "pyproject.toml", (time.time() + ahead,) * 2)
        assert "Setting up" not in setup(project)[1]
    # The lock changes, and what it names cannot be had.
    lock = (project / "requirements.lock").read_text()
    with (project / "requirements.lock").open("a") as file:
        file.write(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    code, out = setup(project)
    assert code != 0
    assert "The set-up failed; the environment that was there is untouched" in out
    assert works(project)
    assert environments(project) == [made]
    # The lock as it was needs nothing; with a comment more all is new, and the old one gone.
    (project / "requirements.lock").write_text(lock)
    assert "Setting up" not in setup(project)[1]
    (project / "requirements.lock").write_text(lock + "# a comment\n")
    assert setup(project)[0] == 0
    assert works(project)
    [new] = environments(project)
    assert new != made


def test_two_at_once_make_one_and_a_kill_leaves_none_behind(project):
    killed = start(project)
    while not environments(project):
        time.sleep(0.01)
    os.killpg(killed.pid, 9)
    killed.communicate()
    assert not (project / ".venv").exists()
    both = [start(project), start(project)]
    outs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert sum("Setting up" in out for out in outs) == 1
    assert sum("Another set-up is at work" in out for out in outs) == 1
    assert works(project)
    assert len(environments(project)) == 1


def test_a_folder_that_was_moved_is_set_up_again(project):
    assert setup(project)[0] == 0
    moved = project.rename(project.with_name("moved"))
    assert "Setting up" in setup(moved)[1]
    assert works(moved)


@pytest.mark.parametrize("python", ["/nowhere/python3.11", "false"])
def test_a_python_that_will_not_do_is_refused(project, python):
    code, out = setup(project, f"PYTHON={python}")
    assert code != 0
    assert "Python 3.13 3.12 3.11 is needed" in out
    assert not environments(project)


# The two commands and a sweep


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


# Line ends


def git(*arguments, cwd=ROOT):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True).stdout


@pytest.fixture
def checkout(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("this folder is no checkout of git")
    git("clone", "--quiet", "--config", "core.autocrlf=true", ROOT, tmp_path / "clone")
    return tmp_path / "clone"


def test_line_ends_stay(checkout):
    for name in git("ls-files", "-z", cwd=checkout).decode().split("\0")[:-1]:
        assert (checkout / name).read_bytes() == git("show", f"HEAD:{name}", cwd=checkout), name
