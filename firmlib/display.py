"""The pictures: q_f as a curve, Q_f as bars; and how a notebook saves a figure with its data."""

from dataclasses import dataclass
from io import BytesIO
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firmlib._output import output_dir, write_atomic
from firmlib.estimators import ConditionalScore
from firmlib.measure import FirmResult, conditional_expected_score, firm

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"

STYLE = {
    "axes.prop_cycle": plt.cycler(color=[BLUE, RED, GREEN, ORANGE, PURPLE, SKY, GREY]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.hashsalt": "firmlib",
}


def use_style() -> None:
    """Give all figures of a session the same look."""
    plt.rcParams.update(STYLE)


def save(figure: Figure, name: str, data: pd.DataFrame) -> None:
    """Write a figure as png and svg and the numbers behind it as csv, in the output folder.

    The same figure gives the same bytes again.
    """
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        buffer = BytesIO()
        figure.savefig(buffer, format=suffix, metadata=metadata)
        write_atomic(output_dir() / "figures" / f"{name}.{suffix}", buffer.getvalue())
    csv = data.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_atomic(output_dir() / "data" / f"{name}.csv", csv)


def _new_axes(width: float, height: float) -> Axes:
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


@dataclass
class FirmDisplay:
    """Importances as horizontal bars, the most important on top.

    Examples
    --------
    >>> import firmlib
    >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]], method="discrete")
    >>> firmlib.FirmDisplay.from_result(result).plot().ax_.get_xlabel()
    'importance $Q_f$'
    """

    result: FirmResult

    @classmethod
    def from_result(cls, result: FirmResult) -> Self:
        """Display importances that were computed already."""
        return cls(result)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, features: Any = None, **options: Any) -> Self:
        """Compute the importances with `firmlib.firm` and display them."""
        return cls(firm(estimator, X, features, **options))

    def plot(self, ax: Axes | None = None, *, n: int = 30) -> Self:
        """Draw the `n` most important features."""
        table = self.result.to_frame()["importance"].head(n)[::-1]
        ax = _new_axes(5, 0.8 + 0.25 * len(table)) if ax is None else ax
        ax.barh(table.index, table, color=np.where(table < 0, RED, BLUE), height=0.7)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel("importance $Q_f$")
        ax.margins(y=0.5 / len(table))
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass
class ConditionalScoreDisplay:
    """The curve q_f with its mean and, as a band to both sides, Q_f.

    Examples
    --------
    >>> import firmlib
    >>> die = np.arange(1, 7).reshape(-1, 1)
    >>> display = firmlib.ConditionalScoreDisplay.from_estimator(
    ...     lambda X: X[:, 0] ** 2, die, 0, method="discrete"
    ... )
    >>> display.plot().ax_.get_xlabel()
    'x0'
    """

    curve: ConditionalScore
    name: str = "feature value $t$"

    @classmethod
    def from_result(cls, result: FirmResult, name: str) -> Self:
        """Display one curve of a result."""
        if name not in result.curves:
            raise ValueError(f"name={name!r} is unknown; expected one of {result.feature_names}")
        return cls(result.curves[name], name)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, feature: Any, **options: Any) -> Self:
        """Compute the curve with `firmlib.conditional_expected_score` and display it."""
        name = f"x{feature}" if isinstance(feature, int) else getattr(feature, "__name__", feature)
        curve = conditional_expected_score(estimator, X, feature, **options)
        return cls(curve, name if isinstance(name, str) else "feature value $t$")

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve; a point's area is the probability behind it."""
        ax = _new_axes(3.5, 2.6) if ax is None else ax
        curve = self.curve
        mean = curve.p @ curve.q
        Q = np.sqrt(max(curve.variance, 0.0))
        ax.axhspan(mean - Q, mean + Q, color=ORANGE, alpha=0.25, linewidth=0)
        ax.axhline(mean, color=ORANGE, linewidth=1)
        ax.plot(curve.t, curve.q, color=RED, linewidth=1.2)
        if curve.method != "slope":
            ax.scatter(curve.t, curve.q, s=np.maximum(200 * curve.p, 4), color=RED, zorder=3)
        ax.set(xlabel=self.name, ylabel="$q_f(t)$")
        self.ax_, self.figure_ = ax, ax.figure
        return self
