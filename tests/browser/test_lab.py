"""JupyterLab as `make lab` starts it, on a copy of the notebooks: open, run all, look."""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

from tests.slurm import free_ports
from workflow import ROOT
from workflow.compare import compare

NAME = "06_boolean_svm.ipynb"


@pytest.fixture
def scratch(tmp_path):
    """A folder with a copy of the notebooks, so that those of the repository stay as they are."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    return tmp_path


@pytest.fixture
def lab(scratch):
    """Address of JupyterLab, with its token."""
    [port] = free_ports(1)
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "notebooks", "--no-browser", "--ip=127.0.0.1"]
    command += [f"--port={port}", f"--IdentityProvider.token={token}"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    environment = os.environ | {"FIRMLIB_OUTPUT": str(scratch / "out")}
    with (scratch / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=scratch, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{address}/api?token={token}", timeout=5).close()
            break
        except OSError:
            assert process.poll() is None, (scratch / "log").read_text()
            time.sleep(0.5)
    yield f"{address}/lab/tree/{NAME}?token={token}"
    process.terminate()
    process.wait(30)


def test_run_all_gives_the_committed_outputs(lab, scratch, browser, screenshot):
    path = scratch / "notebooks" / NAME
    emptied = nbformat.read(path, as_version=4)
    for cell in emptied.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(emptied, path)

    page = browser.new_page(viewport={"width": 1280, "height": 900})
    outside = []
    page.on("request", lambda r: "127.0.0.1" in r.url or outside.append(r.url))
    page.goto(lab)
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=120_000)
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=120_000)
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
    for _ in range(90):
        page.wait_for_timeout(2000)
        page.keyboard.press("Control+s")
        with contextlib.suppress(nbformat.reader.NotJSONError):  # it is being written
            cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        if all(cell.execution_count for cell in cells) and cells[-1].outputs:
            break
    assert compare(path, ROOT / "notebooks" / NAME) == []
    screenshot(page, "lab")
    page.close()
    assert [url for url in outside if not url.startswith(("data:", "blob:"))] == []
