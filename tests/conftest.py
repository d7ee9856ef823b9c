"""What the tests share."""

import os

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
