"""Tables of sweeps that are committed, data/sweep_NAME.csv, and what made them, in .json beside.

    python -m workflow.committed GRID

takes over the table that `make sweep` made of a grid.
"""

import csv
import hashlib
import json
import sys
from pathlib import Path

from firmlib.compendium.output import write_atomic
from workflow import BUILD, ROOT, engine


def dumps(notebook: Path, table: str, makers: dict[str, str]) -> str:
    """Return what is kept of a sweep: its notebook, and checksums of the table and its makers."""
    content = {"name": notebook.stem, "table": _sha256(table.encode())} | makers
    return json.dumps(content, indent=1) + "\n"


def notes(data: Path, notebooks: Path, folder: Path) -> tuple[list[str], list[str]]:
    """Return which tables are not what was taken over, and whose makers have changed."""
    broken, old = [], []
    for path in sorted(data.glob("sweep_*.csv")):
        try:
            kept = json.loads(path.with_suffix(".json").read_text())
            whole = kept["table"] == _sha256(path.read_bytes())
            notebook = notebooks / f"{kept['name']}.ipynb"
        except (OSError, ValueError, KeyError, TypeError) as error:
            broken.append(f"{path.name}: its checksums cannot be read: {error!r}")
            continue
        if not whole:
            broken.append(f"{path.name} is not what its sweep made; git checkout brings it back")
        now = engine.makers(notebook, folder) if notebook.exists() else {}
        if changed := [what for what, sha in now.items() if kept.get(what) != sha]:
            old.append(
                f"{path.name} was made with another {', '.join(changed)}; make sweep renews it"
            )
    return broken, old


def take_over(grid: Path, build: Path = BUILD / "sweeps", data: Path = ROOT / "data") -> None:
    """Copy the table of a sweep of which every point is done."""
    made = build / grid.stem
    try:
        table, kept = (made / "results.csv").read_text(), (made / "makers.json").read_text()
    except FileNotFoundError:
        sys.exit(f"There is no table of {grid}: make sweep GRID={grid}")
    undone = [row for row in csv.DictReader(table.splitlines()) if row["status"] != "done"]
    if undone:
        sys.exit(f"Not accepted: {len(undone)} points are not done: make sweep GRID={grid}")
    if json.loads(kept)["table"] != _sha256(table.encode()):
        sys.exit(f"Not accepted: {made / 'results.csv'} was changed after the sweep")
    for suffix, text in ((".csv", table), (".json", kept)):
        path = data / f"sweep_{grid.stem}{suffix}"
        write_atomic(path, text)
        print(f"  {path}")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    take_over(Path(sys.argv[1]))
