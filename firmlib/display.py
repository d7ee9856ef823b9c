"""The pictures: q_f as a curve, Q_f as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from firmlib import _drawing as drawing
from firmlib._checks import check_integer, check_option
from firmlib._drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, plain
from firmlib.measure import conditional_expected_score, firm
from firmlib.result import ConditionalScore, FirmResult

# isort: split
# After firmlib._drawing, which says how to get matplotlib.
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.axes_grid1 import make_axes_locatable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from firmlib.by_class import FirmByClass

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "SKY",
    "ConditionalScoreDisplay",
    "FirmDisplay",
    "plot_by_class",
    "plot_curves",
]


def _new_axes(width: float, height: float) -> Axes:
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


@dataclass
class FirmDisplay:
    """Importances as horizontal bars with their confidence intervals, the largest on top.

    Examples
    --------
    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> firmlib.FirmDisplay.from_result(result).plot().ax_.get_xlabel()
    'importance $Q_f$'
    """

    result: FirmResult

    @classmethod
    def from_result(cls, result: FirmResult) -> Self:
        """Display importances of a `result` that was computed already."""
        return cls(result)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, features: Any = None, **options: Any) -> Self:
        """Compute the importances with `firmlib.firm` and display them.

        Parameters
        ----------
        estimator : fitted estimator, callable X -> (n,), or array of shape (n,)
            This and what follows as for `firm`.
        X : array, sparse matrix or data frame of shape (n, d)
        features : columns, callables, dict or table, default None
        **options
        """
        return cls(firm(estimator, X, features, **options))

    def plot(self, ax: Axes | None = None, *, n: int = 30, ranks: bool = False) -> Self:
        """Draw the `n` most important features into `ax`, by default into a new figure.

        With `ranks`, a bracket beside each bar holds the ranks that the data allow.
        """
        table = self.result.to_frame(ranks=ranks).head(check_integer("n", n, 1))
        if ax is None:
            long = min(max(map(len, table.index)), _LONG) - _USUAL
            width = (7 if ranks else 5) + max(long, 0) * 0.08
            ax = _new_axes(width, 1 + 0.25 * len(table))
        marks = _legend(_draw_bars(ax, table, self.result.confidence_level, _LONG))
        above = {"fontsize": "small", "frameon": False, "loc": "lower left"}
        above |= {"bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
        ax.legend(*marks, ncols=2, **above)
        target = "" if self.result.target is None else f" of {self.result.target}"
        score = "" if self.result.response == "values" else f" for {self.result.response}{target}"
        given = f" given {', '.join(self.result.given)}" if self.result.given else ""
        ax.set_xlabel(f"importance $Q_f${plain(score + given)}")
        if ranks:
            beside = make_axes_locatable(ax).append_axes("right", "45%", pad=0.1, sharey=ax)
            _draw_brackets(beside, table)
            beside.legend(
                handlelength=1, **above | {"loc": "lower right", "bbox_to_anchor": (1, 1)}
            )
        self.ax_, self.figure_ = ax, ax.figure
        return self


_USUAL, _LONG = 24, 48  # letters of a name that pictures have room for, and at most
_DIRECTIONS = {"score rises with it": BLUE, "score falls with it": ORANGE, "no direction": GREY}


def _draw_bars(ax: Axes, table: pd.DataFrame, level: float, letters: int) -> set[str]:
    """Draw importances with their intervals, the first on top; return what there is to see."""
    table = table.iloc[::-1]
    Q, low, high = table[["importance", "ci_low", "ci_high"]].to_numpy().T
    rises, falls, neither = _DIRECTIONS
    nominal = table["kind"].isin(["nominal", "group"]).to_numpy()
    directions = np.where(nominal, neither, np.where(Q < 0, falls, rises))
    y = np.arange(len(table))
    ax.barh(y, Q, color=[_DIRECTIONS[d] for d in directions], height=0.7)
    if (high > low).any():
        error = np.maximum([Q - low, high - Q], 0)
        ax.errorbar(Q, y, xerr=error, fmt="none", ecolor="black", elinewidth=1)
    ax.set_yticks(y, [plain(name) for name in drawing.shortened(table.index, letters)])
    ax.axvline(0, color="black", linewidth=0.8)
    ax.margins(y=0.5 / len(table))
    return {*directions, *[f"{100 * level:g} % interval"] * bool((high > low).any())}


def _draw_brackets(ax: Axes, table: pd.DataFrame) -> None:
    """Draw each feature's rank, and from the best to the worst that the data allow."""
    rank, best, worst = table[["rank", "best", "worst"]].to_numpy().T
    y, ends = np.arange(len(table))[::-1], [rank - best, worst - rank]
    style = {"fmt": "o", "color": RED, "markersize": 3.5, "elinewidth": 1.2, "capsize": 3}
    ax.errorbar(rank, y, xerr=ends, label="rank, and those allowed", **style)
    ax.tick_params(axis="y", labelleft=False, length=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    ax.grid(axis="y", color=GREY, alpha=0.3, linewidth=0.5)
    ax.set_xlabel("rank")


def _legend(seen: set[str]) -> tuple[list[Any], list[str]]:
    """Return handles and names for a legend of what bars show."""
    marks: dict[str, Any] = {k: Patch(color=v) for k, v in _DIRECTIONS.items() if k in seen}
    lines = seen - set(_DIRECTIONS)
    marks |= {name: Line2D([], [], color="black", linewidth=1) for name in lines}
    return list(marks.values()), list(marks)


def plot_by_class(results: FirmByClass, *, n: int = 15, columns: int = 3) -> Figure:
    """Draw the importances as bars, a panel for each class, with the same features in all.

    Parameters
    ----------
    results : FirmByClass
    n : int, default 15
        How many features: those that matter most to any class.
    columns : int, default 3
        How many panels in a row.

    Examples
    --------
    >>> import firmlib
    >>> results = firmlib.firm_by_class(["a", "b", "c", "a"], [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [ax.get_title() for ax in results.plot().axes]
    ['a', 'b', 'c']
    """
    names = results.importances.index[: check_integer("n", n, 1)]
    columns = min(check_integer("columns", columns, 1), len(results))
    rows = -(-len(results) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(min(7.0, 2 + 1.8 * columns), rows * (0.6 + 0.22 * len(names)) + 0.6),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    seen = set()
    for ax, (target, result) in zip(axes.flat, results.items(), strict=False):
        table = result.to_frame().loc[names]
        seen |= _draw_bars(ax, table, result.confidence_level, _USUAL)
        ax.set_title(plain(target), fontsize="medium")
    for ax in axes.flat[len(results) - columns : len(results)]:
        ax.tick_params(labelbottom=True)
    for ax in axes.flat[len(results) :]:
        ax.remove()
    response = result.response
    figure.supxlabel(
        "importance $Q_f$" + f" for {response}" * (response != "values"), size="medium"
    )
    place = {"loc": "outside upper center", "ncols": columns + 1}
    figure.legend(*_legend(seen), fontsize="small", frameon=False, **place)
    return figure


@dataclass
class ConditionalScoreDisplay:
    """The curve q_f with its error, Q_f as a band about the mean, and how often f is where.

    Examples
    --------
    >>> import firmlib
    >>> die = np.arange(1, 7).reshape(-1, 1)
    >>> display = firmlib.ConditionalScoreDisplay.from_estimator(
    ...     lambda X: X[:, 0] ** 2, die, 0, rows="population"
    ... )
    >>> display.plot().ax_.get_xlabel()
    'x0'
    """

    curve: ConditionalScore
    name: str = "feature value $t$"

    @classmethod
    def from_result(cls, result: FirmResult, name: str) -> Self:
        """Display the curve of the feature `name` of a `result`."""
        if name not in result.curves:
            raise ValueError(f"name={name!r} is unknown; expected one of {result.feature_names}")
        return cls(result.curves[name], plain(name))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, feature: Any, **options: Any) -> Self:
        """Compute the curve with `firmlib.conditional_expected_score` and display it.

        Parameters
        ----------
        estimator : fitted estimator, callable X -> (n,), or array of shape (n,)
            This and what follows as for `conditional_expected_score`.
        X : array, sparse matrix or data frame of shape (n, d)
        feature : column name or position, callable X -> (n,), or array of shape (n,)
        **options
        """
        name = f"x{feature}" if isinstance(feature, int) else getattr(feature, "__name__", feature)
        curve = conditional_expected_score(estimator, X, feature, **options)
        return cls(curve, plain(name) if isinstance(name, str) else "feature value $t$")

    def plot(self, ax: Axes | None = None, *, points: int | None = None) -> Self:
        """Draw the curve into `ax`, by default into a new figure.

        In red q_f, with two standard errors to both sides; in orange the mean score, with Q_f to
        both sides; in grey beneath how the feature is distributed. Of more than `points` bins
        neighbours are pooled. Levels without order are points from the lowest q to the highest,
        the larger the more frequent, the rarest as one, with a pale point for each; missing values
        stand apart, in purple.
        """
        ax = _new_axes(3.5, 2.6) if ax is None else ax
        mean = float(self.curve.p @ self.curve.q)
        Q = np.sqrt(max(self.curve.variance, 0.0))
        ax.axhspan(mean - Q, mean + Q, color=ORANGE, alpha=0.25, linewidth=0)
        ax.axhline(mean, color=ORANGE, linewidth=1)
        missing = pd.isna(self.curve.t)
        known = drawing.part(self.curve, ~missing)
        if self.curve.kind in ("nominal", "ordered"):
            last = drawing.draw_levels(ax, known)
        else:
            last = drawing.draw_line(ax, known if points is None else drawing.pooled(known, points))
        if missing.any():
            drawing.draw_missing(ax, drawing.part(self.curve, missing), last)
        if self.curve.kind not in ("nominal", "ordered") and len(known.t):
            self._draw_distribution(ax, known)
        unit = " (hours)" if self.curve.kind == "duration" else ""
        ax.set(xlabel=f"{self.name}{unit}", ylabel="$q_f(t)$")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_distribution(self, ax: Axes, curve: ConditionalScore) -> None:
        """Bars along the lower edge: probabilities of levels, densities of bins."""
        t, height = drawing.numbers(curve.t), curve.p
        if len(t) == 1:
            return
        middles = (t[1:] + t[:-1]) / 2
        edges = np.r_[2 * t[0] - middles[0], middles, 2 * t[-1] - middles[-1]]
        width = np.diff(edges)
        if self.curve.method == "discrete":
            width = np.full(len(t), 0.6 * width.min())
        else:
            height = height / width
        low, high = ax.get_ylim()
        data = ax.dataLim  # axes that share a scale make room only once
        ax.set_ylim(min(low, data.y0 - 0.3 * data.height), high)
        ax.bar(
            t if self.curve.method == "discrete" else edges[:-1],
            0.15 * height / height.max(),
            width,
            align="center" if self.curve.method == "discrete" else "edge",
            color=GREY,
            alpha=0.6,
            linewidth=0,
            transform=ax.get_xaxis_transform(),
        )


def plot_curves(
    result: FirmResult, *, n: int = 12, columns: int = 3, features: Sequence[str] | None = None
) -> Figure:
    """Draw q_f of the most important features side by side, on one scale of scores.

    Each curve has at most 60 points: neighbouring bins are pooled for the picture.

    Parameters
    ----------
    result : FirmResult
    n : int, default 12
        How many.
    columns : int, default 3
        How many in a row.
    features : sequence of names, default None
        These instead, in this order.

    Examples
    --------
    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> len(firmlib.plot_curves(result).axes)
    2
    """
    names = [name for name in result.to_frame().index if name in result.curves]
    names = names[: check_integer("n", n, 1)]
    if features is not None:
        for name in features:
            check_option("features", name, result.curves)
        names = list(features)
    if not names:
        raise ValueError("result has no curve to draw: groups have none")
    columns = min(check_integer("columns", columns, 1), len(names))
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(0.5 + 2 * columns, 1.9 * rows),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    labels = [plain(fill(name, _USUAL + 2)) for name in drawing.shortened(names, 2 * _USUAL)]
    for ax, name, label in zip(axes.flat, names, labels, strict=False):
        ConditionalScoreDisplay(result.curves[name], label).plot(ax, points=_POINTS)
    low, high = zip(*(_span(result.curves[name]) for name in names), strict=True)
    room = 0.05 * (max(high) - min(low)) or 1.0
    axes[0, 0].set_ylim(min(low) - 5 * room, max(high) + room)
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    for ax in axes.flat[len(names) :]:
        ax.remove()
    return figure


_POINTS = 60


def _span(curve: ConditionalScore) -> tuple[float, float]:
    """Return what of a curve should be seen: all of q, but not all of a wide interval."""
    known = ~pd.isna(curve.t)
    drawn = drawing.part(curve, known)
    drawn = (
        drawing.frequent(drawn)[0] if curve.kind == "nominal" else drawing.pooled(drawn, _POINTS)
    )
    q = np.append(drawn.q, curve.q[~known])
    error = np.append(drawn.standard_error, curve.standard_error[~known])
    error = np.minimum(error, 2 * np.median(error))
    return float((q - error).min()), float((q + error).max())
