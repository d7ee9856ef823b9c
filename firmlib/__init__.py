"""FIRM, the feature importance ranking measure: how the expected score moves with a feature.

>>> import firmlib
>>> truth_table = [[0, 0], [0, 1], [1, 0], [1, 1]]
>>> firmlib.firm([0, 0, 0, 1], truth_table, rows="population").importances  # x0 and x1
array([0.25, 0.25])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firmlib import binary, datasets, expansion, features, normal, scores, strings
    from firmlib.by_class import FirmByClass, firm_by_class
    from firmlib.comparison import compare
    from firmlib.discovery import SearchResult, search
    from firmlib.display import ConditionalScoreDisplay, FirmDisplay, plot_by_class, plot_curves
    from firmlib.display_discovery import plot_interactions
    from firmlib.measure import conditional_expected_score, firm
    from firmlib.refits import stability
    from firmlib.result import ConditionalScore, FirmResult
    from firmlib.streaming import StreamingFirm

__version__ = "0.2.0.dev0"

__all__ = [
    "ConditionalScore",
    "ConditionalScoreDisplay",
    "FirmByClass",
    "FirmDisplay",
    "FirmResult",
    "SearchResult",
    "StreamingFirm",
    "binary",
    "compare",
    "conditional_expected_score",
    "datasets",
    "expansion",
    "features",
    "firm",
    "firm_by_class",
    "normal",
    "plot_by_class",
    "plot_curves",
    "plot_interactions",
    "scores",
    "search",
    "stability",
    "strings",
]

_HOMES = {
    "ConditionalScore": "result",
    "ConditionalScoreDisplay": "display",
    "FirmByClass": "by_class",
    "FirmDisplay": "display",
    "FirmResult": "result",
    "SearchResult": "discovery",
    "StreamingFirm": "streaming",
    "compare": "comparison",
    "conditional_expected_score": "measure",
    "firm": "measure",
    "firm_by_class": "by_class",
    "plot_by_class": "display",
    "plot_curves": "display",
    "plot_interactions": "display_discovery",
    "search": "discovery",
    "stability": "refits",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: few need all of them."""
    if name in _HOMES:
        value = getattr(import_module(f"firmlib.{_HOMES[name]}"), name)
    elif name in __all__:
        value = import_module(f"firmlib.{name}")
    else:
        raise AttributeError(f"module 'firmlib' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
