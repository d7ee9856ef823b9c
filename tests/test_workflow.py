"""Reproduce and accept, on a compendium of two tiny notebooks, and what a comparison notices."""

import errno
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import nbformat
import psutil
import pytest

import workflow.__main__
from tests import kill_sweep
from tests.tiny import write_compendium, write_notebook
from workflow import KINDS, ROOT, accept, engine, reproduce, run
from workflow import ledger as pages
from workflow.compare import compare

GOOD = """from firmlib.compendium import claims
claims.record("2.3-variance", True, finding="x = 1")"""


@pytest.fixture
def compendium(tmp_path, monkeypatch):
    tmp_path = tmp_path / "a folder, größer"
    write_compendium(tmp_path)
    build = tmp_path / "build"
    for module in (reproduce, accept):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "BUILD", build)
        monkeypatch.setattr(module, "SUMMARY", build / "summary.json")
    for name in ("README", "CLAIMS", "PICTURE", "GUIDE"):
        page = getattr(accept, name).relative_to(ROOT)
        monkeypatch.setattr(accept, name, tmp_path / page)
    monkeypatch.setenv("FIRMLIB_OUTPUT", "")
    monkeypatch.chdir(tmp_path)  # execute changes it
    (tmp_path / "requirements.lock").touch()
    write(tmp_path, GOOD)
    return tmp_path


def write(root, *sources):
    write_notebook(root / "notebooks" / "03_tiny.ipynb", *sources, parameters=False)


def test_reproduce_then_accept_then_agree(compendium, capsys):
    before = (compendium / "notebooks" / "03_tiny.ipynb").read_bytes()
    assert reproduce.main() == 1  # nothing is committed yet
    assert "is not committed yet" in capsys.readouterr().out
    assert (compendium / "notebooks" / "03_tiny.ipynb").read_bytes() == before
    assert accept.main() == 0
    ledger = json.loads((compendium / "data" / "claims.json").read_text())
    assert {c["id"] for c in ledger if c["verdict"] == "confirmed"} == {"2.3-variance"}
    assert pages.strip(ledger) in (compendium / "README.md").read_text()
    assert pages.page(ledger, []) == (compendium / "docs" / "claims.md").read_text()
    capsys.readouterr()
    assert reproduce.main() == 0
    said = "no notebook was executed.*03_tiny +\\d+ s  agrees +1 confirmed.*agrees with what"
    assert re.search(said, capsys.readouterr().out, re.S)

    (compendium / "build" / "runs" / "03_tiny" / "run.json").write_text('{"status": "do')
    assert reproduce.main() == 0
    assert "1 notebooks executed" in capsys.readouterr().out
    assert reproduce.main("--force") == 0
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
    with pytest.raises(SystemExit, match=r"03_tiny.ipynb is not a notebook .*git checkout"):
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
            engine.execute(tmp_path, {}, "--cores", "1")


def test_tidy_folds_imports_figures_and_the_ledger_and_nothing_else():
    sources = ["import numpy", "x = 1\nclaims.record(\n)", "y = 2", 'figures.save(f, "f", x)']
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[2].metadata = {"jupyter": {"source_hidden": True}, "tags": ["hide-input", "kept"]}
    folded = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    tidied = run.tidy(nbformat.v4.new_notebook(cells=cells))
    assert [cell.metadata for cell in tidied.cells] == [folded, folded, {"tags": ["kept"]}, folded]


def test_one_stream_is_one_output(compendium):
    texts = "import sys\nfor i in range(3):\n    print(i, flush=True)"
    write(compendium, GOOD, texts)
    reproduce.main()
    made = nbformat.read(compendium / "build" / "notebooks" / "03_tiny.ipynb", as_version=4)
    assert [output.text for output in made.cells[1].outputs] == ["0\n1\n2\n"]


def test_a_package_of_another_version_is_named():
    lock = (ROOT / "requirements.lock").read_text()
    assert reproduce.other_versions(lock) == []
    other = re.sub("^(papermill==)", r"\g<1>9.", lock, flags=re.M)
    said, missing = reproduce.other_versions(other + "no-such-package==1.0 \\\n")
    assert re.fullmatch(r"papermill is 2\.\d.*, the lock has 9\.2\.\d.*", said)
    assert missing == "no-such-package is missing, the lock has 1.0"


def test_a_table_of_a_sweep_is_accepted_when_done_and_named_when_outdated(compendium):
    made, data = compendium / "build" / "sweeps" / "g", compendium / "data"
    made.mkdir(parents=True)
    with pytest.raises(SystemExit, match=r"There is no table of g\.yaml"):
        accept.main("g.yaml")
    notebook = compendium / "notebooks" / "03_tiny.ipynb"
    makers = {"name": notebook.stem} | engine.makers(notebook, compendium / "build" / "sources")
    (made / "makers.json").write_text(json.dumps(makers))
    (made / "results.csv").write_text("n,status\n1,failed\n2,done\n")
    with pytest.raises(SystemExit, match="1 points are not done"):
        accept.main("g.yaml")
    (made / "results.csv").write_text("n,status\n1,done\n2,done\n")
    assert accept.main("g.yaml") == 0
    assert (data / "sweep_g.csv").read_text() == "n,status\n1,done\n2,done\n"
    assert reproduce.outdated_tables() == []
    notebook.write_text(notebook.read_text().replace("x = 1", "x = 2"))
    assert reproduce.outdated_tables() == ["sweep_g.csv was made with another notebook"]


# What goes wrong around it


def test_few_files_are_named():
    command = f"ulimit -n 40; {shlex.quote(sys.executable)} -m workflow reproduce 2>&1"
    ran = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=-1, text=True, check=False)
    said = ran.stdout
    assert (ran.returncode, said.count("\n")) == (1, 1)
    assert "Only 40 files may be open at a time; use `ulimit -n 256` or more." in said


@pytest.mark.parametrize("cause", ["ENOSPC", "EROFS", "EACCES"])
def test_a_file_system_that_refuses_is_named(monkeypatch, cause):
    """No space left on device; Read-only file system; Permission denied."""
    number = getattr(errno, cause)
    monkeypatch.setattr(reproduce, "main", Mock(side_effect=OSError(number, "", "build")))
    with pytest.raises(SystemExit, match=f"^{os.strerror(number)}: build$"):
        workflow.__main__.main("reproduce")


def running(folder):
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if str(folder) in str(process.info)]


@pytest.mark.parametrize("seconds", [0.1, 0.4, 1.5, 4.0])
def test_an_interruption_is_one_line_and_leaves_nothing_running(tmp_path, seconds):
    sweep = kill_sweep.write_tiny(tmp_path, 4, seconds=30.0)
    process = subprocess.Popen(
        ["env", "--block-signal=INT", *sweep],  # as make starts it
        cwd=ROOT,
        env=os.environ | {"STARTS": str(tmp_path / "starts"), "JOBS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[0]
    assert said.strip().count("\n") == 0, said
    assert "Traceback" not in said
    assert process.returncode != 0
    kill_sweep.wait_for("the end of what was started", lambda: not running(tmp_path), 10)


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "a"
    workflow.write(target, "old")
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        workflow.write(target, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


# What a comparison notices: a change, a truncation, and no last digit, of any file


NOTEBOOK = ROOT / "notebooks" / "05_linear.ipynb"
LEDGER = ROOT / "data" / "claims.json"


@pytest.fixture
def changed(tmp_path):
    """Return what is said of a copy in which a pattern is replaced, as made and as committed."""

    def compare_with_copy(path, pattern, new):
        copy = tmp_path / path.name
        text = path.read_text()
        copy.write_text(re.sub(pattern, new, text, count=1, flags=re.DOTALL))
        assert copy.read_text() != text
        return compare(copy, path), compare(path, copy)

    return compare_with_copy


@pytest.mark.parametrize(
    ("path", "pattern", "new", "message"),
    [
        (ROOT / "data" / "definition.csv", r"a,1,3\.5", "a,1,3.6", "column .* different"),
        (NOTEBOOK, r'"text": \[\n *"', '"text": [\n"x', "output of cell .* differs"),
        (NOTEBOOK, '"image/png": "', '"image/gif": "', "output of cell .* differs"),
        (LEDGER, '"confirmed"', '"partly"', "1-.* differ"),
        (LEDGER, r"\{.*?\n \},", "", "differ"),  # a claim that is gone
    ],
)
def test_a_change_is_noticed_on_either_side(changed, path, pattern, new, message):
    assert compare(path, path) == []
    for [said] in changed(path, pattern, new):
        assert re.search(f"{path.name}.*{message}", said)


def test_another_picture_is_noticed_and_last_digits_are_not(tmp_path, changed):
    other = tmp_path / "definition.png"
    other.write_bytes((ROOT / "figures" / "stability.png").read_bytes())
    [said] = compare(other, ROOT / "figures" / "definition.png")
    assert "pixels" in said
    table = ROOT / "data" / "definition.csv"
    assert changed(table, r"a,1,3\.5\b", "a,1,3.500000001") == ([], [])


@pytest.mark.parametrize("kind", ["csv", "png", "ipynb", "json"])
def test_what_is_truncated_is_named(tmp_path, kind):
    [whole, *_] = sorted(path for k in KINDS for path in (ROOT / k).glob(f"*.{kind}"))
    half = tmp_path / whole.name
    half.write_bytes(whole.read_bytes()[: len(whole.read_bytes()) // 2])
    [said] = compare(whole, half)
    assert whole.name in said
    if whole.suffix != ".csv":
        assert "what is committed cannot be read" in said
