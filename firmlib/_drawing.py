"""What the pictures share: colours, names, and how the points of a curve q_f are drawn."""

from collections.abc import Iterable
from textwrap import fill
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
LEGEND: Any = {"fontsize": "small", "frameon": False}
_POINTS, _LEVELS = 60, 12  # drawn of a curve; further bins and rarer levels are pooled


def wrapped(name: object, letters: int = 40) -> str:
    """Return a name in lines of so many letters, and no formula between its "$"."""
    return fill(str(name), letters, max_lines=4, placeholder=" …").replace("$", r"\$")


def curve_legend(figure: Any) -> None:
    """Explain below a figure the marks of its curves."""
    marks = {
        "expected score ± 2 standard errors": Line2D([], [], color=RED, marker="."),
        "mean score": Line2D([], [], color=ORANGE),
        "mean ± importance $Q_f$": Patch(color=ORANGE, alpha=0.25, linewidth=0),
        "share of rows": Patch(color=GREY, alpha=0.6, linewidth=0),
    }
    if any(ax.get_title("right").startswith("missing") for ax in figure.axes):
        marks["missing values"] = Line2D([], [], color=PURPLE, marker="D", ls="")
    place: Any = {"loc": "outside lower center", "ncols": 2 + (figure.get_figwidth() > 6)}
    figure.legend([*marks.values()], [*marks], **place, **LEGEND)


def points(curve: ConditionalScore) -> tuple[pd.DataFrame, list[str]]:
    """Return x, q, error and share p of the points to draw, and the names of levels.

    Nominal levels are sorted by q, unless they are numbers.
    """
    frame: Any = curve.to_frame()[~pd.isna(curve.t)]
    group, levels = np.arange(len(frame)), []
    if curve.kind == "nominal":
        numbers = all(isinstance(level, int | float | np.number) for level in frame["t"])
        frame = frame.sort_values("t" if numbers else "q", kind="stable")
        rank = frame["p"].rank(method="first", ascending=False)
        rare = rank > _LEVELS - (len(frame) > _LEVELS)
        frame = pd.concat([frame[~rare], frame[rare]])
        group = np.minimum(group, (~rare).sum())
        levels = _level_names(frame["t"][: (~rare).sum()])
        levels += [f"{rare.sum()} rarer"] * bool(rare.any())
    elif curve.kind == "ordered":
        levels = _level_names(frame["t"])
    elif len(frame) > _POINTS:  # pooled bins are finer in the tails
        place = np.arcsin(np.sqrt(frame["p"].cumsum() - frame["p"] / 2)) * 2 / np.pi
        group = np.unique((_POINTS * place).astype(int), return_inverse=True)[1]
    t, q, error, p = (frame[name].to_numpy() for name in ("t", "q", "standard_error", "p"))
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


def _level_names(levels: Iterable[object], letters: int = 16) -> list[str]:
    """Return levels in one line each; long ones lose what all levels start with."""
    texts = [str(level).replace("$", r"\$") for level in levels]
    differ = [i for i, each in enumerate(zip(*texts, strict=False)) if len(set(each)) > 1]
    same = differ[0] if differ else 0
    start = "…" * (same > 0)
    return [t if len(t) <= letters else f"{start}{t[same:]}"[:letters] for t in texts]


def draw_points(ax: Axes, points: pd.DataFrame, levels: list[str]) -> None:
    """Draw points of levels or a line of numbers, above the share of rows or its density."""
    x, q, error, p = points.to_numpy().T
    width = np.gradient(x) if len(x) > 1 else np.ones(len(x))
    grey: Any = {"transform": ax.get_xaxis_transform(), "color": GREY, "alpha": 0.6, "linewidth": 0}
    if levels or len(x) < _POINTS / 2:
        ax.errorbar(x, q, 2 * error, color=RED, fmt="o", markersize=3.5, elinewidth=1)
        # values that are close still have a bar each
        wide = max(0.6 * width.min(initial=1), 0.015 * np.ptp(x) if len(x) else 0)
        ax.bar(x, 0.15 * p / p.max(initial=0), wide, **grey)
    else:
        ax.fill_between(x, q - 2 * error, q + 2 * error, color=RED, alpha=0.25, linewidth=0)
        ax.fill_between(x, 0.15 * (p / width) / (p / width).max(), step="mid", **grey)
    if levels:
        step = -(-len(levels) // _LEVELS)
        ax.set_xticks(x[::step], levels[::step])
        if len("  ".join(levels)) > 20:
            ax.tick_params("x", rotation=90, labelsize="small")
    else:
        ax.plot(x, q, color=RED, linewidth=1)


def draw_missing(ax: Axes, x: np.ndarray, curve: ConditionalScore) -> None:
    """Draw the missing values, if there are any, right of x, and write their share above."""
    for i in np.flatnonzero(pd.isna(curve.t)):
        ax.set_xticks([tick for tick in ax.get_xticks() if len(x) and x[0] <= tick <= x[-1]])
        place = x[-1] + max(0.12 * np.ptp(x), x[-1] - x[-2]) if len(x) > 1 else x.sum() + 1
        style: Any = {"color": PURPLE, "fmt": "D", "markersize": 4, "elinewidth": 1}
        ax.errorbar(place, curve.q[i], 2 * curve.standard_error[i], **style)
        share = f"missing: {100 * curve.p[i]:.2g} %"
        ax.set_title(share, fontsize="small", color=PURPLE, loc="right")
