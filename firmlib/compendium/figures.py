"""The look of the notebooks' figures, and how one is saved with the numbers behind it."""

from io import BytesIO
from typing import Any

import pandas as pd

from firmlib.compendium.output import output_dir, write_atomic
from firmlib.display import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

# isort: split
# After firmlib.display, which says how to get matplotlib.
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=[BLUE, RED, GREEN, ORANGE, PURPLE, SKY, GREY]),
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
