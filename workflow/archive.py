"""Write what is committed into one zip for a journal or Zenodo, the same bytes wherever it is made.

Besides the files: SHA256SUMS (`sha256sum -c SHA256SUMS` checks an unpacked copy) and
ENVIRONMENT.txt, the commit and the version of every package that the lock names. Nothing is
compressed: what deflate gives depends on the version of zlib.
"""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import yaml

from firmlib.compendium.output import write_atomic
from workflow import BUILD, ROOT


def git(*arguments: str, root: Path = ROOT) -> bytes:
    """Return what a git command prints."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE)
        return done.stdout
    except (OSError, subprocess.CalledProcessError) as error:  # what git says is on the screen
        sys.exit(f"The archive is made from git's last commit, and that failed: {error}")


def committed(root: Path = ROOT) -> dict[str, tuple[bytes, int]]:
    """Return the files of the last commit, with their modes."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", "HEAD", root=root))) as tar:
        return {
            entry.name: (tar.extractfile(entry).read(), 0o755 if entry.mode & 0o111 else 0o644)
            for entry in tar
            if entry.isfile()
        }


def environment(lock: str, commit: str) -> str:
    """Return the commit and what `make` installs, as text."""
    packages = re.findall(r"^([a-z0-9.-]+==[^ ;]+(?: ; .*?)?) \\$", lock, re.M)
    return "\n".join([f"commit {commit}", "Python 3.11, 3.12 or 3.13", *packages, ""])


def archive(root: Path = ROOT) -> tuple[str, bytes]:
    """Return the archive's name and its bytes."""
    files = committed(root)
    text = {name: content.decode() for name, (content, _) in files.items() if name.endswith("cff")}
    citation = yaml.safe_load(text["CITATION.cff"])
    commit = git("rev-parse", "HEAD", root=root).decode().strip()
    lock = files["requirements.lock"][0].decode()
    files["ENVIRONMENT.txt"] = environment(lock, commit).encode(), 0o644
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, (content, _) in sorted(files.items())
    )
    files["SHA256SUMS"] = sums.encode(), 0o644
    folder = f"firmlib-{citation['version']}"
    date = citation["date-released"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as zipped:
        for name, (content, mode) in sorted(files.items()):
            info = zipfile.ZipInfo(f"{folder}/{name}", (date.year, date.month, date.day, 0, 0, 0))
            info.create_system, info.external_attr = 3, (0o100000 | mode) << 16
            zipped.writestr(info, content)
    return f"{folder}.zip", buffer.getvalue()


def main() -> int:
    """Write build/firmlib-VERSION.zip and print its checksum."""
    name, content = archive()
    write_atomic(BUILD / name, content)
    if git("status", "--porcelain", "--untracked-files=no"):
        print("Note: what is not committed is not in it.")
    print(f"{hashlib.sha256(content).hexdigest()}  build/{name}  {len(content) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
