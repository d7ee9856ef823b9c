"""FIRM, the feature importance ranking measure: how the expected score moves with a feature.

>>> import firmlib
>>> truth_table = [[0, 0], [0, 1], [1, 0], [1, 1]]
>>> firmlib.firm([0, 0, 0, 1], truth_table, rows="population").importances  # x0 and x1
array([0.25, 0.25])
"""
# ruff: noqa: F403, F405

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what __getattr__ finds
    from firmlib import binary, datasets, expansion, features, normal, scores, strings
    from firmlib.display import *
    from firmlib.joint.interactions import *
    from firmlib.joint.search import *
    from firmlib.joint.stability import *
    from firmlib.measure import *
    from firmlib.result import *
    from firmlib.streaming import *

__version__ = "1.0.0"
__all__ = [
    "ConditionalScore", "ConditionalScoreDisplay", "FirmByClass", "FirmDisplay", "FirmResult",
    "SearchResult", "StreamingFirm", "Unexplained", "binary", "compare",
    "conditional_expected_score", "datasets", "expansion", "features", "firm", "firm_by_class",
    "normal", "plot_by_class", "plot_curves", "plot_interactions", "scores", "search",
    "stability", "strings", "unexplained",
]  # fmt: skip
_HOMES = "measure result streaming joint.interactions joint.search joint.stability display"


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for; only the last home needs matplotlib."""
    if name not in __all__:
        raise AttributeError(f"module 'firmlib' has no attribute {name!r}")
    if find_spec(f"firmlib.{name}"):
        return import_module(f"firmlib.{name}")
    homes = (import_module(f"firmlib.{home}") for home in _HOMES.split())
    globals()[name] = value = next(getattr(home, name) for home in homes if name in home.__all__)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
