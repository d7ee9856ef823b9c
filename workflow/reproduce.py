"""Execute every notebook that needs it into build/ and compare all with what is committed.

python -m workflow.reproduce [--force]
"""

import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from workflow import BUILD, KINDS, ROOT, SUMMARY, engine

SNAKEFILE = Path(__file__).with_name("Snakefile")


def gather(folder: Path) -> list[str]:
    """Copy one notebook's outputs to their places in build/; return how they differ from ours."""
    from firmlib.compendium.output import write_atomic
    from workflow.compare import compare

    differences = []
    for kind in KINDS:
        for made in sorted((folder / kind).iterdir()):
            write_atomic(BUILD / kind / made.name, made.read_bytes())
            differences += compare(made, ROOT / kind / made.name)
    for claim in sorted((folder / "claims").iterdir()):
        write_atomic(BUILD / "claims" / claim.name, claim.read_bytes())
    return differences


def main(force: bool = False) -> int:
    """Execute, gather, compare; print a table; return 0 if all agrees."""
    jobs = engine.jobs(os.environ.get("JOBS"))
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    SUMMARY.unlink(missing_ok=True)
    for notebook in notebooks:
        engine.source(notebook, BUILD / "sources")
    engine.library(BUILD / "sources")
    options = ["--cores", str(jobs), *["--forceall"] * force]
    began = time.time()
    snakemake = engine.start(SNAKEFILE, BUILD, BUILD / "runs", options)

    # Imported while Snakemake starts, which takes as long.
    import pandas as pd

    from firmlib.compendium import claims
    from firmlib.compendium.output import write_atomic
    from workflow import committed, packages
    from workflow.compare import compare

    foreign = packages.changed((engine.ROOT / "requirements.lock").read_text())
    ran = engine.follow(snakemake, BUILD, BUILD / "runs", began)
    print(f"{ran} notebooks executed." if ran else "Nothing has changed; no notebook was executed.")
    for kind in (*KINDS, "claims"):
        shutil.rmtree(BUILD / kind, ignore_errors=True)

    rows, failed = [], False
    notes = [f".venv: {each}; `make clean setup` makes it anew" for each in foreign]
    for notebook in notebooks:
        folder = BUILD / "runs" / notebook.stem
        run = engine.state(folder)
        error = run["status"] == "failed"
        failed |= error
        differences = [engine.failure(folder)] if error else gather(folder)
        notes += [f"{notebook.stem}: {difference}" for difference in differences]
        recorded = [c for c in claims.collect(folder / "claims") if c["verdict"] != "open"]
        verdicts = Counter(claim["verdict"] for claim in recorded)
        rows.append(
            {
                "notebook": notebook.stem,
                "seconds": f"{run['seconds']:.0f}",
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

    broken, old = committed.notes(ROOT / "data", ROOT / "notebooks", BUILD / "sources")
    notes += broken
    print(pd.DataFrame(rows).to_string(index=False))
    for note in notes:
        print(f"- {note}")
    for note in old:
        print(f"Note: {note}")
    if not notes:
        print("Everything made in build/ agrees with what is committed.")
    elif not failed:
        print("`make accept` takes over what is in build/.")
    write_atomic(SUMMARY, claims.dumps({"failed": failed, "notes": notes}))
    return 1 if notes else 0


if __name__ == "__main__":
    sys.exit(main(force="--force" in sys.argv))
