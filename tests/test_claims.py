"""What notebooks need: verdicts that follow from checks, parameters, metrics, permutations."""

import json

import numpy as np
import pandas as pd
import pytest
import sympy
from sklearn import inspection
from sklearn.linear_model import LinearRegression

from firmlib.compendium import claims, metrics
from firmlib.compendium.parameters import require
from firmlib.compendium.shuffling import permutation_importance
from workflow import ledger as pages

pytestmark = pytest.mark.usefixtures("output")
TEXTS = {"finding": "1", "expected": "2"}


@pytest.mark.parametrize(
    ("parts", "correction", "verdict"),
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
def test_verdict(parts, correction, verdict):
    assert claims.record("2.3-variance", parts, **TEXTS, **correction).verdict == verdict


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "9-nothing"}, "id='9-nothing' is unknown"),
        ({"parts": 1}, "must be True or False, got {'as printed': 1} and"),
        ({"parts": {}}, "holds no check"),
        ({"parts": {"a": "yes"}}, "must be True or False, got {'a': 'yes'} and"),
        ({"parts": False, "correction": "3", "corrected": True, "expected": ""}, "needs what it"),
        ({"parts": True, "correction": "3", "corrected": True}, "nothing to correct"),
        ({"parts": False, "correction": "3", "corrected": False}, "did not hold either"),
        ({"parts": False, "correction": "3"}, "did not hold either"),
        ({"parts": False, "corrected": True}, "without the correction"),
    ],
)
def test_what_cannot_be_recorded(output, arguments, message):
    with pytest.raises(ValueError, match=message):
        claims.record(**{"id": "2.3-variance", "parts": True, **TEXTS, **arguments})
    assert not (output / "claims").exists()


def test_parts_and_figures_are_kept_as_they_are():
    claim = claims.record(
        "2.3-slope",
        {"slope": np.True_, "sign": False},
        finding="Half.",
        measured={
            "Q": np.array([1 / 3, -1e-12]),
            "n": np.int64(12345),
            "by kind": pd.Series({"a": 2.0, 1: 0.12345}),
            "exact": sympy.sqrt(3),
            "zero": sympy.Integer(0),
            "flag": np.bool_(True),
        },
    )
    assert claim.parts == {"slope": True, "sign": False}
    assert claim.measured == {
        "Q": [0.333, 0.0],
        "n": 12345,
        "by kind": {"a": 2.0, "1": 0.123},
        "exact": "sqrt(3)",
        "zero": 0,
        "flag": True,
    }
    shown = claim._repr_markdown_().splitlines()
    assert shown[0] == "`2.3-slope` **partly**: Half."
    assert shown[1:3] == ["- holds: slope", "- fails: sign"]
    assert shown[3].startswith("- values: Q 0.333, 0; n 12345; by kind 2 (a), 0.123 (1);")


def test_collect_keeps_the_papers_order_and_leaves_the_rest_open(output):
    for id in ("2.3-slope", "1-rescaling"):
        claims.record(id, True, **TEXTS)
    ledger = claims.collect(output / "claims")
    assert [c["id"] for c in ledger] == [c.id for c in claims.registry()]
    assert [c["id"] for c in ledger if c["verdict"] == "confirmed"] == ["1-rescaling", "2.3-slope"]
    assert set(ledger[0]) == {
        "id", "section", "statement", "verdict", "finding", "parts", "measured", "expected",
        "correction", "notebook",
    }  # fmt: skip
    assert json.loads(claims.dumps(ledger)) == ledger


def test_summary_strip_and_page_show_the_findings():
    claims.record("2.3-slope", False, finding="a < b", measured={"gap": 0.5})
    claims.record("2.3-variance", True, finding="Equal.")
    summary = claims.summary("2.3-variance", "2.3-slope", "1.2-poim")
    assert "not reproduced. a < b" in repr(summary)
    assert "a &lt; b" in summary._repr_html_()
    ledger = [vars(claim) for claim in summary]
    assert pages.tally(ledger) == "3 claims: 1 confirmed, 1 not reproduced, 1 open"
    assert pages.strip(ledger).splitlines()[-1] == "**2.3** ✔✘ · **1.2** …"
    page = pages.page(ledger, [{"place": "2.1", "printed": "q", "meant": "Q"}])
    assert "| ✘ | [`2.3-slope`](../notebooks/04_binary.ipynb) |" in page
    assert "- found: a < b\n- fails: as printed\n- values: gap 0.5\n" in page
    assert "| 2.1 | q | Q |\n" in page
    with pytest.raises(ValueError, match="unknown"):
        claims.summary("nothing")


def test_bars_do_not_end_a_cell_of_the_errata():
    claim = {"id": "2.3-slope", "section": "2.3", "statement": "", "verdict": "corrected"}
    claim |= {"finding": "", "parts": {}, "measured": {}, "notebook": "n"}
    claim |= {"expected": "a|b $|x|$ and $\\|y\\|$", "correction": "$z$"}
    row = "| [`2.3-slope`](../n) | a\\|b $\\vert x\\vert $ and $\\Vert y\\Vert $ | $z$ |  |"
    assert row in pages.page([claim], []).splitlines()


# Parameters, whose faults are named with advice


@pytest.mark.parametrize(
    ("value", "kind", "bounds", "message"),
    [
        ("3", int, {}, r"p='3' is str, expected int; with papermill write, .* -y \"p: 10\""),
        ("false", bool, {}, r"p='false' is str, expected bool; .* -y \"p: false\""),
        ("[1]", list, {}, r"p='\[1\]' is str, expected list; .* -y \"p: \[1, 2\]\""),
        (1.5, int, {}, "p=1.5 is float, expected int"),
        (2, int, {"low": 3, "high": 4}, "p must be a finite number from 3 to 4, got 2"),
        (float("nan"), float, {"low": 0}, "p must be a finite number from 0, got nan"),
        ([1, 5], list, {"high": 4}, "p must be a finite number from -inf to 4, got 5"),
        ([], list, {}, r"p=\[\] is empty"),
        ("c", str, {"options": ("a", "b")}, r"p='c' is unknown; expected one of \['a', 'b'\]"),
    ],
)
def test_refused(value, kind, bounds, message):
    with pytest.raises(ValueError, match=message):
        require("p", value, kind, **bounds)


# Scalars that notebooks record for sweeps


def test_scalars_are_shown_and_written_and_replaced_by_name(output):
    shown = metrics.record(rank=np.int64(3), auc=np.float64(1 / 3), found=np.bool_(True), how="w")
    assert repr(shown) == "rank   3\nauc    0.3333\nfound  True\nhow    w"
    metrics.record(rank=1, signal=float("nan"))
    expected = {"rank": 1, "auc": 1 / 3, "found": True, "how": "w", "signal": None}
    assert json.loads((output / "metrics.json").read_text()) == expected
    for value in ([1], None, np.ones(2), {"a": 1}):
        with pytest.raises(ValueError, match=r"rank=.* must be a number"):
            metrics.record(rank=value)


def test_permutation_importance_is_what_scikit_learn_has():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X @ [1, 2, 0, 3] + X[:, 0] * X[:, 1]
    model, options = LinearRegression().fit(X, y), {"n_repeats": 3, "random_state": 5}

    def score(tables):
        return -((model.predict(np.concatenate(tables)).reshape(-1, 50) - y) ** 2).mean(axis=1)

    theirs = inspection.permutation_importance(
        model, X, y, scoring="neg_mean_squared_error", **options
    )
    ours = permutation_importance(score, X, **options)
    np.testing.assert_allclose(ours, theirs.importances_mean, rtol=1e-10)
