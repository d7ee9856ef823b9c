"""Pictures: importances as bars, q_f as a curve, interactions as a heat map."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from firmlib import _drawing as drawing
from firmlib._drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, wrapped
from firmlib.measure import FirmByClass, firm
from firmlib.result import ConditionalScore, FirmResult
from firmlib.tables.checks import check_integer, check_option

# isort: split
# After firmlib._drawing, which says how to get matplotlib.
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from mpl_toolkits.axes_grid1 import make_axes_locatable

__all__ = [
    "BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "RED", "SKY", "ConditionalScoreDisplay",
    "FirmDisplay", "plot_by_class", "plot_curves", "plot_interactions",
]  # fmt: skip

_DIRECTIONS = {
    1: ("score rises with the feature", BLUE),
    -1: ("score falls with it", ORANGE),
    0: ("no direction, such as a category", GREY),
}
_SCORES = {"decision_function": "decision value", "predict": "prediction"}
_SCORES |= {"predict_proba": "probability", "callable": "score", "values": "score"}


def _size(labels: list[str]) -> tuple[float, int]:
    """Return the approximate width of labels in inches, and their largest number of lines."""
    letters = max(len(line) for label in labels for line in label.split("\n"))
    lines = max(label.count("\n") + 1 for label in labels)
    return 0.56 * plt.rcParams["font.size"] / 72 * letters, lines


def _panels(number: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure with panels of this size, at most `columns` in a row, and its axes."""
    columns = min(check_integer("columns", columns, 1), number)
    rows = -(-number // columns)
    size = max(0.5 + width * columns, 4.4), 0.6 + height * rows  # a legend needs 4.4 inches
    options: Any = {"figsize": size, "layout": "constrained", "sharey": True, "squeeze": False}
    figure, axes = plt.subplots(rows, columns, **options)
    for ax in axes.flat[number:]:
        ax.remove()
    return figure, axes.flat[:number]


def _score_name(result: FirmResult) -> str:
    """Return the name of the score, such as "probability of class 1"."""
    name = _SCORES.get(result.response, result.response)
    kind = "" if result.response == "predict" else "class "
    return name if result.target is None else wrapped(f"{name} of {kind}{result.target}")


def _label_importances(result: FirmResult, drawn: int, score: str) -> str:
    """Return the label of the axis, with the number of features that are not drawn."""
    lines = ["importance $Q_f$" + f" ({score})" * (score != "score")]
    if result.given:
        lines.append(wrapped(f"given {', '.join(result.given)}"))
    if hidden := len(result) - drawn:
        lines.append(f"({hidden} less important feature{'s' * (hidden > 1)} not shown)")
    return "\n".join(lines)


@dataclass
class FirmDisplay:
    """Importances as horizontal bars with their confidence intervals, the largest on top.

    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> firmlib.FirmDisplay.from_result(result).plot().ax_.get_xlabel()
    'importance $Q_f$'
    """

    result: FirmResult

    @classmethod
    def from_result(cls, result: FirmResult) -> Self:
        """Display the importances of a `result`."""
        return cls(result)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, features: Any = None, **options: Any) -> Self:
        """Display `firmlib.firm` of `estimator`, `X`, `features` and `options`."""
        return cls(firm(estimator, X, features, **options))

    def plot(self, ax: Axes | None = None, *, n: int = 30, ranks: bool = False) -> Self:
        """Draw the `n` most important features into `ax`, by default into a new figure.

        The colour of a bar shows the direction. With `ranks`, a bracket beside each bar shows the
        ranks that the data allow.
        """
        result, own = self.result, ax is None
        names = list(result.to_frame().index[: check_integer("n", n, 1)])
        if ax is None:
            width, lines = _size([wrapped(name) for name in names])
            height = 1.4 + 0.25 * len(names) * max(0.75 * lines, 1)
            width = 3.8 + max(width, 1) + 1.6 * ranks
            ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
        marks = _draw_bars(ax, result, names)
        ax.set_xlabel(_label_importances(result, len(names), _score_name(result)))
        if ranks:
            marks |= _draw_ranks(ax, result.ranks(result.confidence_level).loc[names])
        if own:
            drawing.legend(ax.figure, marks, loc="outside upper left", ncols=2)
        else:
            drawing.legend(ax, marks, loc="lower right", bbox_to_anchor=(1, 1))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_bars(ax: Axes, result: FirmResult, names: list[str], letters: int = 40) -> dict[str, Any]:
    """Draw the importances of features from top to bottom; return the marks for the legend."""
    table = result.to_frame().loc[names, ["importance", "ci_low", "ci_high", "direction"]]
    Q, low, high, direction = table.to_numpy().T
    y = np.arange(len(names))[::-1]
    marks: dict[str, Any] = {}
    for way, (text, color) in _DIRECTIONS.items():
        if (some := (np.nan_to_num(direction) == way) & (Q > 0)).any():
            ax.barh(y[some], Q[some], color=color, height=0.7)
            marks[text] = Patch(color=color)
    for i in np.flatnonzero(np.isnan(Q)):
        ax.annotate("  not estimated", (0, y[i]), va="center", fontsize="small")
    if (some := high > low).any():
        # An edge in the colour of the background makes lines visible on bars and beside them.
        edge = [withStroke(linewidth=2.6, foreground=ax.get_facecolor())]
        line: Any = {"color": plt.rcParams["text.color"], "linewidth": 1.2, "path_effects": edge}
        ax.hlines(y[some], low[some], high[some], **line)
        marks[f"{100 * result.confidence_level:g} % confidence interval"] = Line2D([], [], **line)
    ax.set_yticks(y, [wrapped(name, letters) for name in names])
    ax.set(ylim=(-0.7, len(y) - 0.3), xlim=(0, None))
    ax.locator_params(axis="x", nbins=5)
    return marks


def _draw_ranks(ax: Axes, ranks: pd.DataFrame) -> dict[str, Any]:
    """Draw the ranks beside the bars, with brackets from the best to the worst rank."""
    beside = make_axes_locatable(ax).append_axes("right", "45%", pad=0.15, sharey=ax)
    rank, best, worst = ranks[["rank", "best", "worst"]].to_numpy().T
    style: Any = {"color": RED, "marker": "o", "markersize": 3.5}
    y = np.arange(len(rank))[::-1]
    beside.errorbar(rank, y, xerr=[rank - best, worst - rank], capsize=3, ls="", **style)
    beside.tick_params(axis="y", labelleft=False, length=0)
    beside.locator_params(axis="x", nbins=5, integer=True, min_n_ticks=1)
    beside.grid(axis="y", color=GREY, alpha=0.3, linewidth=0.5)
    beside.set_xlabel("rank")
    return {"rank, and the ranks the data allow": Line2D([], [], **style)}


def plot_by_class(results: FirmByClass, *, n: int = 15, columns: int = 3) -> Figure:
    """Draw the `n` features that are most important to any class as bars, one panel per class.

    `results` come from `firm_by_class`. There are at most `columns` panels in a row.

    >>> import firmlib
    >>> results = firmlib.firm_by_class(["a", "b", "c", "a"], [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [ax.get_title() for ax in firmlib.plot_by_class(results).axes]
    ['a', 'b', 'c']
    """
    names = list(results.importances.index[: check_integer("n", n, 1)])
    width, lines = _size([wrapped(name, 26) for name in names])
    height = 0.6 + 0.22 * len(names) * max(0.75 * lines, 1)
    figure, axes = _panels(len(results), columns, 2.0, height)
    figure.set_figwidth(figure.get_figwidth() + width)
    marks, (first, *_) = {}, results.values()
    largest = max(np.nanmax([r.importances, r.ci_high]) for r in results.values())
    for ax, (title, result) in zip(axes, results.items(), strict=True):
        marks |= _draw_bars(ax, result, names, 26)
        ax.set_title(wrapped(title, 22), fontsize="medium")
        ax.set_xlim(0, 1.05 * largest)
    score = _SCORES.get(first.response, first.response)
    figure.supxlabel(_label_importances(first, len(names), score), size="medium")
    drawing.legend(figure, marks, loc="outside upper left", ncols=2)
    return figure


@dataclass
class ConditionalScoreDisplay:
    """The curve q_f with its error, the importance Q_f as a band, and where the rows are.

    >>> import firmlib
    >>> die = np.arange(1, 7).reshape(-1, 1)
    >>> square = firmlib.conditional_expected_score(lambda X: X[:, 0] ** 2, die, 0)
    >>> firmlib.ConditionalScoreDisplay(square, "pips").plot().ax_.get_xlabel()
    'pips'
    """

    curve: ConditionalScore
    name: str = "feature value $t$"
    score: str = "score"

    @classmethod
    def from_result(cls, result: FirmResult, name: str) -> Self:
        """Display the curve of the feature `name` of a `result`."""
        check_option("name", name, result.curves)
        return cls(result.curves[name], wrapped(name), _score_name(result))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, feature: Any, **options: Any) -> Self:
        """Display the curve of a column or callable `feature`, with the `options` of `firm`."""
        result = firm(estimator, X, [feature], **options)
        return cls.from_result(result, result.feature_names[0])

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve into `ax`, by default into a new figure with a legend.

        Vermilion is q_f with two standard errors on either side, orange the mean score with Q_f on
        either side, grey the share of rows, purple the missing values. Many bins are pooled, and
        so are the rarest levels of a category.
        """
        own = ax is None
        ax = ax or plt.subplots(figsize=(4.4, 3.4), layout="constrained")[1]
        self.q_ = drawing.draw_curve(ax, self.curve)
        ax.set_xlabel(self.name + (" (hours)" if self.curve.kind == "duration" else ""))
        ax.set_ylabel(f"expected {self.score} $q_f(t)$")
        if own:
            drawing.curve_legend(ax.figure)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_curves(
    result: FirmResult, *, n: int = 12, columns: int = 3, features: Sequence[str] | None = None
) -> Figure:
    """Draw q_f of the `n` most important features side by side, on one scale of scores.

    `features` names other features to draw. There are at most `columns` panels in a row.

    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> len(firmlib.plot_curves(result).axes)
    2
    """
    for name in features or ():
        check_option("features", name, result.curves)
    names = [name for name in result.to_frame().index if name in result.curves]
    names = names[: check_integer("n", n, 1)] if features is None else list(features)
    if not names:
        raise ValueError("result has no curve to draw; groups of columns have none")
    figure, axes = _panels(len(names), columns, 2.1, 2.0)
    seen = []
    for ax, name in zip(axes, names, strict=True):
        seen += [*ConditionalScoreDisplay(result.curves[name], wrapped(name, 26)).plot(ax).q_]
        ax.set_ylabel("")
    room = 0.1 * np.ptp(seen) or 1.0  # a wide interval may leave the panel
    axes[0].set_ylim(min(seen) - 3 * room, max(seen) + room)
    figure.supylabel(f"expected {_score_name(result)} $q_f(t)$", size="medium")
    drawing.curve_legend(figure)
    return figure


def plot_interactions(result: FirmResult, ax: Axes | None = None) -> Axes:
    """Draw the interaction of each pair as a heat map, with a ring where it is significant.

    `result` comes from ``firm(score, X, Pairs("interaction"))``.

    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> result = firmlib.firm(X[:, 0] * X[:, 1], X, firmlib.features.Pairs("interaction"))
    >>> [label.get_text() for label in firmlib.plot_interactions(result).get_xticklabels()]
    ['x1', 'x2']
    """
    import seaborn as sns

    pairs = [name.split(" × ") for name in result.feature_names]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("result must come from Pairs('interaction'), with names such as 'a × b'")
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    labels = [wrapped(name, 32) for name in names]
    if ax is None:
        width, lines = _size(labels)
        side = max(0.2 * lines * len(names), 3) + width
        ax = plt.subplots(figsize=(side, side + 1), layout="constrained")[1]
    j, k = np.sort([[names.index(name) for name in pair] for pair in pairs], axis=1).T
    table = np.full((len(names), len(names)), np.nan)
    table[j, k] = result.importances
    some = result.pvalues_adjusted() < 0.05
    ring = "\n(ring: p < 0.05 after Holm's correction)" if some.any() else ""
    bar = {"label": f"interaction ({_score_name(result)}){ring}", "location": "bottom"}
    style: Any = {"cmap": sns.light_palette(RED, as_cmap=True), "vmin": 0, "square": True}
    style |= {"xticklabels": labels[1:], "yticklabels": labels[:-1]}
    sns.heatmap(table[:-1, 1:], cbar_kws=bar, ax=ax, **style)
    ax.tick_params("x", labeltop=True, bottom=False, labelbottom=False, rotation=90)
    ax.tick_params("y", left=False, labelleft=False, labelright=True, rotation=0)
    ax.scatter(k[some] - 0.5, j[some] + 0.5, s=30, facecolor="none", edgecolor="black")
    return ax
