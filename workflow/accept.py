"""Take over what `make reproduce` made: copy build/ over what is committed."""

import json
import re
import sys

from firmlib.compendium import claims
from firmlib.compendium.output import write_atomic
from workflow import BUILD, KINDS, ROOT, SUMMARY

README = ROOT / "README.md"


def with_tables(readme: str, ledger: list[dict[str, str]]) -> str:
    """Return the README with its tables of claims and errata made from the ledger."""
    for name, text in (("claims", claims.table(ledger)), ("errata", claims.errata(ledger))):
        between = re.compile(f"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        if not between.search(readme):
            raise ValueError(f"README.md has no <!-- {name} --> … <!-- /{name} --> for its table")
        readme = between.sub(lambda _, text=text: text + "\n", readme)
    return readme


def main() -> int:
    """Copy, rewrite the README's table, and name every file that changed."""
    if not SUMMARY.exists():
        sys.exit("Nothing to accept: run `make reproduce` to its end first.")
    if json.loads(SUMMARY.read_text())["failed"]:
        sys.exit("Not accepted: a notebook failed in the last `make reproduce`.")
    ledger = json.loads((BUILD / "data" / "claims.json").read_text())
    changes = {
        ROOT / kind / path.name: path.read_bytes()
        for kind in KINDS
        for path in sorted((BUILD / kind).glob("*"))
    }
    changes[README] = with_tables(README.read_text(), ledger).encode()
    changed = [p for p, new in changes.items() if not p.exists() or p.read_bytes() != new]
    for path in changed:
        write_atomic(path, changes[path])
        print(f"  {path.relative_to(ROOT)}")
    print(f"{len(changed)} of {len(changes)} files changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
