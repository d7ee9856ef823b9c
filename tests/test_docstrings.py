"""Every public name of firmlib says what its parameters are and what they default to.

Public are the names in `__all__` of firmlib and of its public modules.
"""

import inspect
import re

import pytest

import firmlib

INTRODUCES = re.compile(r"^(?P<names>\**\w+(, \**\w+)*)(?P<kind> : .*)?$")
PARAMETERS = re.compile(r"\n *Parameters\n *-+\n(.*?)(?=\n *\w+( \w+)?\n *--+\n|\Z)", re.S)

MODULES = [
    getattr(firmlib, name) for name in firmlib.__all__ if inspect.ismodule(getattr(firmlib, name))
]


def public_names():
    """Yield the full name, and the object, of every public function and class."""
    for module in (firmlib, *MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{name}", value


def parameters(function):
    """Name to default (or Parameter.empty) of what a caller passes."""
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.name not in ("self", "cls")}


def entries(docstring):
    """Name to text (type and description) of each parameter in a numpydoc docstring."""
    section = PARAMETERS.search(docstring)
    found, names = {}, []
    for line in section[1].splitlines() if section else []:
        head = INTRODUCES.match(line)
        if head:
            names = [name.lstrip("*") for name in head["names"].split(", ")]
            found |= dict.fromkeys(names, head["kind"] or "")
        elif names:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def says_default(text, default):
    """Whether a parameter's text states its default, or refers to a function that has the same."""
    if refers := re.search(r"[Aa]s (?:in|for) `([\w.]+)`", text):
        homes = [v for name, v in NAMES.items() if name.endswith("." + refers[1].split(".")[-1])]
        return any(default in parameters(home).values() for home in homes)
    if default is None:
        return "optional" in text or "default" in text
    said = text.partition("default")[2].replace("'", '"')
    numbers = map(float, re.findall(r"[\d.]*\d", said))
    return repr(default).replace("'", '"') in said or default in numbers


NAMES = dict(public_names())


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_documented_with_an_example(name):
    docstring = inspect.getdoc(NAMES[name]) or ""
    assert docstring.split("\n")[0].endswith((".", "?")), "the first line is no sentence"
    made_by_others = inspect.isclass(NAMES[name]) and not entries(docstring)
    module = inspect.getdoc(inspect.getmodule(NAMES[name])) or ""
    shown = re.search(rf">>> .*\b{NAMES[name].__name__}\(", module)  # several builders in one
    assert ">>> " in docstring or made_by_others or shown, "there is no example"


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented(name):
    """In its section, or in a sentence; a default that is given is the one of the signature."""
    wanted, docstring = parameters(NAMES[name]), inspect.getdoc(NAMES[name]) or ""
    documented = entries(docstring)
    plain = all(default is inspect.Parameter.empty for default in wanted.values())
    if not documented and (plain or inspect.isclass(NAMES[name])):
        return  # obvious arguments; or a class made by other functions
    assert set(documented) <= set(wanted)
    named = set(documented) | set(re.findall(r"`(\w+)`", docstring))
    options = {p for p, default in wanted.items() if default is not inspect.Parameter.empty}
    assert options - named <= {"random_state", "ax"}  # the same everywhere
    for parameter, text in documented.items():
        default = wanted[parameter]
        if default is not inspect.Parameter.empty and re.search("default|[Aa]s (in|for) `", text):
            assert says_default(text, default), (parameter, default)
