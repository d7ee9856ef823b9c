"""Execute one notebook with papermill into a folder of its own; Snakemake starts this.

    python -m workflow.run SOURCE FOLDER [INDEX POINT]

SOURCE is a notebook without outputs; INDEX is a json file with the parameters of each POINT of a
sweep. How it goes stands in FOLDER/run.json. The executed notebook appears last and whole, so that
it being there means that all of it is. firmlib is not imported: each point would pay for that.
"""

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import nbformat
import papermill
from papermill.exceptions import PapermillExecutionError

from workflow import KINDS
from workflow.engine import plain, state, write

ATTEMPTS = 3  # once in a hundred starts a kernel finds its port taken
# Cells to fold: those that begin with imports, parameters' checks among them, and the ledger's.
FOLDED = re.compile(r"(import|from) |.*^claims\.(record|summary)\(", re.M | re.S)


def run(source: Path, folder: Path, parameters: dict | None = None) -> bool:
    """Execute `source` with its outputs going to `folder`; return whether it came to its end."""
    before = state(folder)
    shutil.rmtree(folder, ignore_errors=True)
    for kind in (*KINDS, "claims"):
        (folder / kind).mkdir(parents=True)
    # The shape of what the front reads: status, and the seconds it took, or takes as a rule.
    outcome = {"status": "running", "seconds": before.get("seconds")}
    write(folder / "run.json", json.dumps(outcome))

    began = time.perf_counter()
    executed = folder / "failed.ipynb"  # until it is known better
    error = execute(source, executed, folder, parameters or {})
    metrics = folder / "metrics.json"
    outcome = {
        "status": "failed" if error else "done",
        "seconds": round(time.perf_counter() - began, 1),
        **error,
        "metrics": json.loads(metrics.read_text()) if metrics.exists() else {},
    }
    write(folder / "run.json", json.dumps(outcome, indent=1))
    if not error:
        notebook = tidy(nbformat.read(executed, as_version=4))
        write(folder / "notebooks" / source.name, nbformat.writes(notebook) + "\n")
        executed.unlink()
    return not error


def execute(source: Path, executed: Path, folder: Path, parameters: dict) -> dict:
    """Return the error of a notebook and the cell it stands in, or nothing."""
    os.environ["FIRMLIB_OUTPUT"] = str(folder)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as many notebooks at a time as cores
    for _ in range(ATTEMPTS):
        try:
            papermill.execute_notebook(
                plain(source),
                plain(executed),
                parameters,
                cwd=folder,
                kernel_name="python3",
                progress_bar=False,
                request_save_on_cell_execute=False,  # once at the end, not twice for each cell
            )
            return {}
        except PapermillExecutionError as error:
            injected = bool(parameters)  # papermill put a cell before this one
            return {
                "error": " ".join(f"{error.ename}: {error.evalue}".split()),
                "cell": error.cell_index - injected,
            }
        except Exception as error:  # the kernel, not the notebook
            failure = {"error": " ".join(f"{type(error).__name__}: {error}".split()), "cell": ""}
    return failure


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drop what differs from run to run (time stamps, the exact Python), and fold some cells."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        tags = [tag for tag in cell.metadata.get("tags", []) if tag != "hide-input"]
        cell.metadata = {"tags": tags} if tags else {}
        if cell.cell_type == "code":
            if FOLDED.match(cell.source):  # in JupyterLab, and on the site
                cell.metadata = {"jupyter": {"source_hidden": True}, "tags": [*tags, "hide-input"]}
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Join what the kernel happened to send of one stream in several messages."""
    joined = []
    for output in outputs:
        if joined and output.get("name") and output.get("name") == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def main(source: str, folder: str, index: str = "", point: str = "") -> int:
    """Run a notebook as it is, or at a point of an index; return 0 if it came to its end."""
    parameters = json.loads(Path(index).read_text())["points"][point] if index else {}
    return 0 if run(Path(source).resolve(), Path(folder).resolve(), parameters) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
