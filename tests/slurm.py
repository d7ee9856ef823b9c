"""A sweep on a Slurm of two nodes, one of which dies; the table must equal the local one.

Run by `make test-slurm`. Starts munged, slurmctld and two slurmd of Debian's packages as this user,
on loopback, in a temporary folder, with free ports, and ends them. Installs nothing: without the
packages its exit status is 3.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psutil

from tests.kill_sweep import done, rows, wait_for, write_tiny
from workflow import BUILD, ROOT

POINTS, DEATH = 9, 2  # points, and how many are done when a node dies
SECONDS = 3.0  # of each, so that one can be met at work
NOT_RUN = 3  # exit status, so that it does not look like a pass
PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "squeue", "sbatch", "srun", "scancel")
CONF = """\
ClusterName=firmlib
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmdTimeout=30
KillWait=5
MinJobAge=600
ReturnToService=0
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=8000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=8000
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=60 State=UP
"""


def free_ports(n: int) -> list[int]:
    """Return ports that nobody listens to."""
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def processes(conf: Path, node: str = "") -> list[psutil.Process]:
    """Return what runs with this Slurm's configuration, on all nodes or on one."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            ours = environment.get("SLURM_CONF") == str(conf) and process.pid != os.getpid()
            if ours and (not node or environment.get("SLURMD_NODENAME", "") == node):
                found.append(process)
    return found


def caught_at_work(conf: Path, cluster: Path) -> set[str]:
    """Stop the node that is to die; return the i of the point it is in the middle of.

    Stopped, nothing can end between the look and the kill. If there is none, or it is 7, which
    fails anyway, the node goes on.
    """
    stopped = processes(conf, "n2")
    for process in stopped:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
    points = json.loads((cluster / "tiny" / "index.json").read_text())["tiny"]["runs"]
    folders = set()
    for process in stopped:
        with contextlib.suppress(psutil.Error):
            folders.add(Path(process.environ().get("FIRMLIB_OUTPUT", "")).name)
    begun = (cluster / "starts").read_text().split()
    working = {str(point["i"]) for name, point in points.items() if name in folders}
    working = working & set(begun) - done(cluster) - {"7"}
    for process in [] if working else stopped:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
    return working


def kill(found: list[psutil.Process]) -> None:
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def start_slurm(folder: Path) -> Path:
    """Start the daemons; return slurm.conf. Their environment marks them as ours."""
    conf, host = folder / "slurm.conf", socket.gethostname().split(".")[0]
    user = psutil.Process().username()
    conf.write_text(CONF.format(host=host, user=user, folder=folder, ports=free_ports(3)))
    (folder / "state").mkdir()
    # The plugin hides SLURM_CONF from the srun of a job, which would look in /etc.
    srun = folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    munge = ["key-file", "socket", "pid-file", "log-file", "seed-file"]
    commands = {
        "munged": ["--foreground", "--force"]
        + [f"--{name}={folder}/munge.{name.removesuffix('-file')}" for name in munge],
        "slurmctld": ["-D", "-c"],
        "slurmd n1": ["-D", "-N", "n1"],
        "slurmd n2": ["-D", "-N", "n2"],
    }
    for name, options in commands.items():
        node = {"SLURMD_NODENAME": name.split()[1]} if " " in name else {}
        with (folder / f"{name}.out").open("w") as log:
            subprocess.Popen(
                [shutil.which(name.split()[0]), *options],
                env=os.environ | {"SLURM_CONF": str(conf)} | node,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if name == "munged":
            wait_for("munged", (folder / "munge.socket").exists, 20)
    return conf


def sinfo(*options: str) -> str:
    """Return the state of each node."""
    command = ["sinfo", "--Node", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main() -> int:
    """Sweep locally and on Slurm, where a node dies; check that it died, and compare."""
    os.environ["PATH"] += ":/usr/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        print(f"NOT RUN: the test on Slurm needs {', '.join(missing)}, of Debian's packages")
        print("slurmctld, slurmd, slurm-client and munge: apt-get install them to run it.")
        return NOT_RUN
    local, cluster = BUILD / "slurm" / "local", BUILD / "slurm" / "cluster"
    os.environ["STARTS"] = "/dev/null"
    subprocess.run(
        write_tiny(local, POINTS, SECONDS), cwd=ROOT, check=False, stdout=subprocess.DEVNULL
    )
    command = write_tiny(cluster, POINTS, SECONDS)
    starts = cluster / "starts"
    starts.touch()
    os.environ["STARTS"] = str(starts)
    profile = ["--profile", str(ROOT / "workflow" / "profiles" / "slurm")]
    folder = Path(tempfile.mkdtemp(prefix="firmlib-slurm-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    conf = folder / "slurm.conf"
    try:
        start_slurm(folder)
        os.environ |= {"SLURM_CONF": str(conf), "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        wait_for("Slurm", lambda: sinfo("--noheader", "--states=idle").count("idle") == 2, 60)
        print("two nodes are up", flush=True)
        sweep = subprocess.Popen([*command, *profile], cwd=ROOT)
        wait_for(f"{DEATH} points", lambda: len(done(cluster)) >= DEATH, 300)
        # A notebook must be at work on the node, so that its death costs a point.
        lost = wait_for("a point at work on n2", lambda: caught_at_work(conf, cluster), 120)
        alive, victims = sweep.poll() is None, processes(conf, "n2")
        kill(victims)
        gone, left = psutil.wait_procs(victims, timeout=30)
        print(f"node n2 killed, with all {len(victims)} processes on it", flush=True)
        sweep.wait(timeout=600)
        print(sinfo())
        began = Counter(i for i in starts.read_text().split() if i != "7")
        checks = {
            "the sweep was at work when the node died": alive,
            "a daemon and a notebook were killed": len(gone) >= 2 and not left and len(lost) == 1,
            "the node went down": "down" in sinfo("--noheader", "--nodes=n2"),
            "its point was started again, once": [began[i] for i in lost] == [2],
            "no other point was": all(n == 1 for i, n in began.items() if i not in lost),
            "the table has all points": len(rows(cluster)) == POINTS,
            "the table equals the local one": rows(cluster) == rows(local),
        }
        for check, held in checks.items():
            print(f"{'yes' if held else 'NO '}  {check}")
        return 0 if all(checks.values()) else 1
    finally:
        kill(processes(conf))
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
