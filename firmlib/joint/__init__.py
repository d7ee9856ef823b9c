"""Several columns at once: given columns, groups, pairs; search and stability stand beside them."""

from firmlib.joint.given import adds_to
from firmlib.joint.interactions import pairs

__all__ = ["adds_to", "pairs"]
