"""Every public name of firmlib says what its parameters are and what they default to.

A name is public if its module's `__all__` has it. `compendium/` serves the notebooks alone and is
left out.
"""

import importlib
import inspect
import pkgutil
import re

import pytest

import firmlib
from firmlib.strings import DNA

INTRODUCES = re.compile(r"^(?P<names>\**\w+(, \**\w+)*)(?P<kind> : .*)?$")
PARAMETERS = re.compile(r"\n *Parameters\n *-+\n(.*?)(?=\n *\w+( \w+)?\n *--+\n|\Z)", re.S)
REFERS = re.compile(r"[Aa]s (?:in|for) `([\w.]+)`")

MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(firmlib.__path__, "firmlib.")
    if "._" not in info.name and ".compendium" not in info.name
]


def public_names():
    """Yield the full name, and the object, of every public function and class."""
    for module in MODULES:
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if callable(value) and getattr(value, "__module__", "") == module.__name__:
                yield f"{module.__name__}.{name}", value


def methods():
    """Yield the full name, and the function, of every public method with parameters."""
    for full, cls in CLASSES.items():
        for name, value in vars(cls).items():
            function = getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(function) and parameters(function):
                yield f"{full}.{name}", function


def parameters(function):
    """Name to default (or Parameter.empty) of what a caller passes."""
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.name not in ("self", "cls")}


def entries(docstring):
    """Name to text (type and description) of each parameter in a numpydoc docstring."""
    section = re.search(
        r"\n *Parameters\n *-+\n(.*?)(?=\n *\w+( \w+)?\n *--+\n|\Z)", docstring, re.S
    )
    found, names = {}, []
    for line in section[1].splitlines() if section else []:
        head = INTRODUCES.match(line)
        if head:
            names = [name.lstrip("*") for name in head["names"].split(", ")]
            found |= dict.fromkeys(names, head["kind"] or "")
        elif names:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def says_default(text, default, name):
    """Whether a parameter's text states its default, or refers to a function that has the same."""
    refers = REFERS.search(text)
    if refers:
        target = next(value for full, value in NAMES.items() if full.endswith("." + refers[1]))
        return parameters(target).get(name, "missing") in (default, inspect.Parameter.empty)
    if default is None:
        return "optional" in text or "default" in text
    return any(value == default for value in stated_values(text))


def stated_values(text):
    """What may be meant by "default 2**20 bytes, …": the values of all beginnings that have one."""
    after = re.search(r"default (.*)", text)
    for end in range(1, min(len(after[1]) if after else 0, 60) + 1):
        try:
            value = eval(after[1][:end], {"__builtins__": {}, "slice": slice, "DNA": DNA})
        except (SyntaxError, NameError, TypeError):
            continue
        yield value


NAMES = dict(public_names())
CLASSES = {name: value for name, value in NAMES.items() if inspect.isclass(value)}
METHODS = dict(methods())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_modules_say_what_is_public(module):
    if not hasattr(module, "__all__"):
        pytest.xfail("has no __all__ yet")
    for name in module.__all__:
        assert hasattr(module, name)


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_documented_with_an_example(name):
    docstring = inspect.getdoc(NAMES[name]) or ""
    assert docstring.split("\n")[0].endswith((".", "?")), "the first line is no sentence"
    module = inspect.getdoc(inspect.getmodule(NAMES[name])) or ""
    shown = re.search(rf">>> .*\b{NAMES[name].__name__}\(", module)  # several builders in one
    assert ">>> " in docstring or "``" in docstring or shown, "there is no example"


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented_with_its_default(name):
    wanted = parameters(NAMES[name])
    documented = entries(inspect.getdoc(NAMES[name]) or "")
    plain = all(default is inspect.Parameter.empty for default in wanted.values())
    if not documented and (plain or inspect.isclass(NAMES[name])):
        return  # obvious arguments; or a class made by other functions
    assert set(documented) == set(wanted)
    for parameter, default in wanted.items():
        if default is not inspect.Parameter.empty:
            assert says_default(documented[parameter], default, parameter), (parameter, default)


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_named(name):
    docstring = inspect.getdoc(METHODS[name]) or ""
    known = entries(docstring)
    for parameter in parameters(METHODS[name]):
        assert parameter in known or f"`{parameter}`" in docstring, parameter


def test_a_missing_default_is_noticed():
    def function(a, b=2, *, c="x", d=None):
        """Add.

        Parameters
        ----------
        a : int
        b : int, default 2
        c : str
            What to write.
        d : str
            What to say.

        Returns
        -------
        int
        """

    found = entries(inspect.getdoc(function))
    assert list(found) == ["a", "b", "c", "d"]
    wanted = {"b": 2, "c": "x", "d": None}
    states = {name: says_default(found[name], default, name) for name, default in wanted.items()}
    assert states == {"b": True, "c": False, "d": False}
    assert not says_default(": int, default 3", 2, "b")
    assert says_default(": float, default 1e-6", 1e-6, "tol")
