"""Make .venv from requirements.lock; run by `make`, with nothing but the standard library.

    python -m workflow setup MARKER

The new environment is built in a folder of its own, `.venv-…`. When it is complete and contains
MARKER, followed by the version of Python, `.venv` becomes a link to it. Until then, the environment
that was there keeps working.
"""

import fcntl
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from workflow import ROOT

VENV = ROOT / ".venv"
SETTINGS = {
    # Keep the kernel's log to errors: warnings do not belong in a notebook.
    "ipython/profile_default/ipython_kernel_config.py": "c.IPKernelApp.log_level = 40\n",
    # JupyterLab would ask for news over the network.
    "jupyter/config/labconfig/page_config.json": (
        '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}\n'
    ),
}


def build(folder: Path) -> None:
    """Build the environment in `folder`; what is missing afterwards is its marker."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    here = ["--no-deps", "--no-index", "--no-build-isolation", "--editable", ROOT]
    subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True)
    subprocess.run([*pip, *here], check=True)
    for name, text in SETTINGS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    # The first import writes the list of fonts and says so, which belongs in no notebook either.
    fonts = [python, "-c", "import matplotlib.font_manager"]
    caches = os.environ | {"MPLCONFIGDIR": str(folder / "matplotlib")}
    subprocess.run(fonts, env=caches, stderr=subprocess.DEVNULL, check=False)


def switch(folder: Path) -> None:
    """Let .venv be `folder`, and remove all others."""
    link = folder.with_suffix(".link")
    link.symlink_to(folder.name)
    if VENV.is_dir() and not VENV.is_symlink():  # as earlier versions made it
        VENV.rename(folder.with_suffix(".old"))
    os.replace(link, VENV)
    for other in ROOT.glob(".venv-*"):
        if other.is_dir() and other != folder:
            shutil.rmtree(other, ignore_errors=True)


def main(marker: str) -> int:
    """Build, unless somebody else just did; one at a time."""
    with (ROOT / ".venv.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is at work here; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        marker = "{}-{}.{}".format(marker, *sys.version_info)
        if (VENV / marker).exists() and (VENV / "bin" / "python").exists():
            return 0
        python = f"Python {platform.python_version()}, {sys.executable}"
        print(f"Setting up .venv with {python} (once, some minutes) ...", flush=True)
        folder = ROOT / f".venv-{secrets.token_hex(4)}"
        signal.signal(signal.SIGINT, lambda *_: sys.exit("Interrupted; nothing was set up."))
        try:
            build(folder)
            (folder / marker).touch()
            switch(folder)
        except subprocess.CalledProcessError as error:
            kept = "; the environment that was there is untouched" if VENV.exists() else ""
            sys.exit(f"The set-up failed{kept}: {error}")
        finally:
            if not (folder / marker).exists():
                shutil.rmtree(folder, ignore_errors=True)
    return 0
