"""Pictures of what `firmlib.search` found, and of what interacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from firmlib._checks import check_integer
from firmlib.display import BLUE, GREY, ORANGE, plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from firmlib.discovery import SearchResult

__all__ = ["RulesDisplay"]


@dataclass
class RulesDisplay:
    """Rules with their intervals, what they seemed to be where they were found, and rows covered.

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> firmlib.search(X[:, 0], X, n=2).plot().ax_.get_xlabel()
    'importance $|Q_f|$ on held-out rows'
    """

    result: SearchResult

    def plot(self, ax: Axes | None = None, *, n: int = 30) -> Self:
        """Draw the `n` best rules into `ax`, by default into a new figure, the best on top.

        Points are importances on the rows that were held out, with their intervals; rings those on
        the rows where the rule was found. At the right is the share of rows that a rule holds in.
        """
        table = self.result.to_frame().head(check_integer("n", n, 1)).iloc[::-1]
        signed, found = table["importance"].to_numpy(), table["searched"].abs()
        low, high = np.sort(table[["ci_low", "ci_high"]].abs().to_numpy(), axis=1).T
        labels = [name.replace(" ∧ ", "\n∧ ") for name in table.index]
        if ax is None:
            lines = sum(1.4 + label.count("\n") for label in labels)
            ax = plt.subplots(figsize=(6.5, 1 + 0.2 * lines), layout="constrained")[1]
        y = np.arange(len(table))
        for color, where in ((BLUE, signed >= 0), (ORANGE, signed < 0)):
            meant = "higher" if color == BLUE else "lower"
            if where.any():
                ax.hlines(y[where], low[where], high[where], color=color, linewidth=2)
                dots = {
                    "color": color,
                    "s": 30,
                    "zorder": 3,
                    "label": f"score {meant} where it holds",
                }
                ax.scatter(np.abs(signed[where]), y[where], **dots)
        ax.scatter(found, y, facecolor="none", edgecolor=GREY, s=60, label="where it was found")
        ax.set_yticks(y, labels)
        ax.set_xlim(0, 1.08 * max(high.max(), found.max()))
        ax.set_ylim(-0.7, len(table) - 0.3)
        ax.grid(axis="x", alpha=0.3)
        ax.set_xlabel("importance $|Q_f|$ on held-out rows")
        beside = ax.twinx()
        beside.set_ylim(ax.get_ylim())
        beside.set_yticks(y, [f"{share:.0%}" for share in table["covered"]])
        beside.tick_params(length=0)
        beside.set_title("rows", loc="right", fontsize="small")
        ax.legend(loc="lower left", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
