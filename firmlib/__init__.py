"""FIRM, the feature importance ranking measure: how the expected score moves with a feature.

>>> import firmlib
>>> truth_table = [[0, 0], [0, 1], [1, 0], [1, 1]]
>>> firmlib.firm([0, 0, 0, 1], truth_table, method="discrete").importances  # x0 and x1
array([0.25, 0.25])
"""

from firmlib import binary, features, normal, scores
from firmlib.estimators import ConditionalScore
from firmlib.measure import FirmResult, conditional_expected_score, firm, firm_by_class
from firmlib.streaming import StreamingFirm

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the pictures when they are first asked for: matplotlib is an extra."""
    if name in ("ConditionalScoreDisplay", "FirmDisplay", "plot_curves"):
        from firmlib import display

        return getattr(display, name)
    raise AttributeError(f"module 'firmlib' has no attribute {name!r}")


__all__ = [
    "ConditionalScore",
    "ConditionalScoreDisplay",
    "FirmDisplay",
    "FirmResult",
    "StreamingFirm",
    "binary",
    "conditional_expected_score",
    "features",
    "firm",
    "firm_by_class",
    "normal",
    "plot_curves",
    "scores",
]
