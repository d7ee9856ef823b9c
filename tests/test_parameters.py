"""Notebook parameters: what papermill passes wrongly is caught with advice."""

import pytest

from firmlib.compendium.parameters import require


@pytest.mark.parametrize(
    ("value", "kind", "bounds"),
    [
        (3, int, {"low": 3, "high": 3}),
        (3, float, {"low": 0}),
        (0.5, float, {}),
        (False, bool, {}),
        ("a", str, {"options": ("a", "b")}),
        ([1, 2], list, {"low": 1, "high": 2}),
        (["a"], list, {"options": ("a", "b")}),
    ],
)
def test_accepted(value, kind, bounds):
    require("p", value, kind, **bounds)


@pytest.mark.parametrize(
    ("value", "kind", "bounds", "message"),
    [
        ("3", int, {}, r"p='3' is text, expected int; with papermill write, .* -y \"p: 10\""),
        ("false", bool, {}, r"p='false' is text, expected bool; .* -y \"p: false\""),
        ("[1]", list, {}, r"p='\[1\]' is text, expected list; .* -y \"p: \[1, 2\]\""),
        (True, int, {}, "p=True is bool, expected int"),
        (1, bool, {}, "p=1 is int, expected bool"),
        (1.5, int, {}, "p=1.5 is float, expected int"),
        (None, float, {}, "p=None is NoneType, expected float"),
        (1, str, {}, "p=1 is int, expected str$"),
        (2, int, {"low": 3}, "p=2 must be at least 3"),
        (2, int, {"high": 1}, "p=2 must be at most 1"),
        (2, int, {"low": 3, "high": 4}, "p=2 must be between 3 and 4"),
        (float("nan"), float, {"low": 0}, "p=nan must be at least 0"),
        ([1, 5], list, {"high": 4}, r"p=\[1, 5\] must be at most 4"),
        ([], list, {}, r"p=\[\] is empty"),
        ("c", str, {"options": ("a", "b")}, r"p='c' is unknown; expected one of \['a', 'b'\]"),
    ],
)
def test_refused(value, kind, bounds, message):
    with pytest.raises(ValueError, match=message):
        require("p", value, kind, **bounds)
