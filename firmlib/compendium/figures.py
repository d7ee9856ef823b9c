"""Style the notebooks' figures, and save them with their data."""

from io import BytesIO
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from cycler import cycler
from IPython.core.getipython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

from firmlib.compendium.output import output_dir, write_atomic
from firmlib.display import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, curve_legend

__all__ = ["STYLE", "curve_legend", "heat_map", "save", "use_style"]

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
    """Give all figures of a session the same style."""
    plt.rcParams.update(STYLE)
    if get_ipython():  # show figures whole: their layout leaves nothing to crop
        set_matplotlib_formats("png", bbox_inches=None)


def heat_map(
    ax: Axes, values: np.ndarray, limit: float, columns: list[str], rows: list[str], *, words: bool
) -> Any:
    """Draw values from -`limit` (blue) to `limit` (red), with numbers if `words`; NaN is a dot."""
    masked = np.ma.getmaskarray(values)
    style: Any = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "linewidths": 1, "cbar": False}
    style |= {"annot": words, "fmt": ".2f", "annot_kws": {"size": 7.5}}
    table = np.ma.filled(values, np.nan)
    sns.heatmap(table, xticklabels=columns, yticklabels=rows, ax=ax, **style)
    ax.tick_params(length=0, rotation=0)
    cells: Any = ax.collections[0]
    for text, color in zip(ax.texts, cells.get_facecolor()[~np.isnan(table).ravel()], strict=False):
        dark = sns.utils.relative_luminance(color) < 0.18
        text.set_color("white" if dark else "black")  # whichever has more contrast
    for i, j in np.argwhere(np.isnan(table) & ~masked & words):
        ax.text(j + 0.5, i + 0.5, "•", ha="center", va="center", size=7.5, color=GREY)
    return cells


def save(figure: Figure, name: str, data: pd.DataFrame) -> None:
    """Write a figure as png and svg and its values as csv, the same byte for byte each time."""
    engine, screen = figure.get_layout_engine(), figure.dpi

    def lay_out(dpi: float) -> None:
        figure.dpi = dpi
        if engine:
            engine.execute(figure)

    with plt.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        lay_out(plt.rcParams["savefig.dpi"])
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            buffer = BytesIO()
            figure.savefig(buffer, format=suffix, metadata=metadata)
            write_atomic(output_dir() / "figures" / f"{name}.{suffix}", buffer.getvalue())
        lay_out(screen)  # where text is wider
    csv = data.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_atomic(output_dir() / "data" / f"{name}.csv", csv)
