"""Reproduce and accept, on a compendium of two tiny notebooks in a folder of its own."""

import fcntl
import json
import os
import re
import sys
import time
from pathlib import Path

import nbformat
import pytest

from firmlib.compendium import claims
from workflow import accept, engine, packages, reproduce, run

GOOD = """from firmlib.compendium import claims
claims.record("2.3-variance", True, finding="x = 1")"""


@pytest.fixture
def compendium(tmp_path, monkeypatch):
    tmp_path = tmp_path / "a folder, größer"
    tmp_path.mkdir()
    build = tmp_path / "build"
    for module in (reproduce, accept):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "BUILD", build)
        monkeypatch.setattr(module, "SUMMARY", build / "summary.json")
    monkeypatch.setattr(accept, "README", tmp_path / "README.md")
    monkeypatch.setattr(accept, "CLAIMS", tmp_path / "CLAIMS.md")
    monkeypatch.setenv("FIRMLIB_OUTPUT", "")
    monkeypatch.setattr(packages, "changed", lambda lock: [])  # tested below
    for kind in ("notebooks", "figures", "data"):
        (tmp_path / kind).mkdir()
    (tmp_path / "README.md").write_text("<!-- claims -->\n<!-- /claims -->\n")
    (tmp_path / "data" / "misprints.json").write_text("[]")
    write(tmp_path, GOOD)
    return tmp_path


def write(root, *sources):
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    notebook = run.tidy(nbformat.v4.new_notebook(cells=cells))
    nbformat.write(notebook, root / "notebooks" / "03_tiny.ipynb")


def test_reproduce_then_accept_then_agree(compendium, capsys):
    before = (compendium / "notebooks" / "03_tiny.ipynb").read_bytes()
    assert reproduce.main() == 1  # nothing is committed yet
    assert "is not committed yet" in capsys.readouterr().out
    assert (compendium / "notebooks" / "03_tiny.ipynb").read_bytes() == before
    assert accept.main() == 0
    ledger = json.loads((compendium / "data" / "claims.json").read_text())
    assert {c["id"] for c in ledger if c["verdict"] == "confirmed"} == {"2.3-variance"}
    assert claims.overview(ledger) in (compendium / "README.md").read_text()
    assert claims.page(ledger, []) == (compendium / "CLAIMS.md").read_text()
    capsys.readouterr()
    assert reproduce.main() == 0  # though nothing had to run
    out = capsys.readouterr().out
    assert "no notebook was executed" in out
    assert "1 confirmed    yes" in out
    assert "agrees with what is committed" in out

    (compendium / "build" / "runs" / "03_tiny" / "run.json").write_text('{"status": "do')
    assert reproduce.main(force=False) == 0
    assert "1 notebooks executed" in capsys.readouterr().out
    assert reproduce.main(force=True) == 0
    assert "1 notebooks executed" in capsys.readouterr().out

    write(compendium, GOOD.replace("x = 1", "x = 2"))
    (compendium / "figures" / "old.png").touch()
    assert reproduce.main() == 1
    out = capsys.readouterr().out
    assert "output of cell 0 differs" in out
    assert "claims.json: 2.3-variance differ" in out
    assert "figures/old.png is committed, but no notebook makes it" in out


def test_a_failing_notebook_is_named_and_not_accepted(compendium, capsys):
    write(compendium, GOOD, "raise ValueError('no such thing')")
    assert reproduce.main() == 1
    out = capsys.readouterr().out
    assert "03_tiny: failed in cell 1: ValueError: no such thing; its traceback: " in out
    assert "no such thing" in Path(re.search("traceback: (.*)", out)[1]).read_text()
    with pytest.raises(SystemExit, match="a notebook failed"):
        accept.main()
    (compendium / "build" / "summary.json").unlink()
    with pytest.raises(SystemExit, match="run `make reproduce`"):
        accept.main()


def test_a_truncated_notebook_is_named(compendium):
    notebook = compendium / "notebooks" / "03_tiny.ipynb"
    notebook.write_text(notebook.read_text()[:-30])
    with pytest.raises(SystemExit, match=r"03_tiny.ipynb is no notebook .*git checkout"):
        reproduce.main()


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_jobs_that_are_none_are_refused(compendium, monkeypatch, jobs):
    monkeypatch.setenv("JOBS", jobs)
    with pytest.raises(SystemExit, match=f"JOBS='{jobs}' must be a whole number, at least 1"):
        reproduce.main()


def test_one_run_at_a_time(compendium, tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="in use by another run"):
            engine.start(reproduce.SNAKEFILE, tmp_path, tmp_path / "runs", [])


def test_tidy_joins_streams_and_drops_time_stamps():
    cell = nbformat.v4.new_code_cell("print(1, 2)")
    cell.metadata = {"papermill": {"duration": 1}, "tags": []}
    cell.outputs = [nbformat.v4.new_output("stream", text=text) for text in ("1", " 2\n")]
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"papermill": {}})
    tidied = run.tidy(notebook)
    assert [output.text for output in tidied.cells[0].outputs] == ["1 2\n"]
    assert tidied.cells[0].metadata == {}
    assert set(tidied.metadata) == {"kernelspec", "language_info"}


def test_tidy_folds_imports_and_the_ledger_and_nothing_else():
    sources = ["import numpy", "x = 1\nclaims.record(\n)", "y = 2", "claims.summary()"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[2].metadata = {"jupyter": {"source_hidden": True}, "tags": ["hide-input", "kept"]}
    folded = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    tidied = run.tidy(nbformat.v4.new_notebook(cells=cells))
    assert [cell.metadata for cell in tidied.cells] == [folded, folded, {"tags": ["kept"]}, folded]


LOCK = """\
one==1.0 ; python_version >= '3' \\
    --hash=sha256:00
two==2.0 ; sys_platform == 'none' \\
    --hash=sha256:00
"""


@pytest.fixture
def venv(tmp_path):
    """An environment of one package, of one file."""
    folder = tmp_path / "lib" / "python3" / "site-packages"
    info = folder / "one-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "one.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Name: one\nVersion: 1.0\n")
    (info / "RECORD").write_text(
        "one.py,sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q,6\none.pyc,,\n"
    )
    (tmp_path / "ready-1").touch()
    return tmp_path


def test_what_is_changed_in_the_environment_is_named(venv):
    folder = venv / "lib" / "python3" / "site-packages"
    assert packages.changed(LOCK, venv) == []
    (folder / "one.py").write_text("x = 2\n")  # of the same size
    os.utime(folder / "one.py", (time.time() + 9,) * 2)
    assert packages.changed(LOCK, venv) == ["one was changed: one.py"]
    (folder / "one.py").write_text("x = 10\n")
    os.utime(folder / "one.py", (0, 0))
    assert packages.changed(LOCK, venv) == ["one was changed: one.py"]
    (folder / "one.py").unlink()
    assert packages.changed(LOCK, venv) == ["one was changed: one.py"]
    other = LOCK.replace("one==1.0", "one==1.1").replace("'none'", f"'{sys.platform}'")
    assert packages.changed(other, venv) == [
        "one is 1.0, the lock has 1.1",
        "two is missing, the lock has 2.0",
    ]
    assert packages.changed("", venv) == ["one is not in the lock"]
