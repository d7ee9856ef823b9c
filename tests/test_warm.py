"""Runs in forks of a warm process: as in a process of their own, and gone with who asked."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import nbformat
import pytest

from tests.kill_sweep import wait_for
from tests.tiny import write_notebook
from workflow import ROOT, warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")

CELLS = [
    "i: int = 0  # which point",
    "import os\nimport matplotlib\nimport numpy as np\nimport pandas as pd",
    "assert pd.get_option('display.max_columns') == 20, 'as in a terminal'\n"
    "assert not hasattr(np, 'mark'), 'left by another run'\nnp.mark = i",
    "[i, np.random.random(), matplotlib.get_backend(), os.getcwd(), os.getpid(), os.getppid()]",
]


@pytest.fixture
def folder(tmp_path):
    """Where Snakemake would run the points one and two of a notebook."""
    write_notebook(tmp_path / "sources" / "tiny.ipynb", *CELLS)
    points = {"one": {"i": 1}, "two": {"i": 2}, "long": {"i": 3}}
    (tmp_path / "index.json").write_text(json.dumps({"tiny": {"runs": points}}))
    return tmp_path


def ask(point):
    """Return the command that runs a point."""
    run = f"-m workflow.warm sources/tiny.ipynb runs/{point} index.json"
    return [sys.executable, *run.split()]


def serve(folder, command):
    """Run a command as Snakemake is run, with forks at its service; return its exit status."""
    code = (
        "import subprocess, sys; from pathlib import Path; from workflow.warm import Forks\n"
        "with open('log', 'w') as log, Forks(Path('.'), log) as forks:\n"
        "    process = subprocess.Popen(sys.argv[1:])\n"
        "    while process.poll() is None: forks.handle_request()\n"
        "sys.exit(process.returncode)"
    )
    return run(folder, [sys.executable, "-c", code, "sh", "-c", command])


def run(folder, command):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def said(folder, point):
    """Return what the last cell shows."""
    path = folder / "runs" / point / "notebooks" / "tiny.ipynb"
    outputs = nbformat.read(path, as_version=4).cells[-1].outputs
    return ast.literal_eval(outputs[0]["data"]["text/plain"])


def test_forks_are_as_fresh_as_processes(folder):
    """Parameters, folder and random numbers of their own; nothing is left by the run before."""
    assert serve(folder, f"{shlex.join(ask('one'))} && {shlex.join(ask('two'))}") == 0
    assert run(folder, ask("long")) == 0
    one, two, cold = (said(folder, point) for point in ("one", "two", "long"))
    assert (one[0], two[0], cold[0]) == (1, 2, 3)
    assert one[1] != two[1]
    assert one[2] == cold[2]  # the kernel's backend, though matplotlib was there before
    assert one[3] == str(folder / "runs" / "one")
    assert len({one[4], two[4], one[5], two[5]}) == 4
    assert not (folder / warm.SOCKET).exists()


def test_kernels_are_forks_by_jupyter_clients_entry_point(folder):
    """So that a kernel finds the modules of its parent imported."""
    source = folder / "sources" / "tiny.ipynb"
    imported = "assert 'pandas' in __import__('sys').modules"
    source.write_text(source.read_text().replace("import os\\n", f"import os\\n{imported}\\n", 1))
    if not entry_points(group="jupyter_client.kernel_provisioners", name="firmlib-fork"):
        pytest.skip("this environment is older than the entry point: make setup")
    assert serve(folder, shlex.join(ask("one"))) == 0
    assert run(folder, ask("one")) == 1  # a kernel of its own


def test_the_exit_status_is_that_of_snakemake_and_of_the_run(folder):
    assert serve(folder, "exit 7") == 7
    source = folder / "sources" / "tiny.ipynb"
    source.write_text(source.read_text().replace("np.mark = i", "1 / 0"))
    assert serve(folder, shlex.join(ask("one"))) == 1
    outcome = json.loads((folder / "runs" / "one" / "run.json").read_text())
    assert outcome["error"] == "ZeroDivisionError: division by zero"
    assert outcome["cell"] == 2


def test_runs_end_with_snakemake(folder):
    source = folder / "sources" / "tiny.ipynb"
    pids = "open('../pids', 'w').write(f'{os.getpid()} {os.getppid()}')"
    wait = f"{pids}\\n__import__('time').sleep(99)"
    source.write_text(source.read_text().replace("np.mark = i", wait))
    until = "for _ in $(seq 300); do test -s runs/pids && break; sleep 0.1; done"
    assert serve(folder, f"{shlex.join(ask('one'))} & {until}") == 0
    for pid in (folder / "runs" / "pids").read_text().split():
        wait_for("the end of a run", lambda pid=pid: not alive(pid), 10)


def alive(pid):
    """Tell whether a process runs, which one that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_nbval_sees_as_much_in_forks(tmp_path):
    """What is as committed passes; another output, a warning and an error do not."""
    cells = []
    for source, text in [
        ("import os, warnings, pandas\nprint(1)", "1\n"),
        ("print(os.path.basename(os.getcwd()))", f"{tmp_path.name}\n"),
        ("print(1 + 1)", "3\n"),
        ("print(2)\nwarnings.warn('hear me')", "2\n"),
        ("1 / 0", ""),
        ("print(3)", "3\n"),
    ]:
        outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
        cells.append(nbformat.v4.new_code_cell(source, execution_count=1, outputs=outputs))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    options = "-rA -o addopts= -p no:warnings -p workflow.warm --nbval --nbval-current-env"
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), tmp_path / "a.ipynb"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert re.findall(r"PASSED .*::Cell (\d)", said) == ["0", "1", "5"], said
