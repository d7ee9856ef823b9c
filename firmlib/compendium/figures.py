"""The look of the notebooks' figures, and how one is saved with the numbers behind it."""

from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from firmlib.compendium.output import output_dir, write_atomic
from firmlib.display import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

# isort: split
# After firmlib.display, which says how to get matplotlib.
import matplotlib.pyplot as plt
from cycler import cycler
from IPython.core.getipython import get_ipython
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.layout_engine import LayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib_inline.backend_inline import set_matplotlib_formats

STYLE: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=[BLUE, RED, GREEN, ORANGE, PURPLE, SKY, "black"]),
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
    if get_ipython():  # show figures whole: their layout leaves nothing to crop
        set_matplotlib_formats("png", bbox_inches=None)


def curve_legend(figure: Figure, *others: Artist) -> None:
    """Say below a figure what a `ConditionalScoreDisplay` draws, after the marks in `others`."""
    figure.legend(
        handles=[
            *others,
            Line2D([], [], color=RED, marker=".", label="$q_f(t)$"),
            Line2D([], [], color=ORANGE, label="its mean"),
            Patch(color=ORANGE, alpha=0.25, linewidth=0, label="$\\pm Q_f$"),
            Patch(color=GREY, alpha=0.6, linewidth=0, label="how often"),
        ],
        loc="outside lower center",
        ncols=4 + len(others),
        fontsize=8,
    )


def heat_map(
    ax: Axes, values: np.ndarray, limit: float, columns: list[str], rows: list[str], *, words: bool
) -> QuadMesh:
    """Draw a table from -`limit` (blue) to `limit` (red), with its numbers if `words`.

    NaN is a dot, and what is masked stays empty.
    """
    options: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    shown = ax.pcolormesh(values, edgecolors="white", linewidth=1, **options)
    ax.invert_yaxis()
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns)
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for i, j in np.argwhere(~np.ma.getmaskarray(values) & words):
        value = values[i, j]
        *rgb, _ = shown.cmap(shown.norm(value))
        dark = np.dot(np.power(rgb, 2.2), [0.2126, 0.7152, 0.0722]) < 0.18  # white reads better
        text, color = f"{value:.2f}", "white" if dark else "black"
        if np.isnan(value):
            text, color = "•", GREY
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", size=7.5, color=color)
    return shown


def save(figure: Figure, name: str, data: pd.DataFrame) -> None:
    """Write a figure as png and svg and the numbers behind it as csv, in the output folder.

    The same figure gives the same bytes again. It is laid out once for the files and once for the
    screen, where letters are wider, and then stays so: each output would else do it twice.
    """
    engine, shown = figure.get_layout_engine(), figure.dpi
    with plt.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        _lay_out(figure, engine, plt.rcParams["savefig.dpi"])
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            buffer = BytesIO()
            figure.savefig(buffer, format=suffix, metadata=metadata)
            write_atomic(output_dir() / "figures" / f"{name}.{suffix}", buffer.getvalue())
        _lay_out(figure, engine, shown)
    csv = data.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_atomic(output_dir() / "data" / f"{name}.csv", csv)


def _lay_out(figure: Figure, engine: LayoutEngine | None, dpi: float) -> None:
    figure.dpi = dpi
    if engine:
        engine.execute(figure)
