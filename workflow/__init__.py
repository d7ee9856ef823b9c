"""Orchestration: execute and sweep the notebooks, compare with what is committed, accept it."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SUMMARY = BUILD / "summary.json"
KINDS = ("notebooks", "figures", "data")

# jsonschema would compile a grammar of addresses, which takes a second at every start.
sys.modules.setdefault("rfc3987_syntax", None)


def write(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except OSError as error:  # a full disk does not say where it is
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
