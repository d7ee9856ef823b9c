"""The output folder of the notebooks, and atomic writing."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the compendium, if firmlib runs from a checkout


def output_dir() -> Path:
    """Return $FIRMLIB_OUTPUT, or build/scratch in the checkout or the working directory."""
    start = ROOT if (ROOT / "pyproject.toml").is_file() else Path.cwd()
    return Path(os.environ.get("FIRMLIB_OUTPUT") or start / "build" / "scratch")


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` through a temporary file in the same folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    temporary.replace(path)
