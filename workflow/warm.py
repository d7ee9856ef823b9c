"""Run notebooks in forks of one process that has imported what they import.

    python -m workflow.warm SOURCE FOLDER [INDEX]

does what `workflow.run` does: in a fork of the process that started Snakemake, if that serves any
in the working folder, otherwise right here. A fork shares modules with its parent, nothing else.
"""

import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import signal
import socket
import socketserver
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TextIO

SOCKET = "warm"  # in the folder that Snakemake works in: an address must be short
LINUX = sys.platform == "linux"  # elsewhere forks are not safe
MODULES = (  # what many notebooks import; another module costs the time of its import
    *("ipykernel.kernelapp", "workflow.run", "numpy", "pandas", "matplotlib.pyplot", "seaborn"),
    *("scipy.stats", "sklearn.svm", "sklearn.ensemble", "sklearn.linear_model", "sympy"),
    *("firmlib.strings", "firmlib.datasets", "firmlib.display", "firmlib.compendium"),
)


def main(*arguments: str) -> int:
    """Run a notebook in a fork or, without a server, here; return the exit status."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(SOCKET)
        except OSError:
            from workflow.run import main

            return main(*arguments)
        server.sendall(json.dumps(arguments).encode() + b"\n")
        return int(server.recv(1) or 1)


def end_with_parent(how: int = signal.SIGTERM) -> None:
    """Let Linux send this process a signal when its parent ends."""
    if LINUX:
        ctypes.CDLL(None).prctl(1, how)  # PR_SET_PDEATHSIG


class Forks(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """A server in `folder` that forks for each run; what the forks print goes to `log`."""

    timeout, request_queue_size, max_children = 0.5, 128, 1_000_000

    def __init__(self, folder: Path, log: TextIO) -> None:
        os.chdir(folder)
        Path(SOCKET).unlink(missing_ok=True)
        self.log = log
        super().__init__(SOCKET, _Run)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Import first, then fork."""
        warm_up()
        super().process_request(request, client_address)

    def server_close(self) -> None:
        """End the forks that are still at work."""
        for pid in self.active_children or ():
            os.kill(pid, signal.SIGKILL)
        super().server_close()
        Path(SOCKET).unlink(missing_ok=True)


class _Run(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        from workflow.run import main

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        end_with_parent(signal.SIGKILL)
        for stream in (1, 2):
            os.dup2(self.server.log.fileno(), stream)
        self.wfile.write(b"%d" % main(*json.loads(self.rfile.readline())))


@functools.cache
def warm_up() -> None:
    """Import what notebooks and kernels need, and let kernels be forks if that is installed."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core for each notebook
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # a kernel's
    if entry_points(group="jupyter_client.kernel_provisioners", name="firmlib-fork"):
        os.environ["JUPYTER_DEFAULT_PROVISIONER_NAME"] = "firmlib-fork"
    for module in MODULES:
        with contextlib.suppress(Exception):  # the notebook itself will report it
            importlib.import_module(module)
    if pandas := sys.modules.get("pandas"):  # imported outside a kernel
        pandas.set_option("display.max_columns", 20)
    gc.freeze()  # so that no fork collects what is imported


def pytest_collection_finish() -> None:
    """Let nbval's kernels be forks of the process that tests, with `pytest -p workflow.warm`."""
    if LINUX:
        warm_up()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
