"""Execute one notebook with papermill into a folder of its own; Snakemake starts this.

    python -m workflow.run SOURCE FOLDER [INDEX]

SOURCE is a notebook without outputs; INDEX is a json file with the parameters of each run of a
sweep. FOLDER/run.json tells how the run ended. The executed notebook appears last and whole: where
it exists, everything does. firmlib is not imported, because each point would pay for that.
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

from workflow import KINDS, write

ATTEMPTS = 3  # once in a hundred starts a kernel finds its port taken
# Cells to fold: those that begin with imports, save a figure, or write to the ledger.
FOLDED = re.compile(r"(import|from) |.*^ *(claims\.(record|summary)|figures\.save)\(", re.M | re.S)


def plain(path: Path) -> str:
    """Return a path in which papermill finds no parameters to fill in."""
    return str(path).replace("{", "{{").replace("}", "}}")


def run(source: Path, folder: Path, parameters: dict) -> bool:
    """Execute `source` with its outputs going to `folder`; return whether it succeeded."""
    shutil.rmtree(folder, ignore_errors=True)
    for kind in (*KINDS, "claims"):
        (folder / kind).mkdir(parents=True)
    began = time.perf_counter()
    executed, metrics = folder / "failed.ipynb", folder / "metrics.json"
    error = execute(source, executed, folder, parameters)
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
    """Return the error of a notebook and its cell, or an empty dict."""
    os.environ["FIRMLIB_OUTPUT"] = str(folder)
    os.environ["TQDM_DISABLE"] = "1"  # outputs must not depend on how long a cell takes
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core for each notebook
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
                coalesce_streams=True,  # one text, in however many messages the kernel sent it
            )
            return {}
        except PapermillExecutionError as error:
            injected = bool(parameters)  # papermill put a cell before this one
            text, cell = f"{error.ename}: {error.evalue}", error.cell_index - injected
            return {"error": " ".join(text.split()), "cell": cell}
        except Exception as error:  # the kernel, not the notebook
            text = f"{type(error).__name__}: {error}"
            failure = {"error": " ".join(text.split()), "cell": ""}
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
        if cell.cell_type == "code" and FOLDED.match(cell.source):  # in JupyterLab and on the site
            cell.metadata = {"jupyter": {"source_hidden": True}, "tags": [*tags, "hide-input"]}
    return notebook


def main(source: str, folder: str, index: str = "") -> int:
    """Run a notebook with its own parameters or those in an index; return 0 if it succeeds."""
    notebook, place = Path(source).resolve(), Path(folder).resolve()
    runs = json.loads(Path(index).read_text())[notebook.stem]["runs"] if index else {}
    return 0 if run(notebook, place, runs.get(place.name, {})) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
