"""Pictures: importances as bars, q_f as a curve, interactions as a heat map.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.axes_grid1 import make_axes_locatable
from scipy.spatial.distance import squareform

from firmlib.measure import FirmByClass, firm
from firmlib.result import ConditionalScore, FirmResult
from firmlib.tables.checks import check_integer, check_option, short

__all__ = [
    "BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "RED", "SKY", "ConditionalScoreDisplay",
    "FirmDisplay", "curve_legend", "plot_by_class", "plot_curves", "plot_interactions",
]  # fmt: skip

BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"
_WAYS = "score rises with the feature", "score falls with it", "no direction"
_SCORES = {"decision_function": "decision value", "predict_proba": "probability"}
_SCORES["predict"] = "prediction"
_POINTS, _LEVELS = 60, 12  # drawn of a curve; further bins and rarer levels are pooled


def _wrapped(name: object, letters: int = 40) -> str:
    """Return a name in lines of at most `letters` letters, with every "$" escaped."""
    return fill(str(name), letters, max_lines=4, placeholder=" …").replace("$", r"\$")


def _labels(names: Any, letters: int) -> tuple[list[str], float, float]:
    """Return wrapped names, and about how wide and high in inches they are below each other."""
    labels = [_wrapped(name, letters) for name in names]
    width = 0.56 * plt.rcParams["font.size"] / 72 * max(map(len, "\n".join(labels).split("\n")))
    lines = max(label.count("\n") + 1 for label in labels)
    return labels, width, 0.25 * len(labels) * max(0.75 * lines, 1)


def _panels(number: int, columns: int, width: float, height: float, margin: float = 0) -> Figure:
    """Return a figure with panels of this size, at most `columns` in a row."""
    columns = min(check_integer("columns", columns, 1), number)
    rows = -(-number // columns)
    size = max(0.5 + width * columns + margin, 4.4), 0.6 + height * rows  # 4.4 for the legend
    figure = plt.figure(figsize=size, layout="constrained")
    for ax in figure.subplots(rows, columns, sharey=True, squeeze=False).flat[number:]:
        ax.remove()
    return figure


def curve_legend(figure: Any, loc: str = "outside lower center") -> None:
    """Explain what is drawn in a figure, each mark once."""
    found = (zip(*ax.get_legend_handles_labels(), strict=True) for ax in figure.axes)
    marks = {text: mark for each in found for mark, text in each}
    ncols = 2 + (figure.get_figwidth() > 6)
    figure.legend(marks.values(), marks, loc=loc, ncols=ncols, fontsize="small", frameon=False)


def _score_name(result: FirmResult) -> str:
    """Return the name of the score, such as "probability of class 1"."""
    name = _SCORES.get(result.response, "score")
    kind = "" if result.response == "predict" else "class "  # a label, or an output
    return name if result.target is None else _wrapped(f"{name} of {kind}{result.target}")


def _label_importances(result: FirmResult, drawn: int) -> str:
    """Return the label of the axis, with the number of features that are not drawn."""
    score, hidden = _score_name(result), len(result) - drawn
    lines = ["importance $Q_f$" + f" ({score})" * (score != "score")]
    lines += [_wrapped(f"given {', '.join(result.given)}")] * bool(result.given)
    lines += [f"({hidden} less important feature{'s' * (hidden > 1)} not shown)"] * (hidden > 0)
    return "\n".join(lines)


@dataclass
class FirmDisplay:
    """Importances as horizontal bars with their confidence intervals, the largest on top.

    Bars are full where the score rises with the feature, pale where it falls, and grey where there
    is no direction, as for nominal levels, groups and interactions.

    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> firmlib.FirmDisplay(result).plot().ax_.get_xlabel()
    'importance $Q_f$'
    """

    result: FirmResult

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, features: Any = None, **options: Any) -> Self:
        """Display `firmlib.firm` of `estimator`, `X`, `features` and `options`."""
        return cls(firm(estimator, X, features, **options))

    def plot(self, ax: Axes | None = None, *, n: int = 30, ranks: bool = False) -> Self:
        """Draw the `n` most important features into `ax`, with the `ranks` that the data allow."""
        own, table = ax is None, self.result.to_frame(ranks=ranks).head(check_integer("n", n, 1))
        labels, width, height = _labels(table.index, 40)
        ax = ax or _panels(1, 1, 3.3 + 1.6 * ranks, 0.8 + height, width).axes[0]
        _draw_bars(ax, table, labels, self.result.confidence_level)
        ax.set_xlabel(_label_importances(self.result, len(table)))
        if ranks:  # as brackets from the best to the worst
            beside = make_axes_locatable(ax).append_axes("right", "45%", pad=0.15, sharey=ax)
            ends = table["rank"] - table["best"], table["worst"] - table["rank"]
            style: Any = {"color": RED, "fmt": "o", "markersize": 3.5, "capsize": 3}
            beside.errorbar(table["rank"], ax.get_yticks(), xerr=ends, **style)
            beside.tick_params(axis="y", labelleft=False, length=0)
            beside.locator_params(axis="x", nbins=5, integer=True, min_n_ticks=1)
            beside.grid(axis="y", color=GREY, alpha=0.3, linewidth=0.5)
            beside.set_xlabel("rank and range")
        if own:  # above a title
            curve_legend(ax.figure, "outside upper left")
        else:
            place: Any = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
            ax.legend(**place, fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_bars(ax: Axes, table: pd.DataFrame, labels: list[str], level: float) -> None:
    """Draw the importances in a table from top to bottom, with intervals that any bar shows."""
    Q, low, high, way = np.nan_to_num(table[["importance", "ci_low", "ci_high", "direction"]]).T
    y = np.arange(len(table))[::-1]
    fills = (1, RED, 1), (-1, RED, 0.25), (0, GREY, 0.5)  # different in black and white, too
    for (sign, color, alpha), text in zip(fills, _WAYS, strict=True):
        if (some := (way == sign) & (Q > 0)).any():
            ax.barh(y[some], Q[some], color=(color, alpha), edgecolor=color, height=0.7, label=text)
    if (high > low).any():
        style: Any = {"fmt": "none", "ecolor": plt.rcParams["text.color"], "elinewidth": 1.2}
        style["label"] = f"{100 * level:g} % confidence interval"
        ax.errorbar(Q, y, xerr=(Q - low, high - Q), **style)
    ax.set(yticks=y, yticklabels=labels, ylim=(-0.7, len(y) - 0.3), xlim=(0, None))
    ax.locator_params(axis="x", nbins=5)


def plot_by_class(results: FirmByClass, *, n: int = 15, columns: int = 3) -> Figure:
    """Draw the `n` features most important to any class, one panel per class, `columns` in a row.

    >>> import firmlib
    >>> results = firmlib.firm_by_class(["a", "b", "c", "a"], [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [ax.get_title() for ax in firmlib.plot_by_class(results).axes]
    ['a', 'b', 'c']
    """
    names = results.importances.index[: check_integer("n", n, 1)]
    labels, width, height = _labels(names, 26)
    figure = _panels(len(results), columns, 2.0, 0.8 + height, width)
    for ax, (title, result) in zip(figure.axes, results.items(), strict=True):
        _draw_bars(ax, result.to_frame().loc[names], labels, result.confidence_level)
        ax.set_title(_wrapped(title, 22), fontsize="medium")
    plt.setp(figure.axes, xlim=(0, max(ax.get_xlim()[1] for ax in figure.axes)))
    figure.supxlabel(_label_importances(replace(result, target=None), len(names)), size="medium")
    curve_legend(figure, "outside upper left")
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
        own, curve, missing = ax is None, self.curve, pd.isna(self.curve.t)
        ax = ax or _panels(1, 1, 3.9, 2.8).axes[0]
        mean, error = float(curve.p @ curve.q), curve.standard_error**2
        Q: Any = np.sqrt(max(curve.p @ ((curve.q - mean) ** 2 - error) + curve.p**2 @ error, 0))
        ax.axhspan(mean - Q, mean + Q, fc=(ORANGE, 0.25), label="mean ± importance $Q_f$")
        ax.axhline(mean, color=ORANGE, linewidth=1, label="mean score")
        _draw_points(ax, curve)
        if missing.any():  # right of the axes, with its share above
            style: Any = {"color": PURPLE, "fmt": "D", "markersize": 4, "label": "missing values"}
            style |= {"transform": ax.get_yaxis_transform(), "clip_on": False}
            ax.errorbar(1.03, curve.q[-1], 2 * curve.standard_error[-1], **style)
            ax.set_title(f"missing: {100 * curve.p[-1]:.2g} %", size="small", c=PURPLE, loc="right")
        ax.update_datalim([(ax.dataLim.x0, ax.dataLim.y0 - 0.3 * ax.dataLim.height)])  # for shares
        ax.autoscale_view()
        ax.set_xlabel(self.name + " (hours)" * (curve.kind == "duration"))
        ax.set_ylabel(f"expected {self.score} $q_f(t)$")
        if own:
            curve_legend(ax.figure)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_points(ax: Axes, curve: ConditionalScore) -> None:
    """Draw q_f of levels as points, of numbers as a line, above the share of rows."""
    (x, q, error, p), levels = _points(curve)
    width = np.gradient(x) if len(x) > 1 else np.ones(len(x))
    red: Any = {"color": RED, "linewidth": 1, "label": "expected score ± 2 standard errors"}
    grey: Any = {"transform": ax.get_xaxis_transform(), "label": "share of rows", "fc": (GREY, 0.6)}
    if levels or len(x) < _POINTS / 2:
        ax.errorbar(x, q, 2 * error, fmt="o" if levels else "o-", markersize=3.5, **red)
        least = 0.015 * np.ptp(x) if len(x) else 0  # a bar that is visible
        ax.bar(x, 0.15 * p / p.max(initial=0), max(0.6 * width.min(initial=1), least), **grey)
    else:
        ax.fill_between(x, q - 2 * error, q + 2 * error, color=RED, alpha=0.25, linewidth=0)
        ax.fill_between(x, 0.15 * (p / width) / (p / width).max(), step="mid", **grey)
        ax.plot(x, q, **red)
    if levels:
        step = -(-len(levels) // _LEVELS)
        ax.set_xticks(x[::step], levels[::step])
        if len("  ".join(levels)) > 20:
            ax.tick_params("x", rotation=90, labelsize="small")
    if curve.kind == "date":
        ticks = dates.AutoDateLocator(minticks=2, maxticks=5)
        ax.xaxis.set(major_locator=ticks, major_formatter=dates.ConciseDateFormatter(ticks))


def _points(curve: ConditionalScore) -> tuple[list[np.ndarray], list[str]]:
    """Return x, q, error and share p of the points to draw, and the names of levels."""
    frame: Any = curve.to_frame()[~pd.isna(curve.t)].infer_objects()
    group, named = np.arange(len(frame)), len(frame) * (curve.kind in ("ordered", "nominal"))
    if curve.kind == "nominal":
        named = named if named <= _LEVELS else _LEVELS - 1
        rare = frame["p"].rank(method="first", ascending=False) > named
        key = "t" if pd.api.types.is_numeric_dtype(frame["t"]) else "q"
        frame, group = frame.iloc[np.lexsort([frame[key], rare])], np.minimum(group, named)
    elif len(frame) > _POINTS and not named:  # pooled bins are finer in the tails
        place = np.arcsin(np.sqrt(frame["p"].cumsum() - frame["p"] / 2)) * 2 / np.pi
        group = pd.factorize((_POINTS * place).astype(int))[0]
    t, q, error, p = (frame[name].to_numpy() for name in ("t", "q", "standard_error", "p"))
    numbers = {"date": dates.date2num, "duration": lambda t: t / np.timedelta64(1, "h")}
    x = group if named else numbers.get(curve.kind, np.asarray)(t)
    share = np.bincount(group, p)
    x, q = (np.bincount(group, p * each) / share for each in (x, q))
    error = np.sqrt(np.bincount(group, (p * error) ** 2)) / share
    levels = [s if len(s) <= 16 else f"{s[:5]}…{s[-10:]}" for s in map(str, t[:named])]
    levels += [f"{len(t) - named} rarer"] * (0 < named < len(t))
    return [x, q, error, share], [_wrapped(s) for s in levels]


def plot_curves(result: FirmResult, *, n: int = 12, columns: int = 3, features: Any = ()) -> Figure:
    """Draw q_f of the `n` most important or of other `features`, `columns` in a row, on one scale.

    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> len(firmlib.plot_curves(result).axes)
    2
    """
    names = [name for name in result.to_frame().index if name in result.curves]
    names = list(features) or names[: check_integer("n", n, 1)]
    if not names:
        raise ValueError("result has no curve to draw; groups of columns have none")
    figure = _panels(len(names), columns, 2.1, 2.0)
    for ax, name in zip(figure.axes, names, strict=True):
        ConditionalScoreDisplay.from_result(result, name).plot(ax).ax_.set_ylabel("")
    figure.supylabel(fill(f"expected {_score_name(result)} $q_f(t)$", 26), size="medium")
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

    if not result.pairs:
        names = short(result.feature_names)
        raise ValueError(f"result has the features {names}; expected those of Pairs('interaction')")
    labels, width, height = _labels(dict.fromkeys(np.ravel(result.pairs)), 32)
    side = max(height, 3) + width
    ax = ax or _panels(1, 1, side, side).axes[0]
    table = pd.DataFrame(squareform(result.importances), labels, labels).iloc[:-1, 1:]
    j, k = np.nonzero(np.triu(squareform(result.pvalues_adjusted()) < 0.05, 1))
    ring = "\n(ring: p < 0.05 after Holm's correction)" * bool(len(j))
    bar = {"label": f"interaction ({_score_name(result)}){ring}", "location": "bottom"}
    style: Any = {"cmap": sns.light_palette(RED, as_cmap=True), "vmin": 0, "square": True}
    sns.heatmap(table, mask=np.tri(len(table), k=-1, dtype=bool), cbar_kws=bar, ax=ax, **style)
    ax.tick_params("x", labeltop=True, bottom=False, labelbottom=False, rotation=90)
    ax.tick_params("y", left=False, labelleft=False, labelright=True, rotation=0)
    ax.scatter(k - 0.5, j + 0.5, s=30, facecolor="none", edgecolor="black")
    return ax
