"""Write environment.yml: what pyproject.toml asks for, at the versions of requirements.lock.

    python -m workflow.environment

.binder/environment.yml is the same, seen from its folder: Binder looks nowhere else.
"""

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
      - --editable {root}
"""


def environment(root: str = ".") -> str:
    """Return the text of environment.yml; `root` is the way from it to this repository."""
    lock = (ROOT / "requirements.lock").read_text()
    versions = dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", lock, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    # What conda-forge lacks comes from pip.
    pip = _names(extras.pop("peers")) | {"axe-core-python", "playwright", "sphinx-mathjax-offline"}
    names = _names(sum(extras.values(), project["dependencies"])) - {"firmlib"} - pip
    return (
        HEAD
        + "".join(f"  - {name}={versions[name]}\n" for name in sorted(names))
        + TAIL.format(root=root)
        + "".join(f"      - {name}=={versions[name]}\n" for name in sorted(pip))
    )


def _names(requirements: list[str]) -> set[str]:
    asked = [re.match(r"[\w-]+", entry)[0] for entry in requirements]
    return {name.lower().replace("_", "-") for name in asked}


if __name__ == "__main__":
    (ROOT / "environment.yml").write_text(environment())
    (ROOT / ".binder").mkdir(exist_ok=True)
    (ROOT / ".binder" / "environment.yml").write_text(environment(".."))
