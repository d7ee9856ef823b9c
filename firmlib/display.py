"""The pictures: q_f as a curve, Q_f as bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from firmlib._checks import check_integer
from firmlib.measure import conditional_expected_score, firm
from firmlib.result import ConditionalScore, FirmResult

try:
    import matplotlib.pyplot as plt
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'firmlib[plot]'") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ConditionalScoreDisplay", "FirmDisplay", "plot_curves"]

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"


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

    def plot(self, ax: Axes | None = None, *, n: int = 30) -> Self:
        """Draw the `n` most important features into `ax`, by default into a new figure."""
        table = self.result.to_frame().head(check_integer("n", n, 1)).iloc[::-1]
        Q, low, high = table[["importance", "ci_low", "ci_high"]].to_numpy().T
        ax = _new_axes(5, 0.8 + 0.25 * len(table)) if ax is None else ax
        ax.barh(table.index, Q, color=np.where(Q < 0, RED, BLUE), height=0.7)
        if (high > low).any():
            error = np.maximum([Q - low, high - Q], 0)
            ax.errorbar(Q, table.index, xerr=error, fmt="none", ecolor="black", elinewidth=1)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel("importance $Q_f$")
        ax.margins(y=0.5 / len(table))
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
        return cls(result.curves[name], name)

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
        return cls(curve, name if isinstance(name, str) else "feature value $t$")

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve into `ax`, by default into a new figure.

        In red q_f, with two standard errors to both sides; in orange the mean score, with Q_f to
        both sides; in grey beneath how the feature is distributed.
        """
        ax = _new_axes(3.5, 2.6) if ax is None else ax
        t, q, error = self.curve.t, self.curve.q, self.curve.standard_error
        mean = float(self.curve.p @ q)
        Q = np.sqrt(max(self.curve.variance, 0.0))
        ax.axhspan(mean - Q, mean + Q, color=ORANGE, alpha=0.25, linewidth=0)
        ax.axhline(mean, color=ORANGE, linewidth=1)
        if self.curve.method == "discrete":
            ax.errorbar(t, q, 2 * error, color=RED, fmt="o", markersize=3.5, elinewidth=1)
            ax.plot(t, q, color=RED, linewidth=0.8, alpha=0.5)
        else:
            ax.fill_between(t, q - 2 * error, q + 2 * error, color=RED, alpha=0.25, linewidth=0)
            ax.plot(t, q, color=RED, linewidth=1.2)
        self._draw_distribution(ax)
        ax.set(xlabel=self.name, ylabel="$q_f(t)$")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_distribution(self, ax: Axes) -> None:
        """Bars along the lower edge: probabilities of levels, densities of bins."""
        t, height = self.curve.t, self.curve.p
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


def plot_curves(result: FirmResult, *, n: int = 12, columns: int = 4) -> Figure:
    """Draw q_f of the most important features side by side, on one scale of scores.

    Parameters
    ----------
    result : FirmResult
    n : int, default 12
        How many.
    columns : int, default 4
        How many in a row.

    Examples
    --------
    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    >>> len(firmlib.plot_curves(result).axes)
    2
    """
    names = [name for name in result.to_frame().index if name in result.curves]
    names = names[: check_integer("n", n, 1)]
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
    for ax, name in zip(axes.flat, names, strict=False):
        ConditionalScoreDisplay.from_result(result, name).plot(ax)
    low, high = zip(*(_span(result.curves[name]) for name in names), strict=True)
    room = 0.05 * (max(high) - min(low)) or 1.0
    axes[0, 0].set_ylim(min(low) - 5 * room, max(high) + room)
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    for ax in axes.flat[len(names) :]:
        ax.remove()
    return figure


def _span(curve: ConditionalScore) -> tuple[float, float]:
    return float((curve.q - curve.standard_error).min()), float(
        (curve.q + curve.standard_error).max()
    )
