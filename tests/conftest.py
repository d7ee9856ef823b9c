"""What the tests share."""

import os
import sys

import numpy as np
import pytest


def pytest_collectstart(collector):
    """Load a profile of hypothesis before the first module that needs it; it starts slowly."""
    if not isinstance(collector, pytest.Module):
        return
    if "from hypothesis import" not in collector.path.read_text(encoding="utf-8"):
        return
    from hypothesis import settings

    # The same examples each time, so that a change is red because of itself; the long one explores.
    settings.register_profile("short", deadline=None, max_examples=50, derandomize=True)
    settings.register_profile("long", deadline=None, max_examples=500, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


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
