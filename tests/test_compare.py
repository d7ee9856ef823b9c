"""What `make reproduce` notices: a change, a truncation, and no last digit, of any file."""

import json
import re

import pytest

from workflow import ROOT
from workflow.compare import compare

NOTEBOOK = ROOT / "notebooks" / "05_linear.ipynb"


@pytest.fixture
def changed(tmp_path):
    """Return what is said of a copy in which a pattern is replaced, as made and as committed."""

    def compare_with_copy(path, pattern, new):
        copy = tmp_path / path.name
        text = path.read_text()
        copy.write_text(re.sub(pattern, new, text, count=1, flags=re.DOTALL))
        assert copy.read_text() != text
        return compare(copy, path), compare(path, copy)

    return compare_with_copy


@pytest.mark.parametrize(
    ("path", "pattern", "new", "message"),
    [
        (ROOT / "data" / "definition.csv", r"a,1,3\.5", "a,1,3.6", "column .* different"),
        (NOTEBOOK, r'"text": \[\n *"', '"text": [\n"x', "output of cell .* differs"),
        (NOTEBOOK, '"image/png": "', '"image/gif": "', "output of cell .* differs"),
        (ROOT / "data" / "claims.json", '"confirmed"', '"partly"', "differ"),
    ],
)
def test_a_change_is_noticed_on_either_side(changed, path, pattern, new, message):
    assert compare(path, path) == []
    for [said] in changed(path, pattern, new):
        assert re.search(f"{path.name}.*{message}", said)


def test_a_claim_that_is_gone_is_noticed(tmp_path):
    ledger = json.loads((ROOT / "data" / "claims.json").read_text())
    fewer = tmp_path / "claims.json"
    fewer.write_text(json.dumps(ledger[1:]))
    for said in (
        compare(fewer, ROOT / "data" / "claims.json"),
        compare(ROOT / "data" / "claims.json", fewer),
    ):
        assert said == [f"claims.json: {ledger[0]['id']} differ"]


def test_another_picture_is_noticed(tmp_path):
    other = tmp_path / "definition.png"
    other.write_bytes((ROOT / "figures" / "stability.png").read_bytes())
    [said] = compare(other, ROOT / "figures" / "definition.png")
    assert "pixels" in said


def test_last_digits_do_not_matter(changed):
    table = ROOT / "data" / "definition.csv"
    assert changed(table, r"a,1,3\.5\b", "a,1,3.500000001") == ([], [])


@pytest.mark.parametrize(
    "name",
    [
        "data/definition.csv",
        "figures/definition.png",
        "notebooks/05_linear.ipynb",
        "data/claims.json",
    ],
)
def test_what_is_truncated_is_named(tmp_path, name):
    whole = ROOT / name
    half = tmp_path / whole.name
    half.write_bytes(whole.read_bytes()[: len(whole.read_bytes()) // 2])
    [said] = compare(whole, half)
    assert whole.name in said
    if whole.suffix != ".csv":
        assert "what is committed cannot be read" in said


def test_what_is_not_committed_is_named(tmp_path):
    assert compare(NOTEBOOK, tmp_path / "x.ipynb") == ["05_linear.ipynb is not committed yet"]
