"""A checkout by a git that would write other line ends."""

import subprocess

import pytest

from workflow import ROOT


def git(*arguments, cwd=ROOT):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True).stdout


@pytest.fixture
def checkout(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("this folder is no checkout of git")
    git("clone", "--quiet", "--config", "core.autocrlf=true", ROOT, tmp_path / "clone")
    return tmp_path / "clone"


def test_line_ends_stay(checkout):
    for name in git("ls-files", "-z", cwd=checkout).decode().split("\0")[:-1]:
        assert (checkout / name).read_bytes() == git("show", f"HEAD:{name}", cwd=checkout), name
