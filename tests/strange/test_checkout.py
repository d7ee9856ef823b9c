"""A checkout by a git that would write other line ends; an archive where git refuses."""

import subprocess
import sys
import zipfile
from io import BytesIO

import pytest

from workflow import ROOT
from workflow.archive import archive


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
    _, content = archive(checkout)
    with zipfile.ZipFile(BytesIO(content)) as zipped:
        [lock] = [name for name in zipped.namelist() if name.endswith("/requirements.lock")]
        assert zipped.read(lock) == git("show", "HEAD:requirements.lock", cwd=checkout)


def test_what_git_says_is_shown(tmp_path):
    code = "import sys, pathlib, workflow.archive as a; a.archive(pathlib.Path(sys.argv[1]))"
    told = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "not a git repository" in told.stderr
    assert "The archive is made from git's last commit" in told.stderr
