"""A bar for long work: it appears by itself, after a few seconds."""

from collections.abc import Collection, Iterable
from typing import Any

__all__: list[str] = []  # nothing here is public

_SECONDS = 4


def progress(items: Collection[Any], what: str) -> Iterable[Any]:
    """Return the items, with a bar on stderr while a loop over them takes more than 4 seconds.

    Without tqdm, and with TQDM_DISABLE=1 in the environment, there is no bar.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=what, delay=_SECONDS, leave=False)
