"""Pictures of string scores; each draws into `ax`, or into a new figure, and returns the axes."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from firmlib.display import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from firmlib.strings.alphabet import DNA, Alphabet, index_word
from firmlib.strings.background import Background
from firmlib.strings.motifs import importance_along, letter_contributions
from firmlib.strings.search import Motif
from firmlib.strings.weights import PositionalWeights
from firmlib.tables.checks import check_array

# isort: split
# After firmlib.display, which says how to get matplotlib.
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

LETTER_COLORS = {"A": GREEN, "C": BLUE, "G": ORANGE, "T": RED, "U": RED}  # others are grey


def plot_importance_along(importance: ArrayLike, motif: str, *, ax: Axes | None = None) -> Axes:
    """Draw `importance_along`: a motif, its neighbours, the null's mean ± 1 sd (Figure 3)."""
    table = importance_along(importance, motif)
    ax = plt.subplots(figsize=(5, 3))[1] if ax is None else ax
    x, mean, sd = table["position"], table["null mean"], table["null sd"]
    ax.fill_between(x, mean - sd, mean + sd, color=GREY, alpha=0.35, linewidth=0, label="null ± sd")
    styles = {"distance 2": (BLUE, ":"), "distance 1": (PURPLE, "--"), "motif": (RED, "-")}
    for column, (color, style) in styles.items():
        if column in table:
            label = motif if column == "motif" else column
            ax.plot(x, table[column], color=color, linestyle=style, linewidth=1.5, label=label)
    low, high = ax.get_ylim()
    ax.set(xlabel="position", ylabel="importance", ylim=(low, high + 0.3 * (high - low)))
    ax.legend(reverse=True, loc="upper center", ncols=2)
    return ax


def plot_poim(matrix: ArrayLike, *, alphabet: Alphabet = DNA, ax: Axes | None = None) -> Axes:
    """Draw a `poim` of words of one, two or three letters as a heat map, one row per word."""
    matrix = check_array("matrix", matrix, 2)
    sizes = [len(alphabet) ** k for k in (1, 2, 3)]
    if matrix.shape[1] not in sizes:
        raise ValueError(f"matrix has {matrix.shape[1]} columns, expected one of {sizes}")
    k, n = sizes.index(matrix.shape[1]) + 1, matrix.shape[1]
    ax = plt.subplots(figsize=(6, 1.2 + 0.11 * min(n, 64)))[1] if ax is None else ax
    names, step = index_word(np.arange(n), k, alphabet=alphabet), -(-n // 64)  # names that fit
    ax.set_yticks(range(0, n, step), names[::step], family="monospace", size=9 if n <= 20 else 5)
    scale = {"cmap": "RdBu_r", "vmax": np.abs(matrix).max(), "vmin": -np.abs(matrix).max()}
    image = ax.imshow(matrix.T, aspect="auto", interpolation="none", **scale)
    ax.figure.colorbar(image, ax=ax, label="importance")
    ax.set_xlabel("position")
    return ax


def plot_logo(
    weights: PositionalWeights,
    motif: str | Motif,
    position: int | None = None,
    background: Background | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw `letter_contributions` as letters: what helps stands above the line, the rest below.

    The default `position` is that of a `Motif`, or the mean over all positions; the default
    `background` is uniform, as the title says.

    >>> from firmlib.strings import PositionalWeights, plot_logo, top_motifs
    >>> w = PositionalWeights.from_dict({("GAT", 4): 1.0, ("TACA", 6): 1.0}, length=20)
    >>> plot_logo(w, top_motifs(w, 6, 1)[0]).get_title()
    'GATACA at 4, uniform background'
    """
    if isinstance(motif, Motif):
        motif, position = motif.word, motif.position if position is None else position
    heights = letter_contributions(weights, motif, position, background)
    ax = plot_letters(heights.set_index((position or 0) + heights.index), ax=ax)
    where = "anywhere" if position is None else f"at {position}"
    uniform = ", uniform background" if background is None or background.name == "uniform" else ""
    ax.set(ylabel="contribution", title=f"{motif.upper()} {where}{uniform}")
    return ax


def plot_letters(heights: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw a table with one column per letter as stacks of letters, one stack per row.

    Positive letters stand above the line, negative ones hang below it, the largest outermost.
    """
    ax = plt.subplots(figsize=(1 + 0.45 * len(heights), 2.5))[1] if ax is None else ax
    for t, row in enumerate(heights.to_numpy()):
        outwards = np.argsort(np.abs(row), kind="stable")
        for sign in (1, -1):
            base = 0.0
            for code in outwards[sign * row[outwards] > 0]:
                _draw_letter(ax, str(heights.columns[code]), t, base, row[code])
                base += row[code]
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xlim(-0.6, len(heights) - 0.4)
    ax.autoscale_view(scalex=False)
    ax.set_xticks(np.arange(len(heights)), heights.index)
    ax.set_xlabel("position")
    return ax


def _draw_letter(ax: Axes, letter: str, x: float, base: float, height: float) -> None:
    font = FontProperties(family="DejaVu Sans", weight="bold")
    path = TextPath((0, 0), letter, size=1, prop=font)
    box = path.get_extents()
    fit = Affine2D().translate(-box.x0, -box.y0).scale(0.9 / box.width, abs(height) / box.height)
    fit = fit.translate(x - 0.45, min(base, base + height)).transform_path(path)
    color, alpha = LETTER_COLORS.get(letter, GREY), 1 if height > 0 else 0.4
    ax.add_patch(PathPatch(fit, facecolor=color, linewidth=0, alpha=alpha))
