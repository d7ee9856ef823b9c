"""Whether .venv still is what requirements.lock says: versions, and the files of every package."""

import base64
import csv
import hashlib
import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

LINE = re.compile(r"^([a-z0-9.-]+)==([^ ;]+)(?: ; (.*?))? \\$", re.M)
OWN = {"firmlib", "pip", "setuptools"}  # which no lock names


def changed(lock: str, prefix: Path = Path(sys.prefix)) -> list[str]:
    """Return each package that is missing, of another version, foreign, or of changed files.

    A file is read only if its size is another, or if it was written after the set-up.
    """
    found = {canonicalize_name(each.name): each for each in distributions(path=_paths(prefix))}
    wanted = {
        name: version
        for name, version, marker in LINE.findall(lock)
        if not marker or Marker(marker).evaluate()
    }
    markers = [*prefix.glob("ready-*"), prefix / "pyvenv.cfg"]
    began = markers[0].stat().st_mtime
    notes = []
    for name, version in wanted.items():
        if name not in found:
            notes.append(f"{name} is missing, the lock has {version}")
        elif found[name].version != version:
            notes.append(f"{name} is {found[name].version}, the lock has {version}")
        elif touched := _touched(found[name], began):
            notes.append(f"{name} was changed: {touched}")
    return notes + [f"{name} is not in the lock" for name in found if name not in {*wanted, *OWN}]


def _paths(prefix: Path) -> list[str]:
    return [str(path) for path in prefix.glob("lib/python*/site-packages")]


def _touched(package: Distribution, began: float) -> str:
    """Return a file that is not as it was installed, or nothing."""
    for file, digest, size in csv.reader((package.read_text("RECORD") or "").splitlines()):
        if not digest:  # what Python compiles itself
            continue
        path = Path(str(package.locate_file(file)))
        if not path.exists():
            return file
        if path.stat().st_size != int(size) or path.stat().st_mtime > began:
            sha256 = hashlib.sha256(path.read_bytes()).digest()
            if digest != f"sha256={base64.urlsafe_b64encode(sha256).decode().rstrip('=')}":
                return file
    return ""
