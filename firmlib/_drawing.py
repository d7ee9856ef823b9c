"""What the pictures share: colours, names, and how the points of a curve q_f are drawn."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from firmlib.curves import ConditionalScore

try:
    import matplotlib.dates as mdates
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'firmlib[plot]'") from error
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

# The colours of Okabe and Ito, which colour-blind readers can tell apart.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"

_POINTS = 60  # of a curve; neighbouring bins are pooled
_LEVELS = 12  # of a category; the rarer ones are pooled
_LETTERS = 14  # of a level


def shortened(names: Iterable[object], letters: int = 10**6) -> list[str]:
    """Return names of at most this length, cut in the middle if they stay distinct.

    A "$" is escaped, so that matplotlib finds no formula.
    """
    texts = [str(name) for name in names]
    part = letters // 3
    differ = next((i for i, each in enumerate(zip(*texts, strict=False)) if len({*each}) > 1), 0)
    for rest in (slice(-part, None), slice(differ, differ + part)):
        start = letters - part - 1
        short = [t if len(t) <= letters else f"{t[:start]}…{t[rest]}" for t in texts]
        if len(set(short)) == len(set(texts)):
            return [name.replace("$", r"\$") for name in short]
    return [name.replace("$", r"\$") for name in texts]


def legend(where: Any, marks: dict[str, Any], **place: Any) -> None:
    """Explain `marks` in a figure or axes."""
    where.legend([*marks.values()], [*marks], fontsize="small", frameon=False, **place)


def curve_legend(figure: Any, *others: Any) -> None:
    """Explain below a figure the marks of its curves, after the artists in `others`."""
    marks = {artist.get_label(): artist for artist in others} | {
        "expected score ± 2 standard errors": Line2D([], [], color=RED, marker="."),
        "mean score": Line2D([], [], color=ORANGE),
        "mean ± importance $Q_f$": Patch(color=ORANGE, alpha=0.25, linewidth=0),
        "share of rows": Patch(color=GREY, alpha=0.6, linewidth=0),
    }
    if any(ax.get_title("right").startswith("missing") for ax in figure.axes):
        marks["missing values"] = Line2D([], [], color=PURPLE, marker="D", ls="")
    columns = 2 if figure.get_figwidth() < 6 else 3
    legend(figure, marks, loc="outside lower center", ncols=columns)


def points(curve: ConditionalScore) -> tuple[pd.DataFrame, list[str]]:
    """Return x, q, error and share of rows of the points that are drawn, and names of levels.

    Neighbouring bins are pooled, and so are rare levels. Levels that are numbers keep their order;
    other nominal levels are sorted by q.
    """
    parts = (curve.t, curve.q, curve.standard_error, curve.p)
    t, q, error, p = (values[~pd.isna(curve.t)] for values in parts)
    group, levels = np.arange(len(t)), []
    if curve.kind == "nominal":
        numbers = all(isinstance(level, int | float | np.number) for level in t)
        order = np.argsort(t if numbers else q, kind="stable")
        rare = np.argsort(np.argsort(-p, kind="stable")) >= _LEVELS - (len(t) > _LEVELS)
        common = order[~rare[order]]
        group[common], group[rare] = np.arange(len(common)), len(common)
        levels = shortened(t[common], _LETTERS)
        levels += [f"{rare.sum()} rarer"] if rare.any() else []
    elif curve.kind == "ordered":
        levels = shortened(t, _LETTERS)
    elif len(t) > _POINTS:
        place = np.arcsin(np.sqrt(np.cumsum(p) - p / 2)) * 2 / np.pi  # finer in the tails
        group = np.unique((_POINTS * place).astype(int), return_inverse=True)[1]
    x: Any = group if levels else t
    if curve.kind == "date":
        x = np.asarray(mdates.date2num(t))
    elif curve.kind == "duration":
        x = t / np.timedelta64(1, "h")
    share = np.bincount(group, p)
    pooled = {
        "x": np.bincount(group, p * x.astype(float)) / share,
        "q": np.bincount(group, p * q) / share,
        "error": np.sqrt(np.bincount(group, (p * error) ** 2)) / share,
    }
    return pd.DataFrame(pooled | {"p": share}), levels


def draw_points(ax: Axes, table: pd.DataFrame, levels: list[str]) -> None:
    """Draw points of levels or a line of numbers, above the share of rows or its density."""
    x, q, error, p = table.to_numpy().T
    few = bool(levels) or len(x) < _POINTS / 2
    if few:
        ax.errorbar(x, q, 2 * error, color=RED, fmt="o", markersize=3.5, elinewidth=1)
    else:
        ax.fill_between(x, q - 2 * error, q + 2 * error, color=RED, alpha=0.25, linewidth=0)
    if levels:
        step = -(-len(levels) // _LEVELS)
        crowded: Any = {"rotation": 90, "fontsize": "small"}
        crowded = crowded if len("  ".join(levels)) > 20 else {}
        ax.set_xticks(x[::step], levels[::step], **crowded)
    else:
        ax.plot(x, q, color=RED, linewidth=1)
    data = ax.dataLim  # axes that share a scale make room only once
    ax.set_ylim(bottom=min(ax.get_ylim()[0], data.y0 - 0.3 * data.height))
    width = np.gradient(x) if len(x) > 1 else np.ones(1)
    height = 0.15 * (p / width) / (p / width).max()
    grey: Any = {"transform": ax.get_xaxis_transform(), "color": GREY, "alpha": 0.6, "linewidth": 0}
    if few:
        ax.bar(x, height, 0.6 * width.min(), **grey)
    else:
        ax.fill_between(x, height, step="mid", **grey)


def draw_missing(ax: Axes, x: np.ndarray, curve: ConditionalScore, levels: list[str]) -> None:
    """Draw the missing value, if there is one, right of x, and write its share above the panel."""
    for i in np.flatnonzero(pd.isna(curve.t)):
        place = 0.0
        if len(x):
            ax.set_xticks([t for t in ax.get_xticks() if x[0] <= t <= x[-1]])
            place = x[-1] + (1 if levels else 0.12 * np.ptp(x) or 1)
        style: Any = {"color": PURPLE, "fmt": "D", "markersize": 4, "elinewidth": 1}
        ax.errorbar(place, curve.q[i], 2 * curve.standard_error[i], **style)
        share = f"{curve.p[i]:.0%}" if curve.p[i] >= 0.005 else "< 1%"
        ax.set_title(f"missing: {share}", fontsize="small", color=PURPLE, loc="right")


def show_dates(ax: Axes) -> None:
    """Label the x axis with few dates, which do not overlap."""
    locator = mdates.AutoDateLocator(minticks=2, maxticks=5)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
