"""With other parameters a notebook says something else: its findings are computed."""

import ast
import json

import matplotlib.pyplot as plt
import pytest

from tests.mutants import code
from workflow import ROOT

LEDGER = {c["id"]: c for c in json.loads((ROOT / "data" / "claims.json").read_text())}


@pytest.fixture
def judged(output, monkeypatch):
    """Execute a notebook's code with other parameters; return the claims it records, by name."""
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    monkeypatch.chdir(output)

    def run(name, **parameters):
        names = {"__name__": "__main__"}
        cells = code(name)
        for cell in cells:
            exec(compile(ast.parse(cell), name, "exec"), names)
            if cell is cells[0]:
                assert parameters.keys() <= names.keys()
                names |= parameters
        return {path.stem: json.loads(path.read_text()) for path in output.glob("claims/*.json")}

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notebook", "parameters", "claim", "verdict"),
    [
        ("06_boolean_svm", {"kernel": "inhomogeneous"}, "3.1-svm-weights", "not reproduced"),
        ("06_boolean_svm", {"C": 0.01}, "3.1-underfit", "partly"),
        (
            "07_gaussian_svm",
            {"shift_1": 2.0, "shift_2": 4.0, "n": 300, "n_repeats": 20},
            "3.2-slopes",
            "partly",
        ),
        ("08_gattaca", {"degree": 5, "n": 600, "full": False}, "3.3-motif", "not reproduced"),
        ("08_gattaca", {"degree": 5, "n": 600, "full": False}, "3.3-weights-fail", "partly"),
    ],
)
def test_another_setting_has_another_finding(judged, notebook, parameters, claim, verdict):
    found = judged(notebook, **parameters)[claim]
    assert found["verdict"] == verdict
    assert found["finding"] != LEDGER[claim]["finding"]
    if claim == "3.3-motif":
        assert "First over positions 20 to 50" not in found["finding"]
