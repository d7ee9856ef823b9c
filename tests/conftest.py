"""What the tests share."""

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

# Begin with those that start other programs, so that no core is left alone with one at the end.
LONGEST = ("test_workflow", "test_cluster", "test_papermill", "test_warm")


def pytest_collection_modifyitems(items):
    """Put the longest tests first; all others stay in order."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


def pytest_collectstart(collector):
    """Load a profile of hypothesis before the first module that needs it; it starts slowly."""
    if not isinstance(collector, pytest.Module):
        return
    if "from hypothesis import" not in collector.path.read_text(encoding="utf-8"):
        return
    from hypothesis import settings

    # The same examples each time, so that a change is red because of itself; the long one explores.
    settings.register_profile("short", deadline=None, max_examples=50, derandomize=True)
    settings.register_profile("few", deadline=None, max_examples=5, derandomize=True, database=None)
    settings.register_profile("long", deadline=None, max_examples=500, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_sessionfinish(session):
    """Spare those who need none of hypothesis its last words, for which it would be imported."""
    if "hypothesis" not in sys.modules and not session.config.getoption("numprocesses", None):
        session.config.pluginmanager.unregister(name="hypothesispytest")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def rng():
    """The same random numbers in every run."""
    return np.random.default_rng(3)


@pytest.fixture
def output(tmp_path, monkeypatch):
    """Where firmlib.compendium writes to."""
    monkeypatch.setenv("FIRMLIB_OUTPUT", str(tmp_path))
    return tmp_path


def script(name):
    """The script data/`name`.py, as a module."""
    path = Path(__file__).parents[1] / "data" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_by_definition(X, Y, degree, shift, shift_weights):
    """The weighted degree kernel of codes with shifts, letter by letter."""
    from firmlib.strings.alphabet import decode  # slow to import; few need it

    def kernel(x, y):
        total = 0.0
        for d in range(1, degree + 1):
            beta = 2 * (degree - d + 1) / (degree * (degree + 1))
            for i in range(len(x) - d + 1):
                total += beta * (x[i : i + d] == y[i : i + d])
                for s in range(1, min(shift, len(x) - d - i) + 1):
                    delta = 1 / (2 * (s + 1)) if shift_weights == "rase" else 1 / (2 * s)
                    total += beta * delta * (x[i + s : i + s + d] == y[i : i + d])
                    total += beta * delta * (x[i : i + d] == y[i + s : i + s + d])
        return total

    return np.array([[kernel(x, y) for y in decode(Y)] for x in decode(X)])


def random_chain(rng, order, length, zeros=False):
    """A Markov background, with or without letters that never follow."""
    from firmlib.strings.background import Background  # slow to import; few need it

    initial, rows = rng.dirichlet(np.ones(4**order)), rng.dirichlet(np.ones(4), size=4**order)
    if zeros:  # but for one entry a row, which keeps its sum positive
        initial[initial < initial.max() / 3] = 0
        rows[rows < rows.max(axis=1, keepdims=True) / 3] = 0
    return Background.markov(
        initial / initial.sum(), rows / rows.sum(axis=1, keepdims=True), length
    )
