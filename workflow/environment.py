"""Print environment.yml: what pyproject.toml asks for, at the versions of requirements.lock."""

import re
import tomllib

from workflow import ROOT

HEAD = """\
# For conda users; written by `make lock`. `make` itself does not need this file.
name: firmlib
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
"""
TAIL = """\
  - pip:
      - --editable .
"""


def environment() -> str:
    """Return the text of environment.yml."""
    lock = (ROOT / "requirements.lock").read_text()
    versions = dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", lock, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = [re.match(r"[\w-]+", entry)[0] for entries in lists for entry in entries]
    names = sorted({name.lower().replace("_", "-") for name in asked} - {"firmlib"})
    return HEAD + "".join(f"  - {name}={versions[name]}\n" for name in names) + TAIL


if __name__ == "__main__":
    print(environment(), end="")
