"""Accept what was made: copy it over what is committed.

python -m workflow accept         what `make reproduce` made, from build/
python -m workflow accept GRID    the table of a sweep, as data/sweep_NAME.csv
"""

import contextlib
import csv
import io
import json
import re
import sys
from pathlib import Path

from matplotlib import pyplot as plt

from workflow import BUILD, KINDS, ROOT, SUMMARY, ledger, write

README, CLAIMS = ROOT / "README.md", ROOT / "docs" / "claims.md"
PICTURE = ROOT / "docs" / "example.png"


def filled(readme: str, name: str, text: str) -> str:
    """Return the README with `text` between <!-- name --> and <!-- /name -->."""
    between = re.compile(f"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    if not between.search(readme):
        raise ValueError(f"README.md has no <!-- {name} --> … <!-- /{name} -->")
    return between.sub(lambda _: text + "\n", readme)


def example(readme: str) -> tuple[str, bytes]:
    """Run the README's Python; return what it prints and the picture it draws."""
    code = "".join(re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL))
    if not code:
        return "", b""
    plt.switch_backend("agg")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    drawn = io.BytesIO()
    plt.savefig(drawn, dpi=150, bbox_inches="tight", metadata={"Software": None})
    plt.close()
    return f"```text\n{printed.getvalue()}```", drawn.getvalue()


def reproduced() -> dict[Path, bytes]:
    """Return the notebooks, figures and data of a whole run, docs/claims.md, the README."""
    if not SUMMARY.exists():
        sys.exit("Nothing to accept: run `make reproduce` to its end first.")
    if json.loads(SUMMARY.read_text())["failed"]:
        sys.exit("Not accepted: a notebook failed in the last `make reproduce`.")
    claims = json.loads((BUILD / "data" / "claims.json").read_text())
    misprints = json.loads((ROOT / "data" / "misprints.json").read_text())
    printed, picture = example(README.read_text())
    readme = filled(README.read_text(), "output", printed)
    made = [path for kind in KINDS for path in sorted((BUILD / kind).glob("*"))]
    return {ROOT / path.parent.name / path.name: path.read_bytes() for path in made} | {
        README: filled(readme, "claims", ledger.strip(claims)).encode(),
        CLAIMS: ledger.page(claims, misprints).encode(),
        PICTURE: picture,
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
