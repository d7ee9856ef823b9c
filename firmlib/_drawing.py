"""The points of one curve q_f, and the colours of all pictures."""

from os.path import commonprefix
from typing import Any

import numpy as np
import pandas as pd

from firmlib.result import ConditionalScore

try:
    from matplotlib import dates
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'firmlib[plot]'") from error
from matplotlib.axes import Axes

# The colours of Okabe and Ito, which colour-blind readers can tell apart.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"
_POINTS, _LEVELS = 60, 12  # drawn of a curve; further bins and rarer levels are pooled


def draw_points(ax: Axes, curve: ConditionalScore) -> np.ndarray:
    """Draw q_f of levels as points, of numbers as a line, above the share of rows; return q_f."""
    (x, q, error, p), levels = _points(curve)
    red: Any = {"color": RED, "linewidth": 1, "label": "expected score ± 2 standard errors"}
    grey: Any = {"transform": ax.get_xaxis_transform(), "color": GREY, "alpha": 0.6, "linewidth": 0}
    grey["label"] = "share of rows"
    width = np.gradient(x) if len(x) > 1 else np.ones(len(x))
    if levels or len(x) < _POINTS / 2:
        ax.errorbar(x, q, 2 * error, fmt="o" if levels else "o-", markersize=3.5, **red)
        # bars of close values overlap, but each is visible
        wide = max(0.6 * width.min(initial=1), 0.015 * np.ptp(x) if len(x) else 0)
        ax.bar(x, 0.15 * p / p.max(initial=0), wide, **grey)
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
    return q


def _points(curve: ConditionalScore) -> tuple[list[np.ndarray], list[str]]:
    """Return x, q, error and share p of the points to draw, and the names of levels."""
    frame: Any = curve.to_frame()[~pd.isna(curve.t)].infer_objects()
    group, names = np.arange(len(frame)), frame["t"] if curve.kind == "ordered" else []
    if curve.kind == "nominal":
        rare = frame["p"].rank(method="first", ascending=False) >= _LEVELS
        frame["rare"] = rare & (len(frame) > _LEVELS)
        numbers = pd.api.types.is_numeric_dtype(frame["t"])
        frame = frame.sort_values(["rare", "t" if numbers else "q"], kind="stable")
        names = frame["t"][~frame["rare"]]
        group = np.minimum(group, len(names))
    elif len(frame) > _POINTS and curve.kind != "ordered":  # pooled bins are finer in the tails
        place = np.arcsin(np.sqrt(frame["p"].cumsum() - frame["p"] / 2)) * 2 / np.pi
        group = np.unique((_POINTS * place).astype(int), return_inverse=True)[1]
    x, q, error, p = (frame[name].to_numpy() for name in ("t", "q", "standard_error", "p"))
    if len(names):
        x = group
    elif curve.kind == "date":
        x = dates.date2num(x)
    elif curve.kind == "duration":
        x = x / np.timedelta64(1, "h")
    share = np.bincount(group, p)
    x, q = (np.bincount(group, p * each.astype(float)) / share for each in (x, q))
    error = np.sqrt(np.bincount(group, (p * error) ** 2)) / share
    levels = [str(name) for name in names]  # long ones lose what all begin with
    start = len(commonprefix(levels)) if len(levels) > 1 else 0  # noqa: RUF071 (no paths)
    short = [s if len(s) <= 16 else f"{'…' * (start > 0)}{s[start:]}"[:16] for s in levels]
    if 0 < len(levels) < len(frame):
        short.append(f"{len(frame) - len(levels)} rarer")
    return [x, q, error, share], [s.replace("$", r"\$") for s in short]
