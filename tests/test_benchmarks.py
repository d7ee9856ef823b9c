"""The tables of the benchmarks are those of the results; nothing here is timed."""

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("without the benchmarks, as in a source distribution", allow_module_level=True)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import run

    yield run
    for name in ("run", "timing"):
        sys.modules.pop(name)


@pytest.fixture
def row(run):
    return run.Row


def test_the_page_shows_the_results(run):
    results = json.loads((FOLDER / "results.json").read_text())
    assert set(results) <= set(run.SCRIPTS)
    assert run.page(results) == (FOLDER / "results.md").read_text()
    assert len((FOLDER / "README.md").read_text().split()) < 900


def test_a_table_says_where_a_peer_wins(run, row):
    table = run.table([row("ours", 2.0), row("fast", 1.0, ratio=0.5), row("slow", 9.0, ratio=4.5)])
    assert table.splitlines()[2:] == [
        "| ours | 2 CPU s |  |",
        "| fast | 1 CPU s | **0.5 × firmlib** |",
        "| slow | 9 CPU s | 4.5 × firmlib |",
        "",
        "Faster than firmlib: fast.",
    ]
    assert "Faster" not in run.table([row("half a copy", 1.0, ratio=0.5, to="copy")])


def test_a_table_says_which_targets_are_missed(run, row):
    rows = [
        row("sorted", 1.0, ratio=0.3, to="np.sort", target=0.2),
        row("small", 4.0, "CPU ms", target=5),
        row("large", 1500.0, "MB", target=120),
    ]
    assert run.table(rows).splitlines()[2:] == [
        "| sorted | 1 CPU s | **0.3 × np.sort (target: 0.2)** |",
        "| small | 4 CPU ms | (target: 5) |",
        "| large | 1 500 MB | **(target: 120)** |",
        "",
        "Target missed: sorted; large.",
    ]
