"""Run the benchmarks and write results.json and the tables of README.md.

    python benchmarks/run.py [kernel poim ...]

Each script's function `rows` runs in a process of its own. Of the scripts that are not run, the
results stay as they are. A script's table stands in README.md after the line `<!-- its name -->`.
"""

import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from threadpoolctl import threadpool_limits
from timing import Row, number, show

FOLDER = Path(__file__).parent
SCRIPTS = ("targets", "peers", "tables", "scaling", "streaming", "search", "kernel", "poim")


def run(name: str) -> list[Row]:
    """What one script measures, on one thread; in a process of its own."""
    with threadpool_limits(1):
        return show(import_module(name).rows())


def table(rows: list[Row]) -> str:
    """One row for each, and a word on what was faster than firmlib or missed its target."""
    lines = ["| | | beside it |", "|---|---|---|"]
    lines += [f"| {row.name} | {number(row.value)} {row.unit} | {row.beside} |" for row in rows]
    bold = [row for row in rows if row.beside.startswith("**")]
    for text, missed in (("Faster than firmlib", False), ("Target missed", True)):
        names = [row.name for row in bold if row.missed == missed]
        lines += ["", f"{text}: {'; '.join(names)}."] if names else []
    return "\n".join(lines) + "\n"


def with_tables(readme: str, results: dict) -> str:
    """The text with every table as the results have it."""
    for name, result in results.items():
        text = table([Row(**row) for row in result["rows"]])
        before = re.compile(rf"(<!-- {name} -->\n).*?(\n?<!-- end -->)", re.DOTALL)
        readme, found = before.subn(lambda m, text=text: m[1] + text + "<!-- end -->", readme)
        if found != 1:
            raise ValueError(f"README.md has {found} places for the table of {name}, expected 1")
    return readme


def main(names: list[str]) -> None:
    """Run, and write after each script."""
    kept, readme = FOLDER / "results.json", FOLDER / "README.md"
    packages = ("firmlib", "numpy", "scipy", "scikit-learn")
    for name in names or SCRIPTS:
        print(f"\n{name}", flush=True)
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            rows = fresh.submit(run, name).result()
        results = json.loads(kept.read_text()) if kept.exists() else {}
        versions = {package: version(package) for package in packages}
        results[name] = {"versions": versions, "rows": [row._asdict() for row in rows]}
        kept.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        readme.write_text(with_tables(readme.read_text(), results))


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - set(SCRIPTS):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(SCRIPTS)}")
    main(sys.argv[1:])
