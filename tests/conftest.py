"""What the tests share."""

import os

import hypothesis

# The same examples each time, so that a change is red because of itself; `make test-slow` explores.
hypothesis.settings.register_profile("short", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("long", deadline=None, max_examples=500, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
