"""How a curve q_f is drawn: as a line, as levels, with what is missing; and in which colours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from firmlib._columns import as_objects
from firmlib.result import ConditionalScore

try:
    import matplotlib.dates as mdates
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'firmlib[plot]'") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"

_LEVELS = 12  # of a category that are drawn; the rarer ones are one
_LETTERS = 20  # that fit side by side below a panel
_SEEN = 10  # rows from which one of these has a small point of its own


def plain(name: object) -> str:
    """Return a name as text in which matplotlib sees no formula between two "$"."""
    return str(name).replace("$", r"\$")


def shortened(names: Iterable[object], letters: int) -> list[str]:
    """Return names of at most so many letters, if these stay apart.

    Of longer ones the beginning and the end stay, or the beginning and where they begin to differ.
    """
    texts = [str(name) for name in names]
    part = letters // 3
    differ = next((i for i, each in enumerate(zip(*texts, strict=False)) if len({*each}) > 1), 0)
    for rest in (slice(-part, None), slice(differ, differ + part)):
        start = letters - part - 1
        short = [t if len(t) <= letters else f"{t[:start]}…{t[rest]}" for t in texts]
        if len(set(short)) == len(set(texts)):
            return short
    return texts


def numbers(t: np.ndarray) -> np.ndarray:
    """Return where on an axis values lie; dates in matplotlib's days, durations in hours."""
    if t.dtype.kind == "M":
        return np.asarray(mdates.date2num(t), dtype=float)
    return t / np.timedelta64(1, "h") if t.dtype.kind == "m" else t


def part(curve: ConditionalScore, where: np.ndarray) -> ConditionalScore:
    """Return some of the points of a curve."""
    names = ("t", "q", "p", "n", "standard_error")
    return replace(curve, **{name: getattr(curve, name)[where] for name in names})


def _merged(curve: ConditionalScore, group: np.ndarray, t: np.ndarray) -> ConditionalScore:
    """Return a curve whose points are means over those of a group."""
    n, p = np.bincount(group, curve.n), np.bincount(group, curve.p)
    q = np.bincount(group, curve.n * curve.q) / n
    error = np.sqrt(np.bincount(group, (curve.n * curve.standard_error) ** 2)) / n
    return replace(curve, t=t, q=q, p=p, n=n, standard_error=error)


def pooled(curve: ConditionalScore, points: int) -> ConditionalScore:
    """Return a curve of about so many points, each of as many rows."""
    if len(curve.t) <= points or curve.kind == "ordered":
        return curve
    share = np.cumsum(curve.p) - curve.p / 2
    _, group = np.unique((points * share / curve.p.sum()).astype(int), return_inverse=True)
    numbers = curve.t.astype(float)
    t = np.bincount(group, curve.n * numbers) / np.bincount(group, curve.n)
    return _merged(curve, group, t.astype(curve.t.dtype))


def draw_line(ax: Axes, curve: ConditionalScore) -> float:
    """Draw values that have an order and a distance; return where the axis ends."""
    if not len(curve.t):
        return 0.0
    x, q, error = numbers(curve.t), curve.q, curve.standard_error
    if curve.kind == "date":
        ax.xaxis_date()
        locator = mdates.AutoDateLocator(maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
    if curve.method == "discrete":
        ax.errorbar(x, q, 2 * error, color=RED, fmt="o", markersize=3.5, elinewidth=1)
        ax.plot(x, q, color=RED, linewidth=0.8, alpha=0.5)
    else:
        ax.fill_between(x, q - 2 * error, q + 2 * error, color=RED, alpha=0.25, linewidth=0)
        ax.plot(x, q, color=RED, linewidth=1.2)
    return float(x[-1] + 0.12 * (x[-1] - x[0] or 1))


def frequent(curve: ConditionalScore) -> tuple[ConditionalScore, ConditionalScore]:
    """Return the levels in the order of q, the rarest as one, and those that are in that one."""
    order = np.argsort(-curve.n, kind="stable")
    rare = curve
    if len(order) > _LEVELS:
        group = np.minimum(np.argsort(order), _LEVELS - 1)
        rare = part(curve, group == _LEVELS - 1)
        levels = as_objects([*curve.t[order[: _LEVELS - 1]], f"{len(rare.t)} rarer"])
        curve = _merged(curve, group, levels)
    return part(curve, np.argsort(curve.q, kind="stable")), rare


def draw_levels(ax: Axes, curve: ConditionalScore) -> float:
    """Draw levels as points with intervals, those without order from the lowest to the highest."""
    rare, drawn = curve, curve
    if curve.kind == "nominal":
        drawn, rare = frequent(curve)
    labels = [str(t) for t in drawn.t]
    x = np.arange(len(labels))
    if rare is not curve:
        q = rare.q[rare.n >= _SEEN]
        place = np.full(len(q), labels.index(f"{len(rare.t)} rarer"))
        ax.scatter(place, q, s=4, color=RED, alpha=0.3, linewidth=0)
    ax.errorbar(x, drawn.q, 2 * drawn.standard_error, color=RED, fmt="none", elinewidth=1)
    ax.scatter(x, drawn.q, s=5 + 30 * drawn.p / max(drawn.p.max(), 1e-9), color=RED, zorder=3)
    short = [plain(label) for label in shortened(labels, 14)]
    many = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", "fontsize": "x-small"}
    crowded = len("  ".join(short)) > _LETTERS
    ax.set_xticks(x, short, **(many if crowded else {}))
    ax.margins(x=0.1)
    return len(x) + 0.3


def draw_missing(ax: Axes, curve: ConditionalScore, x: float) -> None:
    """Draw the missing values beyond the end of the axis."""
    ax.errorbar(
        x, curve.q, 2 * curve.standard_error, color=PURPLE, fmt="D", markersize=4, elinewidth=1
    )
    share = f"{curve.p[0]:.0%}" if curve.p[0] >= 0.005 else "< 1%"
    ax.annotate(
        f"missing\n{share}",
        (x, float(curve.q[0] - 2 * curve.standard_error[0])),
        xytext=(0, -5),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize="x-small",
        color=PURPLE,
    )
