"""The library's tests with the lowest versions that pyproject.toml declares as enough.

Run by `make test-lowest`. Makes an environment of its own in build/lowest.
"""

import re
import shutil
import subprocess
import sys
import tomllib

from workflow import BUILD, ROOT

EXTRAS = ("plot", "cluster")
NEEDED = ["pytest", "hypothesis", "tqdm", "pyarrow"]
NEEDED += ["polars<2"]  # the second is newer than scikit-learn 1.6
TESTS = [
    path
    for path in sorted((ROOT / "tests").glob("test_*.py"))
    if not re.search("workflow|compendium|papermill", path.read_text())
]


def lowest() -> list[str]:
    """Return the requirements of the library with each lower bound as the version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [entry for name in EXTRAS for entry in project["optional-dependencies"][name]]
    return [re.sub(r">=", "==", entry) for entry in project["dependencies"] + extras]


def main() -> int:
    """Install and test."""
    folder = BUILD / "lowest"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    print("installing " + ", ".join(lowest()), flush=True)
    subprocess.run([*pip, *lowest(), *NEEDED], check=True)
    options = ["-q", "-o", "addopts=-m 'not slow'", "-o", "filterwarnings=default"]
    command = [python, "-m", "pytest", *options, "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
