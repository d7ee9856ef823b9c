"""CPU seconds, and the rows of what was measured, for the scripts beside this one."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """What was measured, and how many times as much as something else in the same run."""

    name: str
    value: float
    unit: str = "CPU s"
    ratio: float | None = None
    to: str = "firmlib"

    @property
    def beside(self) -> str:
        """The ratio in words; what is faster than firmlib stands out."""
        if self.ratio is None:
            return ""
        text = f"{number(self.ratio)} × {self.to}"
        return f"**{text}**" if self.to == "firmlib" and self.ratio < 1 else text


def number(x: float) -> str:
    """Three digits, or all before the point."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


def cpu_seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """The least of some runs: the first ones also pay for fetching memory."""
    return min(timed(call)[1] for _ in range(repeat))


def timed(call: Callable, *arguments: Any, **options: Any) -> tuple[Any, float]:
    """What a call returns, and the CPU seconds it took."""
    start = time.process_time()
    result = call(*arguments, **options)
    return result, time.process_time() - start


def show(rows: Iterable[Row]) -> list[Row]:
    """Print rows as they come, and return them."""
    shown = []
    for row in rows:
        print(f"{row.name:60} {number(row.value):>10} {row.unit:6} {row.beside}", flush=True)
        shown.append(row)
    return shown
