"""Pictures: importances as bars, q_f as a curve, interactions as a heat map."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any, Self

import numpy as np
import pandas as pd

from firmlib._drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, draw_points
from firmlib.measure import FirmByClass, firm
from firmlib.result import ConditionalScore, FirmResult
from firmlib.tables.checks import check_integer, check_option

# isort: split
# After firmlib._drawing, which says how to get matplotlib.
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from mpl_toolkits.axes_grid1 import make_axes_locatable

__all__ = [
    "BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "RED", "SKY", "ConditionalScoreDisplay",
    "FirmDisplay", "curve_legend", "plot_by_class", "plot_curves", "plot_interactions",
]  # fmt: skip

_DIRECTIONS = {
    1: ("score rises with the feature", BLUE),
    -1: ("score falls with it", ORANGE),
    0: ("no direction, such as a category", GREY),
}
_SCORES = {"decision_function": "decision value", "predict_proba": "probability"}
_SCORES["predict"] = "prediction"
_PLAIN: Any = {"fontsize": "small", "frameon": False}  # a legend


def _wrapped(name: object, letters: int = 40) -> str:
    """Return a name in lines of at most `letters` letters, with every "$" escaped."""
    return fill(str(name), letters, max_lines=4, placeholder=" …").replace("$", r"\$")


def _size(labels: Sequence[str]) -> tuple[float, float]:
    """Return the approximate width and height in inches of labels below each other."""
    letters = max(map(len, "\n".join(labels).split("\n")))
    lines = max(label.count("\n") + 1 for label in labels)
    width = 0.56 * plt.rcParams["font.size"] / 72 * letters
    return width, 0.25 * len(labels) * max(0.75 * lines, 1)


def _panels(
    number: int, columns: int, width: float, height: float, margin: float = 0
) -> Sequence[Axes]:
    """Return the axes of panels of this size, at most `columns` in a row, in a new figure."""
    columns = min(check_integer("columns", columns, 1), number)
    rows = -(-number // columns)
    size = max(0.5 + width * columns + margin, 4.4), 0.6 + height * rows  # 4.4 for the legend
    style: Any = {"sharey": True, "squeeze": False, "layout": "constrained", "figsize": size}
    axes: Any = plt.subplots(rows, columns, **style)[1].flat
    for ax in axes[number:]:
        ax.remove()
    return axes[:number]


def _legend(figure: Any, loc: str, ncols: int) -> None:
    """Explain what is drawn in a figure, each mark once."""
    marks: dict[str, Any] = {}
    for ax in figure.axes:
        handles, texts = ax.get_legend_handles_labels()
        marks |= dict(zip(texts, handles, strict=True))
    figure.legend([*marks.values()], [*marks], loc=loc, ncols=ncols, **_PLAIN)


def _score_name(result: FirmResult) -> str:
    """Return the name of the score, such as "probability of class 1"."""
    name = _SCORES.get(result.response, "score")
    kind = "" if result.response == "predict" else "class "  # a label, or an output
    return name if result.target is None else _wrapped(f"{name} of {kind}{result.target}")


def _label_importances(result: FirmResult, drawn: int) -> str:
    """Return the label of the axis, with the number of features that are not drawn."""
    score = _score_name(result)
    lines = ["importance $Q_f$" + f" ({score})" * (score != "score")]
    if result.given:
        lines.append(_wrapped(f"given {', '.join(result.given)}"))
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
        """Draw the `n` most important features into `ax`, with the `ranks` that the data allow."""
        result, own = self.result, ax is None
        names = list(result.to_frame().index[: check_integer("n", n, 1)])
        labels = [_wrapped(name) for name in names]
        width, height = _size(labels)
        ax = ax or _panels(1, 1, 3.3 + 1.6 * ranks, 0.8 + height, width)[0]
        _draw_bars(ax, result, names, labels)
        ax.set_xlabel(_label_importances(result, len(names)))
        if ranks:
            # Brackets from the best to the worst rank beside the bars.
            ranked = result.ranks(result.confidence_level).loc[names, ["rank", "best", "worst"]]
            rank, best, worst = ranked.to_numpy().T
            beside = make_axes_locatable(ax).append_axes("right", "45%", pad=0.15, sharey=ax)
            style: Any = {"color": RED, "fmt": "o", "markersize": 3.5, "capsize": 3}
            style["label"] = "rank, and the ranks the data allow"
            beside.errorbar(rank, ax.get_yticks(), xerr=[rank - best, worst - rank], **style)
            beside.tick_params(axis="y", labelleft=False, length=0)
            beside.locator_params(axis="x", nbins=5, integer=True, min_n_ticks=1)
            beside.grid(axis="y", color=GREY, alpha=0.3, linewidth=0.5)
            beside.set_xlabel("rank")
        if own:
            _legend(ax.figure, "outside upper left", 2)
        else:
            ax.legend(loc="lower right", bbox_to_anchor=(1, 1), **_PLAIN)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_bars(ax: Axes, result: FirmResult, names: list[str], labels: list[str]) -> None:
    """Draw the importances of features from top to bottom."""
    table = result.to_frame().loc[names, ["importance", "ci_low", "ci_high", "direction"]]
    Q, low, high, direction = table.to_numpy().T
    y = np.arange(len(names))[::-1]
    for way, (text, color) in _DIRECTIONS.items():
        if (some := (np.nan_to_num(direction) == way) & (Q > 0)).any():
            ax.barh(y[some], Q[some], color=color, height=0.7, label=text)
    if (some := high > low).any():
        text = f"{100 * result.confidence_level:g} % confidence interval"
        style: Any = {"fmt": "none", "ecolor": plt.rcParams["text.color"], "elinewidth": 1.2}
        ends = [(Q - low)[some], (high - Q)[some]]
        bars = ax.errorbar(Q[some], y[some], xerr=ends, label=text, **style)
        # An edge in the colour of the background makes lines visible on bars and beside them.
        edge = withStroke(linewidth=2.6, foreground=ax.get_facecolor())
        bars.lines[2][0].set_path_effects([edge])
    ax.set_yticks(y, labels)
    ax.set(ylim=(-0.7, len(y) - 0.3), xlim=(0, None))
    ax.locator_params(axis="x", nbins=5)


def plot_by_class(results: FirmByClass, *, n: int = 15, columns: int = 3) -> Figure:
    """Draw the `n` features most important to any class, one panel per class, `columns` in a row.

    >>> import firmlib
    >>> results = firmlib.firm_by_class(["a", "b", "c", "a"], [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [ax.get_title() for ax in firmlib.plot_by_class(results).axes]
    ['a', 'b', 'c']
    """
    names = list(results.importances.index[: check_integer("n", n, 1)])
    labels = [_wrapped(name, 26) for name in names]
    width, height = _size(labels)
    axes = _panels(len(results), columns, 2.0, 0.8 + height, width)
    for ax, (title, result) in zip(axes, results.items(), strict=True):
        _draw_bars(ax, result, names, labels)
        ax.set_title(_wrapped(title, 22), fontsize="medium")
    plt.setp(axes, xlim=(0, max(ax.get_xlim()[1] for ax in axes)))
    figure = plt.gcf()
    figure.supxlabel(_label_importances(replace(result, target=None), len(names)), size="medium")
    _legend(figure, "outside upper left", 2)
    return figure


@dataclass
class ConditionalScoreDisplay:
    """The curve q_f with its error, the importance Q_f as a band, and where the rows are."""

    curve: ConditionalScore
    name: str = "feature value $t$"
    score: str = "score"

    @classmethod
    def from_result(cls, result: FirmResult, name: str) -> Self:
        """Display the curve of the feature `name` of a `result`."""
        check_option("name", name, result.curves)
        return cls(result.curves[name], _wrapped(name, 26), _score_name(result))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, feature: Any, **options: Any) -> Self:
        """Display the curve of a column or callable `feature`, with the `options` of `firm`."""
        result = firm(estimator, X, [feature], **options)
        return cls.from_result(result, result.feature_names[0])

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve into `ax`; pool many bins, and the rarest levels of a category."""
        own, curve = ax is None, self.curve
        ax = ax or _panels(1, 1, 3.9, 2.8)[0]
        mean, error = float(curve.p @ curve.q), curve.standard_error**2
        variance = curve.p @ ((curve.q - mean) ** 2 - error) + curve.p**2 @ error
        Q, missing = float(np.sqrt(max(variance, 0))), pd.isna(curve.t)
        band: Any = {"color": ORANGE, "alpha": 0.25, "linewidth": 0}
        ax.axhspan(mean - Q, mean + Q, **band, label="mean ± importance $Q_f$")
        ax.axhline(mean, color=ORANGE, linewidth=1, label="mean score")
        q = draw_points(ax, curve)
        if missing.any():  # right of the axes, with its share above
            style: Any = {"color": PURPLE, "fmt": "D", "markersize": 4, "label": "missing values"}
            style |= {"transform": ax.get_yaxis_transform(), "clip_on": False}
            ax.errorbar(1.03, curve.q[missing], 2 * curve.standard_error[missing], **style)
            share = f"missing: {100 * curve.p[missing][0]:.2g} %"
            ax.set_title(share, fontsize="small", color=PURPLE, loc="right")
        data = ax.dataLim
        ax.update_datalim([(data.x0, data.y0 - 0.3 * data.height)])  # room for the shares of rows
        ax.autoscale_view()
        ax.set_xlabel(self.name + (" (hours)" if curve.kind == "duration" else ""))
        ax.set_ylabel(f"expected {self.score} $q_f(t)$")
        if own:
            curve_legend(ax.figure)
        self.ax_, self.figure_, self.q_ = ax, ax.figure, np.append(q, curve.q[missing])
        return self


def curve_legend(figure: Any) -> None:
    """Explain the marks of curves below a figure."""
    _legend(figure, "outside lower center", 2 + (figure.get_figwidth() > 6))


def plot_curves(
    result: FirmResult, *, n: int = 12, columns: int = 3, features: Sequence[str] | None = None
) -> Figure:
    """Draw q_f of the `n` most important or of other `features`, `columns` in a row, on one scale.

    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> len(firmlib.plot_curves(result).axes)
    2
    """
    names = [name for name in result.to_frame().index if name in result.curves]
    names = names[: check_integer("n", n, 1)] if features is None else list(features)
    if not names:
        raise ValueError("result has no curve to draw; groups of columns have none")
    axes, seen = _panels(len(names), columns, 2.1, 2.0), []
    for ax, name in zip(axes, names, strict=True):
        seen += [*ConditionalScoreDisplay.from_result(result, name).plot(ax).q_]
        ax.set_ylabel("")
    room = 0.1 * np.ptp(seen) or 1.0  # a wide interval may leave the panel
    axes[0].set_ylim(min(seen) - 3 * room, max(seen) + room)
    figure = plt.gcf()
    figure.supylabel(f"expected {_score_name(result)} $q_f(t)$", size="medium")
    curve_legend(figure)
    return figure


def plot_interactions(result: FirmResult, ax: Axes | None = None) -> Axes:
    """Draw the interaction of each pair as a heat map, with a ring where it is significant.

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
    labels = [_wrapped(name, 32) for name in dict.fromkeys(np.ravel(pairs))]
    width, height = _size(labels)
    side = max(height, 3) + width
    ax = ax or _panels(1, 1, side, side)[0]
    table = np.full((len(labels), len(labels)), np.nan)
    j, k = np.triu_indices(len(labels), 1)  # the order of the pairs
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
