"""Take over what `make reproduce` made: copy build/ over what is committed."""

import json
import re
import sys

from firmlib import claims
from firmlib._output import write_atomic
from workflow import BUILD, KINDS, ROOT, SUMMARY

README = ROOT / "README.md"


def with_table(readme: str, ledger: list[dict[str, str]]) -> str:
    """Return the README with its table of claims made from the ledger."""
    between = re.compile(r"(?<=<!-- claims -->\n).*?(?=<!-- /claims -->)", re.DOTALL)
    if not between.search(readme):
        raise ValueError("README.md has no <!-- claims --> … <!-- /claims --> to put the table in")
    return between.sub(lambda _: claims.table(ledger) + "\n", readme)


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
        for path in sorted((BUILD / kind).iterdir())
    }
    changes[README] = with_table(README.read_text(), ledger).encode()
    changed = [p for p, new in changes.items() if not p.exists() or p.read_bytes() != new]
    for path in changed:
        write_atomic(path, changes[path])
        print(f"  {path.relative_to(ROOT)}")
    print(f"{len(changed)} of {len(changes)} files changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
