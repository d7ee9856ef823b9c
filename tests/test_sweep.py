"""Grids of sweeps, what is wrong in them, and papermill on its own."""

import csv
import json
import os
import subprocess
import sys

import nbformat
import pytest

from tests.tiny import write_notebook
from workflow import ROOT
from workflow.grid import Grid
from workflow.sweep import results, table

CELLS = [
    "n: int = 10  # rows\nC: float = 1.0  # cost\nflag: bool = True  # or not\n"
    'name: str = "a"  # of it\nparts: list[int] = [1, 2]  # of it\nseed: int = 0  # random',
    "metrics.record(rank=n, score=C)",
]


@pytest.fixture
def grid(tmp_path):
    write_notebook(tmp_path / "tiny.ipynb", *CELLS)

    def read(text):
        path = tmp_path / "g.yaml"
        path.write_text("notebook: tiny\n" + text)
        return Grid(path, tmp_path)

    return read


def values(grid, name):
    return [point[name] for point in grid.points.values()]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("{n: [1, 2]}", "n", [1, 2]),
        ("{n: {range: [1, 3]}}", "n", [1, 2, 3]),
        ("{n: {range: [1, 8, 3]}}", "n", [1, 4, 7]),
        ("{C: {range: [0, 1, 0.1]}}", "C", [round(i / 10, 1) for i in range(11)]),
        ("{C: {log_range: [0.01, 100, 5]}}", "C", [0.01, 0.1, 1.0, 10.0, 100.0]),
        ("{C: [1, 2]}", "C", [1.0, 2.0]),
        ("{parts: [1, 2]}", "parts", [[1, 2]]),
        ("{parts: [[1], [2, 3]]}", "parts", [[1], [2, 3]]),
    ],
)
def test_values_expand_typed(grid, text, name, expected):
    found = values(grid(f"parameters: {text}"), name)
    assert found == expected
    assert [type(v) for v in found] == [type(v) for v in expected]


def test_seeds_blocks_and_skip_make_a_union_in_the_order_of_the_file(grid):
    found = grid(
        "parameters:\n- {n: [1, 2], seeds: 2}\n- {n: 2, C: [1.0, 3.0]}\nskip: [n == 1 and seed > 0]"
    )
    assert list(found.points.values()) == [
        {"n": 1, "C": 1.0, "seed": 0},
        {"n": 2, "C": 1.0, "seed": 0},
        {"n": 2, "C": 1.0, "seed": 1},
        {"n": 2, "C": 3.0, "seed": 0},
    ]


def test_a_point_keeps_its_name_when_the_grid_grows(grid):
    small = grid("parameters: {n: [1, 2]}")
    large = grid("parameters:\n- {n: [1, 2, 3]}\n- {flag: [true, false]}\nmetrics: [rank]")
    assert set(small.points) < set(large.points)
    assert all(len(point) == 10 for point in large.points)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parameters: {m: [1]}", "unknown parameter 'm'; tiny has n, C, flag"),
        ("parameters: {C: [1.0, x]}", "C='x' must be a finite float"),
        ("parameters: {C: [1e-3]}", r"C='1e-3' must be .* write 1\.0e-3"),
        ("parameters: {flag: ['false']}", "flag='false' must be a finite bool"),
        ("parameters: {parts: [[1], 2]}", r"parts=2 must be a finite list\[int\]"),
        ("parameters: {n: []}", r"n=\[\] is empty"),
        ("parameters: {n: [1], n: [2]}", "'n' occurs twice .* line 2"),
        ("parameters: [3]", "3 must be a mapping"),
        ("parameters: {n: [1]}\nseeds: 1.5", "seeds=1.5 must be"),
        ("parameters: {seed: [1]}\nseeds: 2", "exclude each other"),
        ("parameters: {n: [1]}\nskip: [n >]", r"skip: 'n >'"),
        ("parameters: {n: [1]}\nskip: [m > 1]", "'m' is not defined"),
        ("parameters: {n: [1]}\nskip: [open('x')]", "not a supported function"),
        ("parameters: {n: [1]}\nskip: [n == 1]", "no point is left"),
        ("parameters: {n: [1]}\nmetrics: [rank, auc]", "tiny never records 'auc'"),
        ("parameters: {n: [1]}\nmetric: [rank]", "some of the keys notebook, parameters"),
        ("parameters: {n: {range: [1, 10000000000]}}", "at most 10000 values"),
        ("parameters: {C: [1.0, .inf]}", "C=inf must be a finite"),
        (f"parameters: {{C: 1{'0' * 400}}}", "too large"),
        ("parameters: {n: {range: [1, 101]}, seed: {range: [1, 100]}}", "10100 points; split"),
        ("parameters: [", "line 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(grid, text, message):
    with pytest.raises(ValueError, match=rf"g\.yaml: .*{message}"):
        grid(text)


def test_only_notebooks_of_the_folder_are_swept(grid):
    path = grid("parameters: {n: 1}").path
    for name in ("x", "../tiny", f"{path.parent}/tiny", "sub/../tiny"):
        path.write_text(f"notebook: {name}")
        with pytest.raises(ValueError, match=r"g.yaml: no notebook .*; there are \['tiny'\]"):
            Grid(path, path.parent)


def test_results_have_a_row_for_every_point(grid, tmp_path):
    found = grid("parameters: {n: [1, 2, 3, 4]}\nmetrics: [rank, score]")
    states = [
        {"status": "done", "seconds": 1.5, "metrics": {"rank": 1, "score": 1 / 3}},
        {"status": "failed", "seconds": 2.0, "error": "ValueError: no", "cell": 2, "metrics": {}},
    ]
    for point, state in zip(found.points, states, strict=False):
        (tmp_path / "runs" / point).mkdir(parents=True)
        (tmp_path / "runs" / point / "run.json").write_text(json.dumps(state))
    lines = table(results(found, tmp_path)).splitlines()
    assert lines[0] == "point,n,rank,score,seconds,status,error,cell"
    assert [line.split(",", 1)[1] for line in lines[1:]] == [
        "1,1,0.333333,1.5,done,,",
        "2,,,2,failed,ValueError: no,2",
        "3,,,,not run,,",
        "4,,,,not run,,",
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "workflow" / "sweeps").glob("*.yaml")))
def test_committed_grids_are_right(path):
    assert len(Grid(path, ROOT / "notebooks").points) >= 40


def test_cells_that_a_spreadsheet_would_compute_are_quoted():
    """By a ' before them; numbers, negative ones too, stay numbers."""
    texts = ["=1+1", "+1", "-2", "@a", "\tb", "a=b", "'c"]
    rows = [{"=n": text, "x": -1.5, "i": -2, "error": ""} for text in texts]
    head, *read = csv.reader(table(rows).splitlines())
    assert head == ["'=n", "x", "i", "error"]
    assert [row[0] for row in read] == ["'=1+1", "'+1", "'-2", "'@a", "'\tb", "a=b", "'c"]
    assert {tuple(row[1:]) for row in read} == {("-1.5", "-2", "")}


# papermill on its own


GATTACA = str(ROOT / "notebooks" / "08_gattaca.ipynb")


def test_it_runs_from_another_folder(tmp_path):
    few = ["-p", "degree", "6", "-p", "n", "200", "-y", "full: false"]
    ran = subprocess.run(
        [sys.executable, "-m", "papermill", GATTACA, "out.ipynb", *few],
        cwd=tmp_path,
        env=os.environ | {"FIRMLIB_OUTPUT": str(tmp_path / "made")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert any("rank_firm" in str(cell.get("outputs")) for cell in cells)
    assert (tmp_path / "made" / "metrics.json").exists()
