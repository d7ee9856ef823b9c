"""CPU seconds, memory, and the rows of what was measured, for the scripts beside this one."""

import re
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """What was measured, how many times as much as something else in the same run, the target.

    The target is the most that the ratio should be or, without a ratio, the value.
    """

    name: str
    value: float
    unit: str = "CPU s"
    ratio: float | None = None
    to: str = "firmlib"
    target: float | None = None

    @property
    def missed(self) -> bool:
        """Whether more was needed than the target allows."""
        reached = self.value if self.ratio is None else self.ratio
        return self.target is not None and reached > self.target

    @property
    def beside(self) -> str:
        """The ratio and the target in words; bold where a peer is faster or a target is missed."""
        text = "" if self.ratio is None else f"{number(self.ratio)} × {self.to}"
        if self.target is not None:
            text = f"{text} (target: {number(self.target)})".strip()
        faster = self.ratio is not None and self.to == "firmlib" and self.ratio < 1
        return f"**{text}**" if faster or self.missed else text


def number(x: float) -> str:
    """Three digits, or all before the point."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}".replace(",", " ")


def cpu_seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """The least of some runs: the first ones also pay for fetching memory."""
    return min(timed(call)[1] for _ in range(repeat))


def timed(call: Callable, *arguments: Any, **options: Any) -> tuple[Any, float]:
    """What a call returns, and the CPU seconds it took."""
    start = time.process_time()
    result = call(*arguments, **options)
    return result, time.process_time() - start


def peak_megabytes() -> float:
    """The most memory that this process has had; on other systems than Linux, or its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def show(rows: Iterable[Row]) -> list[Row]:
    """Print rows as they come, and return them."""
    shown = []
    for row in rows:
        print(f"{row.name:60} {number(row.value):>10} {row.unit:6} {row.beside}", flush=True)
        shown.append(row)
    return shown
