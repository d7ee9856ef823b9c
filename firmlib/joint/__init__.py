"""Several columns at once: given columns, groups, pairs; search and stability stand beside them."""

from firmlib.joint.features import adds_to, with_groups
from firmlib.joint.given import Learned, given, group
from firmlib.joint.pairs import pairs

__all__ = ["Learned", "adds_to", "given", "group", "pairs", "with_groups"]
