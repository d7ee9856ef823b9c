"""Chromium without a screen, for the browser tests and the PDF."""

import os
import shutil
import sys

from playwright.sync_api import Browser, Playwright

QUIET = [  # no request of its own
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


def chromium() -> str | None:
    """Return where Chromium is: $CHROMIUM, or on the path; None if nowhere."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


def launch(playwright: Playwright) -> Browser:
    """Start the Chromium that is installed; playwright's own is never fetched."""
    path = chromium()
    if path is None:
        sys.exit("Chromium is needed (Debian: apt-get install chromium), or CHROMIUM=/path/to/it.")
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=path, args=QUIET + root)
