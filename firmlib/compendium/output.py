"""Where notebooks write, and how: a file appears whole or not at all."""

import hashlib
import os
from pathlib import Path

from firmlib._atomic import write_atomic

__all__ = ["ROOT", "check_sha256", "output_dir", "write_atomic"]

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


def check_sha256(name: str, content: bytes, sha256: str) -> None:
    """Stop unless the content is what it was when the data were made."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SystemExit(
            f"{name} has sha256 {found}, expected {sha256}; nothing was written. If a newer "
            "package is wanted on purpose, change the checksums here and in firmlib/_files.py."
        )
