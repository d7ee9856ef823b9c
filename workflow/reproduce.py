"""Execute every notebook that needs it into build/ and compare all with what is committed.

python -m workflow reproduce [--force]
"""

import json
import os
import re
import shutil
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from workflow import BUILD, KINDS, ROOT, SUMMARY, engine, write


def gather(folder: Path) -> list[str]:
    """Copy one notebook's outputs to their places in build/; return the differences."""
    from workflow.compare import compare

    differences = []
    for kind in (*KINDS, "claims"):
        for made in sorted((folder / kind).iterdir()):
            write(BUILD / kind / made.name, made.read_bytes())
            if kind != "claims":
                differences += compare(made, ROOT / kind / made.name)
    return differences


def other_versions(lock: str) -> list[str]:
    """Return the packages whose version here is not the locked one."""
    notes = []
    installed = {canonicalize_name(each.name): each.version for each in distributions()}
    for name, locked, marker in re.findall(r"^([\w.-]+)==([^ ;]+)(?: ; (.*?))? \\$", lock, re.M):
        found = installed.get(name, "missing")
        if found != locked and (not marker or Marker(marker).evaluate()):
            notes.append(f"{name} is {found}, the lock has {locked}")
    return notes


def outdated_tables() -> list[str]:
    """Return which committed tables of sweeps were made by what has changed since."""
    found = []
    for path in sorted((ROOT / "data").glob("sweep_*.json")):
        kept = json.loads(path.read_text())
        notebook = ROOT / "notebooks" / f"{kept['name']}.ipynb"
        now = {"notebook": ""}
        if notebook.exists():
            now = engine.makers(notebook, BUILD / "sources", f"{path.stem}.csv")
        if changed := [what for what, sha in now.items() if kept.get(what) != sha]:
            found.append(f"{path.stem}.csv was made with another {', '.join(changed)}")
    return found


def main(*options: str) -> int:
    """Execute, gather, compare; print a table; return 0 if all agrees."""
    jobs = engine.jobs(os.environ.get("JOBS"))
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    SUMMARY.unlink(missing_ok=True)
    force = ["--forceall"] if "--force" in options else []
    ran = engine.execute(BUILD, {n: {n.stem: {}} for n in notebooks}, "--cores", str(jobs), *force)
    print(f"{ran} notebooks executed." if ran else "Nothing has changed; no notebook was executed.")

    from firmlib.compendium import claims
    from workflow.compare import compare

    for kind in (*KINDS, "claims"):
        shutil.rmtree(BUILD / kind, ignore_errors=True)
    foreign, failed = other_versions((ROOT / "requirements.lock").read_text()), False
    notes = [f".venv: {each}; `make clean setup` restores it" for each in foreign]
    for notebook in notebooks:
        folder = BUILD / "runs" / notebook.stem
        run = engine.state(folder)
        error = run["status"] == "failed"
        failed |= error
        differences = [engine.failure(folder)] if error else gather(folder)
        notes += [f"{notebook.stem}: {difference}" for difference in differences]
        counts = Counter(claim["verdict"] for claim in claims.collect(folder / "claims"))
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if verdict != "open")
        agrees = "failed" if error else "differs" if differences else "agrees"
        print(f"{notebook.stem:24} {run['seconds']:4.0f} s  {agrees:8} {verdicts}".rstrip())

    ledger = BUILD / "data" / "claims.json"
    write(ledger, claims.dumps(claims.collect(BUILD / "claims")))
    notes += compare(ledger, ROOT / "data" / "claims.json")
    orphans = {p.name for p in (ROOT / "figures").iterdir()}
    orphans -= {p.name for p in (BUILD / "figures").glob("*")}
    notes += [f"figures/{name} is committed, but no notebook makes it" for name in sorted(orphans)]
    for note in notes:
        print(f"- {note}")
    for note in outdated_tables():
        print(f"Note: {note}; make sweep renews it")
    if not notes:
        print("Everything made in build/ agrees with what is committed.")
    elif not failed:
        print("`make accept` copies what is in build/ over it.")
    write(SUMMARY, claims.dumps({"failed": failed, "notes": notes}))
    return 1 if notes else 0
