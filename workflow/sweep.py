"""Run a notebook at every point of a grid and gather what it recorded into one table.

    python -m workflow sweep GRID [--profile FOLDER]

In build/sweeps/NAME: results.csv, the parameters, metrics, seconds, status and error of each point;
runs/POINT/, what a point made; makers.json, checksums of notebook, library, lock and data. Points
that are done are kept.
"""

import argparse
import csv
import io
import json
import os
import re
import sys
from pathlib import Path

from workflow import BUILD, ROOT, engine, write
from workflow.grid import Grid

FORMULA = re.compile(r"[=+\-@\t\r]")  # how a cell begins that a spreadsheet would compute


def cell(value: object) -> object:
    """Return a number with six digits; put ' before a text that a spreadsheet would compute."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def table(rows: list[dict]) -> str:
    """Return rows as csv, the same bytes each time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([map(cell, rows[0]), *(map(cell, row.values()) for row in rows)])
    return text.getvalue()


def results(grid: Grid, folder: Path) -> list[dict]:
    """Return a row for each point, in the order of the grid."""
    states = {point: engine.state(folder / "runs" / point) for point in grid.points}
    recorded = [name for run in states.values() for name in run.get("metrics", {})]
    metrics = grid.metrics or list(dict.fromkeys(recorded))
    return [
        {
            "point": point,
            **parameters,
            **{name: states[point].get("metrics", {}).get(name) for name in metrics},
            "seconds": states[point].get("seconds"),
            "status": states[point].get("status", "not run"),
            "error": states[point].get("error", ""),
            "cell": states[point].get("cell", ""),
        }
        for point, parameters in grid.points.items()
    ]


def main(*arguments: str) -> int:
    """Check, run what is not done, gather; return 0 if every point is done."""
    parser = argparse.ArgumentParser(prog="make sweep")
    parser.add_argument("grid", type=Path)
    parser.add_argument("--profile", type=Path, help="of Snakemake, for a cluster")
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks")
    parser.add_argument("--build", type=Path, default=BUILD / "sweeps")
    options = parser.parse_args(arguments)
    try:
        grid = Grid(options.grid, options.notebooks.resolve())
    except (FileNotFoundError, IsADirectoryError, ValueError) as error:
        sys.exit(str(error))

    folder = (options.build / options.grid.stem).resolve()
    makers = {"name": grid.notebook.stem} | engine.makers(
        grid.notebook, folder / "sources", engine.table(folder)
    )
    where = "--cores", str(engine.jobs(os.environ.get("JOBS")))
    if options.profile:
        where = "--profile", str(options.profile.resolve())
    try:
        if not engine.execute(folder, {grid.notebook: grid.points}, *where):
            print("Nothing has changed; no point was run.")
    finally:
        rows = results(grid, folder)
        write(folder / "results.csv", table(rows))
        write(folder / "makers.json", json.dumps(makers, indent=1) + "\n")
    undone = [row for row in rows if row["status"] != "done"]
    for row in [row for row in undone if row["status"] == "failed"][:5]:
        print(f"- {row['point']} {engine.failure(folder / 'runs' / row['point'])}")
    print(f"{len(rows) - len(undone)} of {len(rows)} points done: {folder / 'results.csv'}")
    return 1 if undone else 0
