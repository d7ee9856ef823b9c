"""Kill a sweep with all it started at random moments; nothing may be lost, or run twice.

Run by `make test-kill`; a few minutes, so not part of `make test`.
"""

import contextlib
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.tiny import write_notebook
from workflow import BUILD, ROOT

KILLS, POINTS = 25, 40
CELLS = [
    "i: int = 0  # which point\nseconds: float = 0.2  # that it takes",
    """import json, os, time
with open(os.environ["STARTS"], "a") as file:
    file.write(f"{i}\\n")""",
    "time.sleep(seconds)\nassert i != 7, 'seven always fails'",
    """with open(os.environ["FIRMLIB_OUTPUT"] + "/metrics.json", "w") as file:
    json.dump(dict(square=i * i, half=i / 2), file)""",
]


def write_tiny(folder: Path, points: int, seconds: float = 0.2) -> list[str]:
    """Write a notebook and its grid; return the command that sweeps it, into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    parameters, *rest = CELLS
    write_notebook(folder / "tiny.ipynb", parameters.replace("0.2", f"{seconds}"), *rest)
    (folder / "tiny.yaml").write_text(
        f"notebook: tiny\nparameters: {{i: {{range: [1, {points}]}}}}\nmetrics: [square, half]\n"
    )
    command = [sys.executable, "-m", "workflow", "sweep", str(folder / "tiny.yaml")]
    return [*command, "--notebooks", str(folder), "--build", str(folder)]


def start(command: list[str], folder: Path) -> subprocess.Popen:
    """Start a sweep in a process group of its own."""
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"STARTS": str(folder / "starts")},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for(what: str, condition: Callable[[], Any], seconds: float) -> Any:
    """Wait until a condition holds, and return it; fail after some seconds."""
    end = time.time() + seconds
    while not (held := condition()):
        if time.time() > end:
            raise TimeoutError(f"{what} took more than {seconds} s")
        time.sleep(0.2)
    return held


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the sweep's table without its timings."""
    with (folder / "tiny" / "results.csv").open() as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def main() -> int:
    """Run undisturbed, then kill and start again; compare."""
    undisturbed, disturbed = BUILD / "kill" / "undisturbed", BUILD / "kill" / "disturbed"
    command, began = write_tiny(undisturbed, POINTS), time.time()
    sweep = start(command, undisturbed)
    while sweep.poll() is None and not done(undisturbed):
        time.sleep(0.1)
    first = time.time() - began
    sweep.wait()
    whole = time.time() - began
    print(f"undisturbed: {whole:.0f} s, the first point after {first:.1f} s", flush=True)

    command, seed = write_tiny(disturbed, POINTS), random.randrange(1000)
    starts, moments, began = disturbed / "starts", random.Random(seed), time.time()
    latest = first + 2 * (whole - first) / KILLS  # so that on the whole most points get done
    starts.touch()
    snapshots = []  # what was done at a kill, and how long the list of starts was
    for kill in range(1, KILLS + 1):
        sweep = start(command, disturbed)
        with contextlib.suppress(subprocess.TimeoutExpired):
            sweep.wait(timeout=moments.uniform(0.1, latest))
        with contextlib.suppress(ProcessLookupError):  # it came to its end
            os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
        snapshots.append((done(disturbed), starts.stat().st_size))
        print(f"kill {kill} of {KILLS}: {len(snapshots[-1][0])} points done", flush=True)
    start(command, disturbed).wait()

    log = starts.read_text()
    again = {i for finished, size in snapshots for i in log[size:].split() if i in finished}
    same = rows(disturbed) == rows(undisturbed) and len(rows(disturbed)) == POINTS
    print(
        f"{time.time() - began:.0f} s (seed {seed}): {POINTS} points, {len(log.split())} starts of "
        f"a notebook, {len(again)} of points that were finished; results.csv "
        f"{'equals' if same else 'DIFFERS FROM'} that of the undisturbed run, timings aside."
    )
    return 0 if same and not again else 1


def done(folder: Path) -> set[str]:
    """Return the i of all points that are finished."""
    index = folder / "tiny" / "index.json"
    points = json.loads(index.read_text())["tiny"]["runs"] if index.exists() else {}
    finished = {path.parts[-3] for path in folder.glob("tiny/runs/*/notebooks/*.ipynb")}
    return {str(point["i"]) for name, point in points.items() if name in finished}


if __name__ == "__main__":
    sys.exit(main())
