"""Write environment.yml: what pyproject.toml asks for, at the versions of requirements.lock."""

import re
import tomllib

from workflow import ROOT, write

TEXT = """\
# For conda users; written by `make lock`. `make` itself does not need this file.
name: firmlib
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
{conda}  - pip:
      - --editable {root}
{pip}"""


def environment(root: str = ".") -> str:
    """Return the text of environment.yml; `root` is the way from it to this repository."""
    lock = (ROOT / "requirements.lock").read_text()
    versions = dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", lock, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    # What conda-forge lacks comes from pip.
    pip = _names(extras.pop("peers")) | {"axe-core-python", "playwright", "sphinx-mathjax-offline"}
    conda = _names(sum(extras.values(), project["dependencies"])) - {"firmlib"} - pip
    return TEXT.format(
        root=root,
        conda="".join(f"  - {name}={versions[name]}\n" for name in sorted(conda)),
        pip="".join(f"      - {name}=={versions[name]}\n" for name in sorted(pip)),
    )


def _names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", r)[0].lower().replace("_", "-") for r in requirements}


def main() -> int:
    """Write it, and the same for Binder, which looks in .binder/ only."""
    write(ROOT / "environment.yml", environment())
    write(ROOT / ".binder" / "environment.yml", environment(".."))
    return 0
