"""Accept what was made: copy it over what is committed.

python -m workflow accept         what `make reproduce` made, from build/
python -m workflow accept GRID    the table of a sweep, as data/sweep_NAME.csv
"""

import csv
import json
import re
import sys
from pathlib import Path

from workflow import BUILD, KINDS, ROOT, SUMMARY, ledger, write
from workflow.examples import picture, with_outputs

README, PICTURE = ROOT / "README.md", ROOT / "docs" / "example.png"
GUIDE, CLAIMS = ROOT / "docs" / "guide.md", ROOT / "docs" / "claims.md"


def with_strip(readme: str, claims: list[dict]) -> str:
    """Return the README with its strip of verdicts made from the ledger."""
    between = re.compile("(?<=<!-- claims -->\n).*?(?=<!-- /claims -->)", re.DOTALL)
    if not between.search(readme):
        raise ValueError("README.md has no <!-- claims --> … <!-- /claims --> for its verdicts")
    return between.sub(lambda _: ledger.strip(claims) + "\n", readme)


def reproduced() -> dict[Path, bytes]:
    """Return notebooks, figures and data of a whole run, and the pages made from them."""
    if not SUMMARY.exists():
        sys.exit("Nothing to accept: run `make reproduce` to its end first.")
    if json.loads(SUMMARY.read_text())["failed"]:
        sys.exit("Not accepted: a notebook failed in the last `make reproduce`.")
    claims = json.loads((BUILD / "data" / "claims.json").read_text())
    misprints = json.loads((ROOT / "data" / "misprints.json").read_text())
    made = [path for kind in KINDS for path in sorted((BUILD / kind).glob("*"))]
    return {ROOT / path.parent.name / path.name: path.read_bytes() for path in made} | {
        README: with_outputs(with_strip(README.read_text(), claims)).encode(),
        PICTURE: picture(),
        GUIDE: with_outputs(GUIDE.read_text()).encode(),
        CLAIMS: ledger.page(claims, misprints).encode(),
    }


def swept(grid: str) -> dict[Path, bytes]:
    """Return the table of a sweep of which every point is done, and the checksums of its makers."""
    name = Path(grid).stem
    made, target = BUILD / "sweeps" / name, ROOT / "data" / f"sweep_{name}"
    if not (made / "makers.json").exists():
        sys.exit(f"There is no table of {grid}: make sweep GRID={grid}")
    with (made / "results.csv").open() as table:
        undone = sum(row["status"] != "done" for row in csv.DictReader(table))
    if undone:
        sys.exit(f"Not accepted: {undone} points are not done: make sweep GRID={grid}")
    return {
        target.with_suffix(".csv"): (made / "results.csv").read_bytes(),
        target.with_suffix(".json"): (made / "makers.json").read_bytes(),
    }


def main(grid: str = "") -> int:
    """Copy, and name every file that changed."""
    changes = swept(grid) if grid else reproduced()
    changed = [p for p, new in changes.items() if not p.exists() or p.read_bytes() != new]
    for path in changed:
        write(path, changes[path])
        print(f"  {path.relative_to(ROOT)}")
    print(f"{len(changed)} of {len(changes)} files changed.")
    return 0
