"""Build the wheel and the source distribution into build/dist, and try them where nothing else is.

What firmlib needs comes from pip's index, at the versions of requirements.lock.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from flit_core import buildapi

from workflow import BUILD, ROOT

DIST = BUILD / "dist"
WITHOUT_MATPLOTLIB = """
import os, sys
import numpy as np
import firmlib
from firmlib import datasets
from firmlib.compendium import metrics
assert "site-packages" in firmlib.__file__, firmlib.__file__
X = np.random.default_rng(0).normal(size=(500, 2))
result = firmlib.firm(X[:, 0] - X[:, 1], X)
assert np.allclose(result.importances, [1, -1], atol=0.2), result
metrics.record(rank=1)
assert os.path.exists("build/scratch/metrics.json")
for name in ("firmlib.display", "firmlib.strings.display", "firmlib.compendium.figures"):
    try:
        __import__(name)
    except ImportError as error:
        assert "firmlib[plot]" in str(error), error
    else:
        raise AssertionError(f"{name} needs no matplotlib")
try:
    datasets.splice()
except ValueError as error:
    assert "data/ of the repository" in str(error), error
assert len(datasets.splice(folder=sys.argv[1])[1]) == 4222
"""
PARTS = ("CHANGELOG.md", "LICENSE", "README.md", "tests/conftest.py", "tests/test_measure.py")


def build(folder: Path) -> tuple[Path, Path]:
    """Build both; return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    return folder / buildapi.build_wheel(str(folder)), folder / buildapi.build_sdist(str(folder))


def main() -> int:
    """Build, install the wheel alone, then the tests' needs, and run some from the sdist."""
    wheel, sdist = build(DIST)
    with tempfile.TemporaryDirectory() as name:
        place, pins = Path(name), Path(name, "pins.txt")
        lock = (ROOT / "requirements.lock").read_text()
        pins.write_text("\n".join(re.findall(r"^[a-z0-9.-]+==[^ ;]+", lock, re.M)))
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
        python = place / "venv" / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]

        def run(*command: str | Path, cwd: Path = place) -> None:
            subprocess.run([*map(str, command)], cwd=cwd, check=True)

        run(*pip, "--constraint", pins, wheel)
        run(python, "-c", WITHOUT_MATPLOTLIB, ROOT / "data")
        with tarfile.open(sdist) as tar:
            tar.extractall(place, filter="data")
        unpacked = place / sdist.name.removesuffix(".tar.gz")
        missing = [part for part in PARTS if not (unpacked / part).exists()]
        if missing:
            sys.exit(f"{sdist.name} lacks {', '.join(missing)}")
        run(*pip, "--constraint", pins, "pytest", "hypothesis", "polars", "flit_core")
        run(*pip, "--no-deps", "--no-index", "--no-build-isolation", "--force-reinstall", unpacked)
        tests = ["tests/test_measure.py", "tests/test_estimation.py"]
        run(python, "-m", "pytest", "-q", *tests, cwd=unpacked)
    for path in (wheel, sdist):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
