"""Take over what `make reproduce` made: copy build/ over what is committed."""

import json
import re
import sys

from firmlib.compendium import claims
from firmlib.compendium.output import write_atomic
from workflow import BUILD, KINDS, ROOT, SUMMARY

README, CLAIMS = ROOT / "README.md", ROOT / "CLAIMS.md"


def with_overview(readme: str, ledger: list[dict]) -> str:
    """Return the README with its part on the claims made from the ledger."""
    between = re.compile("(?<=<!-- claims -->\n).*?(?=<!-- /claims -->)", re.DOTALL)
    if not between.search(readme):
        raise ValueError("README.md has no <!-- claims --> … <!-- /claims --> for its table")
    return between.sub(lambda _: claims.overview(ledger) + "\n", readme)


def main() -> int:
    """Copy, rewrite CLAIMS.md and the README's tables, and name every file that changed."""
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
    misprints = json.loads((ROOT / "data" / "misprints.json").read_text())
    changes[README] = with_overview(README.read_text(), ledger).encode()
    changes[CLAIMS] = claims.page(ledger, misprints).encode()
    changed = [p for p, new in changes.items() if not p.exists() or p.read_bytes() != new]
    for path in changed:
        write_atomic(path, changes[path])
        print(f"  {path.relative_to(ROOT)}")
    print(f"{len(changed)} of {len(changes)} files changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
