"""Where notebooks write, and how: a file appears whole or not at all."""

import os
from pathlib import Path

from firmlib._atomic import write_atomic

__all__ = ["ROOT", "output_dir", "write_atomic"]

ROOT = Path(__file__).resolve().parents[2]
"""The compendium's folder, if firmlib runs from a checkout."""


def output_dir() -> Path:
    """Return the folder notebooks write to: $FIRMLIB_OUTPUT, or build/scratch.

    The latter is in the checkout or, if firmlib was installed, in the working directory. Only
    `make reproduce` writes to build/ itself, so that what `make accept` takes over was made with
    the notebooks' own parameters.
    """
    checkout = (ROOT / "notebooks").is_dir() and (ROOT / "pyproject.toml").is_file()
    start = ROOT if checkout else Path.cwd()
    return Path(os.environ.get("FIRMLIB_OUTPUT") or start / "build" / "scratch")
