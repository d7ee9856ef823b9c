"""Grids of sweeps: what they expand to, and what is wrong in them, by line."""

import json

import nbformat
import pytest

from workflow import ROOT, committed, engine
from workflow.grid import Grid
from workflow.sweep import results, table

CELLS = [
    "n: int = 10  # rows\nC: float = 1.0  # cost\nflag: bool = True  # or not\n"
    'name: str = "a"  # of it\nparts: list[int] = [1, 2]  # of it\nseed: int = 0  # random',
    "metrics.record(rank=n, score=C)",
]


@pytest.fixture
def grid(tmp_path):
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    cells[0].metadata["tags"] = ["parameters"]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python"}
    nbformat.write(notebook, tmp_path / "tiny.ipynb")

    def read(text, **options):
        path = tmp_path / "g.yaml"
        path.write_text("notebook: tiny\n" + text)
        return Grid(path, tmp_path, **options)

    return read


def values(grid, name):
    return [point[name] for point in grid.points.values()]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("{n: [1, 2]}", "n", [1, 2]),
        ("{n: 5}", "n", [5]),
        ("{n: {range: [1, 3]}}", "n", [1, 2, 3]),
        ("{n: {range: [1, 8, 3]}}", "n", [1, 4, 7]),
        ("{C: {range: [0, 1, 0.1]}}", "C", [round(i / 10, 1) for i in range(11)]),
        ("{C: {log_range: [0.01, 100, 5]}}", "C", [0.01, 0.1, 1.0, 10.0, 100.0]),
        ("{n: {log_range: [1, 4, 5]}}", "n", [1, 2, 3, 4]),
        ("{C: [1, 2]}", "C", [1.0, 2.0]),
        ("{flag: [false, true]}", "flag", [False, True]),
        ("{name: [a, b]}", "name", ["a", "b"]),
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
    ("text", "line", "message"),
    [
        ("parameters:\n  m: [1]", 3, "unknown parameter 'm'; tiny has n, C, flag"),
        ("parameters:\n  n: [1]\n  C:\n  - 1.0\n  - x", 6, "C='x' is text, expected float"),
        ("parameters:\n  C: [1e-3]", 3, "C='1e-3' is text, expected float; write 0.001"),
        ("parameters:\n  n: [1.5]", 3, "n=1.5 is float, expected int"),
        ("parameters:\n  n: [true]", 3, "n=True is bool, expected int"),
        ("parameters:\n  flag: ['false']", 3, "flag='false' is text, expected bool"),
        ("parameters:\n  parts: [[1], 2]", 3, r"parts=2 is int, expected list\[int\]"),
        ("parameters:\n  n: []", 3, r"n=\[\] is empty"),
        ("parameters:\n  n: {range: [3, 1]}", 3, "is no range; expected"),
        ("parameters:\n  n: {log_range: [0, 1, 3]}", 3, "is no range; expected"),
        ("parameters:\n  n: {from: 1}", 3, "is no range; expected"),
        ("parameters:\n  n: [1]\n  n: [2]", 4, "'n' stands here twice"),
        ("parameters: [3]", 2, "expected parameters with their values"),
        ("parameters: {n: [1]}\nseeds: 0", 3, "seeds=0 must be a whole number"),
        ("parameters: {seed: [1]}\nseeds: 2", 3, "exclude each other"),
        ("parameters: {n: [1]}\nskip: n > 1", 3, "expected a list"),
        ("parameters: {n: [1]}\nskip:\n- n >", 4, "is no expression"),
        ("parameters: {n: [1]}\nskip:\n- m > 1", 4, "unknown parameter 'm'"),
        ("parameters: {n: [1]}\nskip:\n- n > 2\n- open('x')", 5, "may only compare"),
        ("parameters: {n: [1]}\nskip:\n- name > 1", 4, "not supported between"),
        ("parameters: {n: [1]}\nskip:\n- n == 1", 3, "no point is left"),
        ("parameters: {n: [1]}\nmetrics: [rank, auc]", 3, "tiny never records 'auc'"),
        ("parameters: {n: [1]}\nmetric: [rank]", 3, "'metric' is unknown; expected one of"),
        ("parameters:\n  n: {range: [1, 10000000000]}", 3, "has more than 1000000 values"),
        ("parameters:\n  C: {range: [0, 1, 1.0e-300]}", 3, "has more than 1000000 values"),
        ("parameters:\n  C: {range: [0, .inf]}", 3, "has more than 1000000 values"),
        ("parameters:\n  C: {log_range: [1, .inf, 3]}", 3, "is no range"),
        ("parameters:\n  C: {log_range: [1, 2, 100000000000]}", 3, "is no range"),
        ("parameters:\n  C: [1.0, .inf]", 3, "C=inf must be finite"),
        ("parameters:\n  C: .nan", 3, "C=nan must be finite"),
        (f"parameters:\n  C: 1{'0' * 400}", 3, "is int, expected float"),
        ("parameters: {n: 1}\nseeds: 100000000000", 3, "must be a whole number from 1 to 1000000"),
        ("parameters: {n: [1]}\nskip:\n- n > 9**9**9", 4, "may only compare and calculate"),
        ("parameters: {n: [1]}\nskip:\n- n > 1 << 99999999", 4, "may only compare and calc"),
        ("parameters: {n: [1]}\nskip:\n- name * n == name", 4, "calculate with numbers"),
        ("parameters: {n: [1]}\nskip:\n- name == 'a' * 99999999999", 4, "calculate with numbers"),
        ("a: &a [1]\nparameters: {n: *a}", 3, r"write \*a out"),
        ("parameters: &a\n  n: *a", 3, r"write \*a out"),
        ("parameters:\n  ? [n, C]\n  : 1", 3, "expected a name before the colon"),
        ("parameters:\n  n: {range: [1, 101]}\n  seed: {range: [1, 100]}", 2, "10100 points; add"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(grid, text, line, message):
    with pytest.raises(ValueError, match=rf"g\.yaml:{line}: .*{message}"):
        grid(text)


def test_all_complaints_come_at_once_and_large_grids_with_consent(grid):
    with pytest.raises(ValueError, match=r"(?s)yaml:3: .*yaml:4: "):
        grid("parameters:\n  m: [1]\n  n: []")
    large = grid("parameters: {n: {range: [1, 10001]}}", limit=float("inf"))
    assert len(large.points) == 10_001


def test_files_that_are_no_grid_are_refused(grid):
    with pytest.raises(ValueError, match=r"g.yaml: .*line 2"):
        grid("parameters: [")
    path = grid("parameters: {n: 1}").path
    path.write_text("\nnotebook: x")
    with pytest.raises(ValueError, match=r"g.yaml:2: no notebook 'x'; there are tiny"):
        Grid(path, path.parent)
    for name in (
        "../tiny",
        f"{path.parent}/tiny",
        "sub/../tiny",
    ):  # what is outside is not executed
        path.write_text(f"notebook: {name}")
        with pytest.raises(ValueError, match=r"g.yaml:1: no notebook .*; there are tiny"):
            Grid(path, path.parent)
    path.write_text("[" * 1000 + "]" * 1000)
    with pytest.raises(ValueError, match="nested too deeply"):
        Grid(path, path.parent)


def test_results_have_a_row_for_every_point(grid, tmp_path):
    found = grid("parameters: {n: [1, 2, 3, 4]}\nmetrics: [rank, score]")
    states = [
        {"status": "done", "seconds": 1.5, "metrics": {"rank": 1, "score": 1 / 3}},
        {"status": "failed", "seconds": 2.0, "error": "ValueError: no", "cell": 2, "metrics": {}},
        {"status": "running", "seconds": None},
    ]
    for point, state in zip(found.points, states, strict=False):
        (tmp_path / "points" / point).mkdir(parents=True)
        (tmp_path / "points" / point / "run.json").write_text(json.dumps(state))
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


# Tables that are committed


def test_committed_tables_are_whole(tmp_path):
    broken, _ = committed.notes(ROOT / "data", ROOT / "notebooks", tmp_path)
    assert broken == []
    assert len(list((ROOT / "data").glob("sweep_*.csv"))) == 2


def test_a_table_is_taken_over_with_what_made_it(grid, tmp_path):
    found, data = grid("parameters: {n: [1, 2]}\nmetrics: [rank]"), tmp_path / "data"
    made = tmp_path / "sweeps" / "g"
    for point in found.points:
        (made / "points" / point).mkdir(parents=True)
        run = {"status": "done", "seconds": 1.0, "metrics": {"rank": 1}}
        (made / "points" / point / "run.json").write_text(json.dumps(run))

    def take_over():
        committed.take_over(found.path, tmp_path / "sweeps", data)

    def notes():
        return committed.notes(data, tmp_path, tmp_path / "sources")

    with pytest.raises(SystemExit, match=r"There is no table of .*g\.yaml"):
        take_over()
    rows = table(results(found, made))
    (made / "results.csv").write_text(rows)
    makers = engine.makers(found.notebook, tmp_path / "sources")
    (made / "makers.json").write_text(committed.dumps(found.notebook, rows, makers))
    take_over()
    copy = data / "sweep_g.csv"
    assert copy.read_text() == rows
    assert notes() == ([], [])

    text = found.notebook.read_text()
    found.notebook.write_text(text.replace("rank=n", "rank=n + 1"))
    assert notes() == ([], ["sweep_g.csv was made with another notebook; make sweep renews it"])
    found.notebook.write_text(text.replace('"outputs": []', '"outputs": [ ]'))
    assert notes() == ([], [])
    copy.write_text("".join(rows.splitlines(keepends=True)[:-1]))
    [said], _ = notes()
    assert said.startswith("sweep_g.csv is not what its sweep made")
    copy.with_suffix(".json").write_text("{")
    [said], _ = notes()
    assert "its checksums cannot be read" in said

    (made / "results.csv").write_text(rows.replace("1,1,1,done", "1,1,2,done"))
    with pytest.raises(SystemExit, match="was changed after the sweep"):
        take_over()
    (made / "results.csv").write_text(rows.replace("done", "failed", 1))
    with pytest.raises(SystemExit, match="1 points are not done"):
        take_over()
