"""Several columns at once: given columns, groups, pairs; search and stability stand beside them."""

from firmlib.joint.given import Learned, given, group
from firmlib.joint.pairs import pairs

__all__ = ["Learned", "given", "group", "pairs"]
