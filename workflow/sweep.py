"""Run a notebook at every point of a grid and gather what it recorded into one table.

    python -m workflow.sweep GRID [--yes] [--profile FOLDER]

In build/sweeps/NAME: index.csv, every point with its parameters; points/HASH/, what each made;
results.csv, parameters, metrics, seconds, status, error and cell; makers.json, the checksums of the
table and of the notebook, the library and the lock that made it. Points that are done are kept.
"""

import argparse
import csv
import io
import json
import os
import sys
import time
from pathlib import Path

from workflow import BUILD, ROOT, committed, engine
from workflow.engine import state, write
from workflow.grid import MOST, Grid

SNAKEFILE = Path(__file__).with_name("sweep.smk")


def table(rows: list[dict]) -> str:
    """Return rows as csv: six digits, the same bytes again."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    return text.getvalue()


def results(grid: Grid, folder: Path) -> list[dict]:
    """Return a row for each point, in the order of the grid."""
    states = {}
    for point in grid.points:
        states[point] = state(folder / "points" / point)
        if states[point].get("status") == "running":  # cut off
            states[point] = {}
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
    parser.add_argument("--yes", action="store_true", help="also more than 10 000 points")
    parser.add_argument("--profile", type=Path, help="of Snakemake, for a cluster")
    parser.add_argument("--jobs", default=os.environ.get("JOBS"), help="points at a time")
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks")
    parser.add_argument("--build", type=Path, default=BUILD / "sweeps")
    options = parser.parse_args(arguments)
    try:
        grid = Grid(options.grid, options.notebooks, MOST if options.yes else 10_000)
    except (OSError, ValueError) as error:
        sys.exit(str(error))

    folder = (options.build / options.grid.stem).resolve()
    makers = engine.makers(grid.notebook, folder / "sources")
    write(
        folder / "index.json", json.dumps({"notebook": grid.notebook.stem, "points": grid.points})
    )
    write(folder / "index.csv", table([{"point": p, **v} for p, v in grid.points.items()]))
    where = ["--cores", str(engine.jobs(options.jobs))]
    if options.profile:
        where = ["--profile", str(options.profile.resolve())]
    try:
        began, points = time.time(), folder / "points"
        snakemake = engine.start(SNAKEFILE, folder, points, where)
        ran = engine.follow(snakemake, folder, points, began)
        if not ran:
            print("Nothing has changed; no point was run.")
    finally:
        rows = results(grid, folder)
        write(folder / "results.csv", table(rows))
        write(folder / "makers.json", committed.dumps(grid.notebook, table(rows), makers))
    undone = [row for row in rows if row["status"] != "done"]
    for row in undone[:5]:
        where = folder / "points" / row["point"]
        what = engine.failure(where) if row["status"] == "failed" else row["status"]
        print(f"- {row['point']} {what}")
    print(f"{len(rows) - len(undone)} of {len(rows)} points done: {folder / 'results.csv'}")
    return 1 if undone else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
