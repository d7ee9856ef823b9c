"""Pictures of what `firmlib.search` found, and of what interacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from firmlib._checks import check_integer
from firmlib._drawing import plain
from firmlib.display import BLUE, GREY, ORANGE, RED, plt
from firmlib.result import FirmResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from firmlib.discovery import SearchResult

__all__ = ["RulesDisplay", "plot_interactions"]


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
        labels = [plain(name).replace(" ∧ ", "\n∧ ") for name in table.index]
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


def plot_interactions(result: FirmResult, ax: Axes | None = None) -> Axes:
    """Draw what interacts as a heat map, with a ring around pairs whose test stands out.

    Parameters
    ----------
    result : FirmResult
        Of ``firm(score, X, Pairs("interaction"))``.
    ax : matplotlib Axes, default None
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> pairs = firmlib.features.Pairs("interaction")
    >>> ax = firmlib.plot_interactions(firmlib.firm(X[:, 0] * X[:, 1], X, pairs))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x0', 'x1', 'x2']
    """
    pairs = [name.split(" × ") for name in result.feature_names]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("result must be that of Pairs('interaction'), with names such as 'a × b'")
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    if ax is None:
        size = min(1.8 + 0.3 * len(names), 7)
        ax = plt.subplots(figsize=(size, 0.85 * size), layout="constrained")[1]
    place = {name: i for i, name in enumerate(names)}
    j, k = np.array([[place[name] for name in pair] for pair in pairs]).T
    table = np.full((len(names), len(names)), np.nan)
    table[j, k] = table[k, j] = np.abs(result.importances)
    image = ax.imshow(table, cmap="cividis", vmin=0)
    told = result.pvalues_adjusted() < 0.05
    for a, b in ((j, k), (k, j)):
        ax.plot(
            b[told], a[told], "o", mfc="none", mec=RED, mew=1.5, markersize=min(80 / len(names), 12)
        )
    small = "small" if len(names) < 15 else "x-small"
    labels = [plain(name) for name in names]
    ax.set_xticks(range(len(names)), labels, rotation=90, fontsize=small)
    ax.set_yticks(range(len(names)), labels, fontsize=small)
    ring = "\n(ring: p < 0.05 after Holm)" if told.any() else ""
    ax.figure.colorbar(image, ax=ax, label=f"interaction, in units of the score{ring}")
    return ax
