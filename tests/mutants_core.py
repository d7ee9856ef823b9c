"""Change the library's source in one place at a time; `pytest` must notice within ten seconds.

A mutant is a file of firmlib, a text that occurs in it exactly once, and another text. Run by
`make mutants`, or `python -m tests.mutants_core variance slope` for files whose path contains
these words; survivors are named, and their number is the exit status. Seconds are CPU seconds.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from workflow import ROOT, engine

SECONDS = 10
TESTS = ["tests/test_fuzz.py", "tests/test_laws.py", "tests/test_answers.py"]

MUTANTS: list[tuple[str, str, str]] = []  # fmt: skip


def changed(file: str, old: str, new: str) -> str:
    """Return the source of a file after the change."""
    source = (ROOT / "firmlib" / file).read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{old!r} occurs {source.count(old)} times in {file}; update MUTANTS")
    return source.replace(old, new)


def run_tests(folder: Path, seconds: int | None) -> subprocess.CompletedProcess:
    """Run the tests in a copy of the project until the first one fails or time is up."""

    def limit() -> None:
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))

    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    return subprocess.run(
        [*command, *TESTS],
        cwd=folder,
        env=os.environ | one_thread | {"HYPOTHESIS_PROFILE": "few", "POLARS_MAX_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


def noticed(mutant: tuple[str, str, str]) -> str:
    """Return the test that notices a mutant, or nothing."""
    file, old, new = mutant
    with tempfile.TemporaryDirectory() as folder:
        copy = project(Path(folder))
        (copy / "firmlib" / file).write_text(changed(file, old, new), encoding="utf-8")
        done = run_tests(copy, SECONDS)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode in (1, 2, 3, 4) and lines:
        return lines[0].split(" - ")[0]
    return f"stops with status {done.returncode}" if done.returncode in (2, 3, 4) else ""


def project(folder: Path) -> Path:
    """Return a copy of what the tests need."""
    skip = shutil.ignore_patterns("__pycache__", "browser", "strange")
    for name in ("firmlib", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def main(*only: str) -> int:
    """Run the mutants of some files, or all; return how many survive."""
    chosen = [m for m in MUTANTS if not only or any(word in m[0] for word in only)]
    for mutant in chosen:
        changed(*mutant)
    with tempfile.TemporaryDirectory() as folder:
        done = run_tests(project(Path(folder)), None)
        if done.returncode:
            raise SystemExit(f"the tests fail without a change\n{done.stdout}{done.stderr}")
    survivors = []
    with ThreadPoolExecutor(engine.jobs(os.environ.get("JOBS"))) as pool:
        found = tqdm(pool.map(noticed, chosen), total=len(chosen), disable=None)
        for (file, old, new), how in zip(chosen, found, strict=True):
            print(f"{file}: {old!r} → {new!r}: {how or 'NOT NOTICED'}", flush=True)
            if not how:
                survivors.append(f"{file}: {old!r} → {new!r}")
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} changes were noticed.")
    if survivors:
        print("Survivors:", *survivors, sep="\n  ")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
