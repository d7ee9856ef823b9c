"""A verdict follows from its check: nothing that failed can be recorded as confirmed."""

import json

import pytest

from firmlib.compendium import claims

TEXTS = {"measured": "1", "expected": "2"}


@pytest.fixture(autouse=True)
def output(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRMLIB_OUTPUT", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("printed", "correction", "verdict"),
    [
        (True, {}, "confirmed"),
        ({"a": True, "b": True}, {}, "confirmed"),
        ({"a": True, "b": False}, {}, "partly"),
        (False, {}, "not reproduced"),
        ({"a": False, "b": False}, {}, "not reproduced"),
        (False, {"correction": "3", "corrected": True}, "corrected"),
        ({"a": True, "b": False}, {"correction": "3", "corrected": True}, "corrected"),
    ],
)
def test_verdict(printed, correction, verdict):
    assert claims.record("2.3-variance", printed, **TEXTS, **correction).verdict == verdict


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "9-nothing"}, "id='9-nothing' is unknown"),
        ({"printed": 1}, "must be True or False, got 1"),
        ({"printed": None}, "must be True or False, got None"),
        ({"printed": {}}, "holds no check"),
        ({"printed": {"a": "yes"}}, "must be True or False, got 'yes'"),
        ({"measured": ""}, "must not be empty"),
        ({"printed": True, "correction": "3", "corrected": True}, "nothing to correct"),
        ({"printed": False, "correction": "3", "corrected": False}, "did not hold either"),
        ({"printed": False, "correction": "3"}, "must be True or False, got None"),
        ({"printed": False, "corrected": True}, "without the correction"),
    ],
)
def test_what_cannot_be_recorded(output, arguments, message):
    with pytest.raises(ValueError, match=message):
        claims.record(**{"id": "2.3-variance", "printed": True, **TEXTS, **arguments})
    assert not (output / "claims").exists()


def test_parts_that_failed_are_named():
    claim = claims.record("2.3-slope", {"slope": True, "sign": False}, **TEXTS)
    assert claim.measured == "1 (holds: slope; fails: sign)"


def test_collect_keeps_the_papers_order_and_leaves_the_rest_open(output):
    for id in ("2.3-slope", "1-rescaling"):
        claims.record(id, True, **TEXTS)
    ledger = claims.collect(output / "claims")
    assert [c["id"] for c in ledger] == [c.id for c in claims.registry()]
    assert [c["id"] for c in ledger if c["verdict"] == "confirmed"] == ["1-rescaling", "2.3-slope"]
    assert set(ledger[0]) == {
        "id", "section", "statement", "verdict", "measured", "expected", "correction", "notebook",
    }  # fmt: skip
    assert json.loads(claims.dumps(ledger)) == ledger


def test_summary_and_table_show_the_verdicts():
    claims.record("2.3-slope", False, measured="a < b", expected="c")
    summary = claims.summary("2.3-slope", "1.2-poim")
    assert "not reproduced" in repr(summary)
    assert "a &lt; b" in summary._repr_html_()
    row = claims.table([vars(claim) for claim in summary]).splitlines()[4]
    assert "(notebooks/03_binary.ipynb#2.3-slope)" in row
    with pytest.raises(ValueError, match="unknown"):
        claims.summary("nothing")


def test_bars_do_not_end_a_cell_of_the_errata():
    claim = {"id": "2.3-slope", "verdict": "corrected", "notebook": "n"}
    claim |= {"expected": "a|b $|x|$ and $\\|y\\|$", "correction": "$z$"}
    row = claims.errata([claim, claim | {"verdict": "partly"}]).splitlines()[-1]
    assert row == (
        "| [`2.3-slope`](n#2.3-slope) | a\\|b $\\vert x\\vert $ and $\\Vert y\\Vert $ | $z$ |"
    )
