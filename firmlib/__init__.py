"""FIRM, the feature importance ranking measure: how the expected score moves with a feature.

>>> import firmlib
>>> truth_table = [[0, 0], [0, 1], [1, 0], [1, 1]]
>>> firmlib.firm([0, 0, 0, 1], truth_table, rows="population").importances  # x0 and x1
array([0.25, 0.25])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # as in _NAMES, for type checkers
    from firmlib import binary, datasets, expansion, features, normal, scores, strings
    from firmlib.display import (
        ConditionalScoreDisplay,
        FirmDisplay,
        plot_by_class,
        plot_curves,
        plot_interactions,
    )
    from firmlib.joint.interactions import Unexplained, unexplained
    from firmlib.joint.search import SearchResult, search
    from firmlib.joint.stability import stability
    from firmlib.measure import FirmByClass, conditional_expected_score, firm, firm_by_class
    from firmlib.result import ConditionalScore, FirmResult, compare
    from firmlib.streaming import StreamingFirm

__version__ = "1.0.0"

_NAMES = {
    "display": "ConditionalScoreDisplay FirmDisplay plot_by_class plot_curves plot_interactions",
    "joint.interactions": "Unexplained unexplained",
    "joint.search": "SearchResult search",
    "joint.stability": "stability",
    "measure": "FirmByClass conditional_expected_score firm firm_by_class",
    "result": "ConditionalScore FirmResult compare",
    "streaming": "StreamingFirm",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = [
    "ConditionalScore", "ConditionalScoreDisplay", "FirmByClass", "FirmDisplay", "FirmResult",
    "SearchResult", "StreamingFirm", "Unexplained", "binary", "compare",
    "conditional_expected_score", "datasets", "expansion", "features", "firm", "firm_by_class",
    "normal", "plot_by_class", "plot_curves", "plot_interactions", "scores", "search",
    "stability", "strings", "unexplained",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: few users need all of them."""
    if name not in __all__:
        raise AttributeError(f"module 'firmlib' has no attribute {name!r}")
    module = import_module(f"firmlib.{_HOMES.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
