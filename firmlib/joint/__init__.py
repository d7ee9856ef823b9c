"""Several columns at once: given columns, groups, pairs; search and stability stand beside them."""

from firmlib.joint.cells import pairs
from firmlib.joint.given import adds_to

__all__ = ["adds_to", "pairs"]
