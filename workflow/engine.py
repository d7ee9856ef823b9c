"""Run notebooks with Snakemake: what is out of date, in parallel, here or on a cluster."""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from workflow import ROOT, warm, write

SNAKEFILE = Path(__file__).with_name("Snakefile")
OPTIONS = [
    *("--scheduler", "greedy", "--keep-going", "--nocolor", "--workflow-profile", "none"),
    # A notebook that is there is complete, and Snakemake's lock would outlive a kill.
    *("--nolock", "--ignore-incomplete", "--rerun-triggers", "mtime", "input"),
]


def sha256(content: str | bytes) -> str:
    """Return the checksum of a text in UTF-8, or of bytes."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def source(notebook: Path, folder: Path) -> Path:
    """Write a notebook without its outputs to `folder`, unless it is there already."""
    try:
        content = json.loads(notebook.read_text())
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"outputs": [], "execution_count": None}
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{notebook} is not a notebook ({error}); git checkout restores it")
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    return _update(folder / notebook.name, text)


def makers(notebook: Path, folder: Path, made: str = "") -> dict[str, str]:
    """Return the checksums of what determines a result: notebook, firmlib, lock and data read.

    A sweep does not read the table that it makes, even if its notebook shows it: `made`.
    """
    text = source(notebook, folder).read_text()
    library = [p for p in sorted((ROOT / "firmlib").rglob("*")) if p.suffix in (".py", ".csv")]
    code = text.replace('\\"', '"') + "".join(path.read_text() for path in library)
    data = [p for p in sorted(notebook.parents[1].glob("data/*")) if f'"{p.name}"' in code]
    data = [p for p in data if p.name != made]
    files = {"firmlib": library, "lock": [ROOT / "requirements.lock"], "data": data}
    sums = {k: "".join(p.name + sha256(p.read_bytes()) for p in v) for k, v in files.items()}
    return {"notebook": sha256(text)} | {name: sha256(text) for name, text in sums.items()}


def table(folder: Path) -> str:
    """Return the name in data/ under which the table of the sweep in `folder` is accepted."""
    return f"sweep_{folder.name}.csv"


def _update(path: Path, text: str) -> Path:
    if not path.exists() or path.read_text() != text:
        write(path, text)
    return path


def state(folder: Path) -> dict:
    """Return how a run ended; an empty dict if it did not, or if its record is corrupt."""
    try:
        return json.loads((folder / "run.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}


def failure(folder: Path) -> str:
    """Return what went wrong in a run, and where its traceback is."""
    run, failed = state(folder), folder / "failed.ipynb"
    where = f"cell {run['cell']}: " if run["cell"] != "" else ""
    seen = f"; its traceback: {failed}" if failed.exists() else ""
    return f"failed in {where}{run['error']}{seen}"


def jobs(text: str | None) -> int:
    """Return how many notebooks run at a time: the value of $JOBS, or the number of cores."""
    if not text:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        sys.exit(f"JOBS={text!r} must be a whole number, at least 1")
    return int(text)


def execute(folder: Path, runs: dict[Path, dict[str, dict]], *options: str) -> int:
    """Run each notebook of `runs` under each name with its parameters, into `folder`/runs/NAME.

    Return how many runs were needed. Runs that are done and whose makers are the same are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:  # Snakemake inherits the lock and holds it as long as it lives
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{folder} is in use by another run; wait for its end, or end it.")
        for run in folder.glob("runs/*"):
            if not state(run):  # cut off: it must run again
                shutil.rmtree(run)
        index, sources = {}, folder / "sources"
        for notebook, named in runs.items():
            made_by = makers(notebook, sources, table(folder))
            _update(sources / f"{notebook.stem}.json", json.dumps(made_by))
            last = state(folder / "runs" / notebook.stem).get("seconds", 0)
            index[notebook.stem] = {"seconds": int(last), "runs": named}
        write(folder / "index.json", json.dumps(index))
        return _snakemake(folder, lock.fileno(), options)


def _snakemake(folder: Path, lock: int, options: tuple[str, ...]) -> int:
    began, log, shown, interrupts = time.time(), folder / "snakemake.log", "", []
    caches = {f"XDG_{kind}_HOME": str(folder / ".xdg" / kind) for kind in ("CACHE", "CONFIG")}
    command = [sys.executable, "-m", "snakemake", "--snakefile", SNAKEFILE, "--directory", folder]
    here = warm.LINUX and "--cores" in options
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    with log.open("w") as said, warm.Forks(folder, said) if here else nullcontext() as forks:
        snakemake = subprocess.Popen(
            [*command, *OPTIONS, *options],
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            pass_fds=[lock],
            cwd=folder,
            env=os.environ | caches | {"PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)},
            preexec_fn=warm.end_with_parent,
        )
        while snakemake.poll() is None and not interrupts:
            forks.handle_request() if forks else time.sleep(0.5)
            shown = _show(log, shown)
        if interrupts:  # Snakemake was interrupted too, unless only this process was meant
            snakemake.terminate()
    snakemake.wait()
    signal.signal(signal.SIGINT, before)
    if interrupts:
        sys.exit("Interrupted; what is done is kept.")
    _show(log, shown)
    if snakemake.returncode and shutil.disk_usage(folder).free < 2**20:
        raise OSError(errno.ENOSPC, "", str(folder))
    ended = [p.parent for p in folder.glob("runs/*/run.json") if p.stat().st_mtime >= began - 1]
    if snakemake.returncode and not any(state(run)["status"] == "failed" for run in ended):
        tail = "\n".join(log.read_text().splitlines()[-15:])
        sys.exit(f"Snakemake stopped; the end of {log}:\n{tail}")
    return len(ended)


def _show(log: Path, shown: str) -> str:
    """Print Snakemake's last line of progress if it is new; on a terminal, over the one before."""
    line = ["", *re.findall(r"^\d+ of \d+ steps.*", log.read_text(), re.M)][-1]
    if line != shown:
        print(line, end="\r" if sys.stdout.isatty() and "100%" not in line else "\n", flush=True)
    return line
