"""Where notebooks write, and how: a file appears whole or not at all."""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def output_dir() -> Path:
    """Return the folder notebooks write to: $FIRMLIB_OUTPUT, or build/scratch.

    Only `make reproduce` writes to build/ itself, so that what `make accept` takes over was made
    with the notebooks' own parameters.
    """
    return Path(os.environ.get("FIRMLIB_OUTPUT") or ROOT / "build" / "scratch")


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` by way of a temporary file beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
