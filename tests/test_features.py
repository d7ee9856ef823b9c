"""Features: every builder on every kind of table, and how `features=` is read."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from firmlib import features, firm
from firmlib.features import resolve
from firmlib.tables.table import Table

A = np.array([[1, 0, -1], [0, 2, 1], [1, 2, 1], [-3, 0, 0]])
COLUMNS = {"age": A[:, 0], "height": A[:, 1], "weight": A[:, 2]}
FRAMES = {"pandas": pd.DataFrame(COLUMNS), "polars": pl.DataFrame(COLUMNS)}
SPARSE = {"csr": sparse.csr_array(A), "csc": sparse.csc_matrix(A)}
TABLES = {"numpy": A, "floats": A / 1.0, "lists": A.tolist(), **FRAMES, **SPARSE}

BUILT = {  # feature, its values on A, its name
    "coordinate": (features.coordinate(1), [0, 2, 2, 0], "x1"),
    "product": (features.product(0, 2), [-1, 0, 1, 0], "x0·x2"),
    "threshold": (features.threshold(0, 0.5), [1, 0, 1, 0], "x0>0.5"),
    "literal": (features.literal(0, 1), [1, 0, 1, 0], "x0=1"),
    "conjunction": (features.conjunction({0: 1, 2: -1}), [1, 0, 0, 0], "x0=1 ∧ x2=-1"),
    "xor": (features.xor(0, 2), [1, 1, 0, 1], "x0 ⊕ x2"),
    "linear": (features.linear([1, 0.5, -2]), [3, -1, 0, -3], "a'x[1, 0.5, -2]"),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
@pytest.mark.parametrize(("f", "expected", "name"), BUILT.values(), ids=BUILT.keys())
def test_by_position(f, expected, name, table):
    values = f(table)
    assert values.shape == (4,)
    assert values.dtype == float
    np.testing.assert_array_equal(values, expected)
    assert f.__name__ == name


ASKED = {
    "coordinate": features.coordinate(0),
    "threshold": features.threshold(0, 1),
    "group": features.Group([1, 0]),
    "entry of a group": {"a": [0, 1]},
    "exclude": features.exclude(0),
    "pairs": features.Pairs("xor", [0, 1]).parts,
    "given": lambda table: firm(np.eye(3)[0], table.data, given=0),
    "categorical": lambda table: table.with_categorical([0]),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_number_that_may_be_two_columns_is_refused(asked):
    table = Table(pd.DataFrame(np.eye(3), columns=[2, 1, 0]))
    with pytest.raises(
        ValueError, match=r"0 may be the column at position 0 .* pass '0' for the label"
    ):
        asked(table) if callable(asked) else resolve(asked, table)
    np.testing.assert_array_equal(features.coordinate("0")(table), [0, 0, 1])
    np.testing.assert_array_equal(features.coordinate(1)(table), [0, 1, 0])
    np.testing.assert_array_equal(features.coordinate(-1)(table), [0, 0, 1])


def test_a_table_of_features_may_have_any_names():
    s, kind = np.arange(40.0), np.arange(40) % 3
    result = firm(s, kind[:, None], pd.DataFrame({"kind": kind, "args": s}))
    assert result.feature_names == ("kind", "args")


@pytest.mark.parametrize(
    "values",
    [[1, 0, 1, 0], [0.5, 1, 2, 3], [True, False, True, True], list("aabb"), (1, 1, 0, 0), [9] * 4],
)
def test_a_list_of_values_for_all_rows_is_no_group(values):
    table = Table(A)
    [feature] = resolve({"label": values}, table)
    column = feature.of(table)
    assert column.shown(column.values).tolist() == list(values)


def test_a_list_of_columns_is_a_group_however_many_rows():
    [group] = resolve({"all": [0, 1, 2]}, Table(A[:3]))
    assert isinstance(group, features.Group)
    [named] = resolve({"all": features.Group(["x0", "x2"])}, Table(A))
    assert named.name == "all"


def test_large_integers_that_floats_would_merge_are_levels():
    X = np.array([[2**53, 1], [2**53 + 1, 2], [2**53 + 4, 3]])
    np.testing.assert_array_equal(features.literal(0, 2**53 + 1)(X), [0, 1, 0])
    with pytest.raises(ValueError, match=r"^0 is a category, whose levels are not numbers"):
        features.threshold(0, 2**53 + 2)(X)


def test_categories_have_no_sum_in_sparse_tables_either():
    with pytest.raises(ValueError, match=r"^'x0' is a category"):
        firm(A[:, 0], SPARSE["csr"], features.linear([1, 1, 1]), categorical=[0])


def test_missing_values_of_builders():
    X = np.array([[1, np.nan], [1, 1], [0, 1], [0, 0]])
    np.testing.assert_array_equal(features.xor(0, 1)(X), [np.nan, 0, 1, 0])
    np.testing.assert_array_equal(features.product(0, 1)(X), [np.nan, 1, 0, 0])
    np.testing.assert_array_equal(features.threshold(1, 0)(X), [np.nan, 1, 1, 0])
    np.testing.assert_array_equal(features.conjunction({0: 1, 1: None})(X), [1, 0, 0, 0])


def test_categories_and_dates():
    table = pd.DataFrame(
        {
            "species": ["Adelie", "Gentoo", None, "Adelie"],
            "day": pd.to_datetime(["2009-09-07", "2009-09-11", None, "2009-09-09"]),
            "spell": pd.to_timedelta([1, 12, None, 13], unit="h"),
            "size": pd.Categorical(["S", "L", None, "M"], ["S", "M", "L"], ordered=True),
        }
    )
    for frame in (table, pl.from_pandas(table[["species", "day", "spell"]])):
        np.testing.assert_array_equal(features.literal("species", "Adelie")(frame), [1, 0, 0, 1])
        np.testing.assert_array_equal(features.literal("species", None)(frame), [0, 0, 1, 0])
        late = features.threshold("day", "2009-09-08")
        np.testing.assert_array_equal(late(frame), [0, 1, np.nan, 1])
        long = features.threshold("spell", pd.Timedelta("12h"))
        np.testing.assert_array_equal(long(frame), [0, 0, np.nan, 1])
    np.testing.assert_array_equal(features.threshold("size", "S")(table), [0, 1, np.nan, 1])
    assert features.coordinate("species")(table).tolist() == ["Adelie", "Gentoo", None, "Adelie"]
    chunk = Table(table.iloc[:2], at_least=0)  # a level may be absent from a chunk
    np.testing.assert_array_equal(features.literal("species", "Chinstrap")(chunk), [0, 0])
    missing = Table(table.iloc[2:3], at_least=0)
    np.testing.assert_array_equal(features.literal("species", "Adelie")(missing), [0])


def test_xor_compares_levels_not_their_places():
    words, late = list("abcc"), pd.CategoricalDtype(list("bc"), ordered=True)
    one = pd.Series(words, dtype=pd.CategoricalDtype(list("abc"), ordered=True))
    frame = pd.DataFrame({"one": one, "other": pd.Series(list("bbbc"), dtype=late)})
    for places in (("one", "other"), ("other", "one")):
        np.testing.assert_array_equal(features.xor(*places)(frame), [1, 0, 1, 0])


def test_names_of_values_have_all_digits_of_whole_numbers():
    two = [features.literal(0, value) for value in (1234567, 1234568.0)]
    assert [f.name for f in two] == ["x0=1234567", "x0=1234568"]
    names = [features.threshold(0, tau).name for tau in (1 / 3, 1e300, np.int64(10**6))]
    assert names == ["x0>0.333333", "x0>1e+300", "x0>1000000"]


def test_pairs_of_two_valued_columns():
    frame = pd.DataFrame({"flag": [True, False, True], "city": list("abb"), "k": [2, 5, 5]})

    def pairs(kind, columns=None, s=(0, 0, 3), X=frame):
        return firm(s, X, features.Pairs(kind, columns), rows="population")

    last = pairs("conjunction", ["flag", "k"])["flag=True ∧ k=5"]
    np.testing.assert_allclose(last["importance"], np.sqrt(2))  # it holds just where s is 3
    found = pairs("xor")
    assert found.feature_names == ("flag ⊕ city", "flag ⊕ k", "city ⊕ k")
    np.testing.assert_allclose(found.importances, [np.sqrt(2), np.sqrt(2), 0], atol=1e-12)
    numbers = np.array([[0.1, 3], [0.7, 4], [0.9, 9]])
    high = [features.threshold(0, 0.5), features.threshold(1, 3.5)]
    assert pairs("conjunction", high, X=numbers).feature_names[-1] == "x0>0.5=1 ∧ x1>3.5=1"
