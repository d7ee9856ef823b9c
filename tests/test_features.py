"""Features: every builder on every kind of table, and the names it gets."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from firmlib import features, firm
from firmlib._table import Table

A = np.array([[1, 0, -1], [0, 2, 1], [1, 2, 1], [-3, 0, 0]])
COLUMNS = {"age": A[:, 0], "height": A[:, 1], "weight": A[:, 2]}
FRAMES = {"pandas": pd.DataFrame(COLUMNS), "polars": pl.DataFrame(COLUMNS)}
SPARSE = {"csr": sparse.csr_array(A), "csc": sparse.csc_matrix(A)}
TABLES = {"numpy": A, "floats": A / 1.0, "lists": A.tolist(), **FRAMES, **SPARSE}

BUILT = {  # feature, its values on A, its name
    "coordinate": (features.coordinate(1), [0, 2, 2, 0], "x1"),
    "last": (features.coordinate(-1), [-1, 1, 1, 0], "x-1"),
    "product": (features.product(0, 2), [-1, 0, 1, 0], "x0·x2"),
    "cube": (features.product(0, 0, 0), [1, 0, 1, -27], "x0·x0·x0"),
    "threshold": (features.threshold(0, 0.5), [1, 0, 1, 0], "x0>0.5"),
    "at the threshold": (features.threshold(0, 1), [0, 0, 0, 0], "x0>1"),
    "literal": (features.literal(0, 1), [1, 0, 1, 0], "x0=1"),
    "conjunction": (features.conjunction({0: 1, 2: -1}), [1, 0, 0, 0], "x0=1 ∧ x2=-1"),
    "xor": (features.xor(0, 2), [1, 1, 0, 1], "x0 ⊕ x2"),
    "linear": (features.linear([1, 0.5, -2]), [3, -1, 0, -3], "a'x[1, 0.5, -2]"),
}
NAMED = {  # the same by column name
    "coordinate": (features.coordinate("height"), [0, 2, 2, 0], "height"),
    "product": (features.product("age", "weight"), [-1, 0, 1, 0], "age·weight"),
    "threshold": (features.threshold("age", 0.5), [1, 0, 1, 0], "age>0.5"),
    "literal": (features.literal("age", 1), [1, 0, 1, 0], "age=1"),
    "conjunction": (
        features.conjunction({"age": 1, "weight": -1}),
        [1, 0, 0, 0],
        "age=1 ∧ weight=-1",
    ),
    "xor": (features.xor("age", "weight"), [1, 1, 0, 1], "age ⊕ weight"),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
@pytest.mark.parametrize(("f", "expected", "name"), BUILT.values(), ids=BUILT.keys())
def test_by_position(f, expected, name, table):
    values = f(table)
    assert values.shape == (4,)
    assert values.dtype == float
    np.testing.assert_array_equal(values, expected)
    assert f.__name__ == name


@pytest.mark.parametrize("table", FRAMES.values(), ids=FRAMES.keys())
@pytest.mark.parametrize(("f", "expected", "name"), NAMED.values(), ids=NAMED.keys())
def test_by_column_name(f, expected, name, table):
    np.testing.assert_array_equal(f(table), expected)
    assert f.__name__ == name


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_sparse_layout(layout, kind):
    table = getattr(sparse, f"{layout}_{kind}")(A)
    np.testing.assert_array_equal(features.product(0, 2)(table), A[:, 0] * A[:, 2])
    np.testing.assert_array_equal(features.linear([1, 2, 3])(table), A @ [1, 2, 3])


def test_numpy_integers_are_positions():
    np.testing.assert_array_equal(features.coordinate(np.int64(1))(A), [0, 2, 2, 0])


def test_pandas_columns_named_by_numbers_are_taken_by_position():
    table = pd.DataFrame(A, columns=[2, 1, 0])
    np.testing.assert_array_equal(features.coordinate(0)(table), A[:, 0])
    np.testing.assert_array_equal(features.coordinate("0")(table), A[:, 2])


LABELS = {
    "all": lambda a, b, c: {},
    "by name": lambda a, b, c: {"features": [c]},
    "the same": lambda a, b, c: {"features": [1, -1]},
    "no label": lambda a, b, c: {"features": [np.int64(-3)]},
    "given": lambda a, b, c: {"given": c},
    "pairs": lambda a, b, c: {"features": features.Pairs("interaction")},
    "direction": lambda a, b, c: {"features": [features.linear([1, 2, 3])]},
    "group": lambda a, b, c: {"features": {"both": [b, c]}},
    "levels": lambda a, b, c: {"categorical": [a]},
}
NUMBERS = {
    "features": {"features": [0]},
    "one": {"features": 0},
    "entry": {"features": {"a": 0}},
    "group": {"features": {"a": [0, 1]}},
    "given": {"given": [0]},
    "categorical": {"categorical": [0]},
}


@pytest.mark.parametrize("options", LABELS.values(), ids=LABELS)
def test_frames_may_have_numbers_for_labels(options):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 3)).astype(float)
    s = X @ [3, 2, 1] + rng.normal(size=300)
    found = firm(s, pd.DataFrame(X, columns=[2, 1, 0]), **options("2", "1", "0"))
    expected = firm(s, pd.DataFrame(X, columns=list("abc")), **options("a", "b", "c"))
    np.testing.assert_array_equal(found.importances, expected.importances)


@pytest.mark.parametrize("options", NUMBERS.values(), ids=NUMBERS)
def test_a_number_that_may_be_two_columns_is_refused(options):
    table = pd.DataFrame(np.eye(3), columns=[2, 1, 0])
    with pytest.raises(ValueError, match=r"0 may be the column at position 0 .* '0' for this"):
        firm([1, 2, 3], table, **options)
    with pytest.raises(ValueError, match=r"feature 7 is no column of X; .*\['7', '1', '-1'\]"):
        firm([1, 2, 3], table.set_axis([7, 1, -1], axis=1), [7])
    assert list(firm([1, 2, 2], table.set_axis([7, 1, -1], axis=1), [1, -1])) == ["1", "-1"]


def test_booleans_and_nullable_integers_are_numbers():
    table = pd.DataFrame({"flag": [True, False], "count": pd.array([3, 4], dtype="Int64")})
    np.testing.assert_array_equal(features.coordinate("flag")(table), [1, 0])
    np.testing.assert_array_equal(features.coordinate("count")(table), [3, 4])


def test_long_directions_get_short_names():
    assert features.linear(range(100)).__name__ == "a'x[0, 1, 2, 3, …]"


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (A, ["x0", "x1", "x2"]),
        (A.tolist(), ["x0", "x1", "x2"]),
        (sparse.csr_array(A), ["x0", "x1", "x2"]),
        (FRAMES["pandas"], ["age", "height", "weight"]),
        (FRAMES["polars"], ["age", "height", "weight"]),
        (pd.DataFrame(A), ["0", "1", "2"]),
    ],
)
def test_column_names(table, names):
    assert Table(table).names == names
