"""Several columns at once: given columns, groups, pairs; search and stability stand beside them."""

from firmlib.joint.cells import pairs
from firmlib.joint.given import Learned, adds_to

__all__ = ["Learned", "adds_to", "pairs"]
