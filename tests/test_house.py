"""How the library is laid out: the tree, the direction of imports, the sizes, one call of firm."""

import ast
import importlib
import sys
from graphlib import TopologicalSorter

import numpy as np
import pandas as pd
import pytest

import firmlib
from workflow import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "firmlib").rglob("*.py"))
}
ROOMS = "binary datasets display expansion features measure normal result scores streaming"
ROOMS = set((ROOMS + " compendium estimation joint strings tables").split())
FLOORS = [  # each may import those before it
    {"tables"},
    {"scores", "features"},
    {"estimation"},
    {"joint"},
    {"result", "measure"},  # firm returns a FirmResult
    {"streaming"},
    {"display"},
]
CLOSED_FORMS = {"binary", "normal", "expansion", "datasets"}


def imported(path, nested=False):
    """The modules of firmlib that one needs when it is imported, or at all; not for types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if nested else tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("firmlib"):
            inner = {f"{node.module}.{name.name}" for name in node.names} & set(MODULES)
            yield from inner or {node.module}


GRAPH = {name: set(imported(path)) for name, path in MODULES.items()}


def room(module):
    if module in ("firmlib.joint.search", "firmlib.joint.stability"):
        return "streaming"  # rules and refits are measured by firm
    return module.split(".")[1] if "." in module else ""


def test_the_rooms_are_those_of_the_design():
    assert {room(name) for name in MODULES} - {""} == ROOMS


def test_imports_go_one_way():
    TopologicalSorter(GRAPH).prepare()  # raises if there is a circle
    floor = {name: k for k, names in enumerate(FLOORS) for name in names}
    for name, needs in GRAPH.items():
        for need in needs:
            a, b = floor.get(room(name)), floor.get(room(need))
            if a is not None and b is not None:
                assert b <= a, f"{name} imports {need}"
            if room(name) in floor:
                assert room(need) not in {"strings", *CLOSED_FORMS}, f"{name} imports {need}"


def test_nothing_but_notebooks_needs_the_compendium():
    for name, path in MODULES.items():
        if room(name) != "compendium":
            assert not any(room(need) == "compendium" for need in imported(path, nested=True)), name


def lines(path):
    return path.read_text(encoding="utf-8").count("\n")


def test_no_file_is_longer_than_350_lines():
    long = {name: lines(path) for name, path in MODULES.items() if lines(path) > 350}
    assert not long


def test_firmlib_does_not_grow():
    assert sum(map(lines, MODULES.values())) <= 7_250


def test_no_function_is_longer_than_50_lines():
    long = {}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                size = node.end_lineno - body[0].lineno + 1 if body else 0
                if size > 50:
                    long[f"{name}.{node.name}"] = size
    assert not long


@pytest.mark.parametrize(("words", "modules", "changes"), [(False, 12, 60), (True, 13, 95)])
def test_one_call_of_firm_stays_in_few_modules(words, modules, changes):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 4)), columns=list("abcd"))
    if words:
        frame["word"] = np.where(frame["a"] > 0, "up", "down")
    s = frame["a"].to_numpy()
    firmlib.firm(s, frame)  # what is imported late
    folder, walk = str(ROOT / "firmlib"), []

    def note(stack, event, argument):
        name = stack.f_code.co_filename
        if event == "call" and name.startswith(folder) and walk[-1:] != [name]:
            walk.append(name)

    sys.setprofile(note)
    try:
        firmlib.firm(s, frame)
    finally:
        sys.setprofile(None)
    assert len(set(walk)) <= modules
    assert len(walk) <= changes


@pytest.mark.parametrize("name", [n for n in MODULES if "._" not in n and "compendium" not in n])
def test_every_module_says_what_is_public(name):
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [])  # constants first, as ruff sorts them
    assert names == sorted(names, key=lambda name: (not name.isupper(), name)) or name == "firmlib"
    assert all(hasattr(module, each) for each in names)
    inner = {"estimation", "joint", "tables", "compendium"}
    assert names or room(name) in inner or name.count(".") > 1


def test_the_public_names():
    asked = """firm conditional_expected_score firm_by_class compare search stability unexplained
    FirmResult ConditionalScore FirmByClass StreamingFirm FirmDisplay ConditionalScoreDisplay
    plot_interactions binary datasets expansion features normal scores strings"""
    assert set(asked.split()) <= set(firmlib.__all__)
    assert set(firmlib.__all__) <= set(dir(firmlib))
    for name in firmlib.__all__:
        assert getattr(firmlib, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        firmlib.nothing  # noqa: B018
