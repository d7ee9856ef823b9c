"""Run the benchmarks; write results.json, results.md and peers.png.

    python benchmarks/run.py [kernel poim ...]

The function `rows` of each script runs in its own process. Scripts that are not run keep their
results. given, intervals and surrogate take long, and only print; they run if they are named.
"""

import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from matplotlib import pyplot as plt
from threadpoolctl import threadpool_limits
from timing import Row, number, show

FOLDER = Path(__file__).parent
SCRIPTS = {
    "targets": "Are the targets of speed met?",
    "peers": "How fast is FIRM beside its peers?",
    "scaling": "How do time and memory grow with rows and features?",
    "kernel": "How fast is the string kernel?",
    "poim": "How fast are POIMs and motifs?",
}
PRINTED = ("given", "intervals", "surrogate")
DRAWN = {
    "FIRM": "FIRM",
    "SHAP, 1000 rows": "SHAP of trees, 1000 rows",
    "partial dependence, 1000 rows": "partial dependence, 1000 rows",
    "permutation, 5 repeats": "permutation, 5 repeats",
}


def run(name: str) -> list[Row]:
    """Return what one script measures, on one thread; in a process of its own."""
    with threadpool_limits(1):
        return show(import_module(name).rows())


def table(rows: list[Row]) -> str:
    """Return a row for each, and what was faster than firmlib or missed its target."""
    lines = ["| | | beside it |", "|---|---|---|"]
    lines += [f"| {row.name} | {number(row.value)} {row.unit} | {row.beside} |" for row in rows]
    bold = [row for row in rows if row.beside.startswith("**")]
    for text, missed in (("Faster than firmlib", False), ("Target missed", True)):
        names = [row.name for row in bold if row.missed == missed]
        lines += ["", f"{text}: {'; '.join(names)}."] if names else []
    return "\n".join(lines) + "\n"


def page(results: dict) -> str:
    """Return results.md: the table of every script."""
    head = (
        "# All measurements\n\n`make bench` writes this page. [README.md](README.md) explains it.\n"
    )
    parts = [
        f"\n## {title} `{name}.py`\n\n{table([Row(**row) for row in results[name]['rows']])}"
        for name, title in SCRIPTS.items()
        if name in results
    ]
    return head + "".join(parts)


def picture(rows: list[dict]) -> plt.Figure:
    """Draw CPU seconds of FIRM and its peers for boosted trees, on a log scale."""
    found = {row["name"]: row["value"] for row in rows}
    seconds = {name: found[f"boosting: {what}"] for name, what in DRAWN.items()}
    figure, ax = plt.subplots(figsize=(6.5, 1.9), layout="constrained")
    colors = ["#D55E00", *["#8c959f"] * 3]
    bars = ax.barh([*seconds], [*seconds.values()], color=colors)
    ax.bar_label(bars, [f" {number(value)} s" for value in seconds.values()])
    ax.set(xscale="log", xlabel="CPU seconds: boosted trees, 10 000 rows, 20 features")
    ax.set_xlim(0.01, 4 * max(seconds.values()))
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(names: list[str]) -> None:
    """Run, and write after each script."""
    kept = FOLDER / "results.json"
    packages = ("firmlib", "numpy", "scipy", "scikit-learn")
    for name in names or SCRIPTS:
        print(f"\n{name}", flush=True)
        if name in PRINTED:
            subprocess.run([sys.executable, FOLDER / f"{name}.py"], check=True)
            continue
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            rows = fresh.submit(run, name).result()
        results = json.loads(kept.read_text()) if kept.exists() else {}
        versions = {package: version(package) for package in packages}
        results[name] = {"versions": versions, "rows": [row._asdict() for row in rows]}
        kept.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        (FOLDER / "results.md").write_text(page(results))
        if name == "peers":
            picture(results["peers"]["rows"]).savefig(FOLDER / "peers.png", dpi=150)


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - {*SCRIPTS, *PRINTED}:
        known = ", ".join([*SCRIPTS, *PRINTED])
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; expected some of {known}")
    main(sys.argv[1:])
