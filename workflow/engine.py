"""Run Snakemake with its log in a file and one readable line of progress on the screen."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from workflow import ROOT

OPTIONS = [
    *("--scheduler", "greedy", "--keep-going", "--nocolor", "--workflow-profile", "none"),
    # Outputs appear whole or not at all: one that is there needs no second look after a kill.
    *("--nolock", "--ignore-incomplete", "--rerun-triggers", "mtime", "input"),
]


def source(notebook: Path, folder: Path) -> Path:
    """Write a notebook without its outputs to `folder`, unless it is there: what a run rests on."""
    try:
        content = json.loads(notebook.read_text())
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"outputs": [], "execution_count": None}
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{notebook} is no notebook ({error}); git checkout brings the committed one back")
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    return _update(folder / notebook.name, text)


def library(folder: Path) -> Path:
    """Write the checksums of firmlib and of the lock to `folder`, unless they are there."""
    files = [p for p in sorted((ROOT / "firmlib").rglob("*")) if p.suffix in (".py", ".csv")]
    sums = [
        f"{_sha256(path.read_bytes())}  {path.relative_to(ROOT)}\n"
        for path in [*files, ROOT / "requirements.lock"]
    ]
    return _update(folder / "firmlib.sha256", "".join(sums))


def makers(notebook: Path, folder: Path) -> dict[str, str]:
    """Return a checksum each of a notebook without its outputs, of firmlib and of the lock."""
    *firmlib, lock = library(folder).read_text().splitlines()
    return {
        "notebook": _sha256(source(notebook, folder).read_bytes()),
        "firmlib": _sha256("\n".join(firmlib).encode()),
        "lock": lock.split()[0],
    }


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _update(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def state(folder: Path) -> dict:
    """Return how a run went or goes; nothing if there was none, or if what it left is corrupt."""
    try:
        run = json.loads((folder / "run.json").read_text())
        return run if run["status"] in ("running", "failed", "done") and "seconds" in run else {}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}


def write(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    os.replace(temporary, path)


def jobs(text: str | None) -> int:
    """Return how many notebooks run at a time: what $JOBS says, by default one for each core."""
    if not text:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        sys.exit(f"JOBS={text!r} must be a whole number, at least 1")
    return int(text)


def plain(path: Path) -> str:
    """Return a path in which papermill finds no parameters to put in."""
    return str(path).replace("{", "{{").replace("}", "}}")


def start(snakefile: Path, folder: Path, runs: Path, options: list[str]) -> subprocess.Popen:
    """Start Snakemake in `folder`; everything it writes goes there, what is run to `runs`/NAME."""
    folder.mkdir(parents=True, exist_ok=True)
    caches = {f"XDG_{kind}_HOME": str(folder / ".xdg" / kind) for kind in ("CACHE", "CONFIG")}
    with (folder / "lock").open("w") as lock, (folder / "snakemake.log").open("a") as log:
        try:  # Snakemake inherits the lock and holds it as long as it lives, however this one ends
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{folder} is in use by another run; wait for its end, or end it.")
        log.truncate(0)
        for run in runs.glob("*"):
            if not state(run):  # nobody knows how it went, so that it must run again
                shutil.rmtree(run)
        serve = ("-m", "workflow.warm", "--serve", str(lock.fileno()), sys.executable)
        forks = "--cores" in options and sys.platform == "linux"  # elsewhere forks are not safe
        return subprocess.Popen(
            [
                *(sys.executable, *(serve if forks else ())),
                *("-m", "snakemake", "--snakefile", snakefile),
                *("--directory", folder, *OPTIONS, *options),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            pass_fds=[lock.fileno()],
            cwd=folder,
            env=os.environ | caches | {"PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)},
        )


def follow(snakemake: subprocess.Popen, folder: Path, runs: Path, began: float) -> int:
    """Show progress until Snakemake ends; return how many runs it wanted, or exit if it broke.

    A run tells how it goes in `runs`/NAME/run.json, which is newer than `began`.
    """
    log = folder / "snakemake.log"
    total, shown = 0, ""
    try:
        while not ended(snakemake):
            total = total or wanted(log)
            if total:
                shown = show(progress(runs, began, total), shown)
    except KeyboardInterrupt:  # Snakemake heard it too, and ends its jobs
        snakemake.wait()
        sys.exit("\nInterrupted; what is done is kept.")
    total = total or wanted(log)
    if total:
        show(progress(runs, began, total), shown)
        print()
    if snakemake.returncode and not any(s["status"] == "failed" for s in recent(runs, began)):
        tail = "\n".join(log.read_text().splitlines()[-15:])
        sys.exit(f"Snakemake stopped; the end of {log}:\n{tail}")
    return total


def ended(process: subprocess.Popen) -> bool:
    """Wait for a second at most."""
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return False
    return True


def wanted(log: Path) -> int:
    """Return how many jobs Snakemake is going to run, without the one that asks for them all."""
    match = re.search(r"^total +(\d+)", log.read_text(), re.M)
    return int(match[1]) - 1 if match else 0


def recent(runs: Path, began: float) -> list[dict]:
    """Return how runs go that have moved since `began`."""
    states = []
    for path in sorted(runs.glob("*/run.json")):
        run = state(path.parent)
        with contextlib.suppress(FileNotFoundError):  # it starts over just now
            if run and path.stat().st_mtime >= began - 1:  # clocks of files are coarse
                states.append({"name": path.parent.name} | run)
    return states


def failure(folder: Path) -> str:
    """Return what went wrong in a run, and where its traceback is."""
    run, failed = state(folder), folder / "failed.ipynb"
    where = f"cell {run['cell']}: " if run["cell"] != "" else ""
    seen = f"; its traceback: {failed}" if failed.exists() else ""
    return f"failed in {where}{run['error']}{seen}"


def progress(runs: Path, began: float, total: int) -> str:
    """Return done/total, what is running, how long it may take."""
    states = recent(runs, began)
    running = [s for s in states if s["status"] == "running"]
    over = [s for s in states if s["status"] != "running"]
    failed = sum(s["status"] == "failed" for s in over)
    line = f"[{len(over)}/{total}]" + (f" {failed} failed" if failed else "")
    if running:
        line += " running " + ", ".join(s["name"] for s in running[:4])
        line += f" and {len(running) - 4} more" if len(running) > 4 else ""
    if 0 < len(over) < total:
        left = (time.time() - began) / len(over) * (total - len(over))
        line += f"; about {left:.0f} s left" if left < 90 else f"; about {left / 60:.0f} min left"
    return line


def show(line: str, shown: str) -> str:
    """Overwrite the line on a terminal; elsewhere print it whenever something has ended."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{line[:100]}", end="", flush=True)
    elif line.split("]")[0] != shown.split("]")[0]:
        print(line, flush=True)
    return line
