"""Run notebooks in forks of one process that has imported what they import: no start is paid twice.

    python -m workflow.warm SOURCE FOLDER [INDEX POINT]

does what `workflow.run` does, in a fork if this folder's Snakemake was started by

    python -m workflow.warm --serve LOCK COMMAND

A fork has the modules and nothing else: what a run changes ends with it, as with any kernel.
"""

import ast
import contextlib
import fcntl
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SOCKET = "warm"  # in the folder that Snakemake works in: an address must be short


def main(*arguments: str) -> int:
    """Run a notebook in a fork or, where nobody serves any, here; return the exit status."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(SOCKET)
            server.sendall(json.dumps(arguments).encode() + b"\n")
            return int(server.recv(1) or 1)
        except OSError:
            from workflow.run import main

            return main(*arguments)


def serve(lock: str, *command: str) -> int:
    """Start Snakemake, which inherits `lock`, and fork for its runs until it ends as it did."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Snakemake hears it too, and ends
    Path(SOCKET).unlink(missing_ok=True)
    alive, held = os.pipe()
    forks: set[int] = set()
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.bind(SOCKET)
        except OSError:  # not every file system has sockets; each run starts cold then
            return subprocess.call(command, pass_fds=[int(lock)])
        server.listen(100)
        snakemake = subprocess.Popen(command, pass_fds=[int(lock), held])
        os.close(int(lock))
        os.close(held)
        while alive not in select.select([alive, server], [], [])[0]:
            with server.accept()[0] as asked:
                warm_up(*sorted(Path("sources").glob("*.ipynb")))
                fork = os.fork()
                if not fork:
                    server.close()
                    _answer(asked)
            forks = {pid for pid in forks | {fork} if not os.waitpid(pid, os.WNOHANG)[0]}
    Path(SOCKET).unlink()
    return snakemake.wait()


@functools.cache
def warm_up(*notebooks: Path) -> None:
    """Import what a run needs and what many of the notebooks import."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as many notebooks at a time as cores
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # a kernel's
    import ipykernel.kernelapp  # noqa: F401

    import workflow.run  # noqa: F401

    for line in shared_imports(notebooks):
        with contextlib.suppress(Exception):  # its notebook will say so
            exec(line, {})
    if pandas := sys.modules.get("pandas"):  # which saw no kernel when it was imported
        pandas.set_option("display.max_columns", 20)
    gc.freeze()  # what is imported is no garbage, and not to be looked through by each fork


def shared_imports(notebooks: Sequence[Path]) -> list[str]:
    """Return what stands outside of any block in a quarter of the notebooks or more, in order."""
    imports = Counter()
    for notebook in notebooks:
        cells = json.loads(notebook.read_text())["cells"]
        lines = {}
        for source in ("".join(c["source"]) for c in cells if c["cell_type"] == "code"):
            with contextlib.suppress(SyntaxError):  # a magic, or a mistake
                for node in ast.parse(source).body:
                    if isinstance(node, ast.Import):
                        lines |= dict.fromkeys(f"import {a.name}" for a in node.names)
                    elif isinstance(node, ast.ImportFrom):
                        lines |= dict.fromkeys(
                            f"from {node.module} import {a.name}" for a in node.names
                        )
        imports.update(lines.keys())
    return [line for line, count in imports.items() if 4 * count >= len(notebooks)]


def pytest_collection_finish(session: Any) -> None:
    """Let nbval's kernels be forks of the process that tests, with `pytest -p workflow.warm`."""
    from jupyter_client.provisioning import local_provisioner

    if sys.platform != "linux":  # elsewhere forks are not safe
        return
    warm_up(*sorted({item.path for item in session.items}))
    local_provisioner.launch_kernel = Kernel  # pyright: ignore[reportPrivateImportUsage]


def _answer(asked: socket.socket) -> None:
    """Run what is asked for, tell how it ended, and end; end at once if who asked is gone."""
    from jupyter_client.provisioning import local_provisioner

    from workflow.run import main

    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        arguments = json.loads(asked.makefile().readline())
        fcntl.fcntl(asked, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(asked, fcntl.F_SETFL, os.O_ASYNC)  # SIGIO, which ends this process
        local_provisioner.launch_kernel = Kernel  # pyright: ignore[reportPrivateImportUsage]
        status = main(*arguments)
        fcntl.fcntl(asked, fcntl.F_SETFL, 0)
        asked.sendall(str(status).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


class Kernel:
    """A fork of this process that becomes a kernel; jupyter_client takes it for a Popen."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], *, env: dict[str, str], cwd: str = ".", **_) -> None:
        self.returncode = None
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid:
            os.setpgid(self.pid, self.pid)  # before anybody sends a signal to its group
            return
        try:
            with contextlib.suppress(PermissionError):  # the parent was first
                os.setpgid(0, 0)
            os.environ.clear()
            os.environ.update(env)
            os.chdir(cwd)
            follow = f"--IPKernelApp.parent_handle={parent}"  # whose end is the kernel's
            _become_kernel([*command[command.index("-f") :], follow])
        finally:
            os._exit(1)

    def poll(self) -> int | None:
        """Return the exit status, None as long as it lives."""
        if self.returncode is None and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.returncode = 0
        return self.returncode

    wait = poll  # is asked for when it has ended

    def send_signal(self, signum: int) -> None:
        """Send a signal to it alone."""
        os.kill(self.pid, signum)


def _become_kernel(arguments: list[str]) -> None:
    import asyncio

    from ipykernel.kernelapp import IPKernelApp

    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # a random one, as in a process of its own
    asyncio.set_event_loop(asyncio.new_event_loop())  # the other one is the parent's
    sys.argv = ["ipykernel_launcher", *arguments]
    IPKernelApp.launch_instance(arguments)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(serve(*sys.argv[2:]) if sys.argv[1] == "--serve" else main(*sys.argv[1:]))
