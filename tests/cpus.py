"""The notebooks as other CPUs would compute them; what is printed and drawn must be the same.

    python -m tests.cpus [--as-is] [NOTEBOOK …]

Run by `make test-cpus`. NumPy and OpenBLAS choose their code by what the CPU can do; here they are
told to do without. On other machines than x86-64 there is nothing to choose from. With --as-is
nothing is changed: so `make test-other` tries another Python.
"""

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workflow import BUILD, KINDS, ROOT, engine

NO_AVX512, NO_AVX2 = "X86_V4 AVX512_ICL AVX512_SPR", "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
SETTINGS = {  # what NumPy does without, and for which CPU OpenBLAS computes
    "no AVX-512": (NO_AVX512, "Haswell"),
    "NumPy without AVX2": (NO_AVX2, "Haswell"),
    "no AVX2": (NO_AVX2, "Sandybridge"),
    "no AVX": (NO_AVX2, "Nehalem"),
    "oldest": (NO_AVX2, "Prescott"),
}


def run(notebook: Path, folder: Path, features: str, core: str) -> list[str]:
    """Execute a notebook under a setting; return what differs from what is committed."""
    from workflow.compare import compare

    source = engine.source(notebook, folder / "sources")
    setting = {"NPY_DISABLE_CPU_FEATURES": features, "OPENBLAS_CORETYPE": core} if core else {}
    made = folder / notebook.stem
    command = [sys.executable, "-m", "workflow.run", source, made]
    with (folder / f"{notebook.stem}.log").open("w") as log:
        failed = subprocess.run(
            command, cwd=ROOT, env=os.environ | setting, stdout=log, stderr=log, check=False
        ).returncode
    if failed:
        return [engine.failure(made)]
    paths = [path for kind in KINDS for path in sorted((made / kind).iterdir())]
    return [d for path in paths for d in compare(path, ROOT / path.parent.name / path.name)]


def main(*stems: str) -> int:
    """Run the notebooks that are named, or all, under each setting."""
    settings = SETTINGS
    if stems[:1] == ("--as-is",):
        settings, stems = {f"Python {platform.python_version()}": ("", "")}, stems[1:]
    elif platform.machine() not in ("x86_64", "AMD64"):
        print(f"SKIPPED: make test-cpus knows settings of x86-64 only, not {platform.machine()}")
        return 0
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    notebooks = [path for path in notebooks if not stems or path.stem[:2] in stems]
    if not notebooks:
        sys.exit(f"no notebook begins with any of {stems}")
    runs = [(name, notebook) for name in settings for notebook in notebooks]
    wrong = 0
    with ThreadPoolExecutor(engine.jobs(os.environ.get("JOBS"))) as pool:
        found = pool.map(lambda r: run(r[1], BUILD / "cpus" / r[0], *settings[r[0]]), runs)
        for (name, notebook), differences in zip(runs, found, strict=True):
            print(f"{name}, {notebook.stem}: {'; '.join(differences) or 'agrees'}", flush=True)
            wrong += bool(differences)
    print(f"{wrong} of {len(runs)} runs differ from what is committed.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
