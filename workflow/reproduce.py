"""Execute every notebook with papermill into build/ and compare with what is committed."""

import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import nbformat
import pandas as pd
import papermill
from papermill.exceptions import PapermillExecutionError

from firmlib import claims
from firmlib._output import write_atomic
from workflow import BUILD, KINDS, ROOT, SUMMARY
from workflow.compare import compare

ATTEMPTS = 3  # once in a hundred starts a kernel finds its port taken


def execute(notebook: Path, folder: Path, label: str) -> str:
    """Run one notebook with its outputs going to `folder`; return what went wrong, if anything."""
    for kind in (*KINDS, "claims"):
        (folder / kind).mkdir(parents=True)
    executed = folder / "notebooks" / notebook.name
    os.environ["FIRMLIB_OUTPUT"] = str(folder)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            papermill.execute_notebook(
                notebook,
                executed,
                cwd=notebook.parent,
                kernel_name="python3",
                progress_bar={"desc": label, "leave": False},
            )
            break
        except PapermillExecutionError as error:
            return f"cell {error.cell_index}: {error.ename}: {error.evalue}"
        except Exception as error:  # the kernel, not the notebook
            if attempt == ATTEMPTS:
                return f"{type(error).__name__}: {error}"
    write_atomic(executed, nbformat.writes(tidy(nbformat.read(executed, as_version=4))) + "\n")
    return ""


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drop what differs from run to run: time stamps, the exact Python, how a stream was cut."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if not cell.metadata.get("tags"):
            cell.metadata.pop("tags", None)
        if cell.cell_type == "code":
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


def gather(folder: Path) -> list[str]:
    """Copy one notebook's outputs to their places in build/; return how they differ from ours."""
    differences = []
    for kind in KINDS:
        for made in sorted((folder / kind).iterdir()):
            write_atomic(BUILD / kind / made.name, made.read_bytes())
            differences += compare(made, ROOT / kind / made.name)
    for claim in sorted((folder / "claims").iterdir()):
        write_atomic(BUILD / "claims" / claim.name, claim.read_bytes())
    return differences


def main() -> int:
    """Execute, gather, compare; print a table; return 0 if all agrees."""
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    SUMMARY.unlink(missing_ok=True)
    for kind in (*KINDS, "claims", "runs"):
        shutil.rmtree(BUILD / kind, ignore_errors=True)

    rows, notes, failed = [], [], False
    for i, notebook in enumerate(notebooks, start=1):
        folder = BUILD / "runs" / notebook.stem
        began = time.perf_counter()
        error = execute(notebook, folder, f"[{i}/{len(notebooks)}] {notebook.stem}")
        seconds = time.perf_counter() - began
        differences = [f"failed in {error}"] if error else gather(folder)
        failed |= bool(error)
        notes += [f"{notebook.stem}: {difference}" for difference in differences]
        recorded = [c for c in claims.collect(folder / "claims") if c["verdict"] != "open"]
        verdicts = Counter(claim["verdict"] for claim in recorded)
        rows.append(
            {
                "notebook": notebook.stem,
                "seconds": f"{seconds:.0f}",
                "claims": len(recorded),
                "verdicts": ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()) or "–",
                "agrees": "failed" if error else "no" if differences else "yes",
            }
        )

    ledger = BUILD / "data" / "claims.json"
    write_atomic(ledger, claims.dumps(claims.collect(BUILD / "claims")))
    notes += compare(ledger, ROOT / "data" / "claims.json")
    made = {path.name for kind in KINDS for path in (BUILD / kind).glob("*")}
    orphans = {path.name for path in (ROOT / "figures").glob("*")} - made
    notes += [f"figures/{name} is committed, but no notebook makes it" for name in sorted(orphans)]

    print(pd.DataFrame(rows).to_string(index=False))
    for note in notes:
        print(f"- {note}")
    if not notes:
        print("Everything made in build/ agrees with what is committed.")
    elif not failed:
        print("`make accept` takes over what is in build/.")
    write_atomic(SUMMARY, claims.dumps({"failed": failed, "notes": notes}))
    return 1 if notes else 0


if __name__ == "__main__":
    sys.exit(main())
