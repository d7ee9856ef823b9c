"""CPU seconds, for the scripts beside this one."""

import time
from collections.abc import Callable


def cpu_seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """The least of some runs: the first ones also pay for fetching memory."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)
