"""Draw one curve q_f; the colours, names and legends of all pictures."""

from collections.abc import Iterable
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from firmlib.result import ConditionalScore

try:
    from matplotlib import dates as mdates
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'firmlib[plot]'") from error
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

# The colours of Okabe and Ito, which colour-blind readers can tell apart.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"
_POINTS, _LEVELS = 60, 12  # drawn of a curve; further bins and rarer levels are pooled


def wrapped(name: object, letters: int = 40) -> str:
    """Return a name in lines of at most `letters` letters, with every "$" escaped."""
    return fill(str(name), letters, max_lines=4, placeholder=" …").replace("$", r"\$")


def legend(where: Any, marks: dict[str, Any], **place: Any) -> None:
    """Explain marks in a figure or in axes."""
    where.legend([*marks.values()], [*marks], fontsize="small", frameon=False, **place)


def curve_legend(figure: Any) -> None:
    """Explain the marks of curves below a figure."""
    marks: dict[str, Any] = {
        "expected score ± 2 standard errors": Line2D([], [], color=RED, marker="."),
        "mean score": Line2D([], [], color=ORANGE),
        "mean ± importance $Q_f$": Patch(color=ORANGE, alpha=0.25, linewidth=0),
        "share of rows": Patch(color=GREY, alpha=0.6, linewidth=0),
    }
    if any(ax.get_title("right").startswith("missing") for ax in figure.axes):
        marks["missing values"] = Line2D([], [], color=PURPLE, marker="D", ls="")
    legend(figure, marks, loc="outside lower center", ncols=2 + (figure.get_figwidth() > 6))


def draw_curve(ax: Axes, curve: ConditionalScore) -> np.ndarray:
    """Draw q_f over the band of Q_f around the mean; return the drawn values of q_f."""
    mean, error = float(curve.p @ curve.q), curve.standard_error**2
    variance = curve.p @ ((curve.q - mean) ** 2 - error) + curve.p**2 @ error
    Q = float(np.sqrt(max(variance, 0.0)))
    ax.axhspan(mean - Q, mean + Q, color=ORANGE, alpha=0.25, linewidth=0)
    ax.axhline(mean, color=ORANGE, linewidth=1)
    if curve.kind == "date":
        dates = mdates.AutoDateLocator(minticks=2, maxticks=5)
        ax.xaxis.set_major_locator(dates)
        ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(dates))
    (x, q, error, p), levels = _points(curve)
    _draw_points(ax, x, q, error, p, levels)
    missing = pd.isna(curve.t)
    if missing.any():  # right of x, with its share above
        ax.set_xticks([tick for tick in ax.get_xticks() if len(x) and x[0] <= tick <= x[-1]])
        place = x[-1] + max(0.12 * np.ptp(x), x[-1] - x[-2]) if len(x) > 1 else x.sum() + 1
        style: Any = {"color": PURPLE, "fmt": "D", "markersize": 4, "elinewidth": 1}
        ax.errorbar(place, curve.q[missing], 2 * curve.standard_error[missing], **style)
        share = f"missing: {100 * curve.p[missing][0]:.2g} %"
        ax.set_title(share, fontsize="small", color=PURPLE, loc="right")
    data = ax.dataLim
    ax.update_datalim([(data.x0, data.y0 - 0.3 * data.height)])  # room for the shares of rows
    ax.autoscale_view()
    return np.append(q, curve.q[missing])


def _points(curve: ConditionalScore) -> tuple[list[np.ndarray], list[str]]:
    """Return x, q, error and share p of the points to draw, and the names of levels.

    Nominal levels are sorted by q, unless they are numbers.
    """
    frame: Any = curve.to_frame()[~pd.isna(curve.t)]
    group, levels = np.arange(len(frame)), []
    if curve.kind == "nominal":
        numbers = all(isinstance(level, int | float | np.number) for level in frame["t"])
        frame = frame.sort_values("t" if numbers else "q", kind="stable")
        rare = frame["p"].rank(method="first", ascending=False) > _LEVELS - (len(frame) > _LEVELS)
        levels = _level_names(frame["t"][~rare]) + [f"{rare.sum()} rarer"] * bool(rare.any())
        group = np.minimum(group, (~rare).sum())
        frame = pd.concat([frame[~rare], frame[rare]])
    elif curve.kind == "ordered":
        levels = _level_names(frame["t"])
    elif len(frame) > _POINTS:  # pooled bins are finer in the tails
        place = np.arcsin(np.sqrt(frame["p"].cumsum() - frame["p"] / 2)) * 2 / np.pi
        group = np.unique((_POINTS * place).astype(int), return_inverse=True)[1]
    t, q, error, p = (frame[name].to_numpy() for name in ("t", "q", "standard_error", "p"))
    if curve.kind == "date":
        t = np.asarray(mdates.date2num(t))
    elif curve.kind == "duration":
        t = t / np.timedelta64(1, "h")
    share = np.bincount(group, p)
    x = np.bincount(group, p * (group if levels else t.astype(float))) / share
    error = np.sqrt(np.bincount(group, (p * error) ** 2)) / share
    return [x, np.bincount(group, p * q) / share, error, share], levels


def _level_names(levels: Iterable[object], letters: int = 16) -> list[str]:
    """Return the name of each level in one line; long names lose their common beginning."""
    texts = [str(level).replace("$", r"\$") for level in levels]
    differ = [i for i, each in enumerate(zip(*texts, strict=False)) if len(set(each)) > 1]
    start = differ[0] if differ else 0
    return [t if len(t) <= letters else f"{'…' * (start > 0)}{t[start:]}"[:letters] for t in texts]


def _draw_points(
    ax: Axes, x: np.ndarray, q: np.ndarray, error: np.ndarray, p: np.ndarray, levels: list[str]
) -> None:
    """Draw points of levels or a line of numbers, above the share of rows or its density."""
    width = np.gradient(x) if len(x) > 1 else np.ones(len(x))
    grey: Any = {"transform": ax.get_xaxis_transform(), "color": GREY, "alpha": 0.6, "linewidth": 0}
    if levels or len(x) < _POINTS / 2:
        ax.errorbar(x, q, 2 * error, color=RED, fmt="o", markersize=3.5, elinewidth=1)
        # bars of close values overlap, but each is visible
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
