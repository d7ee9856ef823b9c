"""How the library is laid out: imports go one way, and every module says what is public."""

import ast
import importlib
from graphlib import TopologicalSorter

import pytest

from workflow import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "firmlib").rglob("*.py"))
}


def imported(path):
    """The modules of firmlib that one needs when it is imported, not later and not for types."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("firmlib"):
            inner = {f"{node.module}.{name.name}" for name in node.names} & set(MODULES)
            yield from inner or {node.module}


GRAPH = {name: set(imported(path)) for name, path in MODULES.items()}


def test_imports_go_one_way():
    TopologicalSorter(GRAPH).prepare()  # raises if there is a circle
    assert GRAPH["firmlib._table"] == {f"firmlib.{n}" for n in ("_checks", "_columns", "_fast")}
    assert GRAPH["firmlib._fast"] == {"firmlib._grid"}
    assert GRAPH["firmlib._checks"] == set()
    assert not GRAPH["firmlib._bins"] & {"firmlib._moments", "firmlib.features", "firmlib.result"}
    assert not GRAPH["firmlib._moments"] & {"firmlib._data", "firmlib.result", "firmlib.measure"}


def test_only_the_compendium_needs_the_compendium():
    for name, needs in GRAPH.items():
        if not name.startswith("firmlib.compendium"):
            assert not any(need.startswith("firmlib.compendium") for need in needs), name


@pytest.mark.parametrize("name", [n for n in MODULES if "._" not in n and "compendium" not in n])
def test_every_module_says_what_is_public(name):
    module = importlib.import_module(name)
    names = module.__all__  # constants first, as ruff sorts them
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    assert set(module.__all__) <= set(dir(module))
