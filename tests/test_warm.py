"""Runs in forks of a warm process: as in a process of their own, and gone with who asked."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

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
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(CELLS)]
    cells[0].metadata["tags"] = ["parameters"]
    (tmp_path / "sources").mkdir()
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": ""}
    nbformat.write(notebook, tmp_path / "sources" / "tiny.ipynb")
    points = {"one": {"i": 1}, "two": {"i": 2}, "long": {"i": 3}}
    (tmp_path / "index.json").write_text(json.dumps({"points": points}))
    return tmp_path


def ask(folder, point):
    """Return the command that runs a point."""
    arguments = ["sources/tiny.ipynb", f"points/{point}", "index.json", point]
    return [sys.executable, "-m", "workflow.warm", *arguments]


def serve(folder, *command):
    """Run a command as Snakemake is run, with forks at its service; return its exit status."""
    with (folder / "lock").open("w") as lock:
        serving = [sys.executable, "-m", "workflow.warm", "--serve", str(lock.fileno()), *command]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(
            serving, cwd=folder, env=environment, pass_fds=[lock.fileno()], check=False
        ).returncode


def said(folder, point):
    """Return what the last cell shows."""
    path = folder / "points" / point / "notebooks" / "tiny.ipynb"
    outputs = nbformat.read(path, as_version=4).cells[-1].outputs
    return ast.literal_eval(outputs[0]["data"]["text/plain"])


def test_forks_are_as_fresh_as_processes(folder):
    """Parameters, folder and random numbers of their own; nothing is left by the run before."""
    both = shlex.join(ask(folder, "one")) + " && " + shlex.join(ask(folder, "two"))
    assert serve(folder, "sh", "-c", both) == 0
    subprocess.run(
        ask(folder, "long"), cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True
    )
    one, two, cold = (said(folder, point) for point in ("one", "two", "long"))
    assert (one[0], two[0], cold[0]) == (1, 2, 3)
    assert one[1] != two[1]
    assert one[2] == cold[2]  # the kernel's backend, though matplotlib was there before
    assert one[3] == str(folder / "points" / "one")
    assert len({one[4], two[4], one[5], two[5]}) == 4
    assert not (folder / warm.SOCKET).exists()


def test_the_exit_status_is_that_of_snakemake_and_of_the_run(folder):
    assert serve(folder, "sh", "-c", "exit 7") == 7
    (folder / "index.json").write_text('{"points": {"one": {"i": "1 / 0"}}}')
    source = folder / "sources" / "tiny.ipynb"
    source.write_text(source.read_text().replace("np.mark = i", "1 / 0"))
    assert serve(folder, *ask(folder, "one")) == 1
    run = json.loads((folder / "points" / "one" / "run.json").read_text())
    assert run["error"] == "ZeroDivisionError: division by zero"
    assert run["cell"] == 2


def test_a_run_ends_with_who_asked_for_it(folder):
    source = folder / "sources" / "tiny.ipynb"
    pids = "open('../pids', 'w').write(f'{os.getpid()} {os.getppid()}')"
    wait = f"{pids}\\n__import__('time').sleep(99)"
    source.write_text(source.read_text().replace("np.mark = i", wait))
    until = "for _ in $(seq 300); do test -s points/pids && break; sleep 0.1; done"
    assert serve(folder, "sh", "-c", f"{shlex.join(ask(folder, 'one'))} & {until}; kill $!") == 0
    for pid in (folder / "points" / "pids").read_text().split():
        for _ in range(100):
            if not alive(pid):
                break
            time.sleep(0.1)
        assert not alive(pid)


def alive(pid):
    """Tell whether a process runs, which one that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_quarter_of_the_notebooks_import_is_imported_before(tmp_path):
    sources = [
        "import json, os\nfrom pathlib import Path\nif json:\n    import ast",
        "import os as o\nimport ast\nfrom pathlib import Path, PurePath",
        *[""] * 3,
    ]
    paths = [tmp_path / f"{i}.ipynb" for i in range(5)]
    for path, source in zip(paths, sources, strict=True):
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    assert warm.shared_imports(paths) == ["import os", "from pathlib import Path"]
    assert "import ast" in warm.shared_imports(paths[:2])


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
