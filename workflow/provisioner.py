"""Kernels that start warm: forks of the process that asks jupyter_client for them.

Registered in pyproject.toml, chosen by JUPYTER_DEFAULT_PROVISIONER_NAME=firmlib-fork.
"""

import asyncio
import contextlib
import os
import signal
import sys
import uuid
from multiprocessing import get_context
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

from workflow.warm import LINUX, end_with_parent


class Provisioner(LocalProvisioner):
    """A local provisioner whose process is a fork."""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Let the kernel listen on sockets without files: a free port may be taken by another."""
        if LINUX and self.parent is not None and self.parent.transport != "ipc":
            self.parent.transport, self.parent.cache_ports = "ipc", False
            self.parent.ip = f"@firmlib-{uuid.uuid4().hex}"  # the at sign: no files
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a process that becomes the kernel."""
        options = cmd[cmd.index("-f") :], kwargs["env"], kwargs.get("cwd") or "."
        self.process = get_context("fork").Process(target=_become_kernel, args=options, daemon=True)
        self.process.start()
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel with its subprocesses, or alone before it has a group of its own."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                return kill(self.pid, signum)

    async def poll(self) -> int | None:
        """Return the exit status, None while the kernel lives."""
        return self.process.exitcode if self.process else 0

    async def wait(self) -> int | None:
        """Wait for the kernel's end."""
        while (status := await self.poll()) is None:
            await asyncio.sleep(0.1)
        self.process = None
        return status


def _become_kernel(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    from ipykernel.kernelapp import IPKernelApp

    end_with_parent(signal.SIGKILL)
    os.setpgid(0, 0)  # an interrupt of the cell reaches its subprocesses, too
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # as in a process of its own
    asyncio.set_event_loop(asyncio.new_event_loop())  # the other loop is the parent's
    sys.argv = ["ipykernel_launcher", *arguments]
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
